/**
 * The download worker: fetches a model's blocks over a few connections, what is waited for first, then in the order of use, and writes
 * them to the store as they come. It ends after some tens of megabytes, because a worker's heap does not shrink; its maker starts the next.
 */

import { SluiceError, fromPlainError, toPlainError } from '../errors.js';
import type { FromDownload, SpoiltBlock, ToDownload } from '../store/download-protocol.js';
import { StoreEntry } from '../store/entry.js';
import { BLOCK_BYTES, blockLength } from '../store/layout.js';
import { BlockQueue, type Run } from './block-queue.js';
import { ChunkBuffers } from './chunk-buffer.js';
import { RangeReader, type RequestOptions, type WholeBody } from './range-reader.js';
import { employer } from './hired.js';
import { type RemoteFile, Retry, networkFailed } from './range-response.js';
import { SegmentWriter } from './segment-writer.js';
import { storageFailed } from './store-access.js';

type Start = ToDownload & { kind: 'start' };
type Read = ToDownload & { kind: 'read' };

/** One model's download, until it is complete, has failed or retires. */
class Download {
  readonly #entry: StoreEntry;
  readonly #writer: SegmentWriter;
  readonly #queue: BlockQueue;
  readonly #remotes: readonly RemoteFile[];
  readonly #requests: RequestOptions;
  /** The connections: each with what ends it. */
  readonly #lanes = new Set<AbortController>();
  /** Files of which the server has said something. */
  readonly #told = new Set<number>();
  readonly #chunks = new ChunkBuffers(CHUNK_BYTES);
  /** Buffers for answers. */
  readonly #buffers: ArrayBuffer[];
  #reads: Read[] = [];
  /** Blocks that are being looked at, whether they must be fetched again. */
  #mending = 0;
  #ordered = false;
  #fetchedBytes = 0;
  /** Stored bytes that others know of. */
  #toldBytes: number;
  #toldAt = 0;
  #retiring = false;
  #ended = false;
  /** The connection on which a whole file comes; nothing else is fetched meanwhile. */
  #whole: AbortController | undefined;

  constructor(entry: StoreEntry, writer: SegmentWriter, start: Start) {
    this.#entry = entry;
    this.#writer = writer;
    [this.#toldBytes] = writer.storedBytes();
    this.#queue = new BlockQueue((file, block) => writer.has(file, block));
    this.#remotes = start.urls.map((url, file) => {
      const known = entry.facts.files[file];
      return { url, size: known?.size ?? undefined, etag: known?.etag ?? undefined, modified: known?.modified ?? undefined };
    });
    const { headers, credentials, backoffMs, stallMs } = start;
    this.#requests = { headers, credentials, ...(backoffMs !== null && { backoffMs }), ...(stallMs !== null && { stallMs }) };
    this.#buffers = [...start.buffers];
    for (const block of start.spoilt) this.#mend(block);
    for (const file of start.confirm) if (this.#isWhole(file)) void this.#confirm(file);
  }

  hear(message: ToDownload): void {
    switch (message.kind) {
      case 'start':
      case 'ask':
        return;
      case 'order':
        this.#ordered = true;
        for (const [file, end] of message.ends.entries()) this.#endsAt(file, end);
        this.#queue.setOrder(message.blocks);
        break;
      case 'read':
        this.#reads.push(message);
        this.answer();
        break;
      case 'buffer':
        this.#buffers.push(message.buffer);
        this.answer();
        break;
      case 'spoilt':
        this.#mend(message.block);
        break;
      case 'forget':
        this.#reads = [];
    }
    this.#pump();
  }

