// What goes wrong is told as a `SluiceError` whose code and message name the cause, and the engine works on or is cleanly closed.
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { runJob } from '../../scripts/browsers/engine-run.mjs';
import { browserNames } from '../../scripts/browsers/index.mjs';
import { onBarePage } from './bare.mjs';
import { serveFaulty } from './faulty-server.mjs';
import { fixture, smollm2 } from './models.mjs';

const DEADLINE_MS = 60_000;
const tiny = fixture('models/llama-gqa.gguf');
const half = Math.floor(statSync(tiny).size / 2);
const sound = { prompt: [1, 2, 3], options: { maxTokens: 4, temperature: 0 } };

// How the model is served, and what `open` (or the first answer) must say.
const opening = [
  { name: 'a 404', url: (server) => server.faulty('not-found', tiny), code: 'source_failed', message: /404/ },
  { name: 'a 403', url: (server) => server.faulty('forbidden', tiny), code: 'source_failed', message: /403/ },
  {
    name: 'an HTML page',
    url: (server) => server.faulty('html-page', tiny),
    code: 'invalid_model',
    message: /web page/,
  },
  {
    name: 'a file cut off in the middle',
    url: (server) => server.faulty('cut-off', tiny, { bytes: half }),
    code: 'invalid_model',
    message: new RegExp(`${half}|ends|cut|truncated`),
  },
  {
    name: 'an unknown architecture',
    url: (server) => server.addFile(fixture('parser/bad/unknown-architecture.gguf')),
    code: 'unsupported_model',
    message: /architecture/,
  },
  {
    name: 'a file that is no model',
    url: (server) => server.addFile(import.meta.filename),
    code: 'invalid_model',
    message: /GGUF/,
  },
  { name: 'no server', url: () => 'http://127.0.0.1:9/model.gguf', code: 'source_failed', message: /127\.0\.0\.1:9/ },
];

// Prompts that cannot be answered.
const asking = [
  { name: 'an empty prompt', prompt: '', code: 'invalid_option', message: /empty/ },
  { name: 'a prompt longer than the context', prompt: 'word '.repeat(100), code: 'context_full', message: /\b32\b/ },
  { name: 'an id that the vocabulary lacks', prompt: [1, 4_000_000], code: 'invalid_option', message: /4000000/ },
];

for (const name of browserNames) {
  describe(`failures in ${name}`, { timeout: 10 * DEADLINE_MS }, () => {
    let server, page, close;
    before(async () => {
      ({ server, page, close } = await onBarePage(name, serveFaulty()));
    });
    after(() => close?.());

    for (const failure of opening) {
      it(failure.name, async () => {
        const { error } = await runJob(
          page,
          { urls: [failure.url(server)], open: { context: 64 }, generate: sound },
          DEADLINE_MS,
        );
        assertFailure(error, failure);
      });
    }

    it('slow and torn connections, and a server without ranges, are borne', async () => {
      const slow = server.faulty('slow', tiny, { bytesPerSecond: 1_000_000 });
      const torn = server.faulty('torn', tiny, { bytes: half, times: 1 });
      const right = await runJob(page, { urls: [server.addFile(tiny)], open: { context: 64 }, generate: sound }, DEADLINE_MS);
      const whole = server.faulty('no-ranges', tiny);
      for (const url of [slow, torn, whole]) {
        const found = await runJob(page, { urls: [url], open: { context: 64 }, generate: sound }, DEADLINE_MS);
        assert.deepEqual({ url, error: found.error, ids: found.ids }, { url, error: undefined, ids: right.ids });
      }
    });

    it('prompts that cannot be answered leave the engine usable', async () => {
      const found = await page.evaluate(askAll, [server.addFile(smollm2), asking], DEADLINE_MS);
      found.errors.forEach((error, index) => assertFailure(error, asking[index]));
      assert.equal(found.answer, ' Paris');
    });
  });
}

function assertFailure(error, { name, code, message }) {
  assert.ok(error !== undefined && error !== null, `${name}: no error`);
  const said = `${name}: ${JSON.stringify(error)}`;
  assert.equal(error.name, 'SluiceError', said);
  assert.equal(error.code, code, said);
  assert.match(error.message, message, said);
  assert.doesNotMatch(error.message, /panicked|unreachable|\.rs\b|RuntimeError|\bundefined\b/, said);
}

// Runs in the page.
async function askAll(url, prompts) {
  const engine = await window.sluice.open(url, { context: 32 });
  const errors = [];
  for (const { prompt } of prompts) {
    try {
      for await (const _ of engine.generate(prompt, { maxTokens: 4 }));
      errors.push(null);
    } catch (error) {
      errors.push({ name: error.name, code: error.code, message: error.message });
    }
  }
  let answer = '';
  for await (const { text } of engine.generate('The capital of France is', { maxTokens: 1, temperature: 0 })) answer += text;
  await engine.close();
  return { errors, answer };
}
