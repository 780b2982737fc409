// `OpfsSource` in a worker of a real browser, on files of known bytes: what `tests/js/source-suite.ts` asks of sources that read later,
// asked of the one that reads at once.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { launch } from '../../scripts/browsers/index.mjs';
import { serveBarePage } from '../../scripts/serve/bare-page.mjs';

const DEADLINE_MS = 30_000;
const SIZES = [1_300_000, 70_001];
const PLACES = [
  [0, 0, 1],
  [0, 0, 1_000_000],
  [0, 65_535, 2],
  [0, 65_536, 1],
  [0, 1_299_999, 1],
  [1, 1, 70_000],
  [0, 12_345, 678_901],
];

for (const name of ['chromium', 'firefox']) {
  describe(`OpfsSource in ${name}`, { timeout: 4 * DEADLINE_MS }, () => {
    let server, browser, found;
    before(async () => {
      server = await serveBarePage();
      browser = await launch(name);
      const page = await browser.newPage();
      await page.goto(`${server.origin}/`);
      found = await page.evaluate(startWorker, [String(inWorker), SIZES, PLACES], DEADLINE_MS);
      assert.equal(found.failed, undefined);
    });
    after(async () => {
      await browser?.close();
      await server?.close();
    });

    it('knows its files and their sizes, holds no buffer and may be read again', () => {
      assert.deepEqual(found.facts, { fileCount: 2, sizes: SIZES, bufferBytes: 0, rereads: true });
    });

    it('reads the bytes that were asked for, at any place and length, and nothing beside them', () => {
      assert.deepEqual(
        found.right,
        PLACES.map(() => true),
      );
    });

    it('a read past the end is refused, naming range and size, and later ones work', () => {
      const { code, message, details } = found.past;
      assert.equal(code, 'source_failed');
      assert.match(message, /ends at byte 70001, but bytes 70000-70001 .*cut off/);
      assert.deepEqual(details, { file: 1, offset: 70_000, length: 2, got: 1 });
      assert.equal(found.afterPast, true);
    });

    it('a file that is gone, or another has for itself, is not taken, and what was taken is given back', () => {
      assert.deepEqual(found.refused, { gone: true, held: true, givenBack: true });
    });
  });
}

// Runs in the page: `work` in a module worker.
async function startWorker(work, ...values) {
  const module = `${location.origin}/modules/worker/opfs-source.js`;
  const script = `(${work})(${JSON.stringify(module)}, ...${JSON.stringify(values)}).then(
    (found) => postMessage(found), (error) => postMessage({ failed: String(error.stack ?? error) }));`;
  const url = URL.createObjectURL(new Blob([script], { type: 'text/javascript' }));
  const worker = new Worker(url, { type: 'module' });
  const found = await new Promise((resolve) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = (event) => resolve({ failed: event.message || 'the worker cannot start' });
  });
  worker.terminate();
  return found;
}

// Runs in the worker.
async function inWorker(module, sizes, places) {
  const { OpfsSource } = await import(module);
  const root = await navigator.storage.getDirectory();
  const contents = sizes.map((size, seed) =>
    Uint8Array.from({ length: size }, (_, i) => Math.imul(i + 1, 2654435761 + seed) >>> 24),
  );
  const handles = [];
  for (const [index, bytes] of contents.entries()) {
    const handle = await root.getFileHandle(`part-${index}`, { create: true });
    await writeAtOnce(handle, bytes);
    handles.push(handle);
  }
  const gone = await root.getFileHandle('gone', { create: true });
  await root.removeEntry('gone');
  const refused = { gone: (await OpfsSource.open([handles[0], gone])) === undefined };
  const own = await handles[1].createSyncAccessHandle(); // what the failed opens had taken must be free again
  refused.held = (await OpfsSource.open(handles)) === undefined;
  own.close();

  const source = await OpfsSource.open(handles);
  refused.givenBack = source !== undefined;
  const facts = {
    fileCount: source.fileCount,
    sizes: sizes.map((_, file) => source.size(file)),
    bufferBytes: source.bufferBytes,
    rereads: source.rereads,
  };
  const right = places.map(([file, offset, length]) => {
    const around = new Uint8Array(length + 2).fill(0xa5);
    source.readInto(file, offset, around.subarray(1, length + 1));
    const same = contents[file].subarray(offset, offset + length).every((byte, i) => byte === around[i + 1]);
    return same && around[0] === 0xa5 && around[length + 1] === 0xa5;
  });
  let past = null;
  try {
    source.readInto(1, 70_000, new Uint8Array(2));
  } catch ({ code, message, details }) {
    past = { code, message, details };
  }
  const last = new Uint8Array(1);
  source.readInto(1, 70_000, last);
  return { facts, right, past, afterPast: last[0] === contents[1][70_000], refused };

  async function writeAtOnce(handle, bytes) {
    const access = await handle.createSyncAccessHandle();
    access.truncate(0);
    access.write(bytes, { at: 0 });
    access.close();
  }
}
