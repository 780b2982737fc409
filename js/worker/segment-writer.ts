/**
 * Writes a model's bytes into its segments and tables. Bytes go to their place as they come; a block counts when all of it is there, and
 * its entry is written when the block's bytes are on the disk. One writer a model, in the download worker.
 */

import { type BlockTable, ENTRY_BYTES } from '../store/block-table.js';
import { Checksum } from '../store/checksum.js';
import { type StoreEntry, storedBytesOf } from '../store/entry.js';
import type { BlockPlace, SpoiltBlock } from '../store/download-protocol.js';
import { BLOCK_BYTES, SEGMENT_BLOCKS, SEGMENT_BYTES, blockLength, blocksOf, blocksOfSegment } from '../store/layout.js';
import { changed } from './range-response.js';
import { sourceFailed } from './source.js';
import { QUOTA_EXCEEDED, openForWriting } from './store-access.js';

/** Hears what becomes of blocks. */
export interface WriterEvents {
  /** A block is there and can be read. */
  onBlock(place: BlockPlace): void;
  /** A stored block was damaged: it is not there any more, and must come again as it was. */
  onSpoilt(block: SpoiltBlock): void;
  /** A segment is full and closed. */
  onSegment(file: number, segment: number): void;
}

interface OpenFile {
  readonly table: BlockTable;
  readonly tableHandle: FileSystemSyncAccessHandle;
  readonly segments: Map<number, FileSystemSyncAccessHandle>;
  /** Blocks that are written and whose entries are not. */
  readonly unflushed: Set<number>;
  /** Blocks that are known to be as they were downloaded. */
  readonly sound: Set<number>;
  /** What the checksums of blocks must be that are fetched again. */
  readonly expected: Map<number, number>;
  /** How many bytes are there of blocks that are not. */
  readonly reached: Map<number, number>;
  size: number | null;
}

/** The open tables and segments of one model. */
export class SegmentWriter {
  readonly #entry: StoreEntry;
  readonly #files: OpenFile[];
  readonly #events: WriterEvents;
  readonly #scratch = new Uint8Array(PIECE_BYTES);
  #opening: Promise<unknown> = Promise.resolve();

  private constructor(entry: StoreEntry, files: OpenFile[], events: WriterEvents) {
    this.#entry = entry;
    this.#files = files;
    this.#events = events;
  }

  static async open(entry: StoreEntry, events: WriterEvents): Promise<SegmentWriter> {
    const files: OpenFile[] = [];
    if (entry.fresh) await entry.clear();
    for (const [file, { size }] of entry.facts.files.entries()) {
      const table = await entry.table(file);
      const tableHandle = await openForWriting(await entry.tableFile(file));
      const blocks = { unflushed: new Set<number>(), sound: new Set<number>() };
      const sums = { expected: new Map<number, number>(), reached: new Map<number, number>() };
      files.push({ table, tableHandle, segments: new Map(), ...blocks, ...sums, size });
    }
    return new SegmentWriter(entry, files, events);
  }

  /** Is the block there? */
  has(file: number, block: number): boolean {
    return this.#file(file).table.has(block);
  }

