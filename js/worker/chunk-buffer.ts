/**
 * Reads streams of bytes through buffers that are used again, where the browser's streams fill a given one: fresh chunks would stay in
 * memory until they are collected, which takes tens of megabytes.
 */

/** A buffer for one stream at a time. */
export class ChunkBuffer {
  #buffer: ArrayBuffer;
  readonly #bytes: number;
  /** The reader of the stream under way. Nothing else in JS may lead to it, and Chromium collects a stream that is only waited for. */
  readonly #held = new Set<object>();

  constructor(bytes: number) {
    this.#bytes = bytes;
    this.#buffer = new ArrayBuffer(bytes);
  }

  /** The stream's bytes, each chunk good until the next one is asked for. Whoever stops early ends the stream. */
  async *chunks(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
    const reader = byobReader(stream) ?? stream.getReader();
    this.#held.add(reader);
    try {
      for (;;) {
        const { value, done } = await this.#next(reader);
        if (value !== undefined && value.byteLength > 0) yield value;
        if (done) return;
      }
    } finally {
      await reader.cancel().catch(() => undefined);
      this.#held.delete(reader);
    }
  }

  async #next(
    reader: ReadableStreamBYOBReader | ReadableStreamDefaultReader<Uint8Array>,
  ): Promise<ReadableStreamReadResult<Uint8Array>> {
    if (!('ReadableStreamBYOBReader' in globalThis) || !(reader instanceof ReadableStreamBYOBReader)) {
      return (reader as ReadableStreamDefaultReader<Uint8Array>).read(); // the only other kind
    }
    // A stream that failed has kept the buffer.
    if (this.#buffer.byteLength === 0) this.#buffer = new ArrayBuffer(this.#bytes);
    const result = await reader.read(new Uint8Array(this.#buffer));
    // It comes back under a new name.
    if (result.value !== undefined) this.#buffer = result.value.buffer;
    return result;
  }
}

/** As many buffers as are in use at once. */
export class ChunkBuffers {
  readonly #free: ChunkBuffer[] = [];
  readonly #bytes: number;

  /** Each of `bytes` bytes. */
  constructor(bytes: number) {
    this.#bytes = bytes;
  }

  /** Like `ChunkBuffer.chunks`, in a buffer that is free. */
  async *chunks(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
    const buffer = this.#free.pop() ?? new ChunkBuffer(this.#bytes);
    try {
      yield* buffer.chunks(stream);
    } finally {
      this.#free.push(buffer);
    }
  }
}

/** A reader that fills a given buffer; undefined where the browser's streams of this kind cannot. */
function byobReader(stream: ReadableStream<Uint8Array>): ReadableStreamBYOBReader | undefined {
  try {
    return stream.getReader({ mode: 'byob' });
  } catch {
    return undefined;
  }
}
