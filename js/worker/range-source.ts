/**
 * Reads a model by HTTP Range requests: closed ranges only, no HEAD, and nothing that depends on a header that CORS may hide.
 * A read that is cut goes on where it stopped; what does not help by trying again is said at once.
 */

import { SluiceError } from '../errors.js';
import { BlobSource } from './blob-source.js';
import { Lanes, Timer, pause } from './lanes.js';
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
import { type Sink, type Source, cancelled, sourceFailed } from './source.js';

/** How requests are made. */
export interface RangeOptions {
  headers?: Readonly<Record<string, string>>;
  credentials?: RequestCredentials | null;
  /** Replaces the global `fetch`. */
  fetch?: typeof fetch;
  /** Milliseconds of the first pause before trying again; each next one is twice as long. */
  backoffMs?: number;
  /** Milliseconds without a byte after which a request is given up and tried again. */
  stallMs?: number;
  /** Hears how far the download of a file has got whose server cannot send parts. */
  onDownload?: (loadedBytes: number, totalBytes: number) => void;
}

interface OpenedFile extends RemoteFile {
  /** The first bytes, which came with the request that looked whether anything is there; dropped when reading has passed them. */
  head: Uint8Array | undefined;
  /** All of it, when the server cannot send parts: downloaded once, and kept by the browser, which may put it on disk. */
  whole: BlobSource | undefined;
}

/** The files of one model on HTTP servers. */
export class RangeSource implements Source {
  readonly bufferBytes: number;
  readonly #files: readonly OpenedFile[];
  readonly #options: RangeOptions;
  readonly #lanes = new Lanes(MAX_REQUESTS);
  #controller = new AbortController();

  private constructor(urls: readonly string[], options: RangeOptions) {
    this.#files = urls.map((url) => ({ url, size: undefined, etag: undefined, head: undefined, whole: undefined }));
    this.#options = options;
    this.bufferBytes = MAX_REQUESTS * CHUNK_BYTES + urls.length * HEAD_BYTES;
  }

