// A first visit: the first token comes as soon as the last byte that the first pass needs, and the page hears how far things are, in the
// first sweep and in slow later ones.
import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { withBrowser } from '../../scripts/browsers/index.mjs';
import { serveFaulty } from './faulty-server.mjs';
import { smollm2 } from './models.mjs';

const DEADLINE_MS = 60_000;
const RATE = 50e6;
const MOST_WAIT_MS = 500;
/** Something else may have the machine for so long: the quickest of these counts. */
const VISITS = 3;
const LAYERS = 30;
const PROMPT = Array.from({ length: 30 }, (_, i) => 1000 + 37 * i);
const LONG_PROMPT = Array.from({ length: 200 }, (_, i) => 1000 + 7 * i);

for (const name of ['chromium', 'firefox']) {
  describe(`a first visit in ${name}`, { timeout: (VISITS + 1) * DEADLINE_MS }, () => {
    it('the first token follows on the last byte, and progress is told', async () => {
      const size = (await stat(smollm2)).size;
      const server = await serveFaulty();
      try {
        await withBrowser(name, {}, async (browser) => {
          const page = await browser.newPage();
          await page.goto(`${server.origin}/`);
          const waits = [];
          while (!(Math.min(...waits) <= MOST_WAIT_MS) && waits.length < VISITS) {
            server.requests.splice(0);
            const url = server.faulty('throttled', smollm2, { bytesPerSecond: RATE });
            const { tokenAt, first, later } = await page.evaluate(visit, [url, PROMPT, LONG_PROMPT], DEADLINE_MS);
            assert.equal(
              server.requests.reduce((sum, { bytes }) => sum + bytes, 0),
              size,
            );
            assertConnections(server.requests);
            assertDownload(first, size);
            assertPass(first, 1); // as much of it as falls into the download
            assert.equal(later.filter(({ stage }) => stage === 'download').length, 0);
            assertPass(later, 3);
            waits.push(tokenAt - Math.max(...server.requests.map(({ endedAt }) => endedAt)));
          }
          assert.ok(Math.min(...waits) <= MOST_WAIT_MS, `the first token came ${waits} ms after the last byte`);
        });
      } finally {
        await server.close();
      }
    });
  });
}

/** Bytes come over several connections. */
function assertConnections(requests) {
  const underWay = ({ startedAt }) =>
    requests.filter((other) => other.startedAt <= startedAt && other.endedAt > startedAt).length;
  const most = Math.max(...requests.map(underWay));
  assert.ok(most > 1, `${most} connections at once`);
}

function assertDownload(told, size) {
  const downloads = told.filter(({ stage }) => stage === 'download');
  assert.ok(downloads.length > 5, `${downloads.length} times`);
  assertRising(downloads.map(({ loadedBytes }) => loadedBytes));
  for (const { totalBytes, layer } of downloads) assert.deepEqual([totalBytes, layer], [size, null]);
  const { loadedBytes, bytesPerSecond, secondsLeft } = downloads.at(-2);
  assert.ok(bytesPerSecond > 1e6 && bytesPerSecond < 1.5 * RATE, `${bytesPerSecond} bytes a second`);
  assert.ok(Math.abs(secondsLeft - (size - loadedBytes) / bytesPerSecond) < 1e-6, `${secondsLeft} s are left`);
}

/** Some pass was told of in the middle, layer by layer. */
function assertPass(told, fewest) {
  const passes = told.filter(({ stage }) => stage === 'pass');
  const layers = new Set(passes.map(({ layer }) => layer).filter((layer) => layer !== null));
  assert.ok(layers.size >= fewest, `layers ${[...layers]}`);
  for (const { layers: n, loadedBytes, totalBytes } of passes) {
    assert.ok(n === LAYERS && loadedBytes <= totalBytes, `${n} layers, ${loadedBytes} of ${totalBytes} bytes`);
  }
  const sweeps = passes.filter(({ loadedBytes }, i) => i > 0 && loadedBytes < passes[i - 1].loadedBytes).length;
  assert.ok(sweeps < passes.length / 2, `${passes.length} events of ${sweeps + 1} passes`);
  assert.ok(passes.some(({ bytesPerSecond, secondsLeft }) => bytesPerSecond > 0 && secondsLeft !== null));
}

function assertRising(values) {
  assert.ok(
    values.every((value, i) => i === 0 || value >= values[i - 1]),
    values.join(' '),
  );
}

// Runs in the page: answers a short prompt while the model comes, and a long one later, in exact arithmetic, which takes its time.
async function visit(url, prompt, longPrompt) {
  const told = [];
  const engine = await window.sluice.open(url, { context: 512, onProgress: (progress) => told.push(progress) });
  const options = { maxTokens: 2, temperature: 0, ignoreEog: true };
  let tokenAt;
  for await (const { id } of engine.generate(prompt, options)) if (id !== null) tokenAt ??= Date.now();
  await engine.close();
  const first = told.splice(0);
  const slow = await window.sluice.open(url, {
    context: 512,
    precision: 'exact',
    threads: 1,
    onProgress: (progress) => told.push(progress),
  });
  for await (const { id } of slow.generate(longPrompt, options)) void id;
  await slow.close();
  return { tokenAt, first, later: told };
}
