/** Reads local files in Node, straight into the engine's memory. */

import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { type Source, rangeText, sourceFailed } from '../worker/source.js';

/** Local files, in the order of a split model. */
export class FileSource implements Source {
  readonly bufferBytes = 0;
  readonly rereads = true;
  readonly #paths: readonly string[];
  readonly #files: readonly number[];
  readonly #sizes: readonly number[];

  private constructor(paths: readonly string[], files: readonly number[]) {
    this.#paths = paths;
    this.#files = files;
    this.#sizes = files.map((file) => fstatSync(file).size);
  }

  /** Opens the files, or throws a `SluiceError`. */
  static open(paths: readonly string[]): FileSource {
    const files: number[] = [];
    try {
      for (const path of paths) files.push(openSync(path, 'r'));
    } catch (thrown) {
      for (const file of files) closeSync(file);
      const path = paths[files.length] ?? '';
      const reason = reasonOf(thrown);
      const why = reason === 'ENOENT' ? 'there is no such file' : `it cannot be opened (${reason})`;
      throw sourceFailed(`${path}: ${why}: check the path`, { file: files.length, path, reason });
    }
    return new FileSource(paths, files);
  }

  get fileCount(): number {
    return this.#files.length;
  }

  size(file: number): number | undefined {
    return this.#sizes[file];
  }

  readInto(file: number, offset: number, place: Uint8Array): boolean {
    const path = this.#paths[file] ?? '';
    const length = place.byteLength;
    const details = { file, path, offset, length };
    let got = 0;
    try {
      for (let n = -1; got < length && n !== 0; got += n)
        n = readSync(this.#files[file] ?? -1, place, got, length - got, offset + got);
    } catch (thrown) {
      const reason = reasonOf(thrown);
      throw sourceFailed(`${path} cannot be read any more (${reason})`, { ...details, reason });
    }
    if (got === length) return true;
    const message = `${path} ends at byte ${this.#sizes[file] ?? 0}, but ${rangeText(offset, length)} are needed: it is cut off`;
    throw sourceFailed(message, { ...details, got });
  }

  read(): Promise<void> {
    return Promise.reject(new TypeError('a source that reads at once is read by readInto'));
  }

  cancel(): void {
    // A read has ended when its call returns.
  }

  close(): void {
    for (const file of this.#files) closeSync(file);
  }
}

function reasonOf(thrown: unknown): string {
  return thrown instanceof Error && 'code' in thrown ? String(thrown.code) : String(thrown);
}
