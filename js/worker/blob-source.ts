/**
 * Reads picked files in place. A BYOB reader fills one buffer that all reads share, one read at a time: other ways of reading a blob
 * make browsers hold hundreds of megabytes.
 */

import { ChunkBuffer } from './chunk-buffer.js';
import { type Sink, type Source, cancelled, rangeText, sourceFailed } from './source.js';

/** Picked files, in the order of a split model. */
export class BlobSource implements Source {
  readonly bufferBytes = BUFFER_BYTES;
  readonly rereads = true;
  readonly #blobs: readonly Blob[];
  readonly #buffer = new ChunkBuffer(BUFFER_BYTES);
  #turn: Promise<unknown> = Promise.resolve();
  #generation = 0;

  constructor(blobs: readonly Blob[]) {
    this.#blobs = blobs;
  }

  get fileCount(): number {
    return this.#blobs.length;
  }

  size(file: number): number | undefined {
    return this.#blobs[file]?.size;
  }

  read(file: number, offset: number, length: number, sink: Sink): Promise<void> {
    const generation = this.#generation;
    const isCancelled = (): boolean => generation !== this.#generation;
    const turn = this.#turn.then(() => this.#read(file, offset, length, sink, isCancelled));
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  cancel(): void {
    this.#generation += 1;
  }

  async #read(file: number, offset: number, length: number, sink: Sink, isCancelled: () => boolean): Promise<void> {
    if (isCancelled()) throw cancelled();
    const blob = this.#blobs[file];
    const place = { file, offset, length };
    if (blob === undefined || offset + length > blob.size) {
      const size = blob?.size ?? 0;
      throw sourceFailed(`the picked file ends at byte ${size}, but ${rangeText(offset, length)} are needed: it is cut off`, {
        ...place,
        size,
      });
    }
    let at = 0;
    try {
      for await (const bytes of this.#buffer.chunks(blob.slice(offset, offset + length).stream())) {
        if (isCancelled()) throw cancelled();
        if (!sink(at, bytes)) return;
        at += bytes.byteLength;
      }
    } catch (thrown) {
      if (!(thrown instanceof DOMException)) throw thrown;
      const message = `the picked file cannot be read any more (${thrown.name}): it was changed, moved or removed; pick it again`;
      throw sourceFailed(message, { ...place, reason: thrown.name });
    }
    if (at !== length)
      throw sourceFailed(`the picked file gave ${at} of ${length} bytes at ${offset}; pick it again`, { ...place, got: at });
  }
}

/** Large enough for few turns, small enough for any budget. */
const BUFFER_BYTES = 256 * 1024;
