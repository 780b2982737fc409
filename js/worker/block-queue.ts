/** Which blocks to fetch next: those that are waited for, then those of the order of use, in runs of neighbours. It fetches nothing. */

import type { BlockPlace } from '../store/download-protocol.js';
import { BLOCK_BYTES, blocksOf } from '../store/layout.js';

/** Neighbouring blocks that are fetched by one request: `first` to `end`, without it. */
export interface Run {
  file: number;
  first: number;
  end: number;
}

/** Bytes that somebody waits for. */
export interface Wanted {
  file: number;
  offset: number;
  length: number;
}

/**
 * The blocks of files of these sizes in the order of `uses`, then those that nothing uses; and where the last use of each file ends,
 * which is its size for us where no server tells it.
 */
export function orderOfBlocks(uses: readonly Wanted[], sizes: readonly (number | undefined)[]): [BlockPlace[], number[]] {
  const ends = sizes.map(() => 0);
  const blocks: BlockPlace[] = [];
  const listed = sizes.map(() => new Set<number>());
  const list = (file: number, first: number, end: number): void => {
    for (let block = Math.floor(first / BLOCK_BYTES); block * BLOCK_BYTES < end; block += 1) {
      if (listed[file]?.has(block) === true) continue;
      listed[file]?.add(block);
      blocks.push({ file, block });
    }
  };
  for (const { file, offset, length } of uses) {
    ends[file] = Math.max(ends[file] ?? 0, offset + length);
    list(file, offset, offset + length);
  }
  ends.forEach((end, file) => list(file, 0, sizes[file] ?? end));
  return [blocks, ends];
}

/** What is to be fetched. */
export class BlockQueue {
  readonly #has: (file: number, block: number) => boolean;
  readonly #claimed = new Set<string>();
  #order: readonly BlockPlace[] = [];
  #cursor = 0;

  /** `has` says whether a block is stored. */
  constructor(has: (file: number, block: number) => boolean) {
    this.#has = has;
  }

  setOrder(order: readonly BlockPlace[]): void {
    this.#order = order;
    this.#cursor = 0;
  }

  /** The next run, which is then this caller's to fetch. */
  next(wanted: readonly Wanted[]): Run | undefined {
    const run = this.#wantedRun(wanted) ?? this.#orderedRun();
    if (run !== undefined) for (let block = run.first; block < run.end; block += 1) this.#claimed.add(key(run.file, block));
    return run;
  }

  /** The run is fetched, or given up: what is missing of it is to be fetched again. */
  release({ file, first, end }: Run): void {
    for (let block = first; block < end; block += 1) this.#claimed.delete(key(file, block));
    this.#cursor = 0;
  }

  /** A block is missing that was there. */
  rewind(): void {
    this.#cursor = 0;
  }

  /** Are all blocks of files of these sizes stored? */
  isComplete(sizes: readonly (number | undefined)[]): boolean {
    return sizes.every((size, file) => {
      if (size === undefined) return false;
      for (let block = 0; block < blocksOf(size); block += 1) if (!this.#has(file, block)) return false;
      return true;
    });
  }

  #wantedRun(wanted: readonly Wanted[]): Run | undefined {
    for (const { file, offset, length } of wanted) {
      const last = Math.floor((offset + length - 1) / BLOCK_BYTES);
      for (let first = Math.floor(offset / BLOCK_BYTES); first <= last; first += 1) {
        if (!this.#isFree(file, first)) continue;
        let end = first + 1;
        while (end <= last && end - first < RUN_BLOCKS && this.#isFree(file, end)) end += 1;
        return { file, first, end };
      }
    }
    return undefined;
  }

  #orderedRun(): Run | undefined {
    for (; this.#cursor < this.#order.length; this.#cursor += 1) {
      const place = this.#order[this.#cursor];
      if (place === undefined || !this.#isFree(place.file, place.block)) continue;
      const { file, block: first } = place;
      let end = first + 1;
      for (let i = this.#cursor + 1; end - first < RUN_BLOCKS; i += 1, end += 1) {
        const next = this.#order[i];
        if (next?.file !== file || next.block !== end || !this.#isFree(file, end)) break;
      }
      return { file, first, end };
    }
    return undefined;
  }

  #isFree(file: number, block: number): boolean {
    return !this.#has(file, block) && !this.#claimed.has(key(file, block));
  }
}

function key(file: number, block: number): string {
  return `${file} ${block}`;
}

/** Blocks of one request: long enough that what a request costs does not count, short enough to come in about the order of use. */
const RUN_BLOCKS = 8;
