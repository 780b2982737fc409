/**
 * Reads that one worker asks another for, over shared memory: words of the asking engine's memory say what is wanted and what has
 * ended, and the bytes go straight to their place. `src/source/web/desk.rs` has the same layout. Only failures travel as messages.
 */

import { type PlainError, fromPlainError, toPlainError } from '../errors.js';
import type { Source } from './source.js';

/** What is known of a source, when somebody begins to ask it. */
export interface SourceFacts {
  sizes: readonly (number | undefined)[];
  bufferBytes: number;
  rereads: boolean;
  arriving: boolean;
}

/** What the asking side says: where its desk is, and what a pass reads, in the order of use. */
export type ToReader =
  | { kind: 'serve'; memory: WebAssembly.Memory; address: number }
  | { kind: 'order'; files: Uint32Array; offsets: Float64Array; lengths: Float64Array };

/** What the reading side says: it is at the desk, or a read has failed. */
export type FromReader = { kind: 'serving'; facts: SourceFacts } | { kind: 'failed'; index: number; error: PlainError };

/** The asking side, as Rust uses it. */
export interface Desk {
  readonly fileCount: number;
  readonly bufferBytes: number;
  readonly rereads: boolean;
  readonly arriving: boolean;
  /** Passes on what a pass reads, in the order of use. */
  willUse(files: Uint32Array, offsets: Float64Array, lengths: Float64Array): void;
  size(file: number): number | undefined;
  /** Has the reading worker serve the desk at `address`; the facts above hold from then on. */
  serve(address: number): Promise<void>;
  /** Wakes the reading worker. */
  ring(): void;
  /** Blocks while the count of ended reads is `seen`, for at most `ms`. */
  block(seen: number, ms: number): void;
  /** Resolves when the count of ended reads is not `seen` any more, or a failure has arrived. */
  changed(seen: number): Promise<void>;
  /** Why the read of entry `index` failed; undefined while the message is on its way. */
  takeFailure(index: number): Error | undefined;
}

/** The asking side with a port to the reading worker. */
export class PortDesk implements Desk {
  readonly #port: MessagePort;
  readonly #memory: WebAssembly.Memory;
  readonly #failures = new Map<number, PlainError>();
  #words = new Int32Array();
  #facts: SourceFacts = { sizes: [], bufferBytes: 0, rereads: false, arriving: false };
  #onFailure: () => void = () => undefined;

  /** `port` leads to the reading worker; the desk will be in `memory`. */
  constructor(port: MessagePort, memory: WebAssembly.Memory) {
    this.#port = port;
    this.#memory = memory;
  }

