/** What a server's answer to a Range request means: usable, worth another try, or wrong for good and why. */

import { SluiceError } from '../errors.js';
import { rangeText, sourceFailed } from './source.js';

/** The bytes that were asked for. */
export interface Place {
  /** Address without query and credentials, for messages. */
  readonly url: string;
  readonly offset: number;
  readonly length: number;
}

/** What is known of a file; answers add to it. */
export interface RemoteFile {
  readonly url: string;
  size: number | undefined;
  /** The server's name for this version of the file, where it shows one. */
  etag: string | undefined;
}

/** An answer whose body can be read. */
export interface Accepted {
  /** The body is the whole file from its first byte on: the server does not know ranges. */
  readonly whole: boolean;
  /** Bytes that the body should have, where the server says so. */
  readonly promised: number | undefined;
}

/** A failure that another try may mend; `error` is what it becomes when none did. */
export class Retry {
  readonly error: SluiceError;
  /** Milliseconds that the server asks to wait. */
  readonly waitMs: number;

  constructor(error: SluiceError, waitMs = 0) {
    this.error = error;
    this.waitMs = waitMs;
  }
}

/** Checks status and headers; learns the file's size and version where they show. Throws a `SluiceError` or a `Retry`. */
export function acceptResponse(response: Response, place: Place, file: RemoteFile): Accepted {
  const { status, headers } = response;
  if (status !== 206 && status !== 200) throw badStatus(response, place, file);
  if (headers.get('content-type')?.startsWith('text/html') === true) {
    const message = `${place.url} is a web page, not a model file: check the address`;
    throw new SluiceError('invalid_model', message, { url: place.url, status });
  }
  const encoding = headers.get('content-encoding');
  if (encoding !== null && encoding !== 'identity') {
    throw wrongRange(place, `compressed bytes (${encoding}); it must serve the model as it is`);
  }
  checkVersion(headers.get('etag'), place, file);
  const bodyBytes = numberOf(headers.get('content-length'));
  if (status === 200) {
    if (place.offset > 0) throw wrongRange(place, 'the whole file (status 200); it must support Range requests');
    file.size ??= bodyBytes;
    return { whole: true, promised: bodyBytes };
  }
  const range = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(headers.get('content-range') ?? '');
  if (range === null) return { whole: false, promised: bodyBytes };
  const [first, last] = [Number(range[1]), Number(range[2])];
  const total = numberOf(range[3] ?? null);
  if (first !== place.offset || last >= place.offset + place.length) {
    throw wrongRange(place, `other bytes (${first}-${last})`);
  }
  if (total !== undefined) {
    if (file.size !== undefined && file.size !== total) throw changed(place);
    file.size = total;
  }
  return { whole: false, promised: last - first + 1 };
}

/** No answer, or half of one. */
export function networkFailed(place: Place, why: string): SluiceError {
  const message =
    `${rangeText(place.offset, place.length)} of ${place.url} could not be read (${why}): ` +
    'check the connection, and that the server allows this page to read the file (CORS)';
  return sourceFailed(message, { ...place, reason: 'network' });
}

/** The file is shorter than it must be. */
export function fileEnds(place: Place, size: number | undefined): SluiceError {
  const where = size === undefined ? `before byte ${place.offset + place.length}` : `at byte ${size}`;
  const message = `${place.url} ends ${where}, but ${rangeText(place.offset, place.length)} are needed: the file is cut off; download or upload it again`;
  return sourceFailed(message, { ...place, reason: 'short', ...(size === undefined ? {} : { size }) });
}

/** The server does not do what it was asked. */
export function wrongRange(place: Place, what: string): SluiceError {
  return sourceFailed(`asked for ${rangeText(place.offset, place.length)} of ${place.url}, the server sent ${what}`, {
    ...place,
    reason: 'range',
  });
}

/** An address that may be shown and kept: no query, fragment or credentials. */
export function publicUrl(url: string): string {
  const shown = new URL(url);
  shown.username = shown.password = shown.search = shown.hash = '';
  return shown.href;
}

function badStatus({ status, headers }: Response, place: Place, file: RemoteFile): SluiceError | Retry {
  const { url } = place;
  const details = { ...place, status };
  if (status === 416) {
    const size = numberOf(/^bytes \*\/(\d+)$/.exec(headers.get('content-range') ?? '')?.[1] ?? null);
    return fileEnds(place, size ?? file.size);
  }
  const range = rangeText(place.offset, place.length);
  if (status === 404 || status === 410)
    return sourceFailed(`there is no file at ${url} (status ${status}): check the address`, details);
  if (status === 401 || status === 403) {
    const remedy = "give the option 'headers' if it needs a key, or a fresh link if this one has expired";
    return sourceFailed(`the server refuses ${range} of ${url} (status ${status}): ${remedy}`, details);
  }
  const error = sourceFailed(`the server cannot give ${range} of ${url} (status ${status}): try again later`, details);
  if (!BUSY.includes(status)) return error;
  return new Retry(error, (numberOf(headers.get('retry-after')) ?? 0) * 1000);
}

function checkVersion(etag: string | null, place: Place, file: RemoteFile): void {
  // Weak tags may differ between the servers of one host for the same bytes.
  if (etag === null || etag.startsWith('W/')) return;
  file.etag ??= etag;
  if (file.etag !== etag) throw changed(place);
}

function changed(place: Place): SluiceError {
  return sourceFailed(`${place.url} has changed on the server while it was being read: open the model again`, {
    ...place,
    reason: 'changed',
  });
}

function numberOf(text: string | null): number | undefined {
  return text !== null && /^\d+$/.test(text) ? Number(text) : undefined;
}

/** Statuses that pass. */
const BUSY = [408, 425, 429, 500, 502, 503, 504];
