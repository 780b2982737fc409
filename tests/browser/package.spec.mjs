// The engine under its users' hands, in every browser: stopping anywhere, queueing, figures and pictures of a run, opening given up,
// and workers that die.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { browserNames } from '../../scripts/browsers/index.mjs';
import { serveBarePage } from '../../scripts/serve/bare-page.mjs';
import { onBarePage } from './bare.mjs';
import { smollm2 } from './models.mjs';

const DEADLINE_MS = 120_000;

// A worker that answers like the package's own until it is asked to detokenize.
const dying = {
  throws: 'setTimeout(() => { throw new Error("secret"); })',
  // A module whose only function is `unreachable`.
  traps:
    'Promise.resolve().then(() => new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array(' +
    '[0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 7, 5, 1, 1, 102, 0, 0, 10, 5, 1, 3, 0, 0, 11]))).exports.f())',
  'ends without a word': 'self.close()',
};

for (const name of browserNames) {
  describe(`the package in ${name}`, { timeout: 6 * DEADLINE_MS }, () => {
    let server, page, close, url;
    before(async () => {
      const routes = (app) => {
        app.get('/dying/:how/main.js', (request, response) => {
          const dies = `addEventListener('message', ({ data }) => { if (data.name === 'detokenize') ${dying[request.params.how]}; });`;
          response.type('js').send(`import '/pkg/worker/main.js';\n${dies}`);
        });
        app.get('/dying/:how/:file', (request, response) => response.redirect(`/pkg/worker/${request.params.file}`));
      };
      ({ server, page, close } = await onBarePage(name, serveBarePage({ routes })));
      url = server.addFile(smollm2);
    });
    after(() => close?.());

    it('an abort in a long prefill frees the engine within 100 ms, and the next answer is right', async () => {
      const { waits, answers, prefilled } = await page.evaluate(abortOften, [url, 20], DEADLINE_MS);
      assert.equal(prefilled, false, 'the prompt was read before the abort');
      const p90 = waits.sort((a, b) => a - b)[17];
      assert.ok(p90 <= 100, `p90 ${p90.toFixed(0)} ms of ${waits.map((ms) => ms.toFixed(0)).join(' ')}`);
      assert.deepEqual(answers, Array(20).fill(' Paris'));
    });

    it('requests queue in the order they came; those that are left or aborted make way', async () => {
      const found = await page.evaluate(queue, [url], DEADLINE_MS);
      assert.deepEqual(found.ended, ['tokens', 'first', 'third'], 'what needs the vocabulary alone waits for nobody');
      assert.equal(found.third, ' Paris');
      assert.equal(found.aborted, 'enough');
    });

    it('stop texts never show, and a piece says why it is the last', async () => {
      const { text, finishReason, ids, logprobs } = await page.evaluate(stopAt, [url], DEADLINE_MS);
      assert.equal(text, ' Paris');
      assert.equal(finishReason, 'stop');
      assert.ok(ids > 1 && logprobs, 'every piece has its id and, when asked for, its log-probability');
    });

    it('figures and pictures move while the prompt is read', async () => {
      const { promptTokens, frames, seconds, layout, stages } = await page.evaluate(watchPrefill, [url], DEADLINE_MS);
      assert.ok(promptTokens.length > 3, `the count of read tokens showed ${promptTokens.length} values`);
      assert.ok(promptTokens.at(-1) === 300);
      assert.ok(frames > 3 && frames <= seconds * 15 + 2, `${frames} pictures in ${seconds.toFixed(1)} s`);
      assert.ok(stages > 2 && layout.tensors > 200);
    });

    it('opening is given up by close and by a signal, and another open works', async () => {
      const { closed, aborted, quick, answer } = await page.evaluate(giveUp, [url], DEADLINE_MS);
      assert.equal(closed, 'misuse');
      assert.equal(aborted, 'enough');
      assert.ok(quick < 1000, `closing took ${quick} ms`);
      assert.equal(answer, ' Paris');
    });

    for (const how of Object.keys(dying)) {
      it(`a worker that ${how} rejects all that is pending and to come, and the page can open again`, async () => {
        const { codes, messages, answer } = await page.evaluate(
          outlive,
          [url, `/dying/${encodeURIComponent(how)}/main.js`],
          DEADLINE_MS,
        );
        assert.deepEqual(codes, ['internal', 'internal', 'internal', 'internal']);
        for (const message of messages) assert.doesNotMatch(message, /secret|unreachable/);
        assert.equal(answer, ' Paris');
      });
    }

    it('storage is told where there is some', async () => {
      const { estimate, persisted } = await page.evaluate(storage, [name === 'chromium'], DEADLINE_MS);
      if (name === 'webkit') assert.equal(estimate, null);
      else assert.ok(estimate.usedBytes < estimate.quotaBytes && estimate.persisted === false, JSON.stringify(estimate));
      // Firefox asks the user.
      if (name === 'chromium') assert.equal(typeof persisted, 'boolean');
    });

    it('two engines answer at once', async () => {
      const answers = await page.evaluate(bothAtOnce, [url], DEADLINE_MS);
      assert.equal(answers[0].length, 24);
      assert.deepEqual(answers[0], answers[1]);
    });
  });
}

// The following run in the page.

