// The same bits everywhere: logits files of the native command and of every browser and build are byte-identical, in both precisions,
// with the prompt fed whole or token by token.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { runJob } from '../../scripts/browsers/engine-run.mjs';
import { browserNames, launch } from '../../scripts/browsers/index.mjs';
import { serveBarePage } from '../../scripts/serve/bare-page.mjs';
import { fixture, golden, sluice, smollm2 } from './models.mjs';

const DEADLINE_MS = 120_000;
const PRECISIONS = ['fast', 'exact'];

// WebKitGTK has no relaxed SIMD.
const builds = { chromium: ['simd', 'relaxed'], firefox: ['simd', 'relaxed'], webkit: ['simd'] };

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

  for (const browserName of browserNames) {
    describe(`in ${browserName}`, () => {
      let server, browser, page, out;
      before(async () => {
        out = fileOf(browserName);
        server = await serveBarePage({ out });
        browser = await launch(browserName);
        page = await browser.newPage();
        await page.goto(`${server.origin}/`);
      });
      after(async () => {
        await browser?.close();
        await server?.close();
      });
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
