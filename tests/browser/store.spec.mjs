// The store: a model is downloaded once, whatever happens to the page, the browser or the connection; a later visit asks no server; a
// damaged block is found and fetched again. The server counts what it gives.
import assert from 'node:assert/strict';
import { mkdtemp, open as openFile, readdir, rm, stat } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { sleep, withDeadline } from '../../scripts/browsers/deadline.mjs';
import { launch } from '../../scripts/browsers/index.mjs';
import { serveFaulty } from './faulty-server.mjs';
import { smollm2 } from './models.mjs';
import { assertResident } from './resident.mjs';
import { answerAndKeep, begin, importPicked, removeAll } from './store-page.mjs';

const DEADLINE_MS = 90_000;
const MIB = 1 << 20;
const CONNECTIONS = 4;
/** What Chromium holds of a body between network and page: it goes with the connection. */
const PIPE_BYTES = 512 * 1024;
const SEGMENT_BYTES = 64 * MIB;
const job = {
  open: { context: 256, memory: '60MB' },
  generate: { prompt: 'The capital of France is', options: { maxTokens: 4, temperature: 0, ignoreEog: true } },
};

for (const name of ['chromium', 'firefox']) {
  describe(`the store in ${name}`, { timeout: 12 * DEADLINE_MS }, () => {
    let folder, size, server, browser, page, expected, firstUrl;
    const profile = () => ({ profile: path.join(folder, 'profile') });
    const start = async () => {
      browser = await launch(name, profile());
      page = await browser.newPage();
      await page.goto(`${server.origin}/`);
    };
    const answer = (url, on = page) => on.evaluate(answerAndKeep, [url, job], DEADLINE_MS);
    const given = (from = 0) => server.requests.slice(from).reduce((sum, { bytes }) => sum + bytes, 0);
    const restart = () => server.requests.splice(0);

    before(async () => {
      folder = await mkdtemp(path.join(os.tmpdir(), 'store-'));
      size = (await stat(smollm2)).size;
      server = await serveFaulty();
      await start();
    });
    after(async () => {
      await browser?.close();
      await server?.close();
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    });

    it('a first visit answers in a small budget and fetches every byte once; a second one asks for nothing', async () => {
      const url = (firstUrl = server.faulty('sound', smollm2));
      const first = await answer(url);
      assert.equal(first.error, undefined);
      expected = first.ids;
      assert.ok(first.plan.streamedBytesPerToken > 0, 'it streams');
      assert.equal(given(), size);
      restart();
      const second = await answer(`${url}?signature=123#fragment`);
      assert.deepEqual([second.error, second.ids, server.requests.length], [undefined, expected, 0]);
    });

    it('a model that is open is not removed, a closed one is', async () => {
      const { refused, ids } = await page.evaluate(removeWhileOpen, [firstUrl, job], DEADLINE_MS);
      assert.deepEqual([refused, ids], ['misuse', expected]);
      const listed = await page.evaluate(removeAll, [], DEADLINE_MS);
      assert.equal(listed.length, 1);
      assert.deepEqual([listed[0].complete, listed[0].totalBytes], [true, size]);
      assert.ok(!JSON.stringify(listed).includes('signature'));
      assert.deepEqual(await page.evaluate(() => window.sluice.models.list(), [], DEADLINE_MS), []);
    });

    it('a connection that is lost costs what the browser had not handed over, and nothing of what it had', async () => {
      restart();
      const found = await answer(server.faulty('ended', smollm2, { bytes: 3 * MIB }));
      assert.deepEqual([found.error, found.ids], [undefined, expected]);
      const asked = ({ range }) => 1 + Number(range.split('-')[1]) - Number(range.split(/[=-]/)[1]);
      const lost = server.requests.filter((request) => request.bytes < asked(request)).length;
      assert.ok(lost >= 3, `${lost} connections were lost`);
      const again = given() - size;
      assert.ok(again <= lost * PIPE_BYTES, `${again} bytes were given twice over ${lost} lost connections`);
    });

    it('two tabs download once, and both answer', async () => {
      await page.evaluate(removeAll, [], DEADLINE_MS);
      restart();
      const url = server.faulty('throttled', smollm2, { bytesPerSecond: 60e6 });
      const other = await browser.newPage();
      await other.goto(`${server.origin}/`);
      const both = await Promise.all([answer(url), answer(url, other)]);
      await other.close();
      assert.deepEqual(
        both.map(({ error, ids }) => [error, ids]),
        both.map(() => [undefined, expected]),
      );
      assert.equal(given(), size);
    });

    it('a server that says no length: the model itself does', async () => {
      await page.evaluate(removeAll, [], DEADLINE_MS);
      const found = await answer(server.faulty('terse', smollm2, { chunked: true }));
      assert.deepEqual([found.error, found.ids], [undefined, expected]);
      const [{ complete, totalBytes }] = await page.evaluate(removeAll, [], DEADLINE_MS);
      assert.deepEqual([complete, totalBytes], [true, size]);
    });

    /** Opens the model, and waits until the server has given a share of it. */
    const openUntil = async (share, url) => {
      await page.evaluate(begin, [url, job.open], DEADLINE_MS);
      const until = Date.now() + DEADLINE_MS;
      while (given() < share * size) {
        assert.ok(Date.now() < until, 'it downloads');
        await sleep(5);
      }
    };
    /** The same for one that is not stored, and leaves it then: resolves to what the server had given. */
    const leaveAt = async (share, url, leave) => {
      await page.evaluate(removeAll, [], DEADLINE_MS);
      restart();
      await openUntil(share, url);
      const before = given();
      await leave();
      restart();
      return before;
    };
    const assertResumed = async (url, before) => {
      const found = await answer(url);
      assert.deepEqual([found.error, found.ids], [undefined, expected]);
      const again = before + given() - size;
      assert.ok(again <= CONNECTIONS * MIB, `${again} bytes were fetched twice`);
    };

    it('a tab that waits goes on when the one that downloads is closed', async () => {
      const url = server.faulty('throttled', smollm2, { bytesPerSecond: 20e6 });
      const next = await browser.newPage();
      await next.goto(`${server.origin}/`);
      await leaveAt(0.3, url, async () => {
        const waiting = answer(url, next);
        await next.waitFor(waitsForWriter);
        const [before, begun] = [given(), server.requests.length];
        await page.close();
        page = next;
        const found = await waiting;
        assert.deepEqual([found.error, found.ids], [undefined, expected]);
        const again = before + given(begun) - size;
        assert.ok(again <= CONNECTIONS * MIB, `${again} bytes were fetched twice`);
      });
    });

    it('a tab that is closed at 60 % costs at most 1 MiB a connection', async () => {
      const url = server.faulty('throttled', smollm2, { bytesPerSecond: 20e6 });
      const next = await browser.newPage();
      await next.goto(`${server.origin}/`);
      const before = await leaveAt(0.6, url, () => page.close());
      page = next;
      await assertResumed(url, before);
    });

    const kill = async () => {
      process.kill(browser.pid, 'SIGKILL');
      await withDeadline(
        browser.close().catch(() => {}),
        20_000,
        'the killed browser',
      );
      await start();
    };
    it('a browser that is killed at 60 % costs at most 1 MiB a connection', async () => {
      const url = server.faulty('throttled', smollm2, { bytesPerSecond: 20e6 });
      await assertResumed(url, await leaveAt(0.6, url, kill));
    });

    it('a browser that is killed whenever it has come a little further leaves a store that goes on each time', async () => {
      const url = server.faulty('throttled', smollm2, { bytesPerSecond: 20e6 });
      await page.evaluate(removeAll, [], DEADLINE_MS);
      restart();
      const shares = [0.02, 0.4, 0.95];
      for (const share of shares) {
        await openUntil(share, url);
        await kill();
      }
      const found = await answer(url);
      assert.deepEqual([found.error, found.ids], [undefined, expected]);
      const again = given() - size;
      assert.ok(again <= shares.length * CONNECTIONS * MIB, `${again} bytes were fetched twice`);
    });

    it('a log-in page in the place of the rest costs nothing of what is stored', async () => {
      const throttled = ['throttled', { bytesPerSecond: 20e6 }];
      const url = server.faulty('throttled', smollm2, throttled[1]);
      const next = await browser.newPage();
      await next.goto(`${server.origin}/`);
      const before = await leaveAt(0.6, url, () => page.close());
      page = next;
      server.change(url, 'html-page');
      const { error } = await answer(url);
      assert.match(error?.message, /is a web page, not a model file/);
      server.change(url, ...throttled);
      restart();
      await assertResumed(url, before);
    });

    it('a flipped bit is found and its block fetched again, it alone', async () => {
      const url = server.faulty('sound', smollm2);
      await page.evaluate(removeAll, [], DEADLINE_MS);
      await answer(url);
      await browser.close();
      const [segment] = await filesOfSize(folder, SEGMENT_BYTES);
      await flipBit(segment, 40 * MIB + 12_345);
      await start();
      restart();
      const found = await answer(url);
      assert.deepEqual([found.error, found.ids], [undefined, expected]);
      assert.deepEqual(
        server.requests.map(({ range }) => range),
        [`bytes=${40 * MIB}-${41 * MIB - 1}`],
      );
    });

    it('a file that changes on the server is begun anew, and never mixed', async () => {
      await page.evaluate(removeAll, [], DEADLINE_MS);
      const url = server.faulty('headers', smollm2, {
        list: [{ etag: '"a"' }, { etag: '"a"' }, { etag: '"a"' }, { etag: '"b"' }],
      });
      const { error } = await answer(url);
      assert.equal(error?.code, 'source_failed');
      assert.match(error.message, /has changed on the server/);
      const found = await answer(url);
      assert.deepEqual([found.error, found.ids], [undefined, expected]);
    });

    it('a picked file is stored when it is asked for, and opens by its address without a request', async () => {
      const url = server.faulty('sound', smollm2);
      await page.evaluate(removeAll, [], DEADLINE_MS);
      await page.setFiles('input[type=file]', [smollm2]);
      assert.deepEqual(await page.evaluate(openPicked, [job.open], DEADLINE_MS), [], 'to open it stores nothing');
      const stored = await page.evaluate(importPicked, [url], DEADLINE_MS);
      assert.deepEqual([stored.complete, stored.storedBytes], [true, size]);
      restart();
      const found = await answer(url);
      assert.deepEqual([found.error, found.ids, server.requests.length], [undefined, expected, 0]);
    });
  });
}

