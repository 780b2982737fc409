// Room for the store: a disk that is full at once or in the middle, and a browser that estimates it wrongly. What is full is the room that
// the browser gives the page: Chromium gives what it is told to, though it promises more; in Firefox another file takes it.
import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { after, before, beforeEach, describe, it } from 'node:test';
import { sleep } from '../../scripts/browsers/deadline.mjs';
import { launch } from '../../scripts/browsers/index.mjs';
import { serveFaulty } from './faulty-server.mjs';
import { smollm2 } from './models.mjs';
import { assertResident } from './resident.mjs';
import { answerAndKeep, answerOpening, begin, importPicked, removeAll } from './store-page.mjs';

const DEADLINE_MS = 90_000;
/** In KiB; a site gets a fifth of it. */
const firefoxRoom = { 'dom.quotaManager.temporaryStorage.fixedLimit': 5 * 200 * 1024 };
const job = {
  open: { context: 256, memory: '60MB' },
  generate: { prompt: 'The capital of France is', options: { maxTokens: 4, temperature: 0, ignoreEog: true } },
};

for (const name of ['chromium', 'firefox']) {
  describe(`room for the store in ${name}`, { timeout: 10 * DEADLINE_MS }, () => {
    let size, server, browser, page;
    const evaluate = (fn, ...values) => page.evaluate(fn, values, DEADLINE_MS);
    const answer = (url) => evaluate(answerAndKeep, url, job);
    const given = () => server.requests.reduce((sum, { bytes }) => sum + bytes, 0);
    const leaveRoom = async (bytes) => {
      const { quota, usage } = await evaluate(estimate);
      if (name === 'chromium') return page.limitQuota(Math.floor(usage + bytes));
      await evaluate(fill, Math.ceil(quota - usage - bytes));
      const left = await evaluate(estimate);
      // What comes meanwhile takes some of it, and of what was removed before some goes late.
      assert.ok(left.quota - left.usage <= bytes + 100_000, JSON.stringify(left));
    };
    const giveBack = async () => {
      if (name === 'chromium') await page.limitQuota(undefined);
      else await evaluate(empty);
    };
    const throttled = () => server.faulty('throttled', smollm2, { bytesPerSecond: 20e6 });

    before(async () => {
      size = (await stat(smollm2)).size;
      server = await serveFaulty();
      browser = await launch(name, name === 'firefox' ? { preferences: firefoxRoom } : {});
      page = await browser.newPage();
      await page.goto(`${server.origin}/`);
    });
    beforeEach(async () => {
      await page.reload(); // the workers are what they were
      await page.waitFor(() => window.sluice !== undefined, [], DEADLINE_MS);
      await giveBack();
      await evaluate(removeAll);
      server.requests.splice(0);
    });
    after(async () => {
      await browser?.close();
      await server?.close();
    });

    /** It failed for want of room and says how much is missing; what is there stays, and the rest comes when there is room again. */
    const assertFull = async (url, { error, listed }) => {
      assert.deepEqual([error?.code, error?.details.reason], ['source_failed', 'full'], error?.message);
      const [{ storedBytes }] = listed;
      assert.ok(storedBytes > 0.05 * size, `${storedBytes} bytes are kept`);
      assert.match(error.message, new RegExp(`full, and ${size - storedBytes} bytes of the model`));
      await giveBack();
      server.requests.splice(0);
      const found = await answer(url);
      assert.equal(found.error, undefined);
      assert.equal(given(), size - storedBytes);
    };

    it('a disk that becomes full in the middle keeps what is there and says what is missing', async () => {
      const url = throttled();
      await evaluate(begin, url, job.open);
      const until = Date.now() + DEADLINE_MS;
      while (given() < 0.05 * size) {
        assert.ok(Date.now() < until, 'it downloads');
        await sleep(5);
      }
      await leaveRoom(0.2 * size);
      await assertFull(url, await evaluate(answerOpening, job.generate));
    });

    it('a disk that is full at once: the model is kept in memory, or refused, and leaves nothing', async () => {
      await leaveRoom(500_000);
      await assertResident(page, server, job, /storage for this page is full/, DEADLINE_MS);
      assert.deepEqual(await evaluate(removeAll), []);
    });

    it('room for a part only is known before it is taken', async () => {
      if (name === 'firefox') await leaveRoom(0.5 * size);
      else await evaluate(estimateInWorkers, `Promise.resolve({ quota: ${0.5 * size}, usage: 0 })`);
      await assertResident(page, server, job, /room for \d+ bytes more, and storing the model takes \d+/, DEADLINE_MS);
      assert.deepEqual(await evaluate(removeAll), []);
    });

    it('an estimate that promises room which is not there', async () => {
      await leaveRoom(0.8 * size);
      if (name === 'firefox') await evaluate(estimateInWorkers, 'Promise.resolve({ quota: 10 * 2 ** 30, usage: 0 })');
      else assert.ok((await evaluate(estimate)).quota > 2 * size, 'it promises');
      const url = throttled();
      await evaluate(begin, url, job.open);
      await assertFull(url, await evaluate(answerOpening, job.generate));
    });

    it('an estimate of no room, where there is some, is taken at its word', async () => {
      await evaluate(estimateInWorkers, 'Promise.resolve({ quota: 0, usage: 0 })');
      await assertResident(page, server, job, /room for 0 bytes more/, DEADLINE_MS);
      assert.deepEqual(await evaluate(removeAll), []);
    });

    it('a model that is stored whole needs no room, whatever the browser estimates', async () => {
      const url = server.faulty('sound', smollm2);
      assert.equal((await answer(url)).error, undefined);
      server.requests.splice(0);
      await evaluate(estimateInWorkers, 'Promise.resolve({ quota: 0, usage: 1 })');
      const { error } = await answer(url);
      assert.deepEqual([error, given()], [undefined, 0]);
    });

    for (const [what, estimate] of [
      ['says nothing', 'Promise.resolve({})'],
      ['fails', "Promise.reject(new TypeError('no estimate'))"],
    ]) {
      it(`an estimate that ${what} is no reason not to store`, async () => {
        await evaluate(estimateInWorkers, estimate);
        const { error } = await answer(server.faulty('sound', smollm2));
        assert.deepEqual([error, given()], [undefined, size]);
      });
    }

    it('an import that does not fit leaves nothing', async () => {
      await leaveRoom(0.5 * size);
      await page.setFiles('input[type=file]', [smollm2]);
      const { code, message } = await evaluate(importPicked, server.faulty('sound', smollm2));
      assert.equal(code, 'source_failed');
      assert.match(message, new RegExp(`takes ${size} bytes`));
      assert.deepEqual(await evaluate(removeAll), []);
    });
  });
}

// The rest runs in the page.

async function estimate() {
  const { quota, usage } = await navigator.storage.estimate();
  return { quota, usage };
}

/** Takes room from the page. */
async function fill(bytes) {
  const root = await navigator.storage.getDirectory();
  const stream = await (await root.getFileHandle('filler', { create: true })).createWritable();
  await stream.truncate(bytes);
  await stream.close();
}

/** Gives back what `fill` took. */
async function empty() {
  const root = await navigator.storage.getDirectory();
  await root.removeEntry('filler').catch(() => undefined); // where nothing was taken
}

/** From now on this is what workers of the package hear of the page's room: no browser says it on demand. */
function estimateInWorkers(estimate) {
  const blob = (text) => URL.createObjectURL(new Blob([text], { type: 'text/javascript' }));
  const first = blob(`navigator.storage.estimate = () => ${estimate};`);
  const { Worker } = window;
  window.Worker = class extends Worker {
    constructor(url, options) {
      super(blob(`import '${first}'; import '${url}';`), options);
    }
  };
}
