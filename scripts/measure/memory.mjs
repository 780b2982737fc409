// What running a model takes of the machine, over what a blank page in the same browser takes:
//   node scripts/measure/memory.mjs --browser chromium --model FILE --source opfs|blob|range --memory 48MB [--ctx 512] [-n 64]
//     [--threads N] [-p TEXT | --ids 1,2,3] [--json]
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { sleep } from '../browsers/deadline.mjs';
import { runJob, storeFiles } from '../browsers/engine-run.mjs';
import { withBrowser } from '../browsers/index.mjs';
import { serveBarePage } from '../serve/bare-page.mjs';
import { median, samplePss, treeDiskBytes } from './pss.mjs';

const SETTLE_MS = 3000;
const BLANK_MS = 2000;
const DEADLINE_MS = 1_200_000;

/**
 * Measures one run; all sizes in bytes. `model` is a file, `source` how the browser gets it, `open` and `generate` as for `runJob`.
 * `profile` is the folder of the browser's profile, by default one that is removed afterwards; `program` starts the measured browser,
 * `beforeRun()` is called when the model is in its place, `atEnd(pid)` while that browser still runs: it gives a line for the report.
 *
 * What is stored is stored by a browser of its own, which has ended before the measured one starts with the same profile: a page that
 * has stored a file still holds buffers.
 */
export async function measureMemory({
  browser,
  model,
  source,
  open,
  generate,
  profile,
  program,
  beforeRun,
  atEnd,
  log = () => {},
}) {
  const server = await serveBarePage();
  const folder = profile ?? (await mkdtemp(path.join(os.tmpdir(), 'profile-')));
  const job = { open, generate };
  try {
    const blank = await measureBlank(browser);
    log(`a blank page: ${megabytes(blank.total)}`);
    const url = server.addFile(model);
    if (source === 'blob') job.files = [model];
    else if (source === 'range') job.urls = [url];
    else job.stored = await stored(browser, folder, server, url);
    log('the model is in its place');
    await beforeRun?.();
    return await withBrowser(browser, { ...optionsOf(browser, folder), ...(program && { program }) }, async (running) => {
      const page = await running.newPage();
      await page.goto(`${server.origin}/`);
      const disk = await treeDiskBytes(running.pid);
      const sampling = samplePss(running.pid);
      const found = await runJob(page, job, DEADLINE_MS).catch((error) => ({ error }));
      const diskBytes = (await treeDiskBytes(running.pid)) - disk;
      const samples = await sampling.stop();
      const held = await atEnd?.(running.pid);
      if (found.error !== undefined) throw new Error([found.error.message, held].filter(Boolean).join('; '));
      return { held, blank, diskBytes, ...found, over: overBlank(samples, blank, found.stats) };
    });
  } finally {
    await server.close();
    if (profile === undefined) await rm(folder, { recursive: true, force: true });
  }
}

// WebKit's driver gives every browser a profile of its own.
const optionsOf = (browser, profile) => (browser === 'webkit' ? {} : { profile });

/** PSS of a browser with a fresh profile that shows an empty page; `options` are those of `launch`. */
export function measureBlank(browser, options = {}) {
  return withBrowser(browser, options, async (running) => {
    const page = await running.newPage();
    await page.goto('about:blank');
    await sleep(SETTLE_MS);
    const sampling = samplePss(running.pid);
    await sleep(BLANK_MS);
    const samples = await sampling.stop();
    return { total: median(samples.map((sample) => sample.total)), anonymous: median(samples.map((sample) => sample.anonymous)) };
  });
}

async function stored(browser, profile, server, url) {
  return withBrowser(browser, optionsOf(browser, profile), async (running) => {
    const page = await running.newPage();
    await page.goto(`${server.origin}/`);
    return storeFiles(page, [url], DEADLINE_MS);
  });
}

/** The highest sample, and the middle one of the second half of decoding. */
function overBlank(samples, blank, stats) {
  const end = samples.at(-1)?.ms ?? 0;
  const steady = samples.filter(({ ms }) => ms >= end - stats.decodeMs / 2);
  const figures = (key) => ({
    peak: Math.max(...samples.map((sample) => sample[key])) - blank[key],
    steady: median(steady.map((sample) => sample[key])) - blank[key],
  });
  return { total: figures('total'), anonymous: figures('anonymous'), samples: samples.length };
}

/** `12.3 MB`: million bytes, as budgets are written. */
export const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

/** The run's figures, a line each. */
export function report({ held, blank, over, stats, plan, diskBytes }) {
  const pair = ({ peak, steady }) => `peak ${megabytes(peak)}, steady ${megabytes(steady)}`;
  return [
    `budget            ${megabytes(stats.budgetBytes)}`,
    `planned           ${megabytes(plan.totalBytes)} (floor ${megabytes(plan.floorBytes)})`,
    `memory peak       ${megabytes(stats.memoryPeakBytes)} (linear memory and JS buffers)`,
    `blank page        ${megabytes(blank.total)} PSS`,
    `PSS over blank    ${pair(over.total)} (${over.samples} samples)`,
    `  of it anonymous ${pair(over.anonymous)}`,
    `resident weights  ${(100 * stats.residentShare).toFixed(0)} %`,
    `bytes read        ${megabytes(stats.bytesRead)}, of them from disk ${megabytes(diskBytes)}`,
    `prefill           ${stats.prefillTokensPerSecond.toFixed(2)} tok/s (${stats.promptTokens} tokens)`,
    `decode            ${stats.decodeTokensPerSecond.toFixed(2)} tok/s (${stats.generatedTokens} tokens, stalled ${stats.stallMs.toFixed(0)} ms)`,
    ...(held ? [`limit             ${held}`] : []),
  ].join('\n');
}

async function main() {
  const text = { type: 'string' };
  const { values } = parseArgs({
    options: {
      browser: { type: 'string', default: 'chromium' },
      model: text,
      source: { type: 'string', default: 'opfs' },
      memory: text,
      threads: text,
      ctx: { type: 'string', default: '512' },
      n: { type: 'string', short: 'n', default: '64' },
      prompt: { type: 'string', short: 'p', default: 'The capital of France is' },
      ids: text,
      json: { type: 'boolean', default: false },
    },
  });
  if (values.model === undefined) throw new Error('--model FILE is missing');
  if (!['opfs', 'blob', 'range'].includes(values.source)) throw new Error('--source is one of opfs, blob, range');
  const found = await measureMemory({
    browser: values.browser,
    model: values.model,
    source: values.source,
    open: {
      context: Number(values.ctx),
      ...(values.memory === undefined ? {} : { memory: values.memory }),
      ...(values.threads === undefined ? {} : { threads: Number(values.threads) }),
    },
    generate: {
      prompt: values.ids === undefined ? values.prompt : values.ids.split(',').map(Number),
      options: { maxTokens: Number(values.n), temperature: 0, ignoreEog: true },
    },
    log: (line) => console.error(line),
  });
  console.log(values.json ? JSON.stringify(found) : report(found));
}

if (import.meta.filename === process.argv[1]) {
  try {
    await main();
  } catch (error) {
    console.error(`memory: ${error.message}`);
    process.exitCode = 1;
  }
}
