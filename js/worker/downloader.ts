/**
 * The writer's side of a model in the store: elects one writer among all tabs, runs its download workers one after the other, and fetches
 * from them bytes of segments that are not full yet. Where another tab writes, it waits for what that one finishes.
 */

import { type SluiceError, fromPlainError, toPlainError } from '../errors.js';
import {
  type BlockPlace,
  type FromDownload,
  PIECE_BUFFERS,
  PIECE_BYTES,
  type SpoiltBlock,
  type ToDownload,
} from '../store/download-protocol.js';
import type { StoreEntry } from '../store/entry.js';
import { SEGMENT_BLOCKS } from '../store/layout.js';
import { lockName } from '../store/locks.js';
import { DownloadWorkers } from './download-workers.js';
import { changed } from './range-response.js';
import { cancelled } from './source.js';
import { storageFailed } from './store-access.js';

/** How the model's files are fetched. */
export interface DownloadRequest {
  urls: readonly string[];
  headers: Readonly<Record<string, string>>;
  credentials: RequestCredentials | null;
  backoffMs?: number | undefined;
  stallMs?: number | undefined;
}

/** Hears what happens to the store, by this tab or another. */
export interface DownloadEvents {
  /** A segment is full: its bytes are to be read from its file. */
  onFinished(file: number, segment: number): void;
  /** A segment is about to be written again: its file must be let go. */
  onReleased(file: number, segment: number): void;
  /** A stored block was damaged, and is not there any more. */
  onSpoilt(block: SpoiltBlock, bytes: number): void;
  /** So many more bytes are stored, or fewer. */
  onStored(bytes: number): void;
}

/** What tabs tell each other. */
type Broadcast =
  | { kind: 'finished' | 'released'; file: number; segment: number }
  | { kind: 'spoilt'; block: SpoiltBlock; bytes: number }
  | { kind: 'stored'; bytes: number }
  | { kind: 'facts' };

interface Pending {
  readonly message: ToDownload & { kind: 'read' };
  resolve(bytes: Uint8Array<ArrayBuffer> | null): void;
  reject(error: unknown): void;
}

/** One model's downloads. */
export class Downloader {
  readonly #entry: StoreEntry;
  readonly #request: DownloadRequest;
  readonly #events: DownloadEvents;
  readonly #channel: BroadcastChannel;
  readonly #pending = new Map<number, Pending>();
  readonly #workers: DownloadWorkers;
  /** Blocks that are being fetched again. */
  #spoilt: SpoiltBlock[] = [];
  #order: (ToDownload & { kind: 'order' }) | undefined;
  /** Buffers that are with nobody else. */
  #buffers: ArrayBuffer[] = [];
  /** Buffers that readers read from. */
  #lent = 0;
  /** Files whose version the server has not confirmed. */
  #unconfirmed = new Set<number>();
  #nextRead = 1;
  #state: 'idle' | 'waiting' | 'writing' | 'complete' | 'closed' = 'idle';
  #resign = (): void => undefined;
  /** Resolves when the server's answers agree with what is stored, or this tab is not the writer; rejects when they do not. */
  #confirmed: { promise: Promise<void>; resolve: () => void; reject: (error: unknown) => void } | undefined;

