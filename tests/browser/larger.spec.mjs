// A model ten times larger than its budget: a Llama 1B shape (805 MB, random weights) from OPFS in 64 MB, bit for bit as the native
// command computes it at its floor. Larger ones are run by scripts/measure/large.mjs.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { runJob, storeFiles } from '../../scripts/browsers/engine-run.mjs';
import { launch } from '../../scripts/browsers/index.mjs';
import { serveBarePage } from '../../scripts/serve/bare-page.mjs';
import { sluice } from './models.mjs';

const DEADLINE_MS = 120_000;
const CONTEXT = 512;
const BUDGET_BYTES = 64_000_000;
/** A chunk of two and a single one; tokens of the vocabulary's ends. */
const IDS = [1, 128_255, 777];
const CHUNK = 2;

describe('a model ten times larger than its budget', { timeout: 4 * DEADLINE_MS }, () => {
  let folder, model, out, server, browser, page, stored;

  before(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), 'larger-'));
    model = path.join(folder, 'llama-1b.gguf');
    out = path.join(folder, 'found.f32');
    await sluice('make-model', 'llama-1b', '--quant', 'q4_k_m', '--quiet', '--out', model);
    server = await serveBarePage({ out });
    browser = await launch('chromium', { profile: path.join(folder, 'profile') });
    page = await browser.newPage();
    await page.goto(`${server.origin}/`);
    stored = await storeFiles(page, [server.addFile(model)], DEADLINE_MS);
  });
  after(async () => {
    await browser?.close();
    await server?.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  });

  it('gives the bits of the native command at its floor, within the budget', async () => {
    const native = path.join(folder, 'native.f32');
    const held = ['--ctx', `${CONTEXT}`, '--n-batch', `${CHUNK}`];
    const verdict = JSON.parse(await sluice('inspect', model, ...held, '--ram-budget', `${BUDGET_BYTES}B`, '--json'));
    const { floorBytes } = verdict.plan;
    assert.ok((await stat(model)).size > 10 * BUDGET_BYTES && floorBytes < BUDGET_BYTES / 2, `${floorBytes}`);
    // With logits of every position the floor is a little higher; forced, the command runs there.
    await sluice('logits', model, '--ids', IDS.join(','), ...held, '--ram-budget', '1M', '--ram-budget-force', '--out', native);
    const open = { context: CONTEXT, memory: BUDGET_BYTES, batch: CHUNK, allLogits: true };
    const found = await runJob(page, { stored, open, logits: { ids: IDS, chunk: CHUNK } }, DEADLINE_MS);
    assert.equal(found.error, undefined);
    const expected = await readFile(native);
    assert.equal(expected.length, IDS.length * 128_256 * 4);
    assert.ok(
      expected.some((byte) => byte !== 0),
      'logits of something',
    );
    assert.ok((await readFile(out)).equals(expected), 'the bits of the native command');
    assertWithin(found);
  });

  it('decodes within the budget, reading what does not stay once a token', async () => {
    const generate = { prompt: IDS, options: { maxTokens: 4, temperature: 0, ignoreEog: true } };
    const found = await runJob(
      page,
      { stored, open: { context: CONTEXT, memory: BUDGET_BYTES }, generate, times: 2 },
      DEADLINE_MS,
    );
    assert.equal(found.error, undefined);
    assert.equal(found.ids.length, 4);
    assertWithin(found);
    const { plan, stats } = found;
    assert.ok(stats.residentShare > 0 && stats.residentShare < 0.1, `${stats.residentShare}`);
    assert.ok(stats.bytesRead > 3 * plan.streamedBytesPerToken, `${stats.bytesRead} bytes read`);
  });
});

function assertWithin({ memory, stats, plan }) {
  assert.ok(plan.totalBytes <= BUDGET_BYTES, `${plan.totalBytes} planned`);
  assert.ok(stats.memoryPeakBytes <= plan.totalBytes, `${stats.memoryPeakBytes} of ${plan.totalBytes} planned bytes`);
  assert.equal(new Set(memory).size, 1, `memory grew after open: ${memory.join(', ')}`);
}
