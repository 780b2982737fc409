/**
 * Reads a model through the store: what is stored is read from there, synchronously once its segment is full; what is not is downloaded,
 * in the order of use, written through, and never fetched twice. Blocks of earlier visits are checked when they are first read.
 */

import type { BlockTable } from '../store/block-table.js';
import { PIECE_BUFFERS, PIECE_BYTES, type SpoiltBlock } from '../store/download-protocol.js';
import { StoreEntry, storedBytesOf } from '../store/entry.js';
import { BLOCK_BYTES, SEGMENT_BLOCKS, SEGMENT_BYTES, blocksOf, blocksOfSegment, modelId, segmentName } from '../store/layout.js';
import { holdForUse } from '../store/locks.js';
import { orderOfBlocks } from './block-queue.js';
import { type DownloadRequest, Downloader } from './downloader.js';
import { type Sink, type Source, cancelled, rangeText, sourceFailed } from './source.js';
import { isFull, removeStored } from './store-access.js';
import { StoredSegments, Unreadable } from './stored-segments.js';

/** How to fetch what is missing, and who hears of it. */
export interface StoredOptions extends DownloadRequest {
  /** Hears how much of the files is stored. */
  onDownload: (storedBytes: number, totalBytes: number) => void;
}

/** The files of one model, in the store or on their way there. */
export class StoredSource implements Source {
  readonly rereads = true;
  readonly arriving: boolean;
  readonly bufferBytes: number;
  /** Bytes that were stored when it was opened. */
  readonly foundBytes: number;
  readonly #entry: StoreEntry;
  readonly #tables: readonly BlockTable[];
  readonly #segments: StoredSegments;
  readonly #downloads: Downloader;
  readonly #options: StoredOptions;
  /** Lets others remove the model. */
  readonly #letGo: () => void;
  /** Segments whose every block is stored. */
  readonly #full = new Set<string>();
  /** Blocks that are known to be as they were downloaded. */
  readonly #checked: Set<number>[];
  #storedBytes = 0;
  /** Times in a row that a segment could not be read. */
  #unreadable = 0;
  #generation = 0;

