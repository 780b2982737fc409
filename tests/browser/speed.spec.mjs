// A guard: no kernel has become half as fast. Speeds are quotients with a calibration loop that runs beside, so that another machine,
// or one that does other things too, has about the same; tests/browser/speed.json records them (`UPDATE_GOLDEN=1` writes it anew).
// What a browser finds slow, others are asked about: one may have had bad luck with its compiler's threads or with its neighbours.
// A format's kernels are timed alone in both builds, attention and all the rest in an answer of SmolLM2 behind a long prompt.
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { launch } from '../../scripts/browsers/index.mjs';
import { median } from '../../scripts/measure/pss.mjs';
import { serveBarePage } from '../../scripts/serve/bare-page.mjs';
import { fixture, smollm2 } from './models.mjs';

const DEADLINE_MS = 120_000;
const BUILDS = ['simd', 'relaxed'];
const FORMATS = [
  'q4_0',
  'q4_1',
  'q5_0',
  'q5_1',
  'q8_0',
  'q2_k',
  'q3_k',
  'q4_k',
  'q5_k',
  'q6_k',
  'iq4_nl',
  'iq4_xs',
  'f16',
  'bf16',
];
const RECORD = path.join(import.meta.dirname, 'speed.json');

/** Too few rounds may be an accident: there are more of them before a browser counts as slow, and browsers before a kernel does. */
const ROUNDS = 4;
const MOST_ROUNDS = { kernel: 20, answer: 8 };
const BROWSERS = 3;
/** While figures are written anew. */
const GOLDEN_ROUNDS = 12;
const PROMPT = 'The old fisherman went out to sea every morning and told his stories in the evening. '.repeat(24);

describe('nothing is half as fast as recorded', { timeout: 10 * DEADLINE_MS }, () => {
  let server, browser, page, recorded;
  const found = {};
  before(async () => {
    recorded = JSON.parse(await readFile(RECORD, 'utf8'));
    server = await serveBarePage();
    await begin();
  });
  after(async () => {
    await browser?.close();
    await server?.close();
    if (process.env.UPDATE_GOLDEN) await writeFile(RECORD, `${JSON.stringify({ ...recorded, ...found }, null, 2)}\n`);
  });

  async function begin() {
    browser = await launch('chromium');
    page = await browser.newPage();
    await page.goto(`${server.origin}/`);
  }

  /** Measures until a browser finds every figure fast enough, or enough of them that one is not. */
  async function guard(name, most, measure, combine) {
    const golden = Boolean(process.env.UPDATE_GOLDEN);
    const slow = () => Object.keys(found[name]).some((key) => !(found[name][key] > recorded[name]?.[key] / 2));
    const all = [];
    for (let asked = 0; asked < BROWSERS; asked++) {
      if (asked > 0) {
        await browser.close();
        await begin();
      }
      const rounds = [];
      do {
        rounds.push(await measure(rounds.length));
        found[name] = rounded(combine(rounds));
      } while (rounds.length < (golden ? GOLDEN_ROUNDS : ROUNDS) || (slow() && rounds.length < most && !golden));
      all.push(found[name]);
      if (golden || !slow()) return;
    }
    assert.fail(`${name}: ${JSON.stringify(all)} in as many browsers, recorded ${JSON.stringify(recorded[name])}`);
  }

  for (const build of BUILDS) {
    describe(`the kernels of ${build}`, () => {
      before(() => page.goto(`${server.origin}/`));
      for (const format of FORMATS) {
        it(format, async () => {
          const url = server.addFile(fixture('quant', `llama-${format}.gguf`));
          await guard(
            `${build} ${format}`,
            MOST_ROUNDS.kernel,
            () => page.evaluate(timeKernel, [build, url, format], DEADLINE_MS),
            best,
          );
        });
      }
    });
  }

  it('an answer behind a long prompt', async () => {
    await page.goto(`${server.origin}/`);
    const url = server.addFile(smollm2);
    await guard(
      'SmolLM2',
      MOST_ROUNDS.answer,
      (round) => page.evaluate(timeAnswer, [url, `${round} ${PROMPT}`], DEADLINE_MS),
      middle,
    );
  });
});

