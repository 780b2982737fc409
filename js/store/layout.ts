/**
 * How a model lies in the origin's private file system: a folder for each model, in it `facts.json`, and for each of its files a table of
 * blocks and segments of 64 MiB (docs/store.md). Sizes and names, no access.
 */

/** Bytes of a block: what is fetched, checked and mended as one. */
export const BLOCK_BYTES = 1 << 20;
/** Blocks of a segment. */
export const SEGMENT_BLOCKS = 64;
/** Bytes of a segment: one file of the store. */
export const SEGMENT_BYTES = SEGMENT_BLOCKS * BLOCK_BYTES;
/** The folder of all models. */
export const STORE_FOLDER = 'sluice-models';
/** The name of a model's facts in its folder. */
export const FACTS_NAME = 'facts.json';

/** What is known of one file of a stored model. */
export interface FileFacts {
  /** Address without query, fragment and credentials. */
  url: string;
  size: number | null;
  /** The server's strong ETag, where it shows one. */
  etag: string | null;
  /** The server's Last-Modified, where it shows one. */
  modified: string | null;
}

/** What is known of a stored model. */
export interface Facts {
  version: 1;
  files: FileFacts[];
  /** The server has another version by now: nothing of this one is to be used. */
  stale?: true;
}

/** The name of the table of blocks of file `file`. */
export function tableName(file: number): string {
  return `${file}.blocks`;
}

/** The name of a segment. */
export function segmentName(file: number, segment: number): string {
  return `${file}.${String(segment).padStart(4, '0')}`;
}

/** Bytes of block `block` of a file of `size` bytes. */
export function blockLength(block: number, size: number | null): number {
  return size === null ? BLOCK_BYTES : Math.max(0, Math.min(BLOCK_BYTES, size - block * BLOCK_BYTES));
}

/** Blocks of a file of `size` bytes. */
export function blocksOf(size: number): number {
  return Math.ceil(size / BLOCK_BYTES);
}

/** The blocks of segment `segment` in a file of `size` bytes: the first, and the one behind the last. */
export function blocksOfSegment(segment: number, size: number): [number, number] {
  return [segment * SEGMENT_BLOCKS, Math.min((segment + 1) * SEGMENT_BLOCKS, blocksOf(size))];
}

/** An address that may be shown and kept: no query, fragment or credentials. */
export function publicUrl(url: string): string {
  const shown = new URL(url);
  shown.username = shown.password = shown.search = shown.hash = '';
  return shown.href;
}

/** The name of a model's folder: a digest of the public addresses of its files. */
export async function modelId(urls: readonly string[]): Promise<string> {
  const text = new TextEncoder().encode(JSON.stringify(urls.map(publicUrl)));
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', text)).subarray(0, 16);
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
