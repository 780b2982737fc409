/** What the writer of a model and its download worker say to each other. */

import type { PlainError } from '../errors.js';
import type { FileFacts } from './layout.js';

/** A block of one of the model's files. */
export interface BlockPlace {
  file: number;
  block: number;
}

/** A stored block that turned out to be damaged, and the checksum that it must have. */
export interface SpoiltBlock extends BlockPlace {
  sum: number;
}

/** Bytes of a read at most: the size of the buffers that go to and fro. */
export const PIECE_BYTES = 256 * 1024;
/** Buffers of that size: one is read from while the other is filled. */
export const PIECE_BUFFERS = 2;

/** To the download worker. */
export type ToDownload =
  | {
      /** The first message. The worker reads the tables, and downloads what is asked for or in order. */
      kind: 'start';
      id: string;
      /** The addresses as they are fetched, query and all. */
      urls: readonly string[];
      headers: Readonly<Record<string, string>>;
      credentials: RequestCredentials | null;
      files: readonly FileFacts[];
      /** Nothing is known of what is in the model's folder: it does not count. */
      fresh: boolean;
      /** Files whose version is to be confirmed by the server, though nothing of them may be missing. */
      confirm: readonly number[];
      /** Blocks that are to be fetched again, unless another tab has seen to it. */
      spoilt: readonly SpoiltBlock[];
      /** The buffers that are free. */
      buffers: ArrayBuffer[];
      /** Hurry less: milliseconds before the first retry and of silence, for tests. */
      backoffMs: number | null;
      stallMs: number | null;
    }
  /** All blocks in the order of use, and how far the directory of each file reaches. From now on everything is downloaded. */
  | { kind: 'order'; blocks: readonly BlockPlace[]; ends: readonly number[] }
  /** Wants bytes of one block, at most `PIECE_BYTES`; answered by `bytes`, in a buffer that is free. */
  | { kind: 'read'; n: number; file: number; offset: number; length: number }
  /** A buffer is free again. */
  | { kind: 'buffer'; buffer: ArrayBuffer }
  /** A block is to be fetched again. */
  | { kind: 'spoilt'; block: SpoiltBlock }
  /** Nobody waits for reads any more. */
  | { kind: 'forget' }
  /** Wants to hear that the worker is there. */
  | { kind: 'ask' };

/** From the download worker. */
export type FromDownload =
  /** The answer to `start` and `ask`, at once. */
  | { kind: 'alive' }
  /** What the server says of a file; the first time and when it says more. */
  | { kind: 'facts'; file: number; facts: FileFacts }
  /** The bytes that read `n` wanted; `null` when their segment is full and closed, to be read by whoever wants it. */
  | { kind: 'bytes'; n: number; bytes: Uint8Array<ArrayBuffer> | null }
  /** How many more bytes are stored than when it was last said; fewer when what came in part is to come again. */
  | { kind: 'stored'; bytes: number }
  /** A stored block was damaged; it is missing now. */
  | { kind: 'spoilt'; block: SpoiltBlock; bytes: number }
  /** A segment is full, and closed. */
  | { kind: 'finished'; file: number; segment: number }
  /** No more is fetched by this worker, so that its heap goes; reads are answered to the end. */
  | { kind: 'retiring' }
  /** All files of the worker are closed, and nothing follows; `complete`: every block is stored. */
  | { kind: 'ended'; complete: boolean; buffers: ArrayBuffer[] }
  /** It failed, and closed its files. */
  | { kind: 'failed'; error: PlainError };
