// Tests as wasm in real browsers: the kernels' frames (tests/kernels), the same in scalar, SIMD128 and relaxed SIMD code, and
// what exists in wasm only (tests/wasm), and the tokenizer in one browser (tests/tokenizer, tests/opening).
// wasm-bindgen's runner serves a page that runs them; our own drivers open it. The relaxed kernels also run under a wasmtime whose
// relaxed SIMD is deterministic.
import { once } from 'node:events';
import path from 'node:path';
import { cargoFor, bindgenVersion } from '../build/wasm.mjs';
import { findBindgen } from '../build/toolchain.mjs';
import { withDeadline } from '../browsers/deadline.mjs';
import { withBrowser } from '../browsers/index.mjs';
import { startOwned } from '../browsers/owned-process.mjs';
import { run } from '../command.mjs';
import { wasmtimePython } from '../setup/python.mjs';
import { count, runAsProgram, sum } from './tally.mjs';

// Every engine compiles SIMD128 with a back-end of its own; WebKitGTK has no relaxed SIMD.
const runs = [
  ['kernels', 'scalar', ['chromium']],
  ['kernels', 'simd', ['chromium', 'firefox', 'webkit']],
  ['kernels', 'relaxed', ['chromium', 'firefox', 'wasmtime']],
  ['wasm', 'simd', ['chromium', 'firefox', 'webkit']],
  ['tokenizer', 'simd', ['chromium']],
  ['opening', 'simd', ['chromium']],
];

const DEADLINE_MS = 300_000;

/** Compiles each of them and runs it. */
export async function wasm() {
  const counts = [];
  for (const [tests, build, browsers] of runs) {
    const file = await compile(tests, build);
    for (const browser of browsers) {
      const ran = browser === 'wasmtime' ? runInWasmtime(file) : runIn(browser, file);
      const text = await ran.catch((error) => `${error.message}\ntest result: FAILED. 0 passed; 1 failed`);
      const counted = count(text);
      if (counted.failed > 0) console.log(withoutStacks(text));
      console.log(`wasm: ${tests}, ${build} in ${browser}: ${counted.passed} passed, ${counted.failed} failed`);
      counts.push(counted);
    }
  }
  return sum(counts);
}

async function compile(tests, build) {
  const { cargo, args, env } = await cargoFor(build);
  const options = ['test', '--quiet', '--no-run', '--test', tests, '--message-format=json-render-diagnostics', ...args];
  const output = await run(cargo, options, { captureStdout: true, env });
  const artifacts = output
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  return artifacts.find(({ executable, target }) => executable && target.name === tests).executable;
}

async function runInWasmtime(file) {
  const { python, env } = await wasmtimePython();
  return run(python, [path.join(import.meta.dirname, 'deterministic.py'), file], { capture: true, env });
}

async function runIn(name, file) {
  const runner = await findBindgen('wasm-bindgen-test-runner', await bindgenVersion());
  if (!runner) throw new Error('wasm-bindgen-test-runner is not here: run `npm run setup`');
  const env = { NO_HEADLESS: '1', WASM_BINDGEN_USE_BROWSER: '1', WASM_BINDGEN_TEST_ADDRESS: '127.0.0.1:0' };
  const server = await startOwned(runner, [file], { env });
  try {
    const origin = await withDeadline(printedOrigin(server.child), 60_000, 'wasm-bindgen-test-runner');
    return await withBrowser(name, {}, async (browser) => {
      const page = await browser.newPage();
      await page.goto(origin);
      return page.waitFor(finishedOutput, [], DEADLINE_MS);
    });
  } finally {
    await server.stop();
  }
}

async function printedOrigin({ stdout, stderr }) {
  let text = '';
  const found = () => /http:\/\/[\d.]+:\d+/.exec(text)?.[0];
  for (const stream of [stdout, stderr]) stream.setEncoding('utf8').on('data', (part) => (text += part));
  while (!found()) await Promise.race([once(stdout, 'data'), once(stderr, 'data')]);
  return found();
}

// Stack frames name positions in generated code: the panic's own message says where it was.
const withoutStacks = (text) =>
  text
    .split('\n')
    .filter((line) => !/http:\/\/127/.test(line))
    .join('\n');

// In the page: the whole output once its last line is there.
function finishedOutput() {
  const text = document.getElementById('output').textContent;
  return /^test result: /m.test(text) || /^(error|no tests)/im.test(text) ? text : null;
}

await runAsProgram(import.meta.filename, wasm);