  private constructor(entry: StoreEntry, tables: readonly BlockTable[], options: StoredOptions, letGo: () => void) {
    this.#entry = entry;
    this.#tables = tables;
    this.#options = options;
    this.#letGo = letGo;
    this.#segments = new StoredSegments(entry);
    this.#checked = tables.map(() => new Set());
    this.#downloads = new Downloader(entry, options, {
      onFinished: (file, segment) => this.#onFinished(file, segment),
      onReleased: (file, segment) => this.#release(file, segment),
      onSpoilt: (block, bytes) => this.#onSpoilt(block, bytes),
      onStored: (bytes) => this.#onStored(bytes),
    });
    let complete = true;
    for (const [file, { size }] of entry.facts.files.entries()) {
      const table = tables[file];
      complete &&= size !== null && table?.count === blocksOf(size);
      if (table !== undefined) this.#storedBytes += storedBytesOf(table, size);
      if (size === null || table === undefined) continue;
      for (let segment = 0; segment * SEGMENT_BYTES < size; segment += 1) {
        if (table.hasAll(...blocksOfSegment(segment, size))) this.#full.add(segmentName(file, segment));
      }
    }
    this.foundBytes = this.#storedBytes;
    if (complete) this.#downloads.setComplete();
    this.arriving = !complete;
    this.bufferBytes = complete ? this.#segments.bufferBytes : ARRIVING_BUFFER_BYTES;
  }

  /**
   * Opens the model's entry. What is not complete is confirmed by the server first; a stored part of another version is dropped.
   * Nothing is read of the files before that.
   */
  static async open(options: StoredOptions): Promise<StoredSource> {
    const id = await modelId(options.urls);
    for (let attempt = 0; ; attempt += 1) {
      const source = await StoredSource.#make(id, options, () => StoreEntry.open(options.urls));
      if (source === undefined) {
        await removeStored(id);
        continue;
      }
      try {
        await source.#begin();
        return source;
      } catch (thrown) {
        source.close();
        if (attempt > 0 || !isChanged(thrown)) throw thrown;
      }
    }
  }

  /** The model, if all of it is stored. */
  static async complete(options: StoredOptions): Promise<StoredSource | undefined> {
    const id = await modelId(options.urls);
    const source = await StoredSource.#make(id, options, () => StoreEntry.find(id));
    if (source === undefined) return undefined;
    if (!source.arriving) {
      await source.#begin();
      return source;
    }
    source.close();
    return undefined;
  }

  /** `undefined` when there is nothing, or nothing of it is to be used. */
  static async #make(
    id: string,
    options: StoredOptions,
    openEntry: () => Promise<StoreEntry | undefined>,
  ): Promise<StoredSource | undefined> {
    const letGo = await holdForUse(id);
    try {
      const entry = await openEntry();
      if (entry !== undefined && entry.facts.stale !== true) {
        const tables = await Promise.all(entry.facts.files.map((_, file) => entry.table(file)));
        return new StoredSource(entry, tables, options, letGo);
      }
    } catch (thrown) {
      letGo();
      throw thrown;
    }
    letGo();
    return undefined;
  }

  get fileCount(): number {
    return this.#entry.facts.files.length;
  }

  /** Bytes that are still to be stored, where it is known. */
  get missingBytes(): number | undefined {
    const total = this.#totalBytes();
    return total === undefined ? undefined : Math.max(0, total - this.#storedBytes);
  }

  size(file: number): number | undefined {
    return this.#entry.facts.files[file]?.size ?? undefined;
  }

  readInto(file: number, offset: number, place: Uint8Array): boolean {
    this.#checkRange(file, offset, place.byteLength);
    for (let at = 0; at < place.byteLength;) {
      const [segment, length] = segmentPiece(offset + at, place.byteLength - at);
      const open = this.#segments.get(file, segment);
      if (open === undefined || !('handle' in open)) return false;
      if (!this.#areSound(file, segment, open.handle, offset + at, length)) return false;
      if (!this.#segments.readInto(open.handle, offset + at, place.subarray(at, at + length))) {
        throw cutOff(file, offset + at, length);
      }
      at += length;
    }
    return true;
  }

  async read(file: number, offset: number, length: number, sink: Sink): Promise<void> {
    this.#checkRange(file, offset, length);
    const generation = this.#generation;
    for (let at = 0; at < length;) {
      const taken = await this.#readPiece(file, offset + at, length - at, (from, bytes) => sink(at + from, bytes));
      if (generation !== this.#generation) throw cancelled();
      if (taken === 'enough') return;
      at += taken;
    }
  }

  willUse(files: Uint32Array, offsets: Float64Array, lengths: Float64Array): void {
    if (this.#downloads.complete) return;
    const uses = Array.from(files, (file, i) => ({ file, offset: offsets[i] ?? 0, length: lengths[i] ?? 0 }));
    this.#downloads.setOrder(
      ...orderOfBlocks(
        uses,
        this.#tables.map((_, file) => this.size(file)),
      ),
    );
  }

  cancel(): void {
    this.#generation += 1;
    this.#segments.cancel();
    this.#downloads.cancel();
  }

  close(): void {
    this.#downloads.close();
    this.#segments.close();
    this.#letGo();
  }

  /** Asks the server for something that is missing of each file, and opens what is full. */
  async #begin(): Promise<void> {
    if (!this.#downloads.complete) {
      const firsts: Promise<void>[] = [];
      for (const [file, table] of this.#tables.entries()) {
        let block = 0;
        while (table.has(block)) block += 1;
        const size = this.size(file);
        // The bytes themselves are fetched and stored. A failure comes out of `start`, but for a full disk, which shows in storing:
        // what a browser estimates of its room is not to be relied on.
        if (size === undefined || block < blocksOf(size)) {
          const coming = this.#downloads.bytes(file, block * BLOCK_BYTES, 1);
          const first = coming.then((bytes) => {
            if (bytes) this.#downloads.giveBack(bytes);
          });
          const onlyFull = (thrown: unknown): void => {
            if (isFull(thrown)) throw thrown;
          };
          firsts.push(first.catch(onlyFull));
        }
      }
      const stored = Promise.all(firsts);
      stored.catch(() => undefined); // heard below, unless `start` fails first
      await this.#downloads.start([...this.#tables.keys()]);
      await stored;
    }
    const opening = this.#tables.flatMap((_, file) => {
      const count = Math.ceil((this.size(file) ?? 0) / SEGMENT_BYTES);
      const segments = Array.from({ length: count }, (_unused, segment) => segment);
      return segments.filter((segment) => this.#full.has(segmentName(file, segment))).map((s) => this.#segments.open(file, s));
    });
    await Promise.all(opening);
  }

  /** Reads up to the end of a segment, or of a block of one that is not full: how many bytes, or that nobody wants more. */
  async #readPiece(file: number, offset: number, most: number, sink: Sink): Promise<number | 'enough'> {
    const [segment, length] = segmentPiece(offset, most);
    let [wanted, got] = [true, 0];
    const counted: Sink = (at, bytes) => {
      got = at + bytes.byteLength;
      return (wanted = sink(at, bytes));
    };
    if (this.#full.has(segmentName(file, segment))) {
      const open = await this.#segments.open(file, segment);
      if (open !== this.#segments.get(file, segment)) return 0; // it was let go meanwhile
      if (open === undefined) {
        // The browser has removed it, or somebody did.
        this.#spoil(file, segment, Math.floor(offset / BLOCK_BYTES));
        return 0;
      }
      try {
        const sound =
          'handle' in open
            ? this.#areSound(file, segment, open.handle, offset, length)
            : await this.#areSoundBlobs(file, segment, open.blob, offset, length);
        if (!sound) return 0;
        if (!(await this.#segments.read(open, offset, length, counted))) throw cutOff(file, offset, length);
      } catch (thrown) {
        await this.#reopen(file, segment, thrown);
        return got;
      }
      this.#unreadable = 0;
      return wanted ? length : 'enough';
    }
    const toBlockEnd = BLOCK_BYTES - (offset % BLOCK_BYTES);
    const piece = Math.min(length, toBlockEnd, PIECE_BYTES);
    const bytes = await this.#downloads.bytes(file, offset, piece);
    if (bytes === null) {
      await this.#look(file, segment);
      return 0;
    }
    const more = counted(0, bytes);
    this.#downloads.giveBack(bytes);
    return more ? piece : 'enough';
  }

  /** Lets go of a segment that is being written by another tab, which says so in a moment; what is opened next is checked again. */
  async #reopen(file: number, segment: number, thrown: unknown): Promise<void> {
    if (!(thrown instanceof Unreadable)) throw thrown;
    this.#unreadable += 1;
    if (this.#unreadable > MOST_UNREADABLE) throw thrown.error;
    this.#segments.release(file, segment);
    for (let block = segment * SEGMENT_BLOCKS; block < (segment + 1) * SEGMENT_BLOCKS; block += 1) {
      if (this.#tables[file]?.has(block) === true) this.#checked[file]?.delete(block);
    }
    await new Promise((resolve) => setTimeout(resolve, REOPEN_MS));
  }

  /** Looks whether a segment has become full without our hearing of it. */
  async #look(file: number, segment: number): Promise<void> {
    const size = this.size(file);
    if (size === undefined || this.#full.has(segmentName(file, segment))) return;
    const table = await this.#entry.table(file);
    if (table.hasAll(...blocksOfSegment(segment, size))) this.#onFinished(file, segment);
  }

  /** Checks the blocks of bytes that have not been checked; one that is damaged is fetched again. */
  #areSound(file: number, segment: number, handle: FileSystemSyncAccessHandle, offset: number, length: number): boolean {
    for (const block of this.#unchecked(file, offset, length)) {
      const table = this.#tables[file];
      const size = this.size(file);
      if (table === undefined || size === undefined || !this.#segments.isSound(handle, block, size, table)) {
        this.#spoil(file, segment, block);
        return false;
      }
      this.#checked[file]?.add(block);
    }
    return true;
  }

  async #areSoundBlobs(file: number, segment: number, blob: number, offset: number, length: number): Promise<boolean> {
    for (const block of this.#unchecked(file, offset, length)) {
      const table = this.#tables[file];
      const size = this.size(file);
      if (table === undefined || size === undefined || !(await this.#segments.isSoundBlob(blob, block, size, table))) {
        this.#spoil(file, segment, block);
        return false;
      }
      this.#checked[file]?.add(block);
    }
    return true;
  }

  #unchecked(file: number, offset: number, length: number): number[] {
    const found: number[] = [];
    for (let block = Math.floor(offset / BLOCK_BYTES); block * BLOCK_BYTES < offset + length; block += 1) {
      if (this.#checked[file]?.has(block) === false) found.push(block);
    }
    return found;
  }

  #spoil(file: number, segment: number, block: number): void {
    this.#release(file, segment);
    const table = this.#tables[file];
    const sum = table?.sum(block);
    if (sum === undefined) {
      throw sourceFailed('the model was removed from the store while it was read: open it again', {
        file,
        block,
        reason: 'removed',
      });
    }
    this.#downloads.redo({ file, block, sum });
  }

  #onSpoilt({ file, block }: SpoiltBlock, bytes: number): void {
    // What comes in its place was checked by whoever fetched it.
    this.#tables[file]?.delete(block);
    this.#storedBytes -= Math.min(bytes, this.#storedBytes);
  }

  #release(file: number, segment: number): void {
    this.#segments.release(file, segment);
    this.#full.delete(segmentName(file, segment));
  }

  #onFinished(file: number, segment: number): void {
    this.#full.add(segmentName(file, segment));
    // What came in this visit was never anywhere but here; what was there before is still to be checked.
    const table = this.#tables[file];
    for (let block = segment * SEGMENT_BLOCKS; block < (segment + 1) * SEGMENT_BLOCKS; block += 1) {
      if (table?.has(block) === false) this.#checked[file]?.add(block);
    }
    void this.#segments.open(file, segment).catch(() => undefined);
  }

  #onStored(bytes: number): void {
    this.#storedBytes += bytes;
    const total = this.#totalBytes();
    if (total !== undefined) this.#options.onDownload(Math.min(this.#storedBytes, total), total);
  }

  #totalBytes(): number | undefined {
    let total = 0;
    for (const { size } of this.#entry.facts.files) {
      if (size === null) return undefined;
      total += size;
    }
    return total;
  }

  #checkRange(file: number, offset: number, length: number): void {
    const size = this.size(file);
    const facts = this.#entry.facts.files[file];
    if (facts !== undefined && (size === undefined || offset + length <= size)) return;
    const message = `${facts?.url ?? 'the model'} ends at byte ${size ?? 0}, but ${rangeText(offset, length)} are needed: the file is cut off; download or upload it again`;
    throw sourceFailed(message, { url: facts?.url ?? '', file, offset, length, size: size ?? 0, reason: 'short' });
  }
}

/** The segment of a byte, and how many of `most` bytes from there on are in it. */
function segmentPiece(offset: number, most: number): [number, number] {
  return [Math.floor(offset / SEGMENT_BYTES), Math.min(most, SEGMENT_BYTES - (offset % SEGMENT_BYTES))];
}

function cutOff(file: number, offset: number, length: number): Error {
  return sourceFailed('the model was removed from the store while it was read: open it again', {
    file,
    offset,
    length,
    reason: 'removed',
  });
}

function isChanged(thrown: unknown): boolean {
  return thrown instanceof Error && 'details' in thrown && (thrown.details as { reason?: unknown }).reason === 'changed';
}

/** While bytes arrive: what is read and checked at a time here and by the writer, what its connections fill, pieces on their way. */
export const ARRIVING_BUFFER_BYTES = 2 * 128 * 1024 + 4 * 128 * 1024 + PIECE_BUFFERS * PIECE_BYTES;
/** Another tab's word that it writes a segment comes within these. */
const MOST_UNREADABLE = 50;
const REOPEN_MS = 20;
