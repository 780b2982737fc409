// The misbehaving server misbehaves as it says: the other specs lean on it. Plain fetch, no browser.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { serveFaulty } from './faulty-server.mjs';

const SIZE = 1_000_000;
const range = (first, last) => ({ headers: { range: `bytes=${first}-${last}` } });

describe('the faulty server', { timeout: 30_000 }, () => {
  let server, folder, file;
  before(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), 'faulty-'));
    file = path.join(folder, 'model.gguf');
    await writeFile(file, Buffer.alloc(SIZE, 7));
    server = await serveFaulty();
  });
  after(async () => {
    await server.close();
    await rm(folder, { recursive: true });
  });
  const ask = (fault, values, options) => fetch(server.faulty(fault, file, values), options);

  it('serves sound files by ranges', async () => {
    const response = await fetch(server.addFile(file), range(10, 19));
    assert.equal(response.status, 206);
    assert.equal(response.headers.get('content-range'), `bytes 10-19/${SIZE}`);
    assert.equal((await response.arrayBuffer()).byteLength, 10);
  });
  it('answers 404 and 403', async () => {
    assert.equal((await ask('not-found')).status, 404);
    assert.equal((await ask('forbidden')).status, 403);
  });
  it('gives a page instead of the file', async () => {
    const response = await ask('html-page', {}, range(0, 99));
    assert.equal(response.status, 200);
    assert.match(await response.text(), /^<!doctype html>/);
  });
  it('cuts the file off', async () => {
    const whole = await ask('cut-off', { bytes: 600_000 }, range(0, 9));
    assert.equal(whole.headers.get('content-range'), 'bytes 0-9/600000');
    assert.equal((await ask('cut-off', { bytes: 600_000 }, range(700_000, 700_009))).status, 416);
  });
  it('ignores ranges', async () => {
    const response = await ask('no-ranges', {}, range(10, 19));
    assert.equal(response.status, 200);
    assert.equal((await response.arrayBuffer()).byteLength, SIZE);
  });
  it('is slow', async () => {
    const started = performance.now();
    await (await ask('slow', { bytesPerSecond: 2_000_000 })).arrayBuffer();
    assert.ok(performance.now() - started > 400, 'a megabyte at 2 MB/s takes half a second');
  });
  it('tears connections, as often as asked', async () => {
    const url = server.faulty('torn', file, { bytes: 300_000, times: 1 });
    await assert.rejects(fetch(url).then((response) => response.arrayBuffer()));
    assert.equal((await (await fetch(url)).arrayBuffer()).byteLength, SIZE);
    const { startedAt, endedAt, ...last } = server.requests.at(-1);
    assert.ok(startedAt <= endedAt && endedAt <= Date.now());
    assert.deepEqual(last, { fault: 'torn', method: 'GET', range: null, status: 200, bytes: SIZE });
  });
  it('closes connections in good order behind a part of a body; one that was given whole serves the next', async () => {
    const url = server.faulty('ended', file, { bytes: 300_000 });
    await assert.rejects(fetch(url).then((response) => response.arrayBuffer()));
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    for (const first of [0, 300_000]) {
      const [response] = await once(http.get(url, { agent, ...range(first, first + 299_999) }), 'response');
      assert.equal((await buffer(response)).byteLength, 300_000);
    }
    agent.destroy();
  });
  it('stalls', async () => {
    const response = await ask('stalled', { bytes: 200_000 }, { signal: AbortSignal.timeout(500) });
    assert.equal(response.status, 200);
    await assert.rejects(response.arrayBuffer());
  });
});
