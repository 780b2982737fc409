/**
 * Which blocks of a file are stored, and their checksums. On disk an entry is two words: the checksum, and the checksum again in another
 * form. An entry whose words do not belong together counts as absent, so that a table that was cut or torn costs blocks and no more.
 */

import { blocksOf } from './layout.js';

/** Bytes of an entry. */
export const ENTRY_BYTES = 8;

/** The table of one file, in memory. */
export class BlockTable {
  #sums: (number | undefined)[] = [];
  #count = 0;

  /** The table that was stored as `bytes`, of a file of `size` bytes if that is known. */
  static from(bytes: ArrayBuffer, size?: number): BlockTable {
    const table = new BlockTable();
    const words = new DataView(bytes);
    const end = Math.min(bytes.byteLength, size === undefined ? Infinity : blocksOf(size) * ENTRY_BYTES);
    for (let at = 0; at + ENTRY_BYTES <= end; at += ENTRY_BYTES) {
      const sum = words.getUint32(at, true);
      if (words.getUint32(at + 4, true) === mark(sum)) table.set(at / ENTRY_BYTES, sum);
    }
    return table;
  }

  /** Blocks that are stored. */
  get count(): number {
    return this.#count;
  }

  has(block: number): boolean {
    return this.#sums[block] !== undefined;
  }

  /** Are blocks `first` to `end` (without it) all stored? */
  hasAll(first: number, end: number): boolean {
    for (let block = first; block < end; block += 1) if (!this.has(block)) return false;
    return true;
  }

  /** The checksum of a stored block. */
  sum(block: number): number | undefined {
    return this.#sums[block];
  }

  set(block: number, sum: number): void {
    if (!this.has(block)) this.#count += 1;
    this.#sums[block] = sum;
  }

  delete(block: number): void {
    if (this.has(block)) this.#count -= 1;
    this.#sums[block] = undefined;
  }

  /** The entry of a block as it is stored. */
  entry(block: number): Uint8Array<ArrayBuffer> {
    const words = new DataView(new ArrayBuffer(ENTRY_BYTES));
    const sum = this.#sums[block];
    if (sum !== undefined) {
      words.setUint32(0, sum, true);
      words.setUint32(4, mark(sum), true);
    }
    return new Uint8Array(words.buffer);
  }
}

/** Never 0 for a checksum of 0, so that a run of zeros holds no block. */
function mark(sum: number): number {
  return (sum ^ 0x5b10c4ed) >>> 0;
}
