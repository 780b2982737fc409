// Whatever a server does, a model's bytes come right or not at all: every fault ends in the bytes of the file or in a named error, before
// its deadline, with the store and without one; and nothing secret is kept or shown. Sources in a worker of a real browser, on a file of
// known bytes.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { launch } from '../../scripts/browsers/index.mjs';
import { serveFaulty } from './faulty-server.mjs';

const DEADLINE_MS = 15_000;
const MIB = 1 << 20;
/** A segment would take 64 MiB; blocks are what faults meet. */
const SIZE = 3 * MIB + 12_345;
/** What addresses and headers carry in every case. */
const SECRETS = { query: 'tell-nobody', header: 'k-123' };
const RIGHT = 'right';
const FAILED = (message) => ({ code: 'source_failed', message });

/** Name, fault, its values, and what comes of it: with the store, and without one where that is different. */
const CASES = [
  ['a sound server', 'sound', {}, RIGHT],
  ['404', 'not-found', {}, FAILED(/no file at .*404/)],
  ['403 at once', 'forbidden', {}, FAILED(/refuses .*403.*headers/)],
  ['410', 'status', { status: 410, after: 0 }, FAILED(/no file at .*410/)],
  ['401 without the key', 'needs-key', { key: 'secret' }, FAILED(/401.*headers/)],
  ['401 with the key', 'needs-key', { key: SECRETS.header }, RIGHT],
  ['an unknown status', 'status', { status: 418, after: 0 }, FAILED(/418/)],
  ['204: nothing at all', 'status', { status: 204, after: 0 }, FAILED(/204/)],
  ['500 always', 'status', { status: 500, after: 0 }, FAILED(/500/)],
  ['503 once, with Retry-After', 'status', { status: 503, times: 1, headers: { 'retry-after': '0' } }, RIGHT],
  ['429 twice', 'status', { status: 429, times: 2 }, RIGHT],
  ['502 for good in the middle', 'status', { status: 502, after: 1 }, FAILED(/502/)],
  ['403 once in the middle', 'status', { status: 403, times: 1 }, RIGHT],
  ['403 for good in the middle', 'status', { status: 403, after: 1 }, FAILED(/403.*fresh link/)],
  ['404 in the middle', 'status', { status: 404, after: 1 }, FAILED(/404/)],
  ['416 once in the middle', 'status', { status: 416, times: 1 }, RIGHT],
  ['416 to every range', 'no-such-range', {}, RIGHT],
  ['one redirect', 'redirect', { hops: 1 }, RIGHT],
  ['five redirects', 'redirect', { hops: 5 }, RIGHT],
  ['redirects without end', 'redirect', { loop: true }, FAILED(/could not be read/)],
  ['a signed link that expires', 'expiring', { times: 2 }, RIGHT],
  ['a web page with status 200', 'html-page', {}, { code: 'invalid_model', message: /web page/ }],
  ['a web page with status 206', 'html-part', {}, { code: 'invalid_model', message: /web page/ }],
  ['no ranges', 'no-ranges', {}, RIGHT],
  ['no ranges, no length, and more than the model', 'longer', { more: 3 * MIB }, RIGHT],
  // Chromium refuses it as an answer to a range.
  ['the whole file, compressed', 'gzip-whole', {}, { orRight: true, ...FAILED(/could not be read/) }],
  ['a part, compressed', 'gzip-part', {}, FAILED(/compressed|could not be read/)],
  ['ranges are forgotten in the middle', 'forgetful', { after: 1 }, RIGHT, FAILED(/whole file/)],
  ['100 kB at a time', 'stingy', { most: 100_000 }, RIGHT],
  ['100 kB at a time, unsaid', 'stingy', { most: 100_000, silent: true }, RIGHT],
  ['more than was asked', 'generous', {}, FAILED(/more than|could not be read/)],
  ['other bytes than were asked', 'shifted', {}, FAILED(/other bytes/)],
  ['no Content-Range', 'terse', {}, RIGHT],
  ['no Content-Range and no length', 'terse', { chunked: true }, RIGHT],
  ['an empty part once', 'hollow', { times: 1 }, RIGHT],
  ['empty parts for good', 'hollow', { after: 1 }, FAILED(/could not be read|ended after|only 0/)],
  ['an empty file', 'sound', { file: 'empty' }, FAILED(/ends at byte 0|cut off/)],
  ['a file that is cut off', 'cut-off', { bytes: 2 * MIB }, FAILED(/ends at byte 2097152/)],
  ['torn once', 'torn', { bytes: 300_000, times: 1 }, RIGHT],
  ['torn every 400 kB', 'torn', { bytes: 400_000, lingerMs: 20 }, RIGHT],
  ['closed every 400 kB', 'ended', { bytes: 400_000 }, RIGHT],
  ['torn before the first byte, always', 'torn', { bytes: 1 }, FAILED(/could not be read/)],
  ['silent once', 'stalled', { bytes: 200_000, times: 1 }, RIGHT],
  ['silent always', 'mute', {}, FAILED(/went silent/)],
  ['3 MB/s', 'throttled', { bytesPerSecond: 3e6 }, RIGHT],
  ['another file in the middle, by its size', 'replaced', { after: 1 }, FAILED(/has changed/)],
  ['another ETag in the middle', 'headers', { list: [{ etag: '"a"' }, { etag: '"b"' }] }, FAILED(/has changed/)],
  ['another weak ETag in the middle', 'headers', { list: [{ etag: 'W/"a"' }, { etag: 'W/"b"' }] }, RIGHT],
  [
    'another date in the middle, and no ETag',
    'headers',
    { list: [{ 'last-modified': 'Mon, 01 Jan 2024 00:00:00 GMT' }, { 'last-modified': 'Tue, 02 Jan 2024 00:00:00 GMT' }] },
    FAILED(/has changed/),
  ],
  [
    'another date in the middle, and the same ETag',
    'headers',
    {
      list: [
        { etag: '"a"', 'last-modified': 'Mon, 01 Jan 2024 00:00:00 GMT' },
        { etag: '"a"', 'last-modified': 'Tue, 02 Jan 2024 00:00:00 GMT' },
      ],
    },
    RIGHT,
  ],
  ['another origin that exposes nothing', 'cors', { otherOrigin: true }, RIGHT],
  ['another origin that forbids reading', 'sound', { otherOrigin: true }, FAILED(/CORS/)],
  ['nobody there', null, {}, FAILED(/could not be read/)],
];

