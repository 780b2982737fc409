// Who is measured, all through one interface: `generate(prompt, maxTokens)` gives `{ promptTokens, tokens, firstMs, decodeMs }`, with
// the time to the first token and from there to the last, by the clock of whoever waits for the tokens.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { withDeadline } from '../browsers/deadline.mjs';
import { pkgDir, root } from '../repo.mjs';
import { serve } from '../serve/server.mjs';

/** Positions of the context in every run. */
const CONTEXT = 1024;
const DEADLINE_MS = 300_000;

/** Serves an empty page, the package, wllama and the folder of the model. */
export function serveContestants(model) {
  return serve({
    mounts: { '/pkg': pkgDir, '/models': path.dirname(model), '/wllama': path.join(root, 'node_modules/@wllama/wllama/esm') },
    routes: (app) =>
      app.get('/', (_, response) =>
        response.type('html').send('<!doctype html><link rel="icon" href="data:,"><title>bench</title>'),
      ),
  });
}

/**
 * Opens a model in a new page of the browser. `name` is `sluice` or `wllama`; `options` are those of `open` or, for wllama, its
 * `threads`; `stored` names a file in OPFS that Sluice reads in place of the URL. Resolves to `{ opened, generate, close }`, `opened`
 * being `{ openMs, build, threads }`.
 */
export async function openInPage(browser, name, origin, file, { stored, ...options }) {
  const page = await browser.newPage();
  await page.goto(`${origin}/`);
  const job = { url: `${origin}/models/${encodeURIComponent(file)}`, stored, options: { context: CONTEXT, ...options } };
  const opened = await page.evaluate(name === 'sluice' ? openSluice : openWllama, [job], DEADLINE_MS);
  return {
    opened,
    generate: (prompt, maxTokens) =>
      page.evaluate((prompt, maxTokens) => globalThis.contestant.generate(prompt, maxTokens), [prompt, maxTokens], DEADLINE_MS),
    close: async () => {
      await page.evaluate(() => globalThis.contestant.close(), [], DEADLINE_MS);
      await page.close();
    },
  };
}

// Runs in the page.
async function openSluice({ url, stored, options }) {
  const started = performance.now();
  const { open } = await import('/pkg/index.js');
  const source = stored === undefined ? url : await (await navigator.storage.getDirectory()).getFileHandle(stored);
  const engine = await open(source, options);
  const openMs = performance.now() - started;
  globalThis.contestant = {
    async generate(prompt, maxTokens) {
      const begin = performance.now();
      let [first, last, tokens] = [0, 0, 0];
      for await (const { id } of engine.generate(prompt, { maxTokens, temperature: 0, ignoreEog: true })) {
        if (id === null) continue;
        last = performance.now();
        if (tokens++ === 0) first = last;
      }
      return { promptTokens: engine.stats.promptTokens, tokens, firstMs: first - begin, decodeMs: last - first };
    },
    close: () => engine.close(),
  };
  const { build, threads } = engine.stats;
  const { floorBytes, totalBytes, slotBytes, streamedBytesPerToken } = engine.plan;
  return { openMs, build, threads, plan: { floorBytes, totalBytes, slotBytes, streamedBytesPerToken } };
}

// Runs in the page.
async function openWllama({ url, options: { context, threads } }) {
  const started = performance.now();
  const { Wllama } = await import('/wllama/index.js');
  const wllama = new Wllama({ default: '/wllama/wasm/wllama.wasm' }, { suppressNativeLog: true });
  await wllama.loadModelFromUrl(url, { n_threads: threads, n_ctx: context, n_gpu_layers: 0, n_parallel: 1 });
  const openMs = performance.now() - started;
  globalThis.contestant = {
    async generate(prompt, maxTokens) {
      const begin = performance.now();
      let [first, last, tokens, promptTokens] = [0, 0, 0, 0];
      const options = { prompt, max_tokens: maxTokens, temperature: 0, ignore_eos: true, cache_prompt: false, stream: true };
      for await (const { timings } of await wllama.createCompletion(options)) {
        last = performance.now();
        if (tokens++ === 0) first = last;
        promptTokens = timings?.prompt_n ?? promptTokens;
      }
      return { promptTokens, tokens, firstMs: first - begin, decodeMs: last - first };
    },
    close: () => wllama.exit(),
  };
  return { openMs, threads };
}

/**
 * Native llama.cpp in a Python with `llama-cpp-python`; the same interface, ended by `close`. An error says why it is not there.
 */
export async function openNative(python, model, threads) {
  if (python === undefined) throw new Error('no Python with llama-cpp-python was given (--python or SLUICE_BENCH_PYTHON)');
  const script = path.join(import.meta.dirname, 'native.py');
  const child = spawn(python, [script, model, String(CONTEXT), String(threads)], { stdio: ['pipe', 'pipe', 'ignore'] });
  const gone = new Promise((_, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`${python} ended with ${code}: is llama-cpp-python there?`)));
  });
  gone.catch(() => {});
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const answer = async (what) =>
    JSON.parse((await withDeadline(Promise.race([answers.next(), gone]), DEADLINE_MS, what)).value ?? '{}');
  const close = async () => {
    child.stdin.end();
    if (child.exitCode === null && child.pid !== undefined) await withDeadline(once(child, 'exit'), 30_000, 'native llama.cpp');
  };
  const opened = await answer('native llama.cpp');
  return {
    opened,
    generate: async (prompt, maxTokens) => {
      child.stdin.write(`${JSON.stringify({ prompt, maxTokens })}\n`);
      return answer('native llama.cpp');
    },
    close,
  };
}
