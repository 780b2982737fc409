// `node scripts/bench/barrier.mjs [--browser chromium|firefox|webkit]`: what a barrier costs in a browser (benches/team.rs). The threads
// are workers, as those of the engine are.
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { withBrowser } from '../browsers/index.mjs';
import { serve } from '../serve/server.mjs';
import { compileBench } from './compiled.mjs';

const { values } = parseArgs({ options: { browser: { type: 'string', default: 'chromium' } } });
const DEADLINE_MS = 300_000;

// Each worker has a stack of its own.
const wasm = await readFile(await compileBench('team', 'simd-threads', ['-Clink-arg=--export=__stack_pointer']));
const routes = (app) => {
  app.get('/', (_, response) => response.type('html').send('<!doctype html><title>barrier</title>'));
  app.get('/team.wasm', (_, response) => response.type('application/wasm').send(wasm));
  app.get('/worker.mjs', (_, response) => response.sendFile(path.join(import.meta.dirname, 'barrier-worker.mjs')));
};
const server = await serve({ mounts: {}, routes });
try {
  await withBrowser(values.browser, { sharedMemory: true }, async (browser) => {
    const page = await browser.newPage();
    await page.goto(server.origin);
    console.log(`${browser.version}, ${await page.evaluate(() => navigator.hardwareConcurrency)} cores`);
    console.log((await page.evaluate(start, [], DEADLINE_MS)).join('\n'));
  });
} finally {
  await server.close();
}

// In the page.
async function start() {
  const module = await WebAssembly.compile(await (await fetch('/team.wasm')).arrayBuffer());
  const memory = new WebAssembly.Memory({ initial: 256, maximum: 1024, shared: true });
  const threads = Math.min(4, navigator.hardwareConcurrency);
  const workers = Array.from({ length: threads }, () => new Worker('/worker.mjs', { type: 'module' }));
  const answer = (worker, message) =>
    new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = ({ message }) => reject(new Error(message));
      worker.postMessage(message);
    });
  await Promise.all(workers.map((worker, number) => answer(worker, { module, memory, number, threads })));
  const [lines] = await Promise.all(workers.map((worker) => answer(worker, 'run')));
  return lines;
}