for (const name of ['chromium', 'firefox']) {
  describe(`delivery in ${name}`, { timeout: 2 * CASES.length * DEADLINE_MS }, () => {
    let folder, files, server, other, browser, page, right;
    before(async () => {
      folder = await mkdtemp(path.join(os.tmpdir(), 'delivery-'));
      files = Object.fromEntries(['model', 'other', 'empty'].map((file) => [file, path.join(folder, `${file}.gguf`)]));
      const bytes = randomBytes(SIZE);
      right = createHash('sha256').update(bytes).digest('hex');
      await Promise.all([
        writeFile(files.model, bytes),
        writeFile(files.other, randomBytes(SIZE + 7)),
        writeFile(files.empty, ''),
      ]);
      [server, other] = await Promise.all([serveFaulty(), serveFaulty()]);
      browser = await launch(name);
      page = await browser.newPage();
      await page.goto(`${server.origin}/`);
    });
    after(async () => {
      await browser?.close();
      await Promise.all([server?.close(), other?.close()]);
      await rm(folder, { recursive: true, force: true });
    });

    for (const [title, fault, { file = 'model', otherOrigin = false, ...values }, stored, plain = stored] of CASES) {
      for (const [how, expected] of [
        ['with the store', stored],
        ['without a store', plain],
      ]) {
        it(`${title}, ${how}`, async () => {
          const at = otherOrigin ? other : server;
          const address =
            fault === null ? 'http://127.0.0.1:9/m' : at.faulty(fault, files[file], { ...values, other: files.other });
          const request = { url: `${address}?token=${SECRETS.query}#token=${SECRETS.query}`, key: SECRETS.header };
          const found = await page.evaluate(read, [String(inWorker), request, how === 'with the store', SIZE], DEADLINE_MS);
          if (expected === RIGHT || (expected.orRight && found.digest)) return assert.deepEqual(found, { digest: right });
          assert.equal(found.digest, undefined, 'it must fail');
          assert.equal(found.code, expected.code, found.message);
          assert.match(found.message, expected.message);
          assert.doesNotMatch(found.message, /undefined|\[object/);
          for (const secret of Object.values(SECRETS)) assert.ok(!found.message.includes(secret), found.message);
        });
      }
    }

    it('asked for closed ranges only, and for a whole file where none is served', () => {
      const asked = [...server.requests, ...other.requests];
      assert.ok(asked.length > 2 * CASES.length);
      for (const { method, range, fault } of asked) {
        assert.equal(method, 'GET');
        if (fault !== 'no-such-range' || range !== null) assert.match(range ?? 'none', /^bytes=\d+-\d+$/, fault);
      }
    });

    it('kept nothing of a query or a header', async () => {
      const { facts, leaks } = await page.evaluate(searchStore, [Object.values(SECRETS)], DEADLINE_MS);
      assert.ok(facts > 20, `facts of ${facts} models`);
      assert.deepEqual(leaks, []);
    });
  });
}

// Runs in the page: `work` in a module worker, for which the page starts others.
async function read(work, ...values) {
  const { welcome } = await import('/modules/workers.js');
  const script = `import '${location.origin}/modules/worker/hired.js';
    const work = ${work}; onmessage = async ({ data }) => Array.isArray(data) && postMessage(await work(...data));`;
  const worker = new Worker(URL.createObjectURL(new Blob([script], { type: 'text/javascript' })), { type: 'module' });
  const served = welcome(worker, undefined, null, () => undefined);
  try {
    return await new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = ({ message }) => reject(new Error(`the worker: ${message}`));
      worker.postMessage([location.origin, ...values]);
    });
  } finally {
    served.terminate();
  }
}

