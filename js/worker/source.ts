/**
 * What Rust's browser source asks of JS: positional reads that hand their bytes over chunk by chunk.
 * `src/source/web` declares the same interface; a source knows files, offsets and lengths and nothing of models.
 */

import { SluiceError, type ErrorDetails } from '../errors.js';

/** Takes bytes for `at` of the read's place. False: nobody wants the rest of this read. */
export type Sink = (at: number, bytes: Uint8Array) => boolean;

/** The files of one model. */
export interface Source {
  readonly fileCount: number;
  /** Bytes of JS buffers that the source holds, at most. */
  readonly bufferBytes: number;
  /** Whether reading the same bytes again costs no network: only then may weights stream in every pass. */
  readonly rereads: boolean;
  /** Bytes of a file, where they are known. */
  size(file: number): number | undefined;
  /** Bytes may still be on their way over a network: opening does not wait for what will be kept. */
  readonly arriving?: boolean;
  /**
   * Fills `place` before it returns, or throws a `SluiceError`. False: the bytes are not there yet, and `read` waits for them. Only
   * where the source reads at once as a rule.
   */
  readInto?(file: number, offset: number, place: Uint8Array): boolean;
  /** What a pass reads, in the order of use: range i is `lengths[i]` bytes at `offsets[i]` of file `files[i]`. Said once. */
  willUse?(files: Uint32Array, offsets: Float64Array, lengths: Float64Array): void;
  /** Reads exactly `length` bytes, in order, or rejects with a `SluiceError`; after that `sink` is not called again. */
  read(file: number, offset: number, length: number, sink: Sink): Promise<void>;
  /** Why weights cannot be stored, which would let them stream: for whoever is refused for want of memory. */
  readonly advice?: string;
  /** Ends all reads under way; they reject. Later reads work. */
  cancel(): void;
  /** Gives the files back to other readers; nothing is read any more. What the source says of itself stays as it is. */
  close?(): void;
}

/** Bytes could not be read. */
export function sourceFailed(message: string, details: ErrorDetails): SluiceError {
  return new SluiceError('source_failed', message, details);
}

/** The read was given up on purpose. */
export function cancelled(): SluiceError {
  return sourceFailed('reading was cancelled', { reason: 'cancelled' });
}

/** `bytes A-B` as people write it. */
export function rangeText(offset: number, length: number): string {
  return `bytes ${offset}-${offset + length - 1}`;
}
