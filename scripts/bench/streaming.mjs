// How near streaming comes to what it must cost: with C the time of a token when all weights stay, R the time of a bare loop that
// reads as many bytes in reads of the same size through the same kind of handle, and T the time of a token under a budget, all in one
// browser and alternating, it prints (C + R) / T: 1 means that streaming costs its reads and nothing else.
//   node scripts/bench/streaming.mjs [--browser chromium|firefox] [--memory 48MB] [--rounds 7] [--tokens 48] [--build auto] [--json]
// Needs a build (`npm run build`) and the models (`npm run setup`).
import path from 'node:path';
import { parseArgs } from 'node:util';
import { storeFiles } from '../browsers/engine-run.mjs';
import { withBrowser } from '../browsers/index.mjs';
import { modelsDir } from '../repo.mjs';
import { serveBarePage } from '../serve/bare-page.mjs';
import { median } from '../measure/pss.mjs';

const { values } = parseArgs({
  options: {
    browser: { type: 'string', default: 'chromium' },
    memory: { type: 'string', default: '48MB' },
    rounds: { type: 'string', default: '7' },
    tokens: { type: 'string', default: '48' },
    build: { type: 'string', default: 'auto' },
    model: { type: 'string', default: 'smollm2-135m-q4_1.gguf' },
    json: { type: 'boolean', default: false },
  },
});
const DEADLINE_MS = 600_000;

// A worker of its own: synchronous handles exist nowhere else. Reads `total` bytes in pieces, front to back, into one buffer.
const READER = `
onmessage = async ({ data: { name, piece, total, times } }) => {
  const root = await navigator.storage.getDirectory();
  const file = await root.getFileHandle(name);
  const handle = await file.createSyncAccessHandle({ mode: 'read-only' });
  const size = handle.getSize();
  const buffer = new Uint8Array(piece);
  const spent = [];
  for (let time = 0; time < times; time++) {
    const started = performance.now();
    for (let done = 0, at = 0; done < total; done += piece, at += piece) {
      if (at + piece > size) at = 0;
      handle.read(buffer, { at });
    }
    spent.push(performance.now() - started);
  }
  handle.close();
  postMessage(spent);
};`;

const routes = (app) => app.get('/reader.js', (_, response) => response.type('js').send(READER));
const server = await serveBarePage({ routes });
try {
  await withBrowser(values.browser, { deadlineMs: DEADLINE_MS }, async (browser) => {
    const page = await browser.newPage();
    await page.goto(`${server.origin}/`);
    await page.waitFor(() => window.sluice !== undefined, [], 60_000);
    const [name] = await storeFiles(page, [server.addFile(path.join(modelsDir, values.model))], DEADLINE_MS);
    const job = {
      name,
      memory: values.memory,
      build: values.build,
      rounds: Number(values.rounds),
      tokens: Number(values.tokens),
    };
    const { rounds, piece, total } = await page.evaluate(measure, [job], DEADLINE_MS);
    const quotients = rounds.map(({ C, R, T }) => (C + R) / T);
    const summary = {
      resident: median(rounds.map(({ C }) => C)),
      reading: median(rounds.map(({ R }) => R)),
      streamed: median(rounds.map(({ T }) => T)),
      quotient: median(quotients),
    };
    if (values.json) console.log(JSON.stringify({ ...values, piece, total, ...summary, rounds }));
    else {
      rounds.forEach(({ C, R, T }, i) => console.log(`round ${i + 1}: C ${fixed(C)} ms, R ${fixed(R)} ms, T ${fixed(T)} ms`));
      console.log(`${total} bytes a token in reads of ${piece}`);
      console.log(
        `medians: C ${fixed(summary.resident)} ms, R ${fixed(summary.reading)} ms, T ${fixed(summary.streamed)} ms, (C + R) / T ${fixed(summary.quotient)}`,
      );
    }
  });
} finally {
  await server.close();
}

// Runs in the page.
async function measure({ name, memory, build, rounds, tokens }) {
  const root = await navigator.storage.getDirectory();
  const open = async (budget) => window.sluice.open(await root.getFileHandle(name), { build, context: 512, memory: budget });
  const decode = async (engine, n) => {
    for await (const _ of engine.generate('Once upon a time, in a small village', {
      maxTokens: n,
      temperature: 0,
      ignoreEog: true,
    }));
    return 1000 / engine.stats.decodeTokensPerSecond;
  };
  const resident = await open('400MB');
  const streamed = await open(memory);
  const { slotBytes: piece, streamedBytesPerToken: total } = streamed.plan;
  const reader = new Worker('/reader.js');
  const read = (times) =>
    new Promise((resolve) => {
      reader.onmessage = ({ data }) => resolve(data.reduce((sum, ms) => sum + ms, 0) / times);
      reader.postMessage({ name, piece, total, times });
    });
  for (const engine of [resident, streamed]) await decode(engine, tokens); // warm code and caches
  const found = [];
  for (let round = 0; round < rounds; round++) {
    found.push({ C: await decode(resident, tokens), R: await read(8), T: await decode(streamed, tokens) });
  }
  return { rounds: found, piece, total };
}

function fixed(value) {
  return value.toFixed(2);
}
