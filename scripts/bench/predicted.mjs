// How near `inspect`'s expected speed comes to the real one: both in one browser, alternating, with nothing remembered from before.
//   node scripts/bench/predicted.mjs [--browser chromium|firefox] [--memory 400MB,48MB] [--rounds 5] [--tokens 48] [--model FILE]… [--json]
// Needs a build (`npm run build`) and the models (`npm run setup`).
import path from 'node:path';
import { parseArgs } from 'node:util';
import { storeFiles } from '../browsers/engine-run.mjs';
import { withBrowser } from '../browsers/index.mjs';
import { median } from '../measure/pss.mjs';
import { modelsDir } from '../repo.mjs';
import { serveBarePage } from '../serve/bare-page.mjs';

const { values } = parseArgs({
  options: {
    browser: { type: 'string', default: 'chromium' },
    memory: { type: 'string', default: '600MB,48MB' },
    rounds: { type: 'string', default: '5' },
    tokens: { type: 'string', default: '48' },
    model: { type: 'string', multiple: true, default: ['smollm2-135m-q4_1.gguf', 'gemma3-270m-q4_k_m.gguf'] },
    json: { type: 'boolean', default: false },
  },
});
const DEADLINE_MS = 600_000;

const server = await serveBarePage();
try {
  await withBrowser(values.browser, { deadlineMs: DEADLINE_MS }, async (browser) => {
    const page = await browser.newPage();
    const fresh = async () => {
      await page.goto(`${server.origin}/`);
      await page.waitFor(() => window.sluice !== undefined, [], 60_000);
    };
    for (const model of values.model) {
      await fresh();
      const [name] = await storeFiles(page, [server.addFile(path.resolve(modelsDir, model))], DEADLINE_MS);
      for (const memory of values.memory.split(',')) {
        const rounds = [];
        for (let round = 0; round < Number(values.rounds); round++) {
          await fresh();
          rounds.push(await page.evaluate(compare, [name, memory, Number(values.tokens)], DEADLINE_MS));
        }
        tell(model, memory, rounds);
      }
    }
  });
} finally {
  await server.close();
}

function tell(model, memory, rounds) {
  const middle = (of) => median(rounds.map(of));
  const found = {
    decode: {
      predicted: middle((r) => r.predicted.decode),
      real: middle((r) => r.real.decode),
      quotient: middle((r) => r.predicted.decode / r.real.decode),
    },
    prefill: {
      predicted: middle((r) => r.predicted.prefill),
      real: middle((r) => r.real.prefill),
      quotient: middle((r) => r.predicted.prefill / r.real.prefill),
    },
  };
  if (values.json) return console.log(JSON.stringify({ model, memory, ...found, rounds }));
  console.log(`${model} in ${memory} (medians of ${rounds.length})`);
  for (const [what, { predicted, real, quotient }] of Object.entries(found)) {
    const each = rounds.map((r) => (r.predicted[what] / r.real[what]).toFixed(2)).join(' ');
    console.log(
      `  ${what} predicted ${predicted.toFixed(1)} tok/s, real ${real.toFixed(1)}, predicted / real ${quotient.toFixed(2)} (${each})`,
    );
  }
}

// Runs in the page.
async function compare(name, memory, tokens) {
  localStorage.clear();
  const root = await navigator.storage.getDirectory();
  const handle = await root.getFileHandle(name);
  const options = { context: 1024, memory };
  const verdict = await window.sluice.inspect(handle, options);
  const { predicted } = verdict.fit;
  verdict.close();
  const engine = await window.sluice.open(handle, options);
  const text = 'Once upon a time, in a small village by the sea, there lived an old man who made clocks. '.repeat(16);
  const run = async (prompt, maxTokens) => {
    for await (const _ of engine.generate(prompt, { maxTokens, temperature: 0, ignoreEog: true }));
    return engine.stats;
  };
  await run('Once upon a time', tokens); // warm code and caches
  const real = {
    decode: (await run('Once upon a time, in a small village', tokens)).decodeTokensPerSecond,
    prefill: (await run(text, 1)).prefillTokensPerSecond,
  };
  await engine.close();
  return {
    predicted: { decode: predicted.decodeTokensPerSecond, prefill: predicted.prefillTokensPerSecond },
    basis: predicted.basis,
    real,
  };
}
