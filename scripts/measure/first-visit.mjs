// A first visit over a throttled server: how long after the last byte the first token comes, and what it takes of the machine meanwhile:
//   node scripts/measure/first-visit.mjs [--browser chromium] [--model FILE] [--memory SIZE] [--rate 50e6] [--single] [--program FILE]
// Then a later visit in a browser of its own: opening and the first token. `--single` measures a page that is not isolated: one thread.
// `--program` is a copy of the browser (`cp -r /usr/lib/chromium DIR`, DIR/chromium): other browsers of the machine share no page of it,
// so that none of them moves the figures.
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { serveFaulty } from '../../tests/browser/faulty-server.mjs';
import { withBrowser } from '../browsers/index.mjs';
import { measureBlank, megabytes } from './memory.mjs';
import { median, samplePss } from './pss.mjs';

const DEADLINE_MS = 300_000;
const AFTER_MS = 12_000;
const PROMPT_IDS = Array.from({ length: 30 }, (_, i) => 1000 + 37 * i);

async function main() {
  const text = { type: 'string' };
  const { values } = parseArgs({
    options: {
      browser: { ...text, default: 'chromium' },
      model: { ...text, default: 'models/smollm2-135m-q4_1.gguf' },
      memory: text,
      rate: { ...text, default: '50e6' },
      single: { type: 'boolean', default: false },
      program: text,
    },
  });
  const { browser, model, memory, rate, single, program } = values;
  const own = program === undefined ? {} : { program };
  const folder = await mkdtemp(path.join(os.tmpdir(), 'first-visit-'));
  const server = await serveFaulty({ isolated: !single });
  try {
    const blank = await measureBlank(browser, own);
    const url = server.faulty('throttled', model, { bytesPerSecond: Number(rate) });
    const open = { context: 512, ...(memory !== undefined && { memory }) };
    const visit = (afterMs) =>
      withBrowser(browser, { profile: path.join(folder, 'profile'), ...own }, async (running) => {
        const page = await running.newPage();
        await page.goto(`${server.origin}/`);
        await page.waitFor(() => window.sluice !== undefined, [], DEADLINE_MS);
        const sampling = samplePss(running.pid);
        const found = await page.evaluate(inPage, [url, open, PROMPT_IDS, afterMs], DEADLINE_MS);
        const samples = await sampling.stop();
        const late = samples.slice(-10);
        return {
          ...found,
          peak: Math.max(...samples.map(({ total }) => total)) - blank.total,
          after: median(late.map(({ total }) => total)) - blank.total,
          anonymous: {
            peak: Math.max(...samples.map(({ anonymous }) => anonymous)) - blank.anonymous,
            after: median(late.map(({ anonymous }) => anonymous)) - blank.anonymous,
          },
        };
      });
    const first = await visit(AFTER_MS);
    const lastByte = Math.max(...server.requests.map(({ endedAt }) => endedAt));
    const served = server.requests.reduce((sum, { bytes }) => sum + bytes, 0);
    const later = await visit(AFTER_MS);
    console.log(
      `first visit: ${megabytes(served)} served, first token ${(first.tokenAt - lastByte).toFixed(0)} ms after the last byte`,
    );
    console.log(`  budget ${megabytes(first.budget)}; ${memoryOf(first)}`);
    console.log(`later visit: open and first token ${later.tookMs.toFixed(0)} ms; ${memoryOf(later)}`);
  } finally {
    await server.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

const memoryOf = ({ peak, after, anonymous }) =>
  `PSS over blank: peak ${megabytes(peak)}, ten seconds later ${megabytes(after)} ` +
  `(of it anonymous: ${megabytes(anonymous.peak)}, ${megabytes(anonymous.after)})`;

// Runs in the page.
async function inPage(url, open, prompt, afterMs) {
  const started = performance.now();
  const engine = await window.sluice.open(url, open);
  let tokenAt;
  let tookMs;
  for await (const { id } of engine.generate(prompt, { maxTokens: 8, temperature: 0, ignoreEog: true })) {
    if (id === null) continue;
    tokenAt ??= Date.now();
    tookMs ??= performance.now() - started;
  }
  await new Promise((resolve) => setTimeout(resolve, afterMs));
  const budget = engine.plan.totalBytes;
  await engine.close();
  return { tokenAt, tookMs, budget };
}

if (import.meta.filename === process.argv[1]) {
  try {
    await main();
  } catch (error) {
    console.error(`first-visit: ${error.message}`);
    process.exitCode = 1;
  }
}
