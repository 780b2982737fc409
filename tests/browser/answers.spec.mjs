// SmolLM2 answers in every browser as the oracle does: greedy, up to the first step that the oracle itself could have taken otherwise.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { runJob } from '../../scripts/browsers/engine-run.mjs';
import { browserNames, launch } from '../../scripts/browsers/index.mjs';
import { serveBarePage } from '../../scripts/serve/bare-page.mjs';
import { golden, smollm2 } from './models.mjs';

const MARGIN = 1e-3;
const DEADLINE_MS = 120_000;

describe('SmolLM2 in exact arithmetic', () => {
  for (const name of browserNames) {
    describe(name, { timeout: 3 * DEADLINE_MS }, () => {
      let server, browser, page;
      before(async () => {
        server = await serveBarePage();
        browser = await launch(name);
        page = await browser.newPage();
        await page.goto(`${server.origin}/`);
      });
      after(async () => {
        await browser?.close();
        await server?.close();
      });

      for (const prompt of ['capital', 'chat']) {
        it(`continues "${prompt}"`, async () => {
          const [golden_] = await golden('smollm2', prompt);
          const close = golden_.greedy_margin.findIndex((margin) => margin < MARGIN);
          const expected = close === -1 ? golden_.greedy : golden_.greedy.slice(0, close);
          const options = { maxTokens: expected.length, temperature: 0, ignoreEog: true, parseSpecial: golden_.parse_special };
          const job = {
            urls: [server.addFile(smollm2)],
            open: { precision: 'exact', context: 256 },
            generate: { prompt: golden_.text, options },
          };
          const found = await runJob(page, job, DEADLINE_MS);
          assert.equal(found.error, undefined);
          assert.deepEqual(found.ids, expected);
          assert.equal(found.stats.promptTokens, golden_.ids.length);
          assert.equal(found.finishReason, 'length');
        });
      }
    });
  }
});