  /** A block is missing that was there. */
  lost(block: SpoiltBlock): void {
    const size = this.#remotes[block.file]?.size ?? null;
    const bytes = blockLength(block.block, size);
    this.#toldBytes -= bytes;
    say({ kind: 'spoilt', block, bytes });
    this.#queue.rewind();
    queueMicrotask(() => this.#pump());
  }

  /** Answers the reads whose bytes are there. */
  answer(): void {
    this.#reads = this.#reads.filter((read) => !this.#answer(read));
  }

  fail(thrown: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    for (const lane of this.#lanes) lane.abort();
    this.#tellStored(0); // parts of blocks come again
    try {
      this.#writer.close();
    } catch {
      // What was to be said is said by what was thrown first.
    }
    say({ kind: 'failed', error: toPlainError(this.#named(thrown)) });
    self.close();
  }

  /** What is wrong with the browser's storage says so, and how much of the model is missing. */
  #named(thrown: unknown): unknown {
    if (!(thrown instanceof DOMException)) return thrown;
    const [stored, total] = this.#writer.storedBytes();
    return storageFailed(thrown, total === undefined ? undefined : total - stored);
  }

  /** Not to be taken for a failure of the network, which another try may mend. */
  #rethrow(thrown: unknown): never {
    throw thrown instanceof SluiceError ? thrown : fromPlainError(toPlainError(this.#named(thrown)));
  }

  /** Starts what there is to fetch on the connections that are free; ends when there is nothing left to do. */
  #pump(): void {
    while (!this.#ended && !this.#retiring && this.#whole === undefined && this.#lanes.size < LANES) {
      const run = this.#queue.next(this.#reads);
      if (run === undefined) break;
      void this.#fetch(run);
    }
    if (this.#ended || this.#lanes.size > 0 || this.#mending > 0) return;
    const complete = this.#ordered && this.#queue.isComplete(this.#remotes.map(({ size }) => size));
    if (!complete && !this.#retiring) return;
    this.#ended = true;
    try {
      this.#writer.close();
      this.#tellStored();
      say({ kind: 'ended', complete, buffers: this.#buffers }, this.#buffers);
    } catch (thrown) {
      say({ kind: 'failed', error: toPlainError(this.#named(thrown)) });
    }
    self.close();
  }

  async #fetch(run: Run): Promise<void> {
    const { file, first, end } = run;
    const remote = this.#remotes[file];
    const lane = new AbortController();
    this.#lanes.add(lane);
    try {
      if (remote === undefined) throw new RangeError(`the model has no file ${file}`);
      const offset = first * BLOCK_BYTES;
      const length = (end - first - 1) * BLOCK_BYTES + blockLength(end - 1, remote.size ?? null);
      await this.#writer.prepare(file, offset, offset + length);
      await this.#readRun(file, remote, offset, length, lane);
      if (this.#fetchedBytes >= RETIRE_BYTES && !this.#retiring) {
        this.#retiring = true;
        say({ kind: 'retiring' });
      }
    } catch (thrown) {
      if (!lane.signal.aborted) this.fail(thrown);
    } finally {
      this.#lanes.delete(lane);
      if (this.#whole === lane) this.#whole = undefined;
      this.#queue.release(run);
      this.#pump();
    }
  }

  async #readRun(file: number, remote: RemoteFile, offset: number, length: number, lane: AbortController): Promise<void> {
    const reader = new RangeReader(this.#requests, (whole) => this.#takeWhole(file, whole, lane), this.#chunks);
    let got = 0;
    try {
      await reader.read(remote, offset, length, lane.signal, (at, bytes) => {
        this.#learn(file);
        this.#write(file, offset + at, bytes);
        got = at + bytes.byteLength;
        return true;
      });
    } catch (thrown) {
      // A file whose size was not known ends here, and all of it is there.
      if (lane.signal.aborted || got === 0 || remote.size !== offset + got) throw thrown;
      this.#learn(file);
      this.#writer.endAt(file, remote.size);
    }
  }

  /** Takes a file that the server sends whole, from its first byte on; what is stored of it is passed over. */
  async #takeWhole(
    file: number,
    { body, onBytes, promised, file: remote, place }: WholeBody,
    lane: AbortController,
  ): Promise<void> {
    if (this.#whole !== undefined && this.#whole !== lane) {
      lane.abort();
      lane.signal.throwIfAborted();
    }
    this.#whole = lane;
    for (const other of this.#lanes) if (other !== lane) other.abort();
    let at = 0;
    for await (const chunk of this.#chunks.chunks(body)) {
      onBytes();
      this.#learn(file);
      // What follows on the last byte that is needed is nothing to us.
      const bytes = chunk.subarray(0, Math.max(0, (remote.size ?? Infinity) - at));
      await this.#writer.prepare(file, at, at + bytes.byteLength).catch((thrown: unknown) => this.#rethrow(thrown));
      this.#write(file, at, bytes);
      at += bytes.byteLength;
      if (remote.size !== undefined && at >= remote.size) break;
    }
    if (at !== (promised ?? remote.size ?? at)) {
      throw new Retry(networkFailed(place, `the connection ended after ${at} bytes`));
    }
    remote.size = at;
    this.#learn(file);
    this.#writer.endAt(file, at);
  }

  /** Asks the server for its version of a file of which nothing is missing. */
  async #confirm(file: number): Promise<void> {
    const remote = this.#remotes[file];
    if (remote === undefined) return;
    const lane = new AbortController();
    this.#lanes.add(lane);
    const learn = (): void => this.#learn(file);
    try {
      const reader = new RangeReader(this.#requests, () => Promise.resolve(learn()), this.#chunks);
      await reader.read(remote, 0, 1, lane.signal, () => (learn(), false));
    } catch (thrown) {
      if (!lane.signal.aborted) this.fail(thrown);
    } finally {
      this.#lanes.delete(lane);
      this.#pump();
    }
  }

  #isWhole(file: number): boolean {
    const size = this.#remotes[file]?.size;
    return size !== undefined && this.#writer.isWhole(file, size);
  }

  /** Looks at a block that somebody found damaged. */
  #mend(block: SpoiltBlock): void {
    this.#mending += 1;
    const done = (): void => {
      this.#mending -= 1;
      this.#queue.rewind();
      this.answer();
      this.#pump();
    };
    this.#writer.mend(block).then(done, (thrown: unknown) => this.fail(thrown));
  }

  #write(file: number, offset: number, bytes: Uint8Array): void {
    if (this.#ended) return;
    try {
      this.#writer.write(file, offset, bytes);
    } catch (thrown) {
      this.#rethrow(thrown);
    }
    this.#fetchedBytes += bytes.byteLength;
    if (performance.now() - this.#toldAt > TELL_MS) this.#tellStored();
  }

  #tellStored(partialBytes = this.#writer.partialBytes()): void {
    this.#toldAt = performance.now();
    const bytes = this.#writer.storedBytes()[0] + partialBytes - this.#toldBytes;
    if (bytes !== 0) say({ kind: 'stored', bytes });
    this.#toldBytes += bytes;
  }

  /** Takes note of what an answer said of a file. */
  #learn(file: number): void {
    const remote = this.#remotes[file];
    const facts = this.#entry.facts.files[file];
    if (remote === undefined || facts === undefined) return;
    const { size = null, etag = null, modified = null } = remote;
    const known = size === facts.size && etag === facts.etag && modified === facts.modified;
    if (known && this.#told.has(file)) return;
    this.#told.add(file);
    Object.assign(facts, { size, etag, modified });
    if (size !== null) this.#writer.setSize(file, size);
    say({ kind: 'facts', file, facts });
  }

  /** Where the directory of a file ends is its size for us, if the server does not tell it. */
  #endsAt(file: number, end: number): void {
    const remote = this.#remotes[file];
    if (remote === undefined || remote.size !== undefined) return;
    remote.size = end;
    const block = Math.floor((end - 1) / BLOCK_BYTES);
    // It was stored as a whole block.
    if (this.#writer.has(file, block) && end % BLOCK_BYTES !== 0) this.#writer.drop({ file, block });
    this.#learn(file);
  }

  /** True when the read was answered. */
  #answer({ n, file, offset, length }: Read): boolean {
    // Whether a block is sound that is being looked at shows in a moment.
    if (this.#ended || this.#mending > 0 || !this.#writer.has(file, Math.floor(offset / BLOCK_BYTES))) return false;
    if (!this.#writer.isOpen(file, offset)) {
      if (this.#writer.isFull(file, offset)) {
        say({ kind: 'bytes', n, bytes: null });
        return true;
      }
      void this.#writer.prepare(file, offset, offset + length).then(
        () => this.answer(),
        (thrown: unknown) => this.fail(thrown),
      );
      return false;
    }
    const buffer = this.#buffers.pop();
    if (buffer === undefined) return false;
    const bytes = new Uint8Array(buffer, 0, length);
    if (!this.#writer.read(file, offset, bytes)) {
      this.#buffers.push(buffer);
      return false;
    }
    say({ kind: 'bytes', n, bytes }, [buffer]);
    return true;
  }
}

/** Everything that is heard, in order, also while starting. */
const starting: { message: Promise<Download> | undefined } = { message: undefined };

employer.listen((message) => {
  const data = message as ToDownload; // the downloader says nothing else
  if (data.kind === 'start' || data.kind === 'ask') say({ kind: 'alive' });
  if (data.kind === 'start') starting.message = start(data);
  else void starting.message?.then((download) => download.hear(data)).catch(() => undefined);
});
self.addEventListener('unhandledrejection', (event) => {
  event.preventDefault();
  say({ kind: 'failed', error: toPlainError(event.reason) });
  self.close();
});

async function start(message: Start): Promise<Download> {
  try {
    const entry = await StoreEntry.open(message.urls);
    message.files.forEach((facts, file) => Object.assign(entry.facts.files[file] ?? {}, facts));
    entry.fresh = message.fresh;
    let download: Download | undefined;
    const writer = await SegmentWriter.open(entry, {
      onBlock: () => download?.answer(),
      onSpoilt: (block) => download?.lost(block),
      onSegment: (file, segment) => say({ kind: 'finished', file, segment }),
    });
    return (download = new Download(entry, writer, message));
  } catch (thrown) {
    say({ kind: 'failed', error: toPlainError(thrown instanceof DOMException ? storageFailed(thrown) : thrown) });
    self.close();
    throw thrown;
  }
}

function say(message: FromDownload, transfer: Transferable[] = []): void {
  employer.postMessage(message, transfer);
}

/** Requests at once: browsers allow 6 a host, and the page wants some too. */
const LANES = 4;
/** Bytes after which a worker has held enough. */
const RETIRE_BYTES = 64 << 20;
/** What a connection's bytes come through. */
const CHUNK_BYTES = 128 * 1024;
const TELL_MS = 100;
