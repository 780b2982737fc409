// The same seed gives the same tokens everywhere: SmolLM2, sampled with filters and penalties, in every browser and natively.
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { runJob } from '../../scripts/browsers/engine-run.mjs';
import { browserNames, launch } from '../../scripts/browsers/index.mjs';
import { serveBarePage } from '../../scripts/serve/bare-page.mjs';
import { sluice, smollm2 } from './models.mjs';

const DEADLINE_MS = 120_000;
const PROMPT = 'Once upon a time, in a small village by the sea,';
const CONTEXT = 128;
const options = {
  maxTokens: 24,
  temperature: 0.8,
  topK: 40,
  topP: 0.95,
  repeatPenalty: 1.1,
  frequencyPenalty: 0.2,
  presencePenalty: 0.1,
  seed: 42,
  ignoreEog: true,
};

describe('a seed decides', { timeout: 10 * DEADLINE_MS }, () => {
  let expected;
  before(async () => {
    expected = await native(options.seed);
    assert.equal(expected.length, options.maxTokens);
  });

  it('natively another seed gives other tokens', async () => {
    assert.notDeepEqual(await native(options.seed + 1), expected);
  });

  for (const name of browserNames) {
    it(`${name} draws what the native command draws`, async () => {
      const server = await serveBarePage();
      const browser = await launch(name);
      try {
        const page = await browser.newPage();
        await page.goto(`${server.origin}/`);
        const job = { urls: [server.addFile(smollm2)], open: { context: CONTEXT }, generate: { prompt: PROMPT, options } };
        const found = await runJob(page, job, DEADLINE_MS);
        assert.equal(found.error, undefined);
        assert.deepEqual(found.ids, expected);
      } finally {
        await browser.close();
        await server.close();
      }
    });
  }
});

async function native(seed) {
  const flags = {
    '--ctx': CONTEXT,
    '-n': options.maxTokens,
    '--temperature': options.temperature,
    '--top-k': options.topK,
    '--top-p': options.topP,
    '--repeat-penalty': options.repeatPenalty,
    '--frequency-penalty': options.frequencyPenalty,
    '--presence-penalty': options.presencePenalty,
    '--seed': seed,
  };
  const said = await sluice('run', smollm2, '-p', PROMPT, '--ignore-eog', '--json', ...Object.entries(flags).flat().map(String));
  return JSON.parse(said).ids;
}
