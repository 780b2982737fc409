// Real models answer in every browser as the oracle does: greedy, up to the first step that the oracle itself could have taken otherwise.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { runJob } from '../../scripts/browsers/engine-run.mjs';
import { browserNames } from '../../scripts/browsers/index.mjs';
import { onBarePage } from './bare.mjs';
import { gemma3, golden, smollm2 } from './models.mjs';

const MARGIN = 1e-3;
const DEADLINE_MS = 120_000;

// Gemma 3 has a vocabulary of 262,144 tokens, which exact arithmetic goes through at every step: 16 steps are enough of it.
const models = [
  { name: 'smollm2', title: 'SmolLM2', file: smollm2, prompts: ['capital', 'chat'], mostSteps: Infinity },
  { name: 'gemma3', title: 'Gemma 3', file: gemma3, prompts: ['capital', 'chat'], mostSteps: 16 },
];

describe('in exact arithmetic', () => {
  for (const name of browserNames) {
    describe(name, { timeout: 5 * DEADLINE_MS }, () => {
      let server, page, close;
      before(async () => {
        ({ server, page, close } = await onBarePage(name));
      });
      after(() => close?.());

      for (const model of models) {
        for (const prompt of model.prompts) {
          it(`${model.title} continues "${prompt}"`, async () => {
            const [golden_] = await golden(model.name, prompt);
            const expected = golden_.greedy.slice(0, sureSteps(golden_, model.mostSteps));
            const options = { maxTokens: expected.length, temperature: 0, ignoreEog: true, parseSpecial: golden_.parse_special };
            const job = {
              urls: [server.addFile(model.file)],
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
      }
    });
  }
});

/** Steps before the first close one, `most` at most. */
function sureSteps({ greedy, greedy_margin }, most) {
  const close = greedy_margin.findIndex((margin) => margin < MARGIN);
  return Math.min(close === -1 ? greedy.length : close, most);
}
