// The same bits everywhere: logits files of the native command and of every browser, build and number of threads are byte-identical,
// in both precisions, with the prompt fed whole or token by token, with weights that stay and with weights that stream.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { runJob, storeFiles } from '../../scripts/browsers/engine-run.mjs';
import { browserNames, launch } from '../../scripts/browsers/index.mjs';
import { serveBarePage } from '../../scripts/serve/bare-page.mjs';
import { fixture, golden, sluice, smollm2 } from './models.mjs';

const DEADLINE_MS = 120_000;
const PRECISIONS = ['fast', 'exact'];

// WebKitGTK has no relaxed SIMD.
const builds = { chromium: ['simd', 'relaxed'], firefox: ['simd', 'relaxed'], webkit: ['simd'] };
const THREADS = [1, 2, 3];

describe('logits are byte-identical', { timeout: 15 * DEADLINE_MS }, () => {
  let folder;
  const cases = [];
  before(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), 'bits-'));
    const [emoji] = await golden('smollm2', 'emoji');
    cases.push({ name: 'SmolLM2', model: smollm2, ids: [...emoji.ids, ...emoji.greedy.slice(0, 9)] });
    for (const name of ['llama-7to1', 'llama-bias', 'llama-ropefreqs-tied']) {
      const { prompt } = JSON.parse(await readFile(fixture('models', `${name}.json`), 'utf8'));
      cases.push({ name, model: fixture('models', `${name}.gguf`), ids: prompt });
    }
    for (const { name, model, ids } of cases) {
      for (const precision of PRECISIONS) await native(name, model, ids, precision);
    }
  });
  after(() => rm(folder, { recursive: true, force: true }));

  const fileOf = (...parts) => path.join(folder, `${parts.join('-')}.f32`);
  const native = (name, model, ids, precision, ...more) =>
    sluice('logits', model, '--ids', ids.join(','), '--precision', precision, '--out', fileOf(name, precision, ...more), ...more);

  it('natively, token by token', async () => {
    for (const { name, model, ids } of cases) {
      for (const precision of PRECISIONS) {
        await native(name, model, ids, precision, '--n-batch', '1');
        assert.ok(await sameFile(fileOf(name, precision), fileOf(name, precision, '--n-batch', '1')), `${name}, ${precision}`);
      }
    }
  });

  it('natively, with threads', async () => {
    for (const { name, model, ids } of cases) {
      for (const [threads, chunk] of [
        [2, ids.length],
        [3, 1],
      ]) {
        const options = ['--threads', String(threads), '--n-batch', String(chunk)];
        await native(name, model, ids, 'fast', ...options);
        assert.ok(await sameFile(fileOf(name, 'fast'), fileOf(name, 'fast', ...options)), `${name}, ${threads} threads`);
      }
    }
  });

  for (const browserName of browserNames) {
    describe(`in ${browserName}`, () => {
      let server, browser, page, out, small;
      before(async () => {
        out = fileOf(browserName);
        server = await serveBarePage({ out });
        browser = await launch(browserName, { sharedMemory: true });
        page = await browser.newPage();
        await page.goto(`${server.origin}/`);
        // WebKitGTK has no store: there a picked file streams.
        small = browserName === 'webkit' ? { files: [smollm2] } : { stored: await stored() };
      });
      after(async () => {
        await browser?.close();
        await server?.close();
      });
      const stored = async () => {
        await page.waitFor(() => window.sluice !== undefined, [], DEADLINE_MS);
        return storeFiles(page, [server.addFile(smollm2)], DEADLINE_MS);
      };
      for (const build of builds[browserName].map((name) => `${name}-threads`)) {
        for (const threads of THREADS) {
          it(`${build}, ${threads} threads`, async () => {
            const runs = cases.map(({ name, model, ids }) => ({ name, ids, chunk: ids.length, urls: [server.addFile(model)] }));
            const { ids } = cases[0];
            runs.push({ name: 'SmolLM2', ids, chunk: 4, memory: '48MB', ...small });
            for (const { name, ids, chunk, memory, ...source } of runs) {
              await rm(out, { force: true });
              // One number of threads stands for all in the precision that nothing else is different in.
              const precision = threads === 2 && memory === undefined ? 'exact' : 'fast';
              const open = { build, threads, precision, context: 64, batch: chunk, allLogits: true, memory };
              const found = await runJob(page, { ...source, open, logits: { ids, chunk } }, DEADLINE_MS);
              const said = `${name}, ${precision}, ${memory ?? 'resident'}`;
              assert.equal(found.error, undefined, said);
              assert.deepEqual([found.stats.build, found.stats.threads], [build, threads], said);
              assert.equal(found.stats.residentShare < 1, memory !== undefined, said);
              assert.ok(found.stats.memoryPeakBytes <= found.plan.totalBytes, said);
              assert.ok(await sameFile(fileOf(name, precision), out), said);
            }
          });
        }
      }
      for (const build of builds[browserName]) {
        for (const precision of PRECISIONS) {
          it(`${build}, ${precision}`, async () => {
            for (const { name, model, ids } of cases) {
              for (const chunk of [ids.length, 1]) {
                await rm(out, { force: true });
                const open = { build, precision, context: 64, batch: chunk, allLogits: true };
                const found = await runJob(page, { urls: [server.addFile(model)], open, logits: { ids, chunk } }, DEADLINE_MS);
                const said = `${name}, chunks of ${chunk}`;
                assert.equal(found.error, undefined, said);
                assert.equal(found.stats.build, build, said);
                assert.ok(await sameFile(fileOf(name, precision), out), said);
              }
            }
          });
        }
      }
    });
  }
});

async function sameFile(expected, found) {
  const [a, b] = [await readFile(expected), await readFile(found)];
  return a.length > 0 && a.equals(b);
}
