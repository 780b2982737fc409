/**
 * Reads a model by HTTP Range requests and stores nothing: where there is no store, or none is wanted. Reads go straight to the server
 * (`range-reader.ts`); what a server sends whole is kept by the browser.
 */

import { BlobSource } from './blob-source.js';
import { ChunkBuffers } from './chunk-buffer.js';
import { Lanes } from './lanes.js';
import { RangeReader, type RequestOptions, type WholeBody } from './range-reader.js';
import { type RemoteFile, Retry, networkFailed } from './range-response.js';
import { type Sink, type Source, cancelled, sourceFailed } from './source.js';

/** How requests are made, and who hears of downloads. */
export interface RangeOptions extends RequestOptions {
  /** Hears how far the download of a file has got whose server cannot send parts. */
  onDownload?: (loadedBytes: number, totalBytes: number) => void;
  /** Whoever reads the weights later will read them through the store, with buffers of this size: so says this source of itself. */
  storedBufferBytes?: number | undefined;
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
  readonly #reader: RangeReader;
  readonly #lanes = new Lanes(MAX_REQUESTS);
  #controller = new AbortController();

  private constructor(urls: readonly string[], options: RangeOptions) {
    this.#files = urls.map((url) => ({ url, size: undefined, etag: undefined, head: undefined, whole: undefined }));
    this.#options = options;
    this.#reader = new RangeReader(options, (whole, signal) => this.#keepWhole(whole, signal), new ChunkBuffers(CHUNK_BYTES));
    this.bufferBytes = options.storedBufferBytes ?? MAX_REQUESTS * CHUNK_BYTES + urls.length * HEAD_BYTES;
  }

  /** Asks each file for its first bytes, so that a wrong address is known before anything is built. */
  static async open(urls: readonly string[], options: RangeOptions = {}): Promise<RangeSource> {
    const source = new RangeSource(urls, options);
    await Promise.all(source.#files.map((file) => source.#readHead(file)));
    return source;
  }

  /** Only what was downloaded whole is here to be read again. */
  get rereads(): boolean {
    return !this.arriving || this.#options.storedBufferBytes !== undefined;
  }

  get arriving(): boolean {
    return this.#files.some(({ whole }) => whole === undefined);
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
    const rest: Sink = (at, bytes) => sink(done + at, bytes);
    await this.#lanes.run(signal, () => this.#reader.read(remote, offset + done, length - done, signal, rest));
  }

  cancel(): void {
    this.#controller.abort(cancelled());
    this.#controller = new AbortController();
    for (const { whole } of this.#files) whole?.cancel();
  }

  async #readHead(file: OpenedFile): Promise<void> {
    const head = new Uint8Array(HEAD_BYTES);
    let got = 0;
    const keep: Sink = (at, bytes) => {
      head.set(bytes, at);
      got = at + bytes.byteLength;
      return true;
    };
    try {
      await this.#reader.read(file, 0, HEAD_BYTES, this.#controller.signal, keep);
    } catch (thrown) {
      // A file smaller than the head says so, and all of it is here.
      const complete = got > 0 && got === file.size;
      if (!complete) throw thrown;
    }
    if (file.whole === undefined) file.head = head.subarray(0, got);
  }

  /** Takes the whole file, once, before anything else was read of it. */
  async #keepWhole({ body, onBytes, promised, file, place }: WholeBody, signal: AbortSignal): Promise<void> {
    const opened = this.#files.find((known) => known === file);
    if (opened === undefined || opened.head !== undefined || place.offset > 0) {
      const message = `asked for a part of ${place.url}, the server sent the whole file (status 200), which it did not before; it must support Range requests`;
      throw sourceFailed(message, { ...place, reason: 'range' });
    }
    let got = 0;
    const counted = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform: (bytes, controller) => {
        onBytes();
        got += bytes.byteLength;
        if (promised !== undefined) this.#options.onDownload?.(got, promised);
        controller.enqueue(bytes);
      },
    });
    const blob = await new Response(body.pipeThrough(counted, { signal })).blob();
    if (promised !== undefined && blob.size !== promised) {
      throw new Retry(networkFailed(place, `the connection ended after ${blob.size} bytes`));
    }
    opened.size = blob.size;
    opened.whole = new BlobSource([blob]);
  }
}

/** Requests under way at once: browsers allow 6 a host, and the page wants some too. */
const MAX_REQUESTS = 4;
/** What one stream hands over at once. */
const CHUNK_BYTES = 64 * 1024;
const HEAD_BYTES = 64 * 1024;
