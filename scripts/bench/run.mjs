// `npm run bench`: Sluice beside wllama in the same browser and native llama.cpp on the same machine, in turn, so that a noisy machine
// bends all alike.
//   npm run bench -- [--only PART,…] [--model smollm2,gemma3,llama-8b] [--threads 1,2] [--browser chromium,firefox] [--rounds 7] [--build auto]
//     [--python PROGRAM] [--out FILE]
// Parts: decode, prefill, visits, memory, budgets, streaming; `docs` measures nothing and writes docs/performance.md and the plot from
// what is in FILE. Every combination is a cell of FILE and replaces the one there, so the benchmark can be run in pieces. PROGRAM is a
// Python with llama-cpp-python, also taken from SLUICE_BENCH_PYTHON; without one the table says that native figures are absent.
// `llama-8b` is for `streaming` alone. Needs a build (`npm run build`) and the models (`npm run setup`).
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { withBrowser } from '../browsers/index.mjs';
import { makeModel } from '../native-command.mjs';
import { modelsDir, root, targetDir } from '../repo.mjs';
import { budgets } from './budgets.mjs';
import { memory } from './memory.mjs';
import { decode, firstLine, prefill } from './speed.mjs';
import { streaming } from './streaming.mjs';
import { visits } from './visits.mjs';
import { writeDocs } from './docs.mjs';

const parts = { decode, prefill, visits, memory, budgets, streaming };

/** The models, and the budget at which each is measured streaming. */
const models = {
  smollm2: { file: 'smollm2-135m-q4_1.gguf', small: '48MB' },
  gemma3: { file: 'gemma3-270m-q4_k_m.gguf', small: '80MB' },
  /** Half the layers of Llama 3.1 8B, random weights: as much of it as can stay in a tab, whose memory ends at 4 GB. On demand. */
  'llama-8b': {
    file: 'llama-8b-16-layers-q4_k_m.gguf',
    small: '256MB',
    large: '3900MB',
    tokens: 6,
    prompts: false,
    make: ['llama-8b', '--quant', 'q4_k_m', '--layers', '16'],
  },
};

async function main() {
  const list = (all) => ({ type: 'string', default: all.join(',') });
  const { values } = parseArgs({
    options: {
      only: list([...Object.keys(parts), 'docs']),
      model: list(Object.keys(models).filter((name) => models[name].make === undefined)),
      threads: list([1, 2]),
      browser: list(['chromium']),
      rounds: { type: 'string', default: '7' },
      build: { type: 'string', default: 'auto' },
      python: { type: 'string', default: process.env['SLUICE_BENCH_PYTHON'] },
      out: { type: 'string', default: path.join(targetDir, 'bench.json') },
    },
  });
  const chosen = chosenOf('only', values.only, [...Object.keys(parts), 'docs']);
  const results = JSON.parse(await readFile(values.out, 'utf8').catch(() => '{"cells":{}}'));
  for (const browser of values.browser.split(',')) {
    const facts = await factsOf(browser);
    for (const part of chosen.filter((name) => name !== 'docs')) {
      for (const name of chosenOf('model', values.model, Object.keys(models))) {
        for (const threads of values.threads.split(',').map(Number)) {
          const key = [browser, part, name, threads].join(' ');
          console.log(`${key} thread${threads === 1 ? '' : 's'}`);
          const { make, ...model } = models[name];
          if (make !== undefined) await makeModel(path.join(modelsDir, model.file), ...make);
          const setting = {
            browser,
            ...model,
            threads,
            build: values.build,
            rounds: Number(values.rounds),
            python: values.python,
          };
          const started = Date.now();
          const found = await parts[part]({
            ...setting,
            model: path.join(modelsDir, model.file),
            log: (line) => console.log(`  ${line}`),
          }).catch((error) => ({ absent: firstLine(error) }));
          if (found.absent !== undefined) console.log(`  absent: ${found.absent}`);
          results.cells[key] = { browser, part, model: name, threads, rounds: setting.rounds, ...facts, started, ...found };
          await mkdir(path.dirname(values.out), { recursive: true });
          await writeFile(values.out, `${JSON.stringify(results, null, 1)}\n`);
        }
      }
    }
  }
  console.log(`figures in ${values.out}`);
  if (chosen.includes('docs')) await writeDocs(results.cells);
}

function chosenOf(option, text, known) {
  const names = text.split(',');
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new Error(`--${option}: there is no ${unknown}: ${known.join(', ')}`);
  return names;
}

/** Where and with what it is measured. */
async function factsOf(browser) {
  const wllama = JSON.parse(await readFile(path.join(root, 'node_modules/@wllama/wllama/package.json'), 'utf8')).version;
  const version = await withBrowser(browser, {}, ({ version }) => version);
  const machine = `${os.cpus().length} cores (${os.cpus()[0]?.model.trim()}), ${Math.round(os.totalmem() / 1e9)} GB, ${os.type()}`;
  return { date: new Date().toISOString().slice(0, 10), machine, versions: { browser: version, wllama } };
}

if (import.meta.filename === process.argv[1]) {
  try {
    await main();
  } catch (error) {
    console.error(`bench: ${error.message}`);
    process.exitCode = 1;
  }
}
