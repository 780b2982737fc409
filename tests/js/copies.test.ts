/** A source behind a port, for who reads copies of its bytes. */

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { MessageChannel } from 'node:worker_threads';
import { SluiceError } from '../../js/errors.js';
import { BlobSource } from '../../js/worker/blob-source.js';
import { CopiedSource, serveCopies } from '../../js/worker/copies.js';
import { type Source, sourceFailed } from '../../js/worker/source.js';
import { readAll, sourceSuite } from './source-suite.js';

const open: MessagePort[] = [];
after(() => open.forEach((port) => port.close()));

/** What the other worker reads is `source`. */
function behindPort(source: Source): Promise<CopiedSource> {
  const { port1, port2 } = new MessageChannel() as unknown as globalThis.MessageChannel; // a browser's, as far as it is used
  open.push(port1, port2);
  serveCopies(source, port2);
  return CopiedSource.open(port1);
}

sourceSuite('CopiedSource', (files) => behindPort(new BlobSource(files.map((file) => new Blob([file])))));

test('what the source says of itself arrives, and its failure with code and details', async () => {
  const failing: Source = {
    fileCount: 1,
    bufferBytes: 77,
    rereads: false,
    arriving: true,
    size: () => 9,
    read: (file, offset, length) => Promise.reject(sourceFailed('gone', { file, offset, length })),
    cancel: () => undefined,
  };
  const source = await behindPort(failing);
  assert.deepEqual([source.bufferBytes, source.rereads, source.arriving, source.size(0)], [77, false, true, 9]);
  await assert.rejects(
    source.read(0, 1, 2, () => true),
    (error: unknown) => {
      assert.ok(error instanceof SluiceError);
      assert.deepEqual([error.code, error.details], ['source_failed', { file: 0, offset: 1, length: 2 }]);
      return true;
    },
  );
});

/** A source of `bytes` that reads at once, and the offset and length of every read. */
function atOnce(bytes: Uint8Array, readInto = (): boolean => true): { source: Source; reads: [number, number][] } {
  const reads: [number, number][] = [];
  const source: Source = {
    fileCount: 1,
    bufferBytes: 0,
    rereads: true,
    size: () => bytes.byteLength,
    readInto: (_file, offset, place) => {
      reads.push([offset, place.byteLength]);
      place.set(bytes.subarray(offset, offset + place.byteLength));
      return readInto();
    },
    read: () => Promise.reject(new TypeError('it reads at once')),
    cancel: () => undefined,
  };
  return { source, reads };
}

const bytes = Uint8Array.from({ length: 20 }, (_, i) => i);

test('a source that reads at once is read at once', async () => {
  assert.deepEqual(await readAll(await behindPort(atOnce(bytes).source), 0, 5, 2), Uint8Array.of(5, 6));
});

test('pieces in a row, each twice as long, are read before they are asked for', async () => {
  const { source, reads } = atOnce(bytes);
  const copied = await behindPort(source);
  for (const [offset, length] of [
    [0, 2],
    [2, 4],
    [6, 8],
    [14, 6],
  ] as const) {
    assert.deepEqual(await readAll(copied, 0, offset, length), bytes.subarray(offset, offset + length));
    const last = reads.at(-1);
    const ahead = [offset + length, Math.min(2 * length, bytes.byteLength - offset - length)];
    assert.deepEqual(last, ahead[1] === 0 ? [offset, length] : ahead);
  }
  assert.equal(reads.length, 4);
});

test('what was read ahead is not given for another range', async () => {
  const copied = await behindPort(atOnce(bytes).source);
  assert.deepEqual(await readAll(copied, 0, 0, 2), Uint8Array.of(0, 1));
  assert.deepEqual(await readAll(copied, 0, 3, 4), Uint8Array.of(3, 4, 5, 6));
  assert.deepEqual(await readAll(copied, 0, 7, 3), Uint8Array.of(7, 8, 9));
});

test('what cannot be read ahead fails when it is asked for', async () => {
  let n = 0;
  const { source } = atOnce(bytes, () => {
    if (n++ > 0) throw sourceFailed('gone', {});
    return true;
  });
  const copied = await behindPort(source);
  assert.deepEqual(await readAll(copied, 0, 0, 2), Uint8Array.of(0, 1));
  await assert.rejects(readAll(copied, 0, 2, 4), SluiceError);
});
