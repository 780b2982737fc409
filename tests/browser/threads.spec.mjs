// Builds with threads, from outside: workers that end with the engine, one that breaks down, aborts and a second go while weights stream,
// how many threads there are and why, and a page that cannot have any.
import assert from 'node:assert/strict';
import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { runJob, storeFiles } from '../../scripts/browsers/engine-run.mjs';
import { browserNames, launch, withBrowser } from '../../scripts/browsers/index.mjs';
import { pkgDir } from '../../scripts/repo.mjs';
import { serveBarePage } from '../../scripts/serve/bare-page.mjs';
import { fixture, smollm2 } from './models.mjs';

const DEADLINE_MS = 60_000;
const generate = { prompt: 'The capital of France is', options: { maxTokens: 12, temperature: 0, ignoreEog: true } };
const kernels = { chromium: 'relaxed', firefox: 'relaxed', webkit: 'simd' };
const tiny = fixture('models', 'llama-7to1.gguf');
const ids = { prompt: [1, 2, 3], options: { maxTokens: 4, temperature: 0, ignoreEog: true } };

// What the threads of dedicated workers are called in /proc.
const WORKERS = { chromium: /^DedicatedWorker/, firefox: /^DOM Worker/, webkit: /^WebCore: Worker/ };

for (const name of browserNames) {
  describe(`threads in ${name}`, { timeout: 10 * DEADLINE_MS }, () => {
    const build = `${kernels[name]}-threads`;
    const modules = []; // that were asked for
    let server, browser, page, source, idle;
    const nWorkers = () => countWorkers(browser.pid, WORKERS[name]);
    const pick = async () => {
      if (source.files === undefined) return;
      await page.evaluate(() => void (document.querySelector('input[type=file]').value = '')); // WebKit's driver adds to what is there
      await page.setFiles('input[type=file]', source.files);
    };
    const allGone = () => until(async () => (await nWorkers()) <= idle, 'workers are left');
    const run = (job) => runJob(page, { urls: [server.addFile(tiny)], generate: ids, ...job }, DEADLINE_MS);

    before(async () => {
      const routes = (app) => {
        app.use('/pkg/wasm', (request, response, next) => next(void modules.push(request.path)));
        brokenHelper(app);
      };
      server = await serveBarePage({ routes });
      browser = await launch(name, { sharedMemory: true });
      page = await browser.newPage();
      await page.goto(`${server.origin}/`);
      await page.waitFor(() => window.sluice !== undefined, [], DEADLINE_MS);
      idle = await nWorkers();
      const url = server.addFile(smollm2);
      source = name === 'webkit' ? { files: [smollm2] } : { stored: await storeFiles(page, [url], DEADLINE_MS) };
    });
    after(async () => {
      await browser?.close();
      await server?.close();
    });

    it('the number is measured once on a device, and an explicit one is obeyed', async () => {
      const cores = await page.evaluate(() => navigator.hardwareConcurrency);
      const key = `sluice.threads.${build}.${cores}`;
      const stored = () => page.evaluate((key) => localStorage.getItem(key), [key]);
      assert.equal(await stored(), null);
      const first = await run({});
      assert.equal(first.error, undefined);
      assert.equal(first.stats.build, build);
      assert.ok(first.stats.threads >= 1 && first.stats.threads <= cores, `${first.stats.threads} threads on ${cores} cores`);
      assert.equal(await stored(), String(first.stats.threads));
      await page.evaluate((key) => localStorage.setItem(key, '3'), [key]);
      assert.equal((await run({})).stats.threads, 3, 'what was measured before counts');
      assert.equal((await run({ open: { threads: 2 } })).stats.threads, 2);
      await page.evaluate((key) => localStorage.removeItem(key), [key]);
      const { error } = await run({ open: { threads: 0 } });
      assert.equal(error?.code, 'invalid_option');
      assert.equal(error.details.key, 'threads');
    });

    it('all workers of an engine compute with one compiled module', async () => {
      modules.length = 0;
      const { error, stats } = await run({ open: { build, threads: 3 } });
      assert.equal(error, undefined);
      assert.equal(stats.threads, 3);
      assert.deepEqual(modules, [`/${build}/sluice_bg.wasm`]);
    });

    it('answers can be aborted while weights stream, the engine works on, and close ends all workers', async () => {
      await allGone();
      await pick();
      const found = await page.evaluate(
        abortAndGoOn,
        [{ ...source, generate, open: { build, threads: 3, memory: '48MB' } }],
        DEADLINE_MS,
      );
      assert.deepEqual(found.aborted, ['AbortError', 'AbortError']);
      assert.equal(found.second, found.first, 'the same text after aborts');
      assert.ok(found.stats.residentShare < 1 && found.stats.bytesRead > 50e6 && found.stats.stallMs > 0);
      const n = (await nWorkers()) - idle;
      assert.ok(n >= 4, `${n} workers: the engine's, two that compute, one that reads`);
      const { unlocked, rejected } = await page.evaluate(closeWhileAnswering, [source.stored ?? []], DEADLINE_MS);
      assert.equal(rejected, 'misuse');
      assert.deepEqual(unlocked, source.stored ?? [], 'files that a closed engine still has open');
      await allGone();
    });

    it('a text that is far too long is refused, or tokenized, and the engine works on', async () => {
      await pick();
      const open = { build, threads: 2, memory: '48MB', context: 256 };
      const found = await page.evaluate(largeTexts, [{ ...source, open }], DEADLINE_MS);
      assert.deepEqual(found, { grown: 0, tokens: 200_001, refused: ['context_full', 'context_full'], answer: ' Paris' });
    });

    it('an open that fails or is aborted leaves no worker', async () => {
      await allGone();
      const { error } = await run({ ...source, urls: undefined, open: { build, threads: 2, memory: '4MB' } });
      assert.equal(error?.code, 'out_of_memory');
      const aborted = await page.evaluate(abortOpening, [server.addFile(smollm2), build], DEADLINE_MS);
      assert.equal(aborted, 'AbortError');
      await allGone();
    });

    it('a compute worker that breaks down ends the engine with one error, and nothing hangs', async () => {
      const worker = `${server.origin}/broken/pkg/worker/main.js`;
      const found = await run({ ...source, open: { build, threads: 2, assets: { worker } }, times: 200, generate });
      assert.equal(found.error?.code, 'internal', JSON.stringify(found));
      assert.equal(found.error.name, 'SluiceError');
    });
  });
}

