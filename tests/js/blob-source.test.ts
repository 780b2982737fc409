/** Picked files, with and without BYOB readers. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BlobSource } from '../../js/worker/blob-source.js';
import { readAll, sourceSuite } from './source-suite.js';

/** A blob whose streams are as a browser's without byte streams are. */
class PlainBlob extends Blob {
  override slice(start?: number, end?: number): Blob {
    const part = super.slice(start, end);
    part.stream = () =>
      new ReadableStream({
        async pull(controller) {
          controller.enqueue(new Uint8Array(await part.arrayBuffer()));
          controller.close();
        },
      });
    return part;
  }
}

sourceSuite('blob', (files) => Promise.resolve(new BlobSource(files.map((bytes) => new Blob([bytes])))));
sourceSuite('blob without BYOB', (files) => Promise.resolve(new BlobSource(files.map((bytes) => new PlainBlob([bytes])))));

test('a file that went away is a source failure that says what to do', async () => {
  const blob = new Blob(['some bytes']);
  blob.slice = () => {
    throw new DOMException('gone', 'NotReadableError');
  };
  await assert.rejects(readAll(new BlobSource([blob]), 0, 0, 4), {
    code: 'source_failed',
    message: /NotReadableError.*pick it again/,
  });
});