// Runs in the worker: reads the whole file in pieces, as an engine does.
async function inWorker(origin, { url, key }, store, size) {
  const { StoredSource } = await import(`${origin}/modules/worker/stored-source.js`);
  const { RangeSource } = await import(`${origin}/modules/worker/range-source.js`);
  const request = { headers: { 'x-key': key }, credentials: null, backoffMs: 5, stallMs: 700, onDownload: () => undefined };
  let source;
  try {
    source = await (store ? StoredSource.open({ urls: [url], ...request }) : RangeSource.open([url], request));
    const bytes = new Uint8Array(size);
    const take = (offset, length) =>
      source.read(0, offset, length, (at, some) => {
        bytes.set(some, offset + at);
        return true;
      });
    await take(0, 1000);
    source.willUse?.(Uint32Array.of(0), Float64Array.of(0), Float64Array.of(size));
    const pieces = [];
    for (let at = 0; at < size; at += 700_000) pieces.push(take(at, Math.min(700_000, size - at)));
    await Promise.all(pieces);
    const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
    return { digest: Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('') };
  } catch ({ code = 'none', message }) {
    return { code, message };
  } finally {
    source?.close?.();
  }
}

// Runs in the page: how many models have facts in the store, and which files there hold a secret, in their names or bytes.
async function searchStore(secrets) {
  const found = { facts: 0, leaks: [] };
  const search = async (folder, path) => {
    for await (const [name, handle] of folder.entries()) {
      const place = `${path}/${name}`;
      if (handle.kind === 'directory') {
        await search(handle, place);
        continue;
      }
      if (name === 'facts.json') found.facts += 1;
      const text = new TextDecoder('latin1').decode(await (await handle.getFile()).arrayBuffer());
      if (secrets.some((secret) => text.includes(secret) || place.includes(secret))) found.leaks.push(place);
    }
  };
  await search(await navigator.storage.getDirectory(), '');
  return found;
}