/** The quotients of the best: a slice of a few milliseconds that nothing interrupted comes along. */
const best = (rounds) => quotients(rounds, (values) => Math.max(...values));

/** The middle ones of answers, which last long enough to be interrupted like the loops around them. */
const middle = (rounds) => quotients(rounds, median);

function quotients(rounds, pick) {
  const picked = (key) => pick(rounds.map((round) => round[key]));
  const [loop, ...figures] = Object.keys(rounds[0]);
  return Object.fromEntries(figures.map((key) => [key, picked(key) / picked(loop)]));
}

const rounded = (figures) =>
  Object.fromEntries(Object.entries(figures).map(([key, value]) => [key, Number(value.toPrecision(3))]));

// Runs in the page: turns of the calibration loop and weights, all per second.
async function timeKernel(build, url, format) {
  const header = ((globalThis.headers ??= {})[`${build} ${url}`] ??= await readHeader());
  const loop = calibrate();
  const index = header.kernels({}).findIndex((name) => name.toLowerCase().startsWith(`${format} `));
  if (index < 0) throw new Error(`no kernel of ${format} among ${header.kernels({}).join(', ')}`);
  const { decodeWeightsPerSecond: decode, prefillWeightsPerSecond: prefill } = header.measure({}, index);
  return { loop, decode, prefill };

  async function readHeader() {
    const wasm = await import(`/modules/wasm/${build}/sluice.js`);
    await (globalThis[build] ??= wasm.default({ module_or_path: `/pkg/wasm/${build}/sluice_bg.wasm` }));
    const file = new Uint8Array(await (await fetch(url)).arrayBuffer());
    const source = {
      fileCount: 1,
      bufferBytes: file.length,
      rereads: true,
      size: () => file.length,
      readInto: (_, offset, place) => {
        place.set(file.subarray(offset, offset + place.length));
        return true;
      },
      cancel: () => {},
    };
    const host = { turn: () => Promise.resolve(), progress: () => {}, deviceBytes: undefined };
    return wasm.inspect(host, source, {}, new wasm.Call());
  }

  // The best of some slices of 8 ms, as the kernels are measured.
  function calibrate() {
    const numbers = (globalThis.numbers ??= Int32Array.from({ length: 4096 }, (_, i) => i * 7919));
    globalThis.turn ??= () => numbers.reduce((sum, number) => (sum + Math.imul(number, number)) | 0, 0);
    const end = performance.now() + 40;
    let most = 0;
    while (performance.now() < end) {
      const began = performance.now();
      let turns = 0;
      do {
        globalThis.kept = globalThis.turn();
        turns += numbers.length;
      } while (performance.now() - began < 8);
      most = Math.max(most, (turns * 1000) / (performance.now() - began));
    }
    return most;
  }
}

// Runs in the page: thousand million turns of the calibration loop and tokens, all per second.
async function timeAnswer(url, prompt) {
  globalThis.engine ??= await window.sluice.open(url, { context: 1024, threads: 1 });
  const { engine } = globalThis;
  const loops = [calibrate()];
  for await (const _ of engine.generate(prompt, { maxTokens: 16, temperature: 0, ignoreEog: true }));
  loops.push(calibrate());
  const { prefillTokensPerSecond: prefill, decodeTokensPerSecond: decode } = engine.stats;
  return { loop: (loops[0] + loops[1]) / 2 / 1e9, prefill, decode };

  function calibrate() {
    const numbers = (globalThis.numbers ??= Int32Array.from({ length: 4096 }, (_, i) => i * 7919));
    globalThis.turn ??= () => numbers.reduce((sum, number) => (sum + Math.imul(number, number)) | 0, 0);
    const began = performance.now();
    let turns = 0;
    do {
      globalThis.kept = globalThis.turn();
      turns += numbers.length;
    } while (performance.now() - began < 200);
    return (turns * 1000) / (performance.now() - began);
  }
}
