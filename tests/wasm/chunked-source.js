// The interface of js/worker/source.ts over bytes in memory, for the bridge's tests.

class ChunkedSource {
  #files;
  #chunkBytes;
  #generation = 0;

  constructor(files, chunkBytes) {
    this.#files = files;
    this.#chunkBytes = chunkBytes;
  }

  bufferBytes = 0;

  get fileCount() {
    return this.#files.length;
  }

  size(file) {
    return this.#files[file]?.byteLength;
  }

  async read(file, offset, length, sink) {
    const generation = this.#generation;
    const bytes = this.#files[file];
    if (bytes === undefined || offset + length > bytes.byteLength) throw failed('not in the file', { file, offset, length });
    for (let at = 0; at < length; at += this.#chunkBytes) {
      await new Promise((resolve) => setTimeout(resolve));
      if (generation !== this.#generation) throw failed('cancelled', { file, offset, length });
      const end = Math.min(at + this.#chunkBytes, length);
      if (!sink(at, bytes.subarray(offset + at, offset + end))) return;
    }
  }

  cancel() {
    this.#generation += 1;
  }
}

const failed = (message, details) => Object.assign(new Error(message), { code: 'source_failed', details });

export const chunkedSource = (files, chunkBytes) => new ChunkedSource(files, chunkBytes);
