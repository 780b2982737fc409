// How near streaming comes to what it must cost. C is the time of a token when all weights stay and one thread computes, R the time of a
// bare loop that reads what the engine reads for a token, the same ranges in the same order through the same kind of handle, T the time of a
// token under a budget; all in one browser and in turn. With t threads computing and reading share the cores: the aim is T = (C + R) / t.
import { storeFiles } from '../browsers/engine-run.mjs';
import { withBrowser } from '../browsers/index.mjs';
import { median } from '../measure/pss.mjs';
import { openInPage, serveContestants } from './contestants.mjs';
import { longPrompt, shortPrompt } from './prompts.mjs';
import { eachKey, refuseOthers } from './speed.mjs';

const READ_TOKENS = 8;
const RECORDED_TOKENS = 4;
/** Bytes: what is shorter is a token's own row of the embedding table. */
const LEAST_TILE = 4096;
const DEADLINE_MS = 300_000;

// The package's workers, which say where and how much they read.
const RECORDER = `
const told = new BroadcastChannel('reads');
const read = FileSystemSyncAccessHandle.prototype.read;
FileSystemSyncAccessHandle.prototype.read = function (buffer, options) {
  told.postMessage([options.at, buffer.byteLength]);
  return read.call(this, buffer, options);
};`;

// A worker of its own: synchronous handles exist nowhere else. Reads all ranges, one after the other, into one buffer.
const READER = `
onmessage = async ({ data: { name, reads, times } }) => {
  const root = await navigator.storage.getDirectory();
  const file = await root.getFileHandle(name);
  const handle = await file.createSyncAccessHandle({ mode: 'read-only' });
  const buffer = new Uint8Array(Math.max(...reads.map(([, length]) => length)));
  const started = performance.now();
  for (let time = 0; time < times; time++) for (const [at, length] of reads) handle.read(buffer.subarray(0, length), { at });
  const ms = (performance.now() - started) / times;
  handle.close();
  postMessage(ms);
};`;

/**
 * `{ streamedBytes, rounds: [{ C, R, T, residentShare, bound, residentPrefill, prefill }], median }`: milliseconds, shares and tokens per second.
 * A turn generates `tokens`; without `prompts` it reads no long one.
 */
export async function streaming({
  browser,
  model,
  file,
  threads,
  build,
  small,
  large,
  rounds,
  tokens = 48,
  prompts = true,
  log,
}) {
  const server = await serveContestants(model);
  const scripts = { 'reader.js': READER, 'recorder.js': RECORDER };
  for (const name of ['main.js', 'helper.js', 'download.js']) {
    scripts[`recorded/${name}`] = `import '/recorder.js'; import '/pkg/worker/${name}';`;
  }
  for (const [name, script] of Object.entries(scripts)) {
    server.app.get(`/${name}`, (_, response) => response.type('js').send(script));
  }
  try {
    return await withBrowser(browser, { deadlineMs: DEADLINE_MS }, async (running) => {
      const page = await running.newPage();
      await page.goto(`${server.origin}/`);
      const [stored] = await storeFiles(page, [`${server.origin}/models/${encodeURIComponent(file)}`], DEADLINE_MS);
      const open = (options) => openInPage(running, 'sluice', server.origin, file, { stored, build, ...options });
      const resident = await open({ threads: 1, memory: large });
      const streamed = await open({ threads, memory: small });
      refuseOthers(streamed.opened, threads);
      const { streamedBytesPerToken } = streamed.opened.plan;
      const reads = await recordReads(page, { name: stored, threads, build, memory: small });
      const readBytes = reads.reduce((sum, [, length]) => sum + length, 0);
      log(`${reads.length} reads and ${(readBytes / 1e6).toFixed(1)} MB a token`);
      const found = [];
      for (let turn = -1; turn < rounds; turn++) {
        const C = await tokenMs(resident, turn, tokens);
        const R = await page.evaluate(readAlone, [{ name: stored, reads, times: READ_TOKENS }], DEADLINE_MS);
        const T = await tokenMs(streamed, turn, tokens);
        const rates = prompts
          ? { residentPrefill: await prefillRate(resident, turn), prefill: await prefillRate(streamed, turn) }
          : {};
        if (turn < 0) continue; // warms code and caches
        found.push({ C, R, T, ofResident: C / T, ofBound: (C + R) / threads / T, ...rates });
        log(`round ${turn + 1}: C ${C.toFixed(2)} ms, R ${R.toFixed(2)} ms, T ${T.toFixed(2)} ms`);
      }
      return { budget: small, streamedBytes: streamedBytesPerToken, readBytes, rounds: found, median: eachKey(found, median) };
    });
  } finally {
    await server.close();
  }
}

async function tokenMs(contestant, turn, nTokens) {
  const { decodeMs, tokens } = await contestant.generate(shortPrompt(turn), nTokens);
  return decodeMs / (tokens - 1);
}

async function prefillRate(contestant, turn) {
  const { promptTokens, firstMs } = await contestant.generate(longPrompt(turn), 1);
  return (promptTokens * 1000) / firstMs;
}

/** What the engine reads for a token, `[offset, length]` in the order of reading: every token's weights are read in the same order. */
async function recordReads(page, { name, ...options }) {
  const reads = await page.evaluate(recordInPage, [{ name, options, nTokens: RECORDED_TOKENS }], DEADLINE_MS);
  const weights = reads.filter(([, length]) => length >= LEAST_TILE);
  const [at, length] = weights.at(-1) ?? [];
  const before = weights.findLastIndex((read, i) => i < weights.length - 1 && read[0] === at && read[1] === length);
  if (before < 0) throw new Error('no range was read twice: nothing streams');
  return weights.slice(before + 1);
}

// Runs in the page.
async function recordInPage({ name, options, nTokens }) {
  const { open } = await import('/pkg/index.js');
  const file = await (await navigator.storage.getDirectory()).getFileHandle(name);
  const assets = { worker: '/recorded/main.js' };
  const engine = await open(file, { context: 1024, ...options, assets });
  const reads = [];
  const channel = new BroadcastChannel('reads');
  channel.onmessage = ({ data }) => reads.push(data);
  for await (const _ of engine.generate('The capital of France is', { maxTokens: nTokens, temperature: 0, ignoreEog: true }));
  await engine.close();
  channel.close();
  return reads;
}

// Runs in the page.
async function readAlone(job) {
  const reader = new Worker('/reader.js');
  const ms = await new Promise((resolve, reject) => {
    reader.onmessage = ({ data }) => resolve(data);
    reader.onerror = ({ message }) => reject(new Error(message));
    reader.postMessage(job);
  });
  reader.terminate();
  return ms;
}
