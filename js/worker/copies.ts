/**
 * A source that another worker holds, for who reads the header alone: bytes come as messages. Nothing of the asking side's memory goes
 * to the reading one, where it would stay until garbage is collected, long after the worker that planned in it has ended.
 */

import { type PlainError, fromPlainError, toPlainError } from '../errors.js';
import { type SourceFacts, factsOf } from './desk.js';
import { type Sink, type Source, cancelled } from './source.js';

/** What the asking side says, after an empty greeting. */
interface Wanted {
  n: number;
  file: number;
  offset: number;
  length: number;
}

/** What the reading side says: what is known of the source, then the bytes of one read after the other. */
type Answer =
  | { kind: 'facts'; facts: SourceFacts }
  | { kind: 'bytes'; n: number; bytes: ArrayBuffer }
  | { kind: 'failed'; n: number; error: PlainError };

/** The asking side. */
export class CopiedSource implements Source {
  readonly bufferBytes: number;
  readonly rereads: boolean;
  readonly arriving: boolean;
  readonly #port: MessagePort;
  readonly #sizes: SourceFacts['sizes'];
  readonly #pending = new Map<number, { resolve: (bytes: ArrayBuffer) => void; reject: (error: unknown) => void }>();
  #asked = 0;

  private constructor(port: MessagePort, { sizes, bufferBytes, rereads, arriving }: SourceFacts) {
    this.#port = port;
    this.#sizes = sizes;
    this.bufferBytes = bufferBytes;
    this.rereads = rereads;
    this.arriving = arriving;
    port.onmessage = ({ data }: MessageEvent<Answer>) => this.#hear(data);
  }

  /** `port` leads to who serves copies; resolves when the source is open. */
  static open(port: MessagePort): Promise<CopiedSource> {
    return new Promise((resolve) => {
      port.onmessage = ({ data }: MessageEvent<Answer>) => {
        if (data.kind === 'facts') resolve(new CopiedSource(port, data.facts));
      };
      port.postMessage(null);
    });
  }

  get fileCount(): number {
    return this.#sizes.length;
  }

  size(file: number): number | undefined {
    return this.#sizes[file];
  }

  async read(file: number, offset: number, length: number, sink: Sink): Promise<void> {
    const bytes = await new Promise<ArrayBuffer>((resolve, reject) => {
      const n = (this.#asked += 1);
      this.#pending.set(n, { resolve, reject });
      this.#port.postMessage({ n, file, offset, length } satisfies Wanted);
    });
    sink(0, new Uint8Array(bytes));
  }

  cancel(): void {
    for (const { reject } of this.#pending.values()) reject(cancelled());
    this.#pending.clear();
  }

  #hear(answer: Answer): void {
    if (answer.kind === 'facts') return;
    const pending = this.#pending.get(answer.n);
    this.#pending.delete(answer.n);
    if (answer.kind === 'bytes') pending?.resolve(answer.bytes);
    else pending?.reject(fromPlainError(answer.error));
  }
}

/** The reading side. */
export function serveCopies(source: Source, port: MessagePort): void {
  port.onmessage = ({ data }: MessageEvent<Wanted | null>) => {
    if (data === null) return port.postMessage({ kind: 'facts', facts: factsOf(source) } satisfies Answer);
    const { n } = data;
    copyOf(source, data).then(
      (bytes) => port.postMessage({ kind: 'bytes', n, bytes } satisfies Answer, [bytes]),
      (thrown: unknown) => port.postMessage({ kind: 'failed', n, error: toPlainError(thrown) } satisfies Answer),
    );
  };
}

async function copyOf(source: Source, { file, offset, length }: Wanted): Promise<ArrayBuffer> {
  const place = new Uint8Array(length);
  if (source.readInto?.(file, offset, place)) return place.buffer;
  await source.read(file, offset, length, (at, bytes) => {
    place.set(bytes, at);
    return true;
  });
  return place.buffer;
}
