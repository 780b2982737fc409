// Engines come and go and leave nothing behind; two tabs work on one stored model.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { sleep } from '../../scripts/browsers/deadline.mjs';
import { runJob, storeFiles } from '../../scripts/browsers/engine-run.mjs';
import { launch, withBrowser } from '../../scripts/browsers/index.mjs';
import { median, treePss } from '../../scripts/measure/pss.mjs';
import { serveBarePage } from '../../scripts/serve/bare-page.mjs';
import { smollm2 } from './models.mjs';

const DEADLINE_MS = 120_000;
const CYCLES = 50;
const EARLY = 5;
const MOST_GROWTH = 15e6;
const COLLECTED_MS = 30_000;

describe('engines come and go', { timeout: 8 * DEADLINE_MS }, () => {
  let server;
  before(async () => {
    server = await serveBarePage();
  });
  after(() => server?.close());

  it(`${CYCLES} times opened and closed, no worker is left and memory is given back`, async () => {
    const browser = await launch('chromium');
    try {
      const page = await browser.newPage();
      await page.goto(`${server.origin}/`);
      const job = {
        stored: await storeFiles(page, [server.addFile(smollm2)], DEADLINE_MS),
        open: { context: 256, memory: '48MB' },
        generate: { prompt: 'The capital of France is', options: { maxTokens: 1, temperature: 0 } },
      };
      let early;
      for (let cycle = 1; cycle <= CYCLES; cycle++) {
        const running = runJob(page, job, DEADLINE_MS);
        if (cycle === 1) while (page.workers().length === 0) await Promise.race([running.then(noWorker), sleep(5)]);
        const { text, error } = await running;
        assert.deepEqual({ text, error }, { text: ' Paris', error: undefined });
        if (cycle === EARLY) early = await settledPss(browser.pid);
      }
      // A terminated worker takes some milliseconds to go.
      for (let look = 0; look < 100 && page.workers().length > 0; look++) await sleep(50);
      assert.deepEqual(page.workers(), []);
      // The browser returns some of it only at its next collection of garbage, seconds later.
      let growth;
      for (const late = Date.now() + COLLECTED_MS; ;) {
        growth = (await settledPss(browser.pid)) - early;
        if (growth < MOST_GROWTH || Date.now() > late) break;
      }
      assert.ok(growth < MOST_GROWTH, `${(growth / 1e6).toFixed(1)} MB more after ${CYCLES} than after ${EARLY}`);
    } finally {
      await browser.close();
    }
  });

  for (const name of ['chromium', 'firefox']) {
    it(`two tabs of ${name} answer at once from one stored file`, async () => {
      await withBrowser(name, {}, async (browser) => {
        const pages = [await browser.newPage(), await browser.newPage()];
        for (const page of pages) await page.goto(`${server.origin}/`);
        const stored = await storeFiles(pages[0], [server.addFile(smollm2)], DEADLINE_MS);
        const job = {
          stored,
          open: { memory: '48MB', context: 256 },
          generate: { prompt: 'Once upon a time', options: { maxTokens: 12, temperature: 0 } },
        };
        const answers = await Promise.all(pages.map((page) => runJob(page, job, DEADLINE_MS)));
        for (const { error, ids } of answers) assert.deepEqual({ error, n: ids?.length }, { error: undefined, n: 12 });
        assert.deepEqual(answers[0].ids, answers[1].ids);
      });
    });
  }
});

function noWorker() {
  assert.fail('an engine was opened and closed, and no worker was seen');
}

/** The tree's memory once workers have ended and garbage is collected: the middle of five looks, two seconds later. */
async function settledPss(pid) {
  await sleep(2000);
  const looks = [];
  for (let look = 0; look < 5; look++) {
    looks.push((await treePss(pid)).total);
    await sleep(200);
  }
  return median(looks);
}
