/**
 * A source that does not read at once and whose first reads are kept until they are asked for once more: the header is read for the plan and again for the engine,
 * and nothing is fetched twice.
 */

import type { Sink, Source } from './source.js';

interface Kept {
  file: number;
  offset: number;
  bytes: Uint8Array;
}

/** Records from the start, plays back when a read comes that it has, and forgets all at the first one after that which it has not. */
export class Recorded implements Source {
  readonly #source: Source;
  #kept: Kept[] | undefined = [];
  #playing = false;

  constructor(source: Source) {
    this.#source = source;
  }

  get fileCount(): number {
    return this.#source.fileCount;
  }

  get bufferBytes(): number {
    return this.#source.bufferBytes;
  }

  get rereads(): boolean {
    return this.#source.rereads;
  }

  get arriving(): boolean {
    return this.#source.arriving ?? false;
  }

  size(file: number): number | undefined {
    return this.#source.size(file);
  }

  async read(file: number, offset: number, length: number, sink: Sink): Promise<void> {
    const known = this.#kept?.find((kept) => kept.file === file && kept.offset === offset && kept.bytes.byteLength === length);
    if (known !== undefined) {
      this.#playing = true;
      sink(0, known.bytes);
      return;
    }
    if (this.#playing) this.#kept = undefined;
    if (this.#kept === undefined) return this.#source.read(file, offset, length, sink);
    const bytes = new Uint8Array(length);
    await this.#source.read(file, offset, length, (at, part) => {
      bytes.set(part, at);
      return sink(at, part);
    });
    this.#kept?.push({ file, offset, bytes });
  }

  cancel(): void {
    this.#source.cancel();
  }

  close(): void {
    this.#source.close?.();
  }
}