  /** Forgets a block that somebody found damaged, and closes its segment again if the block is sound: then it was mended meanwhile. */
  async mend({ file, block, sum }: SpoiltBlock): Promise<void> {
    const { table, expected } = this.#file(file);
    expected.set(block, sum);
    if (!table.has(block)) return;
    await this.#inTurn(() => this.#openSegment(file, Math.floor(block / SEGMENT_BLOCKS)));
    if (!table.has(block)) return;
    if (table.sum(block) !== sum) throw this.#changed(file, block);
    if (this.#isSound(file, block)) this.#closeFull(file, Math.floor(block / SEGMENT_BLOCKS));
    else this.#spoil(file, block);
  }

  /** Forgets a block. */
  drop({ file, block }: BlockPlace): void {
    const { table, tableHandle, sound } = this.#file(file);
    table.delete(block);
    sound.delete(block);
    tableHandle.write(table.entry(block), { at: block * ENTRY_BYTES });
    tableHandle.flush();
  }

  setSize(file: number, size: number): void {
    this.#file(file).size = size;
  }

  /** Opens the segments that hold bytes `offset` to `end`, so that `write` can be called; full ones are left to those who read them. */
  async prepare(file: number, offset: number, end: number): Promise<void> {
    for (let segment = Math.floor(offset / SEGMENT_BYTES); segment * SEGMENT_BYTES < end; segment += 1) {
      await this.#inTurn(async () => {
        if (!this.isFull(file, segment * SEGMENT_BYTES)) await this.#openSegment(file, segment);
      });
    }
  }

  /** Writes bytes that follow on what was written of their block; blocks that are there already are left as they are. */
  write(file: number, offset: number, bytes: Uint8Array): void {
    const { table, segments, reached, size } = this.#file(file);
    for (let done = 0; done < bytes.byteLength;) {
      const at = offset + done;
      const block = Math.floor(at / BLOCK_BYTES);
      const blockEnd = block * BLOCK_BYTES + blockLength(block, size);
      if (blockEnd <= at) throw new RangeError(`byte ${at} is behind the end of the file`);
      const piece = bytes.subarray(done, done + blockEnd - at);
      if (!table.has(block)) {
        const segment = Math.floor(block / SEGMENT_BLOCKS);
        store(segments.get(segment), piece, at - segment * SEGMENT_BYTES);
        reached.set(block, Math.max(reached.get(block) ?? 0, at + piece.byteLength - block * BLOCK_BYTES));
        if (at + piece.byteLength === blockEnd) this.#complete(file, block);
      }
      done += piece.byteLength;
    }
  }

  /** The file ends where it was not known to end: its last block is complete as it is. */
  endAt(file: number, size: number): void {
    this.setSize(file, size);
    const block = Math.floor((size - 1) / BLOCK_BYTES);
    if (size > 0 && !this.has(file, block)) this.#complete(file, block);
  }

  /**
   * Fills `place` with bytes of a block that is stored and whose segment is open. False: the block is damaged, and not there any more.
   */
  read(file: number, offset: number, place: Uint8Array): boolean {
    const block = Math.floor(offset / BLOCK_BYTES);
    const segment = Math.floor(offset / SEGMENT_BYTES);
    const handle = this.#file(file).segments.get(segment);
    if (this.#isSound(file, block) && handle?.read(place, { at: offset - segment * SEGMENT_BYTES }) === place.byteLength)
      return true;
    this.#spoil(file, block);
    return false;
  }

  /** Is the segment with these bytes open? */
  isOpen(file: number, offset: number): boolean {
    return this.#file(file).segments.has(Math.floor(offset / SEGMENT_BYTES));
  }

  /** Are all blocks of the segment with these bytes stored? */
  isFull(file: number, offset: number): boolean {
    const { table, size } = this.#file(file);
    return size !== null && table.hasAll(...blocksOfSegment(Math.floor(offset / SEGMENT_BYTES), size));
  }

  /** Are all blocks of a file of `size` bytes stored? */
  isWhole(file: number, size: number): boolean {
    return this.#file(file).table.hasAll(0, blocksOf(size));
  }

  /** Bytes that are stored, and bytes of all files where they are known. */
  storedBytes(): [number, number | undefined] {
    let [stored, total]: [number, number | undefined] = [0, 0];
    for (const { table, size } of this.#files) {
      stored += storedBytesOf(table, size);
      total = total === undefined || size === null ? undefined : total + size;
    }
    return [stored, total];
  }

  /** Bytes that have come of blocks that are not complete. */
  partialBytes(): number {
    let bytes = 0;
    for (const { reached } of this.#files) for (const part of reached.values()) bytes += part;
    return bytes;
  }

  /** Writes what is still to be written, and closes everything. */
  close(): void {
    try {
      this.#flush();
    } finally {
      for (const { segments, tableHandle } of this.#files) {
        for (const handle of segments.values()) handle.close();
        segments.clear();
        tableHandle.close();
      }
    }
  }

  /** One after the other: access is exclusive. */
  #inTurn(open: () => Promise<void>): Promise<void> {
    const turn = this.#opening.then(open);
    this.#opening = turn.catch(() => undefined);
    return turn;
  }

  async #openSegment(file: number, segment: number): Promise<void> {
    const { segments } = this.#file(file);
    if (!segments.has(segment)) {
      segments.set(segment, await openForWriting(await this.#entry.segmentFile(file, segment, true)));
    }
  }

  #complete(file: number, block: number): void {
    const { table, unflushed, sound, expected, reached } = this.#file(file);
    const sum = this.#sum(file, block);
    if (sum === undefined) {
      const message = "the browser's storage for this page gave back less than was written to it: free some room on the disk";
      throw sourceFailed(message, { reason: 'storage', file, block });
    }
    if ((expected.get(block) ?? sum) !== sum) throw this.#changed(file, block);
    expected.delete(block);
    reached.delete(block);
    table.set(block, sum);
    sound.add(block);
    unflushed.add(block);
    this.#flush();
    this.#events.onBlock({ file, block });
  }

  /** Entries are written after the bytes they stand for, and at once: what a kill costs is what was under way. */
  #flush(): void {
    for (const [file, { table, tableHandle, segments, unflushed }] of this.#files.entries()) {
      const touched = new Set(Array.from(unflushed, (block) => Math.floor(block / SEGMENT_BLOCKS)));
      for (const segment of touched) segments.get(segment)?.flush();
      for (const block of unflushed) store(tableHandle, table.entry(block), block * ENTRY_BYTES);
      unflushed.clear();
      for (const segment of touched) this.#closeFull(file, segment);
    }
  }

  /** Closes a segment all of whose blocks are there. */
  #closeFull(file: number, segment: number): void {
    const { tableHandle, segments } = this.#file(file);
    if (!this.isFull(file, segment * SEGMENT_BYTES)) return;
    tableHandle.flush();
    segments.get(segment)?.close();
    segments.delete(segment);
    this.#events.onSegment(file, segment);
  }

  /** Is a stored block as it was downloaded? It is looked at once. */
  #isSound(file: number, block: number): boolean {
    const { table, sound } = this.#file(file);
    if (sound.has(block)) return true;
    const isSound = this.#sum(file, block) === table.sum(block);
    if (isSound) sound.add(block);
    return isSound;
  }

  #spoil(file: number, block: number): void {
    const { table, expected } = this.#file(file);
    const sum = table.sum(block);
    if (sum === undefined) return;
    expected.set(block, sum);
    this.drop({ file, block });
    this.#events.onSpoilt({ file, block, sum });
  }

  #changed(file: number, block: number): Error {
    const { url = '' } = this.#entry.facts.files[file] ?? {};
    return changed({ url, offset: block * BLOCK_BYTES, length: blockLength(block, this.#file(file).size) });
  }

  /** The checksum of what was written, as the disk gives it; undefined when it gives less. */
  #sum(file: number, block: number): number | undefined {
    const { segments, size } = this.#file(file);
    const handle = segments.get(Math.floor(block / SEGMENT_BLOCKS));
    const sum = new Checksum();
    const first = (block % SEGMENT_BLOCKS) * BLOCK_BYTES;
    const length = blockLength(block, size);
    for (let at = 0; at < length; at += PIECE_BYTES) {
      const piece = this.#scratch.subarray(0, Math.min(PIECE_BYTES, length - at));
      if (handle?.read(piece, { at: first + at }) !== piece.byteLength) return undefined;
      sum.update(piece);
    }
    return sum.value();
  }

  #file(file: number): OpenFile {
    const open = this.#files[file];
    if (open === undefined) throw new RangeError(`the model has no file ${file}`);
    return open;
  }
}

/** Writes all of `bytes`; a disk that is full says so by an error or by taking less. */
function store(handle: FileSystemSyncAccessHandle | undefined, bytes: Uint8Array, at: number): void {
  if (handle === undefined) throw new RangeError('the segment is not open');
  if (handle.write(bytes, { at }) !== bytes.byteLength) throw new DOMException('it took less than it was given', QUOTA_EXCEEDED);
}

/** Bytes that are read back at a time. */
const PIECE_BYTES = 128 * 1024;
