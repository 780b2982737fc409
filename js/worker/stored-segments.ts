/** Reads full segments of the store: by synchronous handles, or as blobs where another tab has a file for itself. Checks blocks. */

import { SluiceError } from '../errors.js';
import { Checksum } from '../store/checksum.js';
import type { BlockTable } from '../store/block-table.js';
import { type StoreEntry, isNamed } from '../store/entry.js';
import { BLOCK_BYTES, SEGMENT_BLOCKS, SEGMENT_BYTES, blockLength, segmentName } from '../store/layout.js';
import { BlobSource } from './blob-source.js';
import { openForReading } from './store-access.js';
import { type Sink, sourceFailed } from './source.js';

/** An open segment. */
export type OpenSegment = { handle: FileSystemSyncAccessHandle } | { blob: number };

/** A segment that is a blob was written since, or cannot be read: opened again, it may be. `error` is what it becomes when it is not. */
export class Unreadable {
  readonly error: SluiceError;

  constructor(reason: unknown) {
    const why = typeof reason === 'string' ? ` (${reason})` : '';
    const message = `the model's files in the store cannot be read${why}: close other pages that use it, then open it again`;
    this.error = sourceFailed(message, { reason: typeof reason === 'string' ? reason : 'storage' });
  }
}

/** The full segments of one model, opened as they are needed. */
export class StoredSegments {
  readonly #entry: StoreEntry;
  readonly #open = new Map<string, OpenSegment>();
  readonly #blobs: Blob[] = [];
  #blobSource: BlobSource | undefined;
  readonly #scratch = new Uint8Array(PIECE_BYTES);

  constructor(entry: StoreEntry) {
    this.#entry = entry;
  }

  /** Bytes of buffers. */
  get bufferBytes(): number {
    return PIECE_BYTES;
  }

  /** The segment, if it is open. */
  get(file: number, segment: number): OpenSegment | undefined {
    return this.#open.get(segmentName(file, segment));
  }

  /** Opens a full segment; `undefined` when its file is not there or cannot be had now. */
  async open(file: number, segment: number): Promise<OpenSegment | undefined> {
    const known = this.get(file, segment);
    if (known !== undefined) return known;
    try {
      const stored = await this.#entry.segmentFile(file, segment, false);
      const handle = await openForReading(stored);
      const open = handle === undefined ? { blob: this.#blobs.push(await stored.getFile()) - 1 } : { handle };
      const other = this.get(file, segment);
      if (other !== undefined) {
        handle?.close();
        return other;
      }
      this.#open.set(segmentName(file, segment), open);
      return open;
    } catch (thrown) {
      if (isNamed(thrown, 'NotFoundError')) return undefined;
      throw thrown;
    }
  }

  /** Lets a segment go, so that it can be written. */
  release(file: number, segment: number): void {
    const open = this.get(file, segment);
    this.#open.delete(segmentName(file, segment));
    if (open !== undefined && 'handle' in open) open.handle.close();
  }

  /** Fills `place` with bytes of one segment that has a handle; false when they are not all there. */
  readInto(handle: FileSystemSyncAccessHandle, offset: number, place: Uint8Array): boolean {
    return handle.read(place, { at: offset % SEGMENT_BYTES }) === place.byteLength;
  }

  /** Hands bytes of one segment to `sink`; false when they are not all there. Throws `Unreadable`. */
  async read(open: OpenSegment, offset: number, length: number, sink: Sink): Promise<boolean> {
    const start = offset % SEGMENT_BYTES;
    if ('blob' in open) {
      await this.#readBlob(open.blob, start, length, sink);
      return true;
    }
    for (let at = 0; at < length; at += PIECE_BYTES) {
      const piece = this.#scratch.subarray(0, Math.min(PIECE_BYTES, length - at));
      if (open.handle.read(piece, { at: start + at }) !== piece.byteLength) return false;
      if (!sink(at, piece)) return true;
    }
    return true;
  }

  /** Whether a block has the checksum that it was stored with; for a segment with a handle. */
  isSound(handle: FileSystemSyncAccessHandle, block: number, size: number, table: BlockTable): boolean {
    const first = (block % SEGMENT_BLOCKS) * BLOCK_BYTES;
    const length = blockLength(block, size);
    const sum = new Checksum();
    for (let at = 0; at < length; at += PIECE_BYTES) {
      const piece = this.#scratch.subarray(0, Math.min(PIECE_BYTES, length - at));
      if (handle.read(piece, { at: first + at }) !== piece.byteLength) return false;
      sum.update(piece);
    }
    return sum.value() === table.sum(block);
  }

  /** The same for a segment that is a blob. Throws `Unreadable`. */
  async isSoundBlob(blob: number, block: number, size: number, table: BlockTable): Promise<boolean> {
    const sum = new Checksum();
    const scratch = new Uint8Array(PIECE_BYTES);
    let held = 0;
    const take: Sink = (_, bytes) => {
      for (let at = 0; at < bytes.byteLength;) {
        const n = Math.min(PIECE_BYTES - held, bytes.byteLength - at);
        scratch.set(bytes.subarray(at, at + n), held);
        [held, at] = [held + n, at + n];
        if (held === PIECE_BYTES) sum.update(scratch);
        held %= PIECE_BYTES;
      }
      return true;
    };
    const first = (block % SEGMENT_BLOCKS) * BLOCK_BYTES;
    await this.#readBlob(blob, first, blockLength(block, size), take);
    sum.update(scratch.subarray(0, held));
    return sum.value() === table.sum(block);
  }

  /** Blobs share one buffer, which is there once there is a blob. */
  async #readBlob(blob: number, start: number, length: number, sink: Sink): Promise<void> {
    this.#blobSource ??= new BlobSource(this.#blobs);
    try {
      await this.#blobSource.read(blob, start, length, sink);
    } catch (thrown) {
      // Nobody picked this file: what a blob's reader says of one is not for the user.
      const failed = thrown instanceof SluiceError && thrown.code === 'source_failed';
      if (!failed || thrown.details['reason'] === 'cancelled') throw thrown;
      throw new Unreadable(thrown.details['reason']);
    }
  }

  cancel(): void {
    this.#blobSource?.cancel();
  }

  close(): void {
    for (const open of this.#open.values()) if ('handle' in open) open.handle.close();
    this.#open.clear();
  }
}

/** Bytes that are read and checked at a time. */
const PIECE_BYTES = 128 * 1024;