  constructor(entry: StoreEntry, request: DownloadRequest, events: DownloadEvents) {
    this.#entry = entry;
    this.#request = request;
    this.#events = events;
    this.#workers = new DownloadWorkers({
      onMessage: (message) => this.#hear(message),
      onMissing: () => this.#startWorker(),
      onFailed: (error) => this.#fail(error),
    });
    this.#channel = new BroadcastChannel(lockName(entry.id));
    this.#channel.addEventListener('message', (event: MessageEvent<Broadcast>) => this.#hearTab(event.data));
  }

  get complete(): boolean {
    return this.#state === 'complete';
  }

  /** There is nothing to download. */
  setComplete(): void {
    this.#state = 'complete';
  }

  /**
   * Begins to download, or to wait for whoever does. Resolves when the server has confirmed that each of `files` is the stored one, or
   * another tab sees to that.
   */
  async start(files: readonly number[] = []): Promise<void> {
    for (const file of files) this.#unconfirmed.add(file);
    if (this.#state !== 'idle') return this.#confirmed?.promise;
    this.#confirmed = withResolvers();
    this.#confirmed.promise.catch(() => undefined);
    this.#state = 'waiting';
    const name = lockName(this.#entry.id);
    const got = new Promise<boolean>((resolve) => {
      const held = navigator.locks.request(name, { ifAvailable: true }, (lock) => {
        resolve(lock !== null);
        return lock === null ? undefined : this.#write();
      });
      held.catch(() => resolve(false));
    });
    if (!(await got)) {
      this.#unconfirmed.clear();
      this.#confirmed.resolve();
      const waiting = navigator.locks.request(name, () => (this.#state === 'waiting' ? this.#write() : undefined));
      waiting.catch((thrown: unknown) => this.#fail(storeFailure(thrown)));
    }
    return this.#confirmed.promise;
  }

  /** What is to be downloaded, in the order of use, and where the directory of each file ends. */
  setOrder(blocks: readonly BlockPlace[], ends: readonly number[]): void {
    this.#order = { kind: 'order', blocks, ends };
    this.#workers.post(this.#order);
  }

  /**
   * Bytes of one block of a segment that is not full, at most `PIECE_BYTES`, as soon as they are there; `null` when the segment has become
   * full. They are to be given back to `giveBack`.
   */
  bytes(file: number, offset: number, length: number): Promise<Uint8Array<ArrayBuffer> | null> {
    return new Promise((resolve, reject) => {
      const message = { kind: 'read', n: this.#nextRead++, file, offset, length } as const;
      this.#pending.set(message.n, { message, resolve, reject });
      this.#workers.post(message);
      if (this.#state === 'complete') this.#state = 'idle';
      if (this.#state === 'idle') this.start().catch((error: unknown) => this.#reject(error));
    });
  }

  /** Bytes that `bytes` gave are read. */
  giveBack({ buffer }: Uint8Array<ArrayBuffer>): void {
    this.#lent -= 1;
    if (this.#workers.isRunning) this.#workers.post({ kind: 'buffer', buffer }, [buffer]);
    else this.#buffers.push(buffer);
  }

  /** Fetches a stored block again, because it is damaged. Its segment must have been let go here; other tabs are asked to. */
  redo(block: SpoiltBlock): void {
    this.#spoilt.push(block);
    this.#tellTabs({ kind: 'released', file: block.file, segment: segmentOf(block) });
    this.#workers.post({ kind: 'spoilt', block });
    if (this.#state === 'complete') this.#state = 'idle';
    if (this.#state === 'idle') this.start().catch((error: unknown) => this.#reject(error));
  }

  /** Nobody waits for bytes any more; downloading goes on. */
  cancel(): void {
    this.#workers.post({ kind: 'forget' });
    this.#reject(cancelled());
  }

  close(): void {
    this.#state = 'closed';
    this.#workers.stop();
    this.#channel.close();
    this.#reject(cancelled());
    this.#confirmed?.reject(cancelled());
    this.#resign();
  }

  /** This tab is the writer until the promise resolves. */
  async #write(): Promise<void> {
    if (this.#state === 'closed') return;
    this.#state = 'writing';
    const ended = new Promise<void>((resolve) => (this.#resign = resolve));
    try {
      // Another tab may have gone on while this one waited.
      await this.#entry.reload();
      if (this.#entry.facts.stale === true) throw this.#changed();
      if (this.#isWriting()) this.#startWorker();
    } catch (thrown) {
      this.#fail(storeFailure(thrown));
    }
    return ended;
  }

  #isWriting(): boolean {
    return this.#state === 'writing';
  }

  #startWorker(): void {
    const { urls, headers, credentials, backoffMs = null, stallMs = null } = this.#request;
    const { id, facts, fresh } = this.#entry;
    while (this.#buffers.length + this.#lent < PIECE_BUFFERS) this.#buffers.push(new ArrayBuffer(PIECE_BYTES));
    const buffers = this.#buffers.splice(0);
    const request = { id, urls, headers, credentials, backoffMs, stallMs };
    const known = { files: facts.files, fresh, confirm: [...this.#unconfirmed], spoilt: this.#spoilt };
    this.#workers.start();
    this.#workers.post({ kind: 'start', ...request, ...known, buffers }, buffers);
    if (this.#order !== undefined) this.#workers.post(this.#order);
    for (const { message } of this.#pending.values()) this.#workers.post(message);
  }

  #hear(message: FromDownload): void {
    switch (message.kind) {
      case 'alive':
        return;
      case 'facts':
        Object.assign(this.#entry.facts.files[message.file] ?? {}, message.facts);
        this.#entry.fresh = false; // what this worker stores, the next one may trust
        this.#unconfirmed.delete(message.file);
        void this.#saveFacts().then(() => {
          if (this.#unconfirmed.size === 0) this.#confirmed?.resolve();
        });
        return;
      case 'bytes': {
        const { n, bytes } = message;
        if (bytes !== null) this.#lent += 1;
        const pending = this.#pending.get(n);
        this.#pending.delete(n);
        if (pending !== undefined) pending.resolve(bytes);
        else if (bytes !== null) this.giveBack(bytes);
        return;
      }
      case 'spoilt':
        if (!this.#spoilt.some(isPlace(message.block))) this.#spoilt.push(message.block);
        this.#events.onSpoilt(message.block, message.bytes);
        this.#tellTabs(message);
        return;
      case 'stored':
        this.#events.onStored(message.bytes);
        this.#tellTabs({ kind: 'stored', bytes: message.bytes });
        return;
      case 'finished':
        this.#onFinished(message.file, message.segment);
        this.#tellTabs({ kind: 'finished', file: message.file, segment: message.segment });
        return;
      case 'retiring':
        this.#workers.prepare();
        return;
      case 'ended':
        this.#workers.leave();
        this.#buffers.push(...message.buffers);
        if (!message.complete || this.#spoilt.length > 0) return this.#startWorker();
        this.#workers.stop();
        this.#buffers = [];
        this.#state = 'complete';
        this.#confirmed?.resolve();
        this.#flushToReaders();
        this.#resign();
        return;
      case 'failed':
        this.#fail(fromPlainError(message.error));
    }
  }

  async #saveFacts(): Promise<void> {
    try {
      await this.#entry.saveFacts();
      this.#tellTabs({ kind: 'facts' });
    } catch {
      // Without facts the next visit fetches again; this one goes on.
    }
  }

  #onFinished(file: number, segment: number): void {
    this.#spoilt = this.#spoilt.filter((block) => block.file !== file || segmentOf(block) !== segment);
    this.#events.onFinished(file, segment);
  }

  #hearTab(message: Broadcast): void {
    switch (message.kind) {
      case 'finished':
        this.#onFinished(message.file, message.segment);
        return this.#flushToReaders();
      case 'spoilt':
        return this.#events.onSpoilt(message.block, message.bytes);
      case 'released':
        return this.#events.onReleased(message.file, message.segment);
      case 'stored':
        return this.#events.onStored(message.bytes);
      case 'facts':
        this.#entry.reload().catch(() => undefined); // it is read again before anything is written
    }
  }

  /** Whoever waits looks again whether the bytes are in a full segment by now. */
  #flushToReaders(): void {
    for (const [n, { resolve }] of this.#pending) {
      this.#pending.delete(n);
      resolve(null);
    }
  }

  #fail(error: SluiceError): void {
    if (this.#state === 'closed') return;
    this.#workers.stop();
    this.#state = 'idle';
    const end = (): void => {
      this.#confirmed?.reject(error);
      this.#reject(error);
      this.#resign();
    };
    if (error.details['reason'] !== 'changed') return end();
    // It is this tab's to say until the lock is given up.
    this.#entry.facts.stale = true;
    void this.#saveFacts().then(end);
  }

  #changed(): SluiceError {
    const { url = '', size } = this.#entry.facts.files[0] ?? {};
    return changed({ url, offset: 0, length: size ?? 1 });
  }

  #reject(error: unknown): void {
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }

  #tellTabs(message: Broadcast): void {
    if (this.#state !== 'closed') this.#channel.postMessage(message);
  }
}

function segmentOf({ block }: BlockPlace): number {
  return Math.floor(block / SEGMENT_BLOCKS);
}

function isPlace({ file, block }: BlockPlace): (other: BlockPlace) => boolean {
  return (other) => other.file === file && other.block === block;
}

function storeFailure(thrown: unknown): SluiceError {
  return thrown instanceof DOMException ? storageFailed(thrown) : fromPlainError(toPlainError(thrown));
}

function withResolvers(): { promise: Promise<void>; resolve: () => void; reject: (error: unknown) => void } {
  let resolve = (): void => undefined;
  let reject: (error: unknown) => void = () => undefined;
  const promise = new Promise<void>((ok, no) => ([resolve, reject] = [ok, no]));
  return { promise, resolve, reject };
}