  /** Asks each file for its first bytes, so that a wrong address is known before anything is built. */
  static async open(urls: readonly string[], options: RangeOptions = {}): Promise<RangeSource> {
    const source = new RangeSource(urls, options);
    await Promise.all(source.#files.map((file) => source.#readHead(file)));
    return source;
  }

  /** Only what was downloaded whole is here to be read again. */
  get rereads(): boolean {
    return this.#files.every(({ whole }) => whole !== undefined);
  }

  get fileCount(): number {
    return this.#files.length;
  }

  size(file: number): number | undefined {
    return this.#files[file]?.size;
  }

  async read(file: number, offset: number, length: number, sink: Sink): Promise<void> {
    const remote = this.#files[file];
    if (remote === undefined) throw sourceFailed(`the model has no file ${file}`, { file });
    if (remote.whole !== undefined) return remote.whole.read(0, offset, length, sink);
    const signal = this.#controller.signal;
    let done = 0;
    if (remote.head !== undefined && offset < remote.head.byteLength) {
      const bytes = remote.head.subarray(offset, offset + length);
      if (!sink(0, bytes)) return;
      done = bytes.byteLength;
    }
    if (done === length) return;
    remote.head = undefined;
    const rest = (): Promise<void> => {
      const start = done;
      return this.#request(remote, offset + start, length - start, signal, (at, bytes) => {
        done = start + at + bytes.byteLength;
        return sink(start + at, bytes);
      });
    };
    await this.#lanes.run(signal, () => this.#persist(signal, rest, () => done));
  }

  cancel(): void {
    this.#controller.abort(cancelled());
    this.#controller = new AbortController();
    for (const { whole } of this.#files) whole?.cancel();
  }

  async #readHead(file: OpenedFile): Promise<void> {
    const signal = this.#controller.signal;
    const head = new Uint8Array(HEAD_BYTES);
    let got = 0;
    const keep: Sink = (at, bytes) => {
      head.set(bytes, at);
      got = at + bytes.byteLength;
      return true;
    };
    try {
      await this.#persist(
        signal,
        () => this.#request(file, 0, HEAD_BYTES, signal, keep),
        () => 0,
        FIRST_RETRIES,
      );
    } catch (thrown) {
      // A file smaller than the head says so, and all of it is here.
      const complete = got > 0 && got === file.size;
      if (!complete) throw thrown;
    }
    if (file.whole === undefined) file.head = head.subarray(0, got);
  }

  /** Runs `attempt` until it succeeds, it fails for good, or it has failed too often without a byte of progress. */
  async #persist(
    signal: AbortSignal,
    attempt: () => Promise<void>,
    progress: () => number,
    retries = MAX_RETRIES,
  ): Promise<void> {
    for (let failures = 0, last = progress(); ;) {
      signal.throwIfAborted();
      try {
        await attempt();
        return;
      } catch (thrown) {
        signal.throwIfAborted();
        if (!(thrown instanceof Retry)) throw thrown;
        const now = progress();
        failures = now > last ? 1 : failures + 1;
        last = now;
        if (failures > retries) throw thrown.error;
        const wait = (this.#options.backoffMs ?? BACKOFF_MS) * 2 ** (failures - 1);
        await pause(Math.min(Math.max(wait, thrown.waitMs), MAX_WAIT_MS), signal);
      }
    }
  }

  /** One request for exactly these bytes. */
  async #request(file: OpenedFile, offset: number, length: number, outer: AbortSignal, sink: Sink): Promise<void> {
    const place: Place = { url: publicUrl(file.url), offset, length };
    const request = new AbortController();
    const stop = (): void => request.abort(outer.reason);
    outer.addEventListener('abort', stop, { once: true });
    const stalled = (): void => request.abort(new Retry(networkFailed(place, 'the server went silent')));
    const timer = new Timer(this.#options.stallMs ?? STALL_MS, stalled);
    try {
      const { headers, credentials, fetch = globalThis.fetch } = this.#options;
      const response = await fetch(file.url, {
        headers: { ...headers, Range: `bytes=${offset}-${offset + length - 1}` },
        cache: 'no-store',
        signal: request.signal,
        ...(credentials ? { credentials } : {}),
      });
      const accepted = acceptResponse(response, place, file);
      if (accepted.whole) await this.#download(response, accepted, place, file, timer);
      else await takeBody(response, accepted, place, file, timer, sink);
    } catch (thrown) {
      if (request.signal.aborted) throw request.signal.reason;
      if (thrown instanceof Retry || thrown instanceof SluiceError) throw thrown;
      throw new Retry(networkFailed(place, thrown instanceof Error ? thrown.message : 'no connection'));
    } finally {
      timer.stop();
      outer.removeEventListener('abort', stop);
      request.abort(); // what is left of the body is not wanted
    }
  }

  /** Takes the whole file, which is what a server sends that does not know ranges. */
  async #download(response: Response, { promised }: Accepted, place: Place, file: OpenedFile, timer: Timer): Promise<void> {
    let got = 0;
    const watched = new TransformStream<Uint8Array, Uint8Array>({
      transform: (bytes, controller) => {
        timer.restart();
        got += bytes.byteLength;
        if (promised !== undefined) this.#options.onDownload?.(got, promised);
        controller.enqueue(bytes);
      },
    });
    const blob = await new Response(response.body?.pipeThrough(watched)).blob();
    if (promised !== undefined && blob.size !== promised) {
      throw new Retry(networkFailed(place, `the connection ended after ${blob.size} bytes`));
    }
    file.size = blob.size;
    file.whole = new BlobSource([blob]);
  }
}

/** Hands the body over chunk by chunk and judges how it ended. */
async function takeBody(
  response: Response,
  accepted: Accepted,
  place: Place,
  file: RemoteFile,
  timer: Timer,
  sink: Sink,
): Promise<void> {
  const { length } = place;
  const reader = response.body?.getReader();
  let got = 0;
  for (let next = await reader?.read(); next !== undefined && !next.done; next = await reader?.read()) {
    timer.restart();
    const bytes = next.value;
    if (got + bytes.byteLength > length) throw wrongRange(place, `more than the ${length} bytes it was asked for`);
    if (!sink(got, bytes)) return;
    got += bytes.byteLength;
  }
  if (got === length) return;
  if (accepted.promised !== undefined && got !== accepted.promised)
    throw new Retry(networkFailed(place, `the connection ended after ${got} bytes`));
  file.size = place.offset + got;
  throw fileEnds(place, file.size);
}

/** Requests under way at once: browsers allow 6 a host, and the page wants some too. */
const MAX_REQUESTS = 4;
/** What one stream hands over at once. */
const CHUNK_BYTES = 64 * 1024;
const HEAD_BYTES = 64 * 1024;
/** Before anything has come, a wrong address is likelier than a bad moment. */
const FIRST_RETRIES = 3;
const MAX_RETRIES = 5;
const BACKOFF_MS = 250;
const MAX_WAIT_MS = 10_000;
const STALL_MS = 30_000;