  serve(address: number): Promise<void> {
    this.#words = new Int32Array(this.#memory.buffer, address, N_WORDS);
    return new Promise((resolve) => {
      this.#port.onmessage = ({ data }: MessageEvent<FromReader>) => {
        switch (data.kind) {
          case 'serving':
            this.#facts = data.facts;
            resolve();
            return;
          case 'failed':
            this.#failures.set(data.index, data.error);
            this.#onFailure();
        }
      };
      this.#port.postMessage({ kind: 'serve', memory: this.#memory, address } satisfies ToReader);
    });
  }

  get fileCount(): number {
    return this.#facts.sizes.length;
  }

  get bufferBytes(): number {
    return this.#facts.bufferBytes;
  }

  get rereads(): boolean {
    return this.#facts.rereads;
  }

  get arriving(): boolean {
    return this.#facts.arriving;
  }

  willUse(files: Uint32Array, offsets: Float64Array, lengths: Float64Array): void {
    // A source that has everything may be blocked by its waiting, and has no use for it.
    if (this.arriving) this.#port.postMessage({ kind: 'order', files, offsets, lengths } satisfies ToReader);
  }

  size(file: number): number | undefined {
    return this.#facts.sizes[file];
  }

  ring(): void {
    Atomics.notify(this.#words, BELL);
  }

  /** Nothing is read any more: the reading worker leaves the desk. */
  close(): void {
    if (this.#words.length === 0) return;
    Atomics.store(this.#words, CLOSED, 1);
    Atomics.add(this.#words, BELL, 1);
    this.ring();
  }

  block(seen: number, ms: number): void {
    Atomics.wait(this.#words, N_ENDED, seen | 0, ms);
  }

  async changed(seen: number): Promise<void> {
    const failure = new Promise<void>((resolve) => (this.#onFailure = resolve));
    await Promise.race([changed(this.#words, N_ENDED, seen | 0), failure]);
  }

  takeFailure(index: number): Error | undefined {
    const error = this.#failures.get(index);
    this.#failures.delete(index);
    return error && fromPlainError(error);
  }
}

/** What is known of `source` now. */
export function factsOf(source: Source): SourceFacts {
  return {
    sizes: Array.from({ length: source.fileCount }, (_, file) => source.size(file)),
    bufferBytes: source.bufferBytes,
    rereads: source.rereads,
    arriving: source.arriving ?? false,
  };
}

/** A desk that is served; `later` counts reads that end later. */
interface OpenDesk {
  readonly source: Source;
  readonly memory: WebAssembly.Memory;
  readonly words: Int32Array;
  readonly port: MessagePort;
  later: number;
}

/** The reading side: does what the desk at `address` asks of `source` until it is closed. */
export async function serveDesk(
  source: Source,
  { memory, address }: ToReader & { kind: 'serve' },
  port: MessagePort,
): Promise<void> {
  const words = new Int32Array(memory.buffer, address, N_WORDS);
  port.postMessage({ kind: 'serving', facts: factsOf(source) } satisfies FromReader);
  const desk: OpenDesk = { source, memory, words, port, later: 0 };
  let next = 0;
  let nCancelled = Atomics.load(words, N_CANCELLED);
  for (;;) {
    const bell = Atomics.load(words, BELL);
    const now = Atomics.load(words, N_CANCELLED);
    const closed = Atomics.load(words, CLOSED) !== 0;
    // The source may have reads under way for others.
    if (desk.later > 0 && (now !== nCancelled || closed)) source.cancel();
    nCancelled = now;
    if (closed) return endAll(words);
    for (let entry = entryAt(next); Atomics.load(words, entry + STATE) === POSTED; entry = entryAt(next)) {
      Atomics.store(words, entry + STATE, TAKEN);
      readEntry(desk, next);
      next = (next + 1) % N_ENTRIES;
    }
    // Whoever reads at once has nothing to do but wait: blocked for a while, which is quickest; then with the event loop free, without
    // which a browser takes seconds to end a worker. Others need the event loop.
    const atOnce = source.readInto && source.arriving !== true && desk.later === 0;
    if (!atOnce || Atomics.wait(words, BELL, bell, BLOCKED_MS) === 'timed-out') await changed(words, BELL, bell);
  }
}

/** Ends what nobody has begun to read. */
function endAll(words: Int32Array): void {
  for (let index = 0; index < N_ENTRIES; index++) {
    if (Atomics.compareExchange(words, entryAt(index) + STATE, POSTED, CANCELLED) === POSTED) Atomics.add(words, N_ENDED, 1);
  }
  Atomics.notify(words, N_ENDED);
}

/** Reads what the entry asks for; a read that ends at once leaves nothing to collect but its view. */
function readEntry(desk: OpenDesk, index: number): void {
  const { source, memory, words } = desk;
  const entry = entryAt(index);
  if (isCancelled(words, wordAt(words, entry + ASKED))) return end(words, entry, CANCELLED);
  if (source.readInto) {
    const place = new Uint8Array(memory.buffer, wordAt(words, entry + ADDRESS), wordAt(words, entry + LENGTH));
    try {
      if (source.readInto(wordAt(words, entry + FILE), offsetAt(words, entry), place)) return end(words, entry, DONE);
    } catch (thrown) {
      return failed(desk, index, thrown);
    }
  }
  readLater(desk, index);
}

function readLater(desk: OpenDesk, index: number): void {
  const { source, memory, words } = desk;
  const entry = entryAt(index);
  const word = (at: number): number => wordAt(words, entry + at);
  const [file, length, address, asked] = [word(FILE), word(LENGTH), word(ADDRESS), word(ASKED)];
  let over = false; // from then on the place may be another's
  let placed = 0;
  const sink = (at: number, bytes: Uint8Array): boolean => {
    if (over || isCancelled(words, asked) || at + bytes.byteLength > length) return false;
    new Uint8Array(memory.buffer, address + at, bytes.byteLength).set(bytes);
    placed += bytes.byteLength;
    return true;
  };
  desk.later += 1;
  source
    .read(file, offsetAt(words, entry), length, sink)
    .then(
      () => {
        over = true;
        end(words, entry, placed === length ? DONE : CANCELLED);
      },
      (thrown: unknown) => {
        over = true;
        failed(desk, index, thrown);
      },
    )
    .finally(() => (desk.later -= 1));
}

function failed({ words, port }: OpenDesk, index: number, thrown: unknown): void {
  const entry = entryAt(index);
  if (isCancelled(words, wordAt(words, entry + ASKED))) return end(words, entry, CANCELLED);
  port.postMessage({ kind: 'failed', index, error: toPlainError(thrown) } satisfies FromReader);
  end(words, entry, FAILED);
}

function end(words: Int32Array, entry: number, state: number): void {
  Atomics.store(words, entry + STATE, state);
  Atomics.add(words, N_ENDED, 1);
  Atomics.notify(words, N_ENDED);
}

/** Whether a read that was asked for when `asked` had been cancelled is wanted no more. */
const isCancelled = (words: Int32Array, asked: number): boolean =>
  asked !== Atomics.load(words, N_CANCELLED) >>> 0 || Atomics.load(words, CLOSED) !== 0;

const wordAt = (words: Int32Array, at: number): number => (words[at] ?? 0) >>> 0;
const offsetAt = (words: Int32Array, entry: number): number =>
  wordAt(words, entry + OFFSET_LOW) + wordAt(words, entry + OFFSET_HIGH) * 2 ** 32;

/** Resolves when the word at `index` is not `value` any more. It is looked at now and then, should a wake-up ever be lost. */
async function changed(words: Int32Array, index: number, value: number): Promise<void> {
  for (;;) {
    const waiting = (Atomics as unknown as AsyncAtomics).waitAsync(words, index, value, LOOK_MS);
    if (!waiting.async || (await waiting.value) !== 'timed-out') return;
  }
}

/** What TypeScript's library of this year does not have; `capabilities.ts` asks for it. */
interface AsyncAtomics {
  waitAsync(
    words: Int32Array,
    index: number,
    value: number,
    ms: number,
  ): { async: true; value: Promise<string> } | { async: false; value: string };
}

const entryAt = (index: number): number => HEAD_WORDS + index * ENTRY_WORDS;

// Words of the desk.
const BELL = 0;
const N_ENDED = 1;
const N_CANCELLED = 2;
const CLOSED = 3;
const HEAD_WORDS = 4;

// Words of an entry.
const STATE = 0;
const FILE = 1;
const OFFSET_LOW = 2;
const OFFSET_HIGH = 3;
const LENGTH = 4;
const ADDRESS = 5;
const ASKED = 6;
const ENTRY_WORDS = 8;

/** Longer than the pause between two reads of a pass. */
const BLOCKED_MS = 20;

/** Long enough to cost nothing, short enough for who waits. */
const LOOK_MS = 1000;

const N_ENTRIES = 64;
const N_WORDS = HEAD_WORDS + N_ENTRIES * ENTRY_WORDS;

// States of an entry; 0 is a free one.
const POSTED = 1;
const DONE = 2;
const FAILED = 3;
const CANCELLED = 4;
const TAKEN = 5;
