// As predicted.mjs, for a machine that is busy: `inspect`'s expected speed beside the real one, both in Node and by the processor time that
// they take instead of the clock's. Reading is from the page cache, through the same seam as from OPFS.
//   node scripts/bench/predicted-cpu.mjs [--memory 900MB,48MB] [--rounds 3] [--tokens 32] [--model FILE]…
// Needs a build (`npm run build`) and the models (`npm run setup`).
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { modelsDir, modulesDir, pkgDir } from '../repo.mjs';

const { values } = parseArgs({
  options: {
    memory: { type: 'string', default: '900MB,48MB' },
    rounds: { type: 'string', default: '3' },
    tokens: { type: 'string', default: '32' },
    model: { type: 'string', multiple: true, default: ['smollm2-135m-q4_1.gguf', 'gemma3-270m-q4_k_m.gguf'] },
  },
});
const PROMPT = 'Once upon a time, in a small village';
const LONG_PROMPT = `${PROMPT} by the sea, there lived an old man who made clocks. `.repeat(16);
const NO_RATES = { kernels: {}, storage: {} };

// What the module and `Measured` take for the clock.
performance.now = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};
const { Measured } = await import(path.join(modulesDir, 'worker/measured.js'));
const { FileSource } = await import(path.join(modulesDir, 'node/file-source.js'));
const host = {
  deviceBytes: undefined,
  progress() {},
  turn: () => new Promise((resolve) => setImmediate(resolve)),
  wants: () => 0,
};

for (const model of values.model) {
  for (const memory of values.memory.split(',')) await compare(model, { memory, context: 1024 });
}

async function compare(model, options) {
  // A module of its own: the memory of one that has run a model counts in the next plan.
  const wasm = await import(`${path.join(modulesDir, 'wasm/simd/sluice.js')}?${model}-${options.memory}`);
  wasm.initSync({ module: readFileSync(path.join(pkgDir, 'wasm/simd/sluice_bg.wasm')) });
  const source = FileSource.open([path.resolve(modelsDir, model)]);
  const header = await wasm.inspect(host, source, options, new wasm.Call());
  const session = await wasm.open(host, source, options, new wasm.Call());
  const run = async (prompt, maxTokens) => {
    await session.generate(prompt, { maxTokens, temperature: 0, ignoreEog: true }, new wasm.Call(), () => {});
    return session.stats();
  };
  await run(PROMPT, Number(values.tokens)); // warm code
  for (let round = 0; round < Number(values.rounds); round++) {
    const measured = await Measured.of(header, 'simd', NO_RATES, source, 'handle');
    const { predicted } = measured.fit(options).fit;
    const decode = (await run(PROMPT, Number(values.tokens))).decodeTokensPerSecond;
    const prefill = (await run(LONG_PROMPT, 1)).prefillTokensPerSecond;
    const line = (what, expected, real) =>
      `${what} predicted ${expected.toFixed(1)} tok/s, real ${real.toFixed(1)}, predicted / real ${(expected / real).toFixed(2)}`;
    console.log(`${model} in ${options.memory}: ${line('decode', predicted.decodeTokensPerSecond, decode)}`);
    console.log(`${model} in ${options.memory}: ${line('prefill', predicted.prefillTokensPerSecond, prefill)}`);
  }
}
