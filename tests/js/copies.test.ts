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

test('a source that reads at once is read at once', async () => {
  const bytes = Uint8Array.of(5, 6, 7, 8);
  const atOnce: Source = {
    fileCount: 1,
    bufferBytes: 0,
    rereads: true,
    size: () => bytes.byteLength,
    readInto: (_file, offset, place) => (place.set(bytes.subarray(offset, offset + place.byteLength)), true),
    read: () => Promise.reject(new TypeError('it reads at once')),
    cancel: () => undefined,
  };
  assert.deepEqual(await readAll(await behindPort(atOnce), 0, 1, 2), Uint8Array.of(6, 7));
});
