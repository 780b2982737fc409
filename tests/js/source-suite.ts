/** What every source must do, whatever it reads: run it on a source of files of known bytes. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Source } from '../../js/worker/source.js';

/** Bytes of a file: different everywhere, the same each time. */
export function fileBytes(length: number, seed = 1): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  let state = seed;
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
}

/** Reads a run of bytes into one array. */
export async function readAll(source: Source, file: number, offset: number, length: number): Promise<Uint8Array> {
  const out = new Uint8Array(length);
  let filled = 0;
  await source.read(file, offset, length, (at, bytes) => {
    assert.equal(at, filled, 'bytes come in order');
    out.set(bytes, at);
    filled += bytes.byteLength;
    return true;
  });
  assert.equal(filled, length, 'all bytes came');
  return out;
}

/** The suite; `make` gives a fresh source of these files. */
export function sourceSuite(name: string, make: (files: Uint8Array<ArrayBuffer>[]) => Promise<Source>): void {
  const files = [fileBytes(1_300_000, 1), fileBytes(70_001, 2)];
  const expected = (file: number, offset: number, length: number): Uint8Array =>
    files[file]?.subarray(offset, offset + length) ?? new Uint8Array();

  test(`${name}: knows its files and their sizes`, async () => {
    const source = await make(files);
    assert.equal(source.fileCount, 2);
    assert.deepEqual([source.size(0), source.size(1)], [1_300_000, 70_001]);
    assert.ok(source.bufferBytes > 0 && source.bufferBytes <= 1 << 20);
  });

  test(`${name}: reads the bytes that were asked for, at any place and length`, async () => {
    const source = await make(files);
    const places = [
      [0, 0, 1],
      [0, 0, 1_000_000],
      [0, 65_535, 2],
      [0, 65_536, 1],
      [0, 1_299_999, 1],
      [1, 1, 70_000],
      [0, 12_345, 678_901],
    ] as const;
    for (const [file, offset, length] of places) {
      assert.deepEqual(await readAll(source, file, offset, length), expected(file, offset, length));
    }
  });

  test(`${name}: many reads at once do not mix`, async () => {
    const source = await make(files);
    const reads = Array.from({ length: 30 }, (_, i) => ({ offset: i * 40_000, length: 40_000 + i }));
    const all = await Promise.all(reads.map(({ offset, length }) => readAll(source, 0, offset, length)));
    all.forEach((bytes, i) => {
      const { offset, length } = reads[i] ?? { offset: 0, length: 0 };
      assert.deepEqual(bytes, expected(0, offset, length));
    });
  });

  test(`${name}: a read past the end is refused, naming range and size`, async () => {
    const source = await make(files);
    await assert.rejects(readAll(source, 1, 70_000, 2), {
      code: 'source_failed',
      message: /70000-70001.*cut off|cut off.*70000-70001/s,
    });
    assert.deepEqual(await readAll(source, 1, 70_000, 1), expected(1, 70_000, 1));
  });

  test(`${name}: a sink that wants no more ends the read quietly`, async () => {
    const source = await make(files);
    let calls = 0;
    await source.read(0, 100_000, 1_000_000, () => {
      calls += 1;
      return false;
    });
    assert.equal(calls, 1);
    assert.deepEqual(await readAll(source, 0, 5, 5), expected(0, 5, 5));
  });

  test(`${name}: cancelling ends all reads under way; later ones work`, async () => {
    const source = await make(files);
    const reads = Array.from({ length: 10 }, (_, i) => readAll(source, 0, 70_000 + i, 1_000_000));
    source.cancel();
    for (const read of reads) await assert.rejects(read, { code: 'source_failed', message: /cancelled/ });
    assert.deepEqual(await readAll(source, 0, 9, 9), expected(0, 9, 9));
  });
}