for (const [where, name, options] of [
  ['in webkit', 'webkit', {}],
  ['in a private window of firefox', 'firefox', { preferences: { 'browser.privatebrowsing.autostart': true } }],
]) {
  describe(`without a store, ${where}`, { timeout: 4 * DEADLINE_MS }, () => {
    it('a model runs resident, and is refused in a sentence that says what to do', async () => {
      const server = await serveFaulty();
      const browser = await launch(name, options);
      try {
        const page = await browser.newPage();
        await page.goto(`${server.origin}/`);
        await assertResident(page, server, job, /no storage for files/, DEADLINE_MS);
      } finally {
        await browser.close();
        await server.close();
      }
    });
  });
}

async function filesOfSize(folder, size) {
  const found = [];
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const file = path.join(entry.parentPath, entry.name);
    if (entry.isFile() && (await stat(file)).size === size) found.push(file);
  }
  assert.ok(found.length > 0, 'the browser keeps a segment as a file of its size');
  return found;
}

async function flipBit(file, offset) {
  const handle = await openFile(file, 'r+');
  const byte = Buffer.alloc(1);
  await handle.read(byte, 0, 1, offset);
  byte[0] ^= 4;
  await handle.write(byte, 0, 1, offset);
  await handle.close();
}

// Runs in the page: asks for the removal of the one model while it is open, answers then, and closes it.
async function removeWhileOpen(url, { open, generate }) {
  const engine = await window.sluice.open(url, open);
  const [{ id }] = await window.sluice.models.list();
  const refused = await window.sluice.models.remove(id).then(
    () => 'removed',
    ({ code }) => code,
  );
  const ids = [];
  for await (const { id } of engine.generate(generate.prompt, generate.options)) if (id !== null) ids.push(id);
  await engine.close();
  return { refused, ids };
}

// Runs in the page: does a tab wait for the right to download?
async function waitsForWriter() {
  const { pending } = await navigator.locks.query();
  return pending.some(({ name }) => /^sluice:[0-9a-f]{32}$/.test(name));
}

// Runs in the page: opens a picked file; resolves to what is stored then.
async function openPicked(options) {
  const engine = await window.sluice.open(document.querySelector('input[type=file]').files[0], options);
  await engine.close();
  return window.sluice.models.list();
}
