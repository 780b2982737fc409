/**
 * Reads files of the origin's private file system (OPFS) in place: synchronous access handles put the bytes straight into the
 * engine's memory, with no buffer between.
 */

import { type Source, rangeText, sourceFailed } from './source.js';
import { accessForReading } from './store-access.js';

/** Stored files, in the order of a split model. */
export class OpfsSource implements Source {
  readonly bufferBytes = 0;
  readonly rereads = true;
  readonly #handles: readonly FileSystemSyncAccessHandle[];
  readonly #sizes: readonly number[];

  private constructor(handles: readonly FileSystemSyncAccessHandle[]) {
    this.#handles = handles;
    this.#sizes = handles.map((handle) => handle.getSize());
  }

  /**
   * Takes access to the files: shared with other readers where the browser has that, else for itself alone. `undefined` when the
   * files are not stored ones, or another reader has them for itself: then they are to be read as blobs.
   */
  static async open(files: readonly FileSystemFileHandle[]): Promise<OpfsSource | undefined> {
    const handles: FileSystemSyncAccessHandle[] = [];
    try {
      for (const file of files) handles.push(await accessForReading(file));
      return new OpfsSource(handles);
    } catch (thrown) {
      for (const handle of handles) handle.close();
      if (thrown instanceof DOMException || thrown instanceof TypeError) return undefined;
      throw thrown;
    }
  }

  get fileCount(): number {
    return this.#handles.length;
  }

  size(file: number): number | undefined {
    return this.#sizes[file];
  }

  /** Fills `place` with the bytes at `offset`, or throws a `SluiceError`. */
  readInto(file: number, offset: number, place: Uint8Array): boolean {
    const length = place.byteLength;
    let got: number | undefined;
    try {
      got = this.#handles[file]?.read(place, { at: offset });
    } catch (thrown) {
      const why = thrown instanceof Error ? thrown.name : String(thrown);
      const message = `the stored file cannot be read any more (${why}): store it again`;
      throw sourceFailed(message, { file, offset, length, reason: why });
    }
    if (got === length) return true;
    const message = `the stored file ends at byte ${this.#sizes[file] ?? 0}, but ${rangeText(offset, length)} are needed: it is cut off`;
    throw sourceFailed(message, { file, offset, length, got: got ?? 0 });
  }

  read(): Promise<void> {
    return Promise.reject(new TypeError('a source that reads at once is read by readInto'));
  }

  cancel(): void {
    // A read has ended when its call returns.
  }

  close(): void {
    for (const handle of this.#handles) handle.close();
  }
}
