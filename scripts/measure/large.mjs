// A model far larger than its tab: an 8B-shaped Q4_K_M file (4.9 GB, random weights) in Chromium, from OPFS and as a picked file:
//   node scripts/measure/large.mjs --folder DIR [--model FILE] [--memory 256MB] [--source opfs|blob|both] [-n 4]
// DIR takes the model (unless one is given) and the profile with the stored copy, which is removed in the end.
import { mkdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { run } from '../command.mjs';
import { targetDir } from '../repo.mjs';
import { measureMemory, report } from './memory.mjs';

const SHAPE = ['llama-8b', '--quant', 'q4_k_m'];
const PROMPT_IDS = [1, 100, 200];
const CONTEXT = 512;

async function main() {
  const text = { type: 'string' };
  const { values } = parseArgs({
    options: {
      folder: text,
      model: text,
      memory: { type: 'string', default: '256MB' },
      source: { type: 'string', default: 'both' },
      n: { type: 'string', short: 'n', default: '4' },
    },
  });
  if (values.folder === undefined) throw new Error('--folder DIR is missing: a place for 10 GB');
  if (!['opfs', 'blob', 'both'].includes(values.source)) throw new Error('--source is one of opfs, blob, both');
  await mkdir(values.folder, { recursive: true });
  const model = values.model ?? (await makeModel(path.join(values.folder, 'llama-8b-q4_k_m.gguf')));
  for (const source of values.source === 'both' ? ['opfs', 'blob'] : [values.source]) await measure({ ...values, model, source });
}

async function measure({ folder, model, source, memory, n }) {
  const profile = path.join(folder, `profile-${process.pid}-${source}`);
  try {
    const found = await measureMemory({
      browser: 'chromium',
      model,
      source,
      profile,
      open: { context: CONTEXT, memory },
      generate: { prompt: PROMPT_IDS, options: { maxTokens: Number(n), temperature: 0, ignoreEog: true } },
      log: (line) => console.error(line),
    });
    console.log(`${path.basename(model)} from ${source}\n${report(found)}\n`);
  } finally {
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function makeModel(file) {
  if ((await stat(file).catch(() => null)) !== null) return file;
  await run('cargo', ['build', '--quiet', '--release', '--bins']);
  await run(path.join(targetDir, 'release/sluice'), ['make-model', ...SHAPE, '--out', file]);
  return file;
}

if (import.meta.filename === process.argv[1]) {
  try {
    await main();
  } catch (error) {
    console.error(`large: ${error.message}`);
    process.exitCode = 1;
  }
}