async function abortOften(url, times) {
  const engine = await window.sluice.open(url, { context: 1024 });
  const prompt = Array.from({ length: 500 }, (_, i) => 1000 + i);
  const [waits, answers] = [[], []];
  let prefilled = false;
  for (let i = 0; i < times; i++) {
    const controller = new AbortController();
    const first = engine.generate(prompt, { maxTokens: 1, signal: controller.signal }).next();
    first.then(
      () => (prefilled = true),
      () => {},
    );
    await new Promise((resolve) => setTimeout(resolve, 60 + 17 * i));
    const started = performance.now();
    controller.abort();
    await first.catch(() => {});
    // An empty prompt is refused when the engine is free.
    await engine
      .generate('')
      .next()
      .catch(() => {});
    waits.push(performance.now() - started);
    let answer = '';
    for await (const { text } of engine.generate('The capital of France is', { maxTokens: 1, temperature: 0 })) answer += text;
    answers.push(answer);
  }
  await engine.close();
  return { waits, answers, prefilled };
}

async function queue(url) {
  const engine = await window.sluice.open(url, { context: 256 });
  const ended = [];
  const controller = new AbortController();
  const ask = async (name, prompt, options) => {
    let answer = '';
    for await (const { text } of engine.generate(prompt, { temperature: 0, ...options })) answer += text;
    ended.push(name);
    return answer;
  };
  const first = ask('first', 'Once upon a time', { maxTokens: 12 });
  const second = ask('second', 'Never', { maxTokens: 200, signal: controller.signal }).catch((reason) => reason);
  const tokens = engine.tokenize('x').then(() => ended.push('tokens'));
  const left = engine.generate('Once more', { maxTokens: 200 });
  const leave = left.next().then(() => left.return());
  const third = ask('third', 'The capital of France is', { maxTokens: 1 });
  controller.abort('enough');
  await Promise.all([first, tokens, leave, third]);
  await engine.close();
  return { ended, third: await third, aborted: await second };
}

async function stopAt(url) {
  const engine = await window.sluice.open(url, { context: 256 });
  const chunks = [];
  const options = { temperature: 0, maxTokens: 40, stop: ['.\n', 'nothing of the kind'], logprobs: 1 };
  for await (const chunk of engine.generate('The capital of France is', options)) chunks.push(chunk);
  await engine.close();
  const told = chunks.filter(({ id }) => id !== null);
  return {
    text: chunks.map(({ text }) => text).join(''),
    finishReason: chunks.at(-1).finishReason,
    ids: told.length,
    logprobs: told.every(({ logprob, topLogprobs }) => logprob <= 0 && topLogprobs.length === 1),
  };
}

async function watchPrefill(url) {
  const engine = await window.sluice.open(url, { context: 512 });
  const promptTokens = new Set();
  const stages = new Set();
  let frames = 0;
  const stop = engine.watch(({ stage }) => {
    frames += 1;
    stages.add(stage);
    promptTokens.add(engine.stats.promptTokens);
  });
  const started = performance.now();
  const prompt = Array.from({ length: 300 }, (_, i) => 1000 + i);
  for await (const { id } of engine.generate(prompt, { maxTokens: 1 })) if (id !== null) break;
  const seconds = (performance.now() - started) / 1000;
  stop();
  promptTokens.add(engine.stats.promptTokens);
  const { layout } = engine;
  await engine.close();
  return { promptTokens: [...promptTokens], frames, seconds, stages: stages.size, layout: { tensors: layout.tensors.length } };
}

async function giveUp(url) {
  const { open } = window.sluice;
  const opening = open(url);
  const closed = opening.then(
    () => 'opened',
    ({ code }) => code,
  );
  await new Promise((resolve) => setTimeout(resolve, 100));
  const started = performance.now();
  await opening.close();
  const quick = performance.now() - started;
  const controller = new AbortController();
  const aborted = open(url, { signal: controller.signal }).catch((reason) => reason);
  setTimeout(() => controller.abort('enough'), 100);
  const found = { closed: await closed, aborted: await aborted, quick };
  const engine = await open(url);
  let answer = '';
  for await (const { text } of engine.generate('The capital of France is', { maxTokens: 1, temperature: 0 })) answer += text;
  await engine.close();
  return { ...found, answer };
}

async function outlive(url, worker) {
  const { open } = window.sluice;
  const engine = await open(url, { context: 256, assets: { worker } });
  const failures = [];
  const told = async (call) =>
    failures.push(
      await call().then(
        () => ({ code: 'none', message: '' }),
        (error) => error,
      ),
    );
  const generate = async () => {
    for await (const _ of engine.generate('Once upon a time', { maxTokens: 2000 }));
  };
  const pending = [told(generate), told(generate)];
  engine.detokenize([1]).catch(() => {}); // it dies of this one
  await Promise.all(pending);
  await told(generate);
  await told(() => engine.tokenize('x'));
  await engine.close();
  const again = await open(url, { context: 256 });
  let answer = '';
  for await (const { text } of again.generate('The capital of France is', { maxTokens: 1, temperature: 0 })) answer += text;
  await again.close();
  return { codes: failures.map(({ code }) => code), messages: failures.map(({ message }) => message), answer };
}

async function storage(persist) {
  const { models } = window.sluice;
  const estimate = await models.estimate();
  return { estimate, persisted: persist && (await models.persist()) };
}

async function bothAtOnce(url) {
  const engines = await Promise.all([1, 2].map(() => window.sluice.open(url, { context: 256 })));
  const ask = async (engine) => {
    const ids = [];
    for await (const { id } of engine.generate('Once upon a time', { maxTokens: 24, temperature: 0 }))
      if (id !== null) ids.push(id);
    return ids;
  };
  const answers = await Promise.all(engines.map(ask));
  await Promise.all(engines.map((engine) => engine.close()));
  return answers;
}