it('a page that is not isolated has one thread, and says why', async () => {
  const server = await serveBarePage({ isolated: false });
  try {
    await withBrowser('chromium', {}, async (browser) => {
      const page = await browser.newPage();
      await page.goto(`${server.origin}/`);
      const found = await runJob(page, { urls: [server.addFile(tiny)], open: { threads: 2 }, generate: ids }, DEADLINE_MS);
      assert.equal(found.error, undefined);
      assert.deepEqual([found.stats.build, found.stats.threads, found.config.threads], ['relaxed', 1, 1]);
      const { build, threads, reasons } = await page.evaluate(() => window.sluice.capabilities());
      assert.deepEqual([build, threads], ['relaxed', false]);
      assert.ok(
        reasons.some((reason) => /one compute thread: the page is not cross-origin isolated/.test(reason)),
        reasons.join(),
      );
      const open = { build: 'relaxed-threads' };
      const { error } = await runJob(page, { urls: [server.addFile(tiny)], open, generate: ids }, DEADLINE_MS);
      assert.equal(error?.code, 'invalid_option');
      assert.match(error.message, /cross-origin isolated/);
    });
  } finally {
    await server.close();
  }
});

// The package once more, with compute workers that break down after a while, as one does whose code traps: they join with a module that
// is compiled already.
function brokenHelper(app) {
  app.get('/broken/pkg/worker/helper.js', (_, response) => {
    response.type('js').send(`import '/pkg/worker/helper.js'; (${breakDown})();`);
  });
  app.get('/broken/pkg/*file', (request, response) => response.sendFile(path.join(pkgDir, ...request.params.file)));
}

// Runs in the worker, before it is told anything.
function breakDown() {
  const instantiate = WebAssembly.instantiate;
  const serveTeam = () => {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1500);
    throw new WebAssembly.RuntimeError('unreachable');
  };
  WebAssembly.instantiate = async (module, imports) => {
    const instance = await instantiate(module, imports);
    if (!(module instanceof WebAssembly.Module)) return instance;
    return { module, instance: { exports: { ...instance.exports, serveTeam } } };
  };
}

