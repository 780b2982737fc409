// Sluice beside wllama in one browser, alternating, so that a noisy machine bends both alike. Prints every pair and the medians.
//   node scripts/bench/run.mjs [--browser chromium|firefox] [--pairs 7] [--tokens 64] [--threads 1] [--build auto] [--json]
// Needs a build (`npm run build`) and the models (`npm run setup`).
import path from 'node:path';
import { parseArgs } from 'node:util';
import { withBrowser } from '../browsers/index.mjs';
import { root } from '../repo.mjs';
import { serve } from '../serve/server.mjs';

const { values } = parseArgs({
  options: {
    browser: { type: 'string', default: 'chromium' },
    pairs: { type: 'string', default: '7' },
    tokens: { type: 'string', default: '64' },
    threads: { type: 'string', default: '1' },
    build: { type: 'string', default: 'auto' },
    model: { type: 'string', default: 'smollm2-135m-q4_1.gguf' },
    json: { type: 'boolean', default: false },
  },
});

const prompt = 'Once upon a time, in a small village by the sea,';
const deadlineMs = 300_000;

const pages = {
  sluice: async (url, threads, build) => {
    const { open } = await import('/pkg/index.js');
    globalThis.engine = await open(url, { threads, build, context: 1024 });
    globalThis.decode = async (text, n) => {
      for await (const _ of globalThis.engine.generate(text, { maxTokens: n, temperature: 0, ignoreEog: true }));
      return globalThis.engine.stats.decodeTokensPerSecond;
    };
    return true;
  },
  wllama: async (url, threads) => {
    const { Wllama } = await import('/wllama/index.js');
    const wllama = new Wllama({ default: '/wllama/wasm/wllama.wasm' }, { suppressNativeLog: true });
    const blob = await (await fetch(url)).blob();
    await wllama.loadModel([new File([blob], 'model.gguf')], { n_threads: threads, n_ctx: 1024, n_gpu_layers: 0, n_parallel: 1 });
    globalThis.decode = async (text, n) => {
      let first = 0;
      let last = 0;
      let count = 0;
      const stream = await wllama.createCompletion({
        prompt: text,
        max_tokens: n,
        temperature: 0,
        ignore_eos: true,
        stream: true,
      });
      for await (const _ of stream) {
        last = performance.now();
        if (count++ === 0) first = last;
      }
      return ((count - 1) * 1000) / (last - first);
    };
    return true;
  },
};

const server = await serve({
  mounts: {
    '/pkg': path.join(root, 'pkg'),
    '/models': path.join(root, 'models'),
    '/wllama': path.join(root, 'node_modules/@wllama/wllama/esm'),
  },
  routes: (app) => app.get('/blank', (_, response) => response.type('html').send('<!doctype html><title>bench</title>')),
});
const threads = Number(values.threads);
const results = { sluice: [], wllama: [] };
try {
  await withBrowser(values.browser, { deadlineMs }, async (browser) => {
    const opened = {};
    for (const [name, start] of Object.entries(pages)) {
      opened[name] = await browser.newPage();
      await opened[name].goto(`${server.origin}/blank`);
      await opened[name].evaluate(start, [`${server.origin}/models/${values.model}`, threads, values.build]);
    }
    const decode = (name) => opened[name].evaluate((text, n) => globalThis.decode(text, n), [prompt, Number(values.tokens)]);
    for (const name of Object.keys(pages)) await decode(name); // warm code and caches
    for (let pair = 0; pair < Number(values.pairs); pair++) {
      for (const name of Object.keys(pages)) results[name].push(await decode(name));
      if (!values.json)
        console.log(`pair ${pair + 1}: Sluice ${last(results.sluice)} tok/s, wllama ${last(results.wllama)} tok/s`);
    }
  });
} finally {
  await server.close();
}

const ratios = results.sluice.map((rate, pair) => rate / results.wllama[pair]);
const summary = { sluice: median(results.sluice), wllama: median(results.wllama), ratio: median(ratios) };
if (values.json) console.log(JSON.stringify({ ...values, ...summary, results }));
else
  console.log(
    `medians: Sluice ${fixed(summary.sluice)} tok/s, wllama ${fixed(summary.wllama)} tok/s, ratio ${fixed(summary.ratio)}`,
  );

function median(list) {
  const sorted = [...list].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

function last(list) {
  return fixed(list[list.length - 1]);
}

function fixed(value) {
  return value.toFixed(2);
}
