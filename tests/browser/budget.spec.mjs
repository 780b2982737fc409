// A budget holds in real browsers: SmolLM2 (98 MB) from a stored and from a picked file in 48 and 32 MB gives the ids and the bits of a
// run that keeps everything, and the memory is the planned memory from open to close.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, readdir, rm, stat, truncate } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { sleep } from '../../scripts/browsers/deadline.mjs';
import { runJob, storeFiles } from '../../scripts/browsers/engine-run.mjs';
import { browserNames, launch } from '../../scripts/browsers/index.mjs';
import { serveBarePage } from '../../scripts/serve/bare-page.mjs';
import { golden, sluice, smollm2 } from './models.mjs';

const DEADLINE_MS = 60_000;
const CONTEXT = 512;
const PAGE_BYTES = 65_536;
const BUDGETS = { '48MB': 48_000_000, '32MB': 32_000_000 };
const LOGITS_CHUNK = 4;
const generate = { prompt: 'The capital of France is', options: { maxTokens: 8, temperature: 0, ignoreEog: true } };

// WebKitGTK has no `navigator.storage`.
const withStore = ['chromium', 'firefox'];

for (const name of browserNames) {
  describe(`a budget in ${name}`, { timeout: 10 * DEADLINE_MS }, () => {
    let folder, out, expected, server, browser, page, stored, resident;
    const run = (job) => runJob(page, { generate, ...job }, DEADLINE_MS);

    before(async () => {
      folder = await mkdtemp(path.join(os.tmpdir(), 'budget-'));
      out = path.join(folder, 'found.f32');
      expected = await nativeLogits(folder);
      server = await serveBarePage({ out });
      const kept = withStore.includes(name) ? { profile: path.join(folder, 'profile') } : {};
      browser = await launch(name, kept);
      page = await browser.newPage();
      await page.goto(`${server.origin}/`);
      resident = await run({ urls: [server.addFile(smollm2)], open: { context: CONTEXT } });
      assert.equal(resident.error, undefined);
      assert.equal(resident.stats.residentShare, 1);
      if (withStore.includes(name)) stored = await storeFiles(page, [server.addFile(smollm2)], DEADLINE_MS);
    });
    after(async () => {
      await browser?.close();
      await server?.close();
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    });

    // Chromium lets go of a file a moment after the worker that had it was ended.
    const storedAgain = async () => {
      for (const late = Date.now() + DEADLINE_MS; ; await sleep(100)) {
        try {
          return await storeFiles(page, [server.addFile(smollm2)], DEADLINE_MS);
        } catch (error) {
          if (Date.now() > late) throw error;
        }
      }
    };

    const bounded = async (source, memory) => {
      const found = await run({ ...source, times: 2, open: { context: CONTEXT, memory } });
      assert.equal(found.error, undefined);
      assert.deepEqual(found.ids, resident.ids);
      assertWithin(found, BUDGETS[memory]);
      await rm(out, { force: true });
      const open = { context: CONTEXT, memory, batch: LOGITS_CHUNK, allLogits: true };
      const logits = await runJob(page, { ...source, open, logits: { ids: expected.ids, chunk: LOGITS_CHUNK } }, DEADLINE_MS);
      assert.equal(logits.error, undefined);
      assertWithin(logits, BUDGETS[memory]);
      assert.ok((await readFile(out)).equals(expected.bytes), 'the logits have the bits of the native command');
      return found;
    };

    it('a picked file in 48MB', async () => {
      const { plan } = await bounded({ files: [smollm2] }, '48MB');
      assert.ok(plan.ledger.jsBuffers > 0);
    });

    it('a URL that is not stored is refused in words that say what to do', async () => {
      const found = await run({ urls: [server.addFile(smollm2)], open: { context: CONTEXT, memory: '48MB', cache: 'none' } });
      assertFailure(found, 'out_of_memory', /raise `memory` to \d+ or more/);
      assert.ok(found.error.details.neededBytes > 98_000_000);
      const { error } = await run({
        urls: [server.addFile(smollm2)],
        open: { context: CONTEXT, memory: found.error.details.neededBytes, cache: 'none' },
      });
      assert.equal(error, undefined);
    });

    it('a page less than the floor is refused, and the floor runs', async () => {
      const source = stored === undefined ? { files: [smollm2] } : { stored };
      const { plan } = await run({ ...source, open: { context: CONTEXT, memory: '48MB' } });
      const found = await run({ ...source, open: { context: CONTEXT, memory: plan.floorBytes - PAGE_BYTES } });
      assertFailure(found, 'out_of_memory', new RegExp(String(plan.floorBytes)));
      assert.equal(found.error.details.neededBytes, plan.floorBytes);
      const least = await run({ ...source, open: { context: CONTEXT, memory: plan.floorBytes } });
      assert.equal(least.error, undefined);
      assert.deepEqual(least.ids, resident.ids);
      assertWithin(least, plan.floorBytes);
    });

    if (!withStore.includes(name)) return;

    for (const memory of Object.keys(BUDGETS)) {
      it(`a stored file in ${memory}`, async () => {
        const { plan } = await bounded({ stored }, memory);
        assert.equal(plan.ledger.jsBuffers, 0, 'it is read in place');
      });
    }

    it('two engines read one stored file at once', async () => {
      const found = await page.evaluate(twoEngines, [stored[0], { context: CONTEXT, memory: '48MB' }, generate], DEADLINE_MS);
      assert.deepEqual(found.ids, [resident.ids, resident.ids]);
      // Firefox gives the first engine the file for itself; the second reads it as a blob.
      assert.deepEqual(
        found.jsBuffers.map((bytes) => bytes > 0),
        [false, name === 'firefox'],
      );
    });

    it('a stored file that was removed is a source failure', async () => {
      const gone = await page.evaluate(openRemoved, [], DEADLINE_MS);
      assertFailure({ error: gone }, 'source_failed', /stored file removed\.gguf was removed: store/);
    });

    it('a stored file that is cut short under the engine is a source failure, and works again once it is whole', async () => {
      assert.equal(await page.evaluate(openAndKeep, [stored[0], { context: CONTEXT, memory: '48MB' }], DEADLINE_MS), null);
      const { size } = await stat(smollm2);
      for (const file of await filesOfSize(path.join(folder, 'profile'), size)) await truncate(file, size / 2);
      const cut = await page.evaluate(askKept, [generate], DEADLINE_MS);
      assertFailure({ error: cut }, 'source_failed', /bytes \d+-\d+ are needed: it is cut off/);
      assert.ok(cut.details.offset + cut.details.length > size / 2);

      stored = await storedAgain();
      const again = await run({ stored, open: { context: CONTEXT, memory: '48MB' } });
      assert.equal(again.error, undefined);
      assert.deepEqual(again.ids, resident.ids);
    });
  });
}

