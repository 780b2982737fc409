// The workers that download: one after the other, so that none grows, and one that does not answer is no end.
import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { withBrowser } from '../../scripts/browsers/index.mjs';
import { serveFaulty } from './faulty-server.mjs';
import { smollm2 } from './models.mjs';
import { answerAndKeep } from './store-page.mjs';

const DEADLINE_MS = 90_000;
/** After 64 MiB; what four connections have begun by then comes too, at most 8 MiB each. */
const MOST_BYTES = (64 + 4 * 8) << 20;
const job = {
  open: { context: 256, memory: '60MB' },
  generate: { prompt: 'The capital of France is', options: { maxTokens: 4, temperature: 0, ignoreEog: true } },
};

for (const name of ['chromium', 'firefox']) {
  describe(`download workers in ${name}`, { timeout: 3 * DEADLINE_MS }, () => {
    /** A first visit; `nMute` workers hear nothing. Resolves to the workers that there were: how many bytes had come when each was started. */
    const visit = async (fault, values, nMute) => {
      const server = await serveFaulty();
      try {
        return await withBrowser(name, {}, async (browser) => {
          const page = await browser.newPage();
          await page.goto(`${server.origin}/`);
          await page.waitFor(() => window.sluice !== undefined, [], DEADLINE_MS);
          const url = server.faulty(fault, smollm2, values);
          await page.evaluate(watchDownloads, [nMute]);
          const started = Date.now();
          const { error, plan } = await page.evaluate(answerAndKeep, [url, job], DEADLINE_MS);
          const tookMs = Date.now() - started;
          assert.equal(error, undefined, error?.message);
          const bytes = server.requests.reduce((sum, { bytes }) => sum + bytes, 0);
          assert.equal(bytes, (await stat(smollm2)).size);
          return { downloads: await page.evaluate(() => window.downloads), plan, tookMs, bytes };
        });
      } finally {
        await server.close();
      }
    };

    it('a worker ends after some tens of megabytes, in the middle of a first visit, and what they hold is planned', async () => {
      const { downloads, plan, bytes } = await visit('throttled', { bytesPerSecond: 50e6 }, 0);
      assert.ok(downloads.length > 1, `${downloads.length} workers`);
      assert.ok(downloads.every(({ ended }) => ended));
      assert.ok(
        downloads.every(({ others }) => others <= 1),
        'one works, and one loads',
      );
      const ends = [...downloads.slice(1).map(({ stored }) => stored), bytes];
      downloads.forEach(({ stored }, i) => assert.ok(ends[i] - stored <= MOST_BYTES, `from ${stored} to ${ends[i]}`));
      assert.ok(plan.ledger.jsBuffers >= 1.25 * (1 << 20), `${plan.ledger.jsBuffers} bytes of buffers`);
    });

    it('a worker that hears nothing is replaced within seconds', async () => {
      const { downloads, tookMs } = await visit('sound', {}, 1);
      assert.ok(downloads.length > 2 && downloads.every(({ ended }) => ended), JSON.stringify(downloads));
      assert.ok(tookMs >= 5000, `${tookMs} ms`);
    });
  });
}

// Runs in the page: keeps a list of the workers that download. The first `nMute` of them get no message.
function watchDownloads(nMute) {
  const downloads = (window.downloads = []);
  const { open } = window.sluice;
  let stored = 0;
  window.sluice = {
    ...window.sluice,
    open: (url, options) =>
      open(url, {
        ...options,
        onProgress: ({ stage, loadedBytes }) => {
          if (stage === 'download') stored = loadedBytes;
        },
      }),
  };
  const { Worker } = window;
  window.Worker = class extends Worker {
    #entry;
    constructor(url, options) {
      super(url, options);
      if (options.name !== 'sluice download') return;
      this.#entry = { stored, others: downloads.filter(({ ended }) => !ended).length, ended: false };
      if (downloads.push(this.#entry) <= nMute) this.postMessage = () => undefined;
    }
    terminate() {
      if (this.#entry !== undefined) this.#entry.ended = true;
      super.terminate();
    }
  };
}
