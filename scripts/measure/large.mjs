// A model far larger than its tab: an 8B-shaped Q4_K_M file (4.9 GB, random weights) in Chromium, from OPFS and as a picked file:
//   node scripts/measure/large.mjs --folder DIR [--model FILE] [--memory 256MB] [--source opfs|blob|both] [-n 4] [--cold | --limit 1GB [--group PLACE] | --left 1GB]
// DIR takes the model (unless one is given) and the profile with the stored copy, which is removed in the end. With a limit the browser
// is held to it by a control group, page cache included (memory-group.mjs says what PLACE is), and the file's pages leave the cache first.
// `--left` leaves that much of the machine's memory to the browser and the page cache (memory-filler.mjs).
// `--cold` sends them out of the cache all the time: every token reads its weights from disk, as where there is no memory for a cache.
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { findBrowsers } from '../browsers/programs.mjs';
import { run } from '../command.mjs';
import { makeModel } from '../native-command.mjs';
import { fillMemory } from './memory-filler.mjs';
import { withMemoryLimit } from './memory-group.mjs';
import { measureMemory, megabytes, report } from './memory.mjs';
import { sleep } from '../browsers/deadline.mjs';

const SHAPE = ['llama-8b', '--quant', 'q4_k_m'];
const PROMPT_IDS = [1, 100, 200];
const CONTEXT = 512;
const LARGE_BYTES = 100e6;
/** A token takes seconds and goes through the file once: what was read is gone before it is wanted again. */
const COLD_MS = 300;

async function main() {
  const text = { type: 'string' };
  const { values } = parseArgs({
    options: {
      folder: text,
      model: text,
      memory: { type: 'string', default: '256MB' },
      source: { type: 'string', default: 'both' },
      n: { type: 'string', short: 'n', default: '4' },
      cold: { type: 'boolean', default: false },
      limit: text,
      left: text,
      group: text,
    },
  });
  if (values.group !== undefined && values.limit === undefined) throw new Error('--group is for --limit');
  if ([values.cold, values.limit, values.left].filter(Boolean).length > 1) throw new Error('one of --cold, --limit and --left');
  if (values.folder === undefined) throw new Error('--folder DIR is missing: a place for 10 GB');
  if (!['opfs', 'blob', 'both'].includes(values.source)) throw new Error('--source is one of opfs, blob, both');
  await mkdir(values.folder, { recursive: true });
  const model = values.model ?? path.join(values.folder, 'llama-8b-q4_k_m.gguf');
  if (values.model === undefined) await makeModel(model, ...SHAPE);
  for (const source of values.source === 'both' ? ['opfs', 'blob'] : [values.source]) await measure({ ...values, model, source });
}

async function measure({ folder, model, source, memory, n, cold, limit, left, group }) {
  const profile = path.join(folder, `profile-${process.pid}-${source}`);
  const measured = (more = {}) =>
    measureMemory({
      browser: 'chromium',
      model,
      source,
      profile,
      open: { context: CONTEXT, memory },
      generate: { prompt: PROMPT_IDS, options: { maxTokens: Number(n), temperature: 0, ignoreEog: true } },
      log: (line) => console.error(line),
      ...more,
    });
  const place = source === 'opfs' ? profile : model;
  const held = async ({ wrap, usage }) => {
    const { chromium } = await findBrowsers();
    const beforeRun = () => leaveCache(place);
    const atEnd = async (pid) => {
      const { peakBytes, limitHits, oomKills } = await usage(pid);
      return `peak of the group ${megabytes(peakBytes)}, limit hit ${limitHits} times, ${oomKills} kills`;
    };
    return measured({ program: await wrap(chromium.browser), beforeRun, atEnd });
  };
  try {
    let [found, within] = [undefined, ''];
    if (cold) [found, within] = [await measuredCold(measured, place), ', nothing of it in the page cache'];
    else if (limit !== undefined)
      [found, within] = [await withMemoryLimit(bytesOf(limit), group, held), `, the browser held to ${limit}`];
    else if (left !== undefined)
      [found, within] = [await measuredWithLeft(measured, place, bytesOf(left)), `, ${left} left of the machine's memory`];
    else found = await measured();
    console.log(`${path.basename(model)} from ${source}${within}\n${report(found)}\n`);
  } finally {
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Measures while what is at `place` leaves the page cache over and over. */
async function measuredCold(measured, place) {
  let [on, leaving] = [true, Promise.resolve()];
  const beforeRun = async () => {
    await leaveCache(place);
    leaving = (async () => {
      for (; on; await sleep(COLD_MS)) for (const { file } of await largeFiles(place)) await dropPages(file);
    })();
  };
  try {
    return await measured({ beforeRun });
  } finally {
    on = false;
    await leaving;
  }
}

/** Measures while the browser and the page cache have `bytes` of the machine's memory; the model is stored before. */
async function measuredWithLeft(measured, place, bytes) {
  let filling;
  const beforeRun = async () => {
    await leaveCache(place);
    filling = await fillMemory(bytes);
  };
  const atEnd = async () => {
    const { leftBytes, kills } = await filling.usage();
    return `${megabytes(leftBytes)} of the machine's memory available in the end, ${kills} programs ended by the kernel`;
  };
  try {
    return await measured({ beforeRun, atEnd });
  } finally {
    await filling?.stop();
  }
}

/**
 * Takes a file's pages, or those of all large files of a folder, out of the page cache: what is there already counts to whoever read it
 * first, and not to the group that is measured.
 */
async function leaveCache(place) {
  for (const { file, size } of await largeFiles(place)) {
    await run('sync', [file]);
    await dropPages(file);
    const pages = await run('fincore', ['--bytes', '--noheadings', '--output', 'RES', file], { capture: true }).catch(
      () => 'unknown',
    );
    console.error(`${path.basename(file)}: ${pages.trim()} of ${size} bytes are left in the page cache`);
  }
}

const dropPages = (file) => run('dd', [`if=${file}`, 'iflag=nocache', 'count=0', 'status=none']);

async function largeFiles(place) {
  const isFile = (await stat(place)).isFile();
  const names = isFile ? [''] : await readdir(place, { recursive: true });
  const files = await Promise.all(
    names.map(async (name) => {
      const file = path.join(place, name);
      return { file, size: (await stat(file).catch(() => ({ size: 0 }))).size }; // a profile's small files come and go
    }),
  );
  return files.filter(({ size }) => size >= LARGE_BYTES);
}

/** `1GB` is 10^9 bytes, `1GiB` is 2^30. */
function bytesOf(text) {
  const [, number, prefix, binary] = /^([\d.]+)([MG])(i?)B$/.exec(text) ?? [];
  if (number === undefined) throw new Error('--limit is a size as 1GB or 900MiB');
  return Math.floor(Number(number) * (binary === 'i' ? 1024 : 1000) ** (prefix === 'G' ? 3 : 2));
}

if (import.meta.filename === process.argv[1]) {
  try {
    await main();
  } catch (error) {
    console.error(`large: ${error.message}`);
    process.exitCode = 1;
  }
}
