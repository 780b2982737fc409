// The kernels' frames (tests/kernels) as wasm in real browsers: the same tests in scalar, SIMD128 and relaxed SIMD code.
// wasm-bindgen's runner serves a page that runs them; our own drivers open it.
import { once } from 'node:events';
import { cargoFor, bindgenVersion } from '../build/wasm.mjs';
import { findBindgen } from '../build/toolchain.mjs';
import { withDeadline } from '../browsers/deadline.mjs';
import { withBrowser } from '../browsers/index.mjs';
import { startOwned } from '../browsers/owned-process.mjs';
import { run } from '../command.mjs';
import { count, runAsProgram, sum } from './tally.mjs';

// Every engine compiles SIMD128 with a back-end of its own; WebKitGTK has no relaxed SIMD.
const runs = [
  ['scalar', ['chromium']],
  ['simd', ['chromium', 'firefox', 'webkit']],
  ['relaxed', ['chromium', 'firefox']],
];

const DEADLINE_MS = 300_000;

/** Compiles the frames three times and runs them. */
export async function wasm() {
  const counts = [];
  for (const [build, browsers] of runs) {
    const file = await compileFrames(build);
    for (const browser of browsers) {
      const text = await runFrames(file, browser).catch((error) => `${error.message}\ntest result: FAILED. 0 passed; 1 failed`);
      const counted = count(text);
      if (counted.failed > 0) console.log(withoutStacks(text));
      console.log(`wasm: kernels, ${build} in ${browser}: ${counted.passed} passed, ${counted.failed} failed`);
      counts.push(counted);
    }
  }
  return sum(counts);
}

async function compileFrames(build) {
  const { cargo, args, env } = await cargoFor(build);
  const options = ['test', '--quiet', '--no-run', '--test', 'kernels', '--message-format=json-render-diagnostics', ...args];
  const output = await run(cargo, options, { captureStdout: true, env });
  const artifacts = output
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  return artifacts.find(({ executable, target }) => executable && target.name === 'kernels').executable;
}

async function runFrames(file, name) {
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
