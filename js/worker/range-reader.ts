/**
 * Reads ranges of files over HTTP: closed ranges only, no HEAD, and nothing that depends on a header that CORS may hide.
 * A read that is cut goes on where it stopped; what does not help by trying again is said at once. It keeps no bytes.
 */

import { SluiceError } from '../errors.js';
import type { ChunkBuffers } from './chunk-buffer.js';
import { Timer, pause } from './lanes.js';
import {
  type Accepted,
  type Place,
  type RemoteFile,
  Retry,
  acceptResponse,
  fileEnds,
  networkFailed,
  publicUrl,
  wrongRange,
} from './range-response.js';
import type { Sink } from './source.js';

/** How requests are made. */
export interface RequestOptions {
  headers?: Readonly<Record<string, string>>;
  credentials?: RequestCredentials | null;
  /** Replaces the global `fetch`. */
  fetch?: typeof fetch;
  /** Milliseconds of the first pause before trying again; each next one is twice as long. */
  backoffMs?: number;
  /** Milliseconds without a byte after which a request is given up and tried again. */
  stallMs?: number;
}

/** The whole file from its first byte on, which is what a server sends that does not know ranges. */
export interface WholeBody {
  /** The bytes as they come. */
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>>;
  /** To be called whenever bytes have come, or the server counts as silent. */
  readonly onBytes: () => void;
  /** Bytes that are promised, where the server says so. */
  readonly promised: number | undefined;
  readonly file: RemoteFile;
  readonly place: Place;
}

/** Takes a whole file; throws a `Retry` when it ends early. */
export type TakeWhole = (whole: WholeBody, signal: AbortSignal) => Promise<void>;

/** One read that goes on. */
interface Reading {
  readonly file: RemoteFile;
  readonly signal: AbortSignal;
  readonly sink: Sink;
}

/** Makes the requests. */
export class RangeReader {
  readonly #options: RequestOptions;
  readonly #takeWhole: TakeWhole;
  readonly #buffers: ChunkBuffers;

  /** Bytes come through `buffers`. */
  constructor(options: RequestOptions, takeWhole: TakeWhole, buffers: ChunkBuffers) {
    this.#options = options;
    this.#takeWhole = takeWhole;
    this.#buffers = buffers;
  }

  /** Reads exactly these bytes, unless the server sent the whole file and it was taken: then true. */
  async read(file: RemoteFile, offset: number, length: number, signal: AbortSignal, sink: Sink): Promise<boolean> {
    const retries = file.answered === true ? MAX_RETRIES : FIRST_RETRIES;
    let done = 0;
    const counted: Sink = (at, bytes) => {
      const more = sink(at, bytes);
      done = at + bytes.byteLength;
      return more;
    };
    for (let failures = 0, last = 0; ;) {
      signal.throwIfAborted();
      try {
        const start = done;
        const rest: Sink = (at, bytes) => counted(start + at, bytes);
        return await this.#request(offset + start, length - start, { file, signal, sink: rest });
      } catch (thrown) {
        signal.throwIfAborted();
        if (!(thrown instanceof Retry)) throw thrown;
        failures = done > last ? 1 : failures + 1;
        last = done;
        if (failures > retries) throw thrown.error;
        if (thrown.atOnce && failures === 1) continue;
        const wait = (this.#options.backoffMs ?? BACKOFF_MS) * 2 ** (failures - 1);
        await pause(Math.min(Math.max(wait, thrown.waitMs), MAX_WAIT_MS), signal);
      }
    }
  }

  /** One request for exactly these bytes. */
  async #request(offset: number, length: number, { file, signal, sink }: Reading): Promise<boolean> {
    const place: Place = { url: publicUrl(file.url), offset, length };
    const request = new AbortController();
    const stop = (): void => request.abort(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    const stalled = (): void => request.abort(new Retry(networkFailed(place, 'the server went silent')));
    const timer = new Timer(this.#options.stallMs ?? STALL_MS, stalled);
    try {
      const { headers, credentials, fetch = globalThis.fetch } = this.#options;
      const range = file.refusesRanges ? {} : { Range: `bytes=${offset}-${offset + length - 1}` };
      const response = await fetch(file.url, {
        headers: { ...headers, ...range },
        cache: 'no-store',
        signal: request.signal,
        ...(credentials ? { credentials } : {}),
      });
      timer.restart();
      const accepted = acceptResponse(response, place, file);
      file.answered = true;
      if (accepted.whole) {
        const whole = { body: bodyOf(response), onBytes: () => timer.restart(), promised: accepted.promised, file, place };
        await this.#takeWhole(whole, request.signal);
      } else await this.#takeBody(response, accepted, place, file, timer, sink);
      return accepted.whole;
    } catch (thrown) {
      if (request.signal.aborted) throw request.signal.reason;
      if (thrown instanceof Retry || thrown instanceof SluiceError) throw thrown;
      const why = thrown instanceof Error ? thrown.message : 'no connection';
      throw new Retry(networkFailed(place, why.replaceAll(file.url, place.url).replace(ADDRESS, shown)));
    } finally {
      timer.stop();
      signal.removeEventListener('abort', stop);
      request.abort(); // what is left of the body is not wanted
    }
  }

  /** Hands the body over chunk by chunk and judges how it ended. */
  async #takeBody(
    response: Response,
    accepted: Accepted,
    place: Place,
    file: RemoteFile,
    timer: Timer,
    sink: Sink,
  ): Promise<void> {
    const { offset, length } = place;
    let got = 0;
    for await (const bytes of this.#buffers.chunks(bodyOf(response))) {
      timer.restart();
      if (got + bytes.byteLength > length) throw wrongRange(place, `more than the ${length} bytes it was asked for`);
      if (!sink(got, bytes)) return;
      got += bytes.byteLength;
    }
    if (got === length) return;
    if (accepted.promised !== undefined && got !== accepted.promised)
      throw new Retry(networkFailed(place, `the connection ended after ${got} bytes`));
    if (file.size === undefined && got > 0) {
      // The file may end here, or the server gives no more at once: the next request tells.
      throw new Retry(fileEnds(place, offset + got), { atOnce: true });
    }
    if (file.size !== undefined && offset + got < Math.min(file.size, offset + length)) {
      throw new Retry(wrongRange(place, `only ${got} of them`), { atOnce: got > 0 });
    }
    file.size ??= offset + got;
    throw fileEnds(place, file.size);
  }
}

/** A message of the browser may name an address with its key or password. */
function shown(address: string): string {
  return URL.canParse(address) ? publicUrl(address) : '';
}

function bodyOf(response: Response): ReadableStream<Uint8Array<ArrayBuffer>> {
  return response.body ?? new Blob([]).stream();
}

const ADDRESS = /https?:\/\/[^\s'"]+/g;
/** Before anything has come, a wrong address is likelier than a bad moment. */
const FIRST_RETRIES = 3;
const MAX_RETRIES = 5;
const BACKOFF_MS = 250;
const MAX_WAIT_MS = 10_000;
const STALL_MS = 30_000;