function assertWithin({ memory, stats, plan }, budget) {
  assert.equal(stats.budgetBytes, budget);
  assert.ok(plan.totalBytes <= budget);
  assert.ok(stats.memoryPeakBytes <= plan.totalBytes, `${stats.memoryPeakBytes} of ${plan.totalBytes} planned bytes`);
  assert.equal(stats.memoryBytes, stats.memoryPeakBytes);
  assert.deepEqual(new Set(memory).size, 1, `memory grew after open: ${memory.join(', ')}`);
}

function assertFailure({ error }, code, message) {
  assert.ok(error, 'no error');
  assert.equal(error.name, 'SluiceError', JSON.stringify(error));
  assert.equal(error.code, code, JSON.stringify(error));
  assert.match(error.message, message);
}

let native;
/** Ids, and the native command's logits of them with all weights in memory. */
function nativeLogits(folder) {
  const make = async () => {
    const [{ ids }] = await golden('smollm2', 'emoji');
    const file = path.join(folder, 'native.f32');
    await sluice('logits', smollm2, '--ids', ids.join(','), '--out', file);
    return { ids, bytes: await readFile(file) };
  };
  return (native ??= make());
}

async function filesOfSize(folder, size) {
  const found = [];
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const file = path.join(entry.parentPath, entry.name);
    if (entry.isFile() && (await stat(file)).size === size) found.push(file);
  }
  assert.ok(found.length > 0, 'the browser keeps the stored file as a file of its size');
  return found;
}

// The rest runs in the page.

async function twoEngines(name, options, { prompt, options: sampling }) {
  const root = await navigator.storage.getDirectory();
  const handle = await root.getFileHandle(name);
  const engines = [await window.sluice.open(handle, options), await window.sluice.open(handle, options)];
  const answer = async (engine) => {
    const ids = [];
    for await (const { id } of engine.generate(prompt, sampling)) if (id !== null) ids.push(id);
    return ids;
  };
  const ids = await Promise.all(engines.map(answer));
  const jsBuffers = engines.map((engine) => engine.plan.ledger.jsBuffers);
  for (const engine of engines) await engine.close();
  return { ids, jsBuffers };
}

async function openRemoved() {
  const root = await navigator.storage.getDirectory();
  const handle = await root.getFileHandle('removed.gguf', { create: true });
  await root.removeEntry('removed.gguf');
  try {
    await (await window.sluice.open(handle)).close();
    return null;
  } catch ({ name, code, message, details }) {
    return { name, code, message, details };
  }
}

async function openAndKeep(name, options) {
  const root = await navigator.storage.getDirectory();
  window.kept = await window.sluice.open(await root.getFileHandle(name), options);
  return null;
}

async function askKept({ prompt, options }) {
  try {
    for await (const _ of window.kept.generate(prompt, options));
    return null;
  } catch ({ name, code, message, details }) {
    return { name, code, message, details };
  } finally {
    await window.kept.close();
  }
}
