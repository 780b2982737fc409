/** What a server's answer to a Range request means: usable, worth another try, or wrong for good and why. */

import { SluiceError } from '../errors.js';
import { publicUrl } from '../store/layout.js';
import { rangeText, sourceFailed } from './source.js';

export { publicUrl };

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
  /** The server's date of this version, where it shows one. */
  modified?: string | undefined;
  /** It has given bytes before: a refusal now may pass. */
  answered?: boolean;
  /** It answers no request that asks for a part. */
  refusesRanges?: boolean;
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
  /** There is nothing to wait for, the first time. */
  readonly atOnce: boolean;

  constructor(error: SluiceError, { waitMs = 0, atOnce = false } = {}) {
    this.error = error;
    this.waitMs = waitMs;
    this.atOnce = atOnce;
  }
}

/** Reason of an answer that is a page, such as a log-in: it says nothing of what came before. */
export const WEB_PAGE = 'web_page';

/** Checks status and headers; learns the file's size and version where they show. Throws a `SluiceError` or a `Retry`. */
export function acceptResponse(response: Response, place: Place, file: RemoteFile): Accepted {
  const { status, headers } = response;
  if (status !== 206 && status !== 200) throw badStatus(response, place, file);
  if (headers.get('content-type')?.startsWith('text/html') === true) {
    const message = `${place.url} is a web page, not a model file: check the address`;
    throw new SluiceError('invalid_model', message, { url: place.url, status, reason: WEB_PAGE });
  }
  const encoding = headers.get('content-encoding');
  const encoded = encoding !== null && encoding !== 'identity';
  // Ranges of a compressed file are no ranges of the file; a whole one is unpacked by the browser.
  if (encoded && status === 206) {
    throw wrongRange(place, `compressed bytes (${encoding}); it must serve the model as it is`);
  }
  checkVersion(headers, place, file);
  const bodyBytes = encoded ? undefined : numberOf(headers.get('content-length'));
  if (status === 200) {
    if (bodyBytes !== undefined && file.size !== undefined && bodyBytes !== file.size) throw changed(place);
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

function badStatus({ status, headers }: Response, place: Place, file: RemoteFile): SluiceError | Retry {
  const { url } = place;
  const details = { ...place, status };
  if (status === 416) return noSuchRange(headers, place, file);
  const range = rangeText(place.offset, place.length);
  if (status === 404 || status === 410)
    return sourceFailed(`there is no file at ${url} (status ${status}): check the address`, details);
  if (status === 401 || status === 403) {
    const remedy = "give the option 'headers' if it needs a key, or a fresh link if this one has expired";
    const error = sourceFailed(`the server refuses ${range} of ${url} (status ${status}): ${remedy}`, details);
    // The link that the address led to may have expired, or one of several servers may be wrong: the address is asked anew.
    return file.answered === true ? new Retry(error) : error;
  }
  const error = sourceFailed(`the server cannot give ${range} of ${url} (status ${status}): try again later`, details);
  if (!BUSY.includes(status)) return error;
  return new Retry(error, { waitMs: (numberOf(headers.get('retry-after')) ?? 0) * 1000 });
}

/** The server says that the file has no such bytes. */
function noSuchRange(headers: Headers, place: Place, file: RemoteFile): SluiceError | Retry {
  const size = numberOf(/^bytes \*\/(\d+)$/.exec(headers.get('content-range') ?? '')?.[1] ?? null);
  if (size === undefined && place.offset === 0 && file.answered !== true && file.refusesRanges !== true) {
    // Some servers say so to every range.
    file.refusesRanges = true;
    return new Retry(fileEnds(place, undefined), { atOnce: true });
  }
  if (size !== undefined && file.size !== undefined && size !== file.size) return changed(place);
  const known = (file.size ??= size ?? (place.offset > 0 ? place.offset : undefined));
  const error = fileEnds(place, known);
  return known !== undefined && place.offset < known ? new Retry(error) : error;
}

function checkVersion(headers: Headers, place: Place, file: RemoteFile): void {
  const etag = headers.get('etag');
  // Weak tags may differ between the servers of one host for the same bytes.
  if (etag !== null && !etag.startsWith('W/')) {
    file.etag ??= etag;
    if (file.etag !== etag) throw changed(place);
    return;
  }
  const modified = headers.get('last-modified');
  if (modified === null) return;
  file.modified ??= modified;
  if (file.modified !== modified) throw changed(place);
}

/** The bytes that were read and those to come are not of one file. */
export function changed(place: Place): SluiceError {
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