// In the page: an answer, two that are aborted, and the first one again; the engine stays open.
async function abortAndGoOn({ files, stored, open, generate }) {
  let source;
  if (files === undefined) {
    const root = await navigator.storage.getDirectory();
    source = await Promise.all(stored.map((name) => root.getFileHandle(name)));
  } else {
    source = [...document.querySelector('input[type=file]').files];
  }
  const engine = (window.engine = await window.sluice.open(source, { context: 512, ...open }));
  const answer = async (signal, atToken = Infinity, stop = () => {}) => {
    let text = '';
    let n = 0;
    for await (const chunk of engine.generate(generate.prompt, { ...generate.options, signal })) {
      text += chunk.text;
      if (++n === atToken) stop();
    }
    return text;
  };
  const first = await answer();
  const aborted = [];
  for (const atToken of [1, 5]) {
    const controller = new AbortController();
    await answer(controller.signal, atToken, () => controller.abort()).catch((error) => aborted.push(error.name));
  }
  return { first, aborted, second: await answer(), stats: engine.stats };
}

// In the page: closes the engine in the middle of an answer. A file that somebody has open cannot be written.
async function closeWhileAnswering(stored) {
  const answering = window.engine.generate('Once', { maxTokens: 100, ignoreEog: true });
  await answering.next();
  const rest = (async () => {
    for await (const _ of answering);
  })().catch((error) => error.code);
  await window.engine.close();
  const unlocked = [];
  const root = await navigator.storage?.getDirectory(); // WebKitGTK has no store
  for (const name of stored) {
    const file = await root.getFileHandle(name);
    await file.createWritable({ keepExistingData: true }).then(
      (writable) => (unlocked.push(name), writable.abort()),
      () => undefined,
    );
  }
  return { unlocked, rejected: await rest };
}

// In the page.
async function abortOpening(url, build) {
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 150);
  const opening = window.sluice.open(url, { build, threads: 2, signal: controller.signal });
  return opening.then(
    (engine) => engine.close(),
    (error) => error.name,
  );
}

/** Threads of workers in a process and those that it started. */
async function countWorkers(pid, pattern) {
  const parents = new Map();
  for (const entry of await readdir('/proc')) {
    const stat = /^\d+$/.test(entry) && (await readFile(`/proc/${entry}/stat`, 'utf8').catch(() => null));
    if (stat) parents.set(Number(entry), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
  }
  const isOurs = (process) => process === pid || (parents.has(process) && isOurs(parents.get(process)));
  let n = 0;
  for (const process of [...parents.keys()].filter(isOurs)) {
    for (const task of await readdir(`/proc/${process}/task`).catch(() => [])) {
      const comm = await readFile(`/proc/${process}/task/${task}/comm`, 'utf8').catch(() => '');
      if (pattern.test(comm)) n += 1;
    }
  }
  return n;
}

async function until(condition, what) {
  const end = Date.now() + 15_000;
  while (!(await condition())) {
    assert.ok(Date.now() < end, what);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

// Runs in the page.
async function largeTexts({ files, stored, open }) {
  const root = files ? null : await navigator.storage.getDirectory();
  const source = files ? [...document.querySelector('input[type=file]').files] : await root.getFileHandle(stored[0]);
  const engine = await window.sluice.open(source, open);
  const read = async (answer) => {
    let all = '';
    for await (const piece of answer) all += piece.text;
    return all;
  };
  try {
    const text = 'word '.repeat(400_000);
    const { memoryPeakBytes } = engine.stats;
    await read(engine.generate(text.repeat(20))).catch(() => undefined); // refused before it is copied
    await read(engine.generate('A', { maxTokens: 1 }));
    const grown = engine.stats.memoryPeakBytes - memoryPeakBytes;
    const { length: tokens } = await engine.tokenize(text.slice(0, 1_000_000));
    const refused = [];
    for (const answer of [engine.generate(text), engine.chat([{ role: 'user', content: text }])]) {
      refused.push(await read(answer).catch(({ code }) => code));
    }
    return {
      grown,
      tokens,
      refused,
      answer: await read(engine.generate('The capital of France is', { maxTokens: 1, temperature: 0 })),
    };
  } finally {
    await engine.close();
  }
}
