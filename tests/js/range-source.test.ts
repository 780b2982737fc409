/** HTTP ranges against a real server that behaves, and against one that does not. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, after, test } from 'node:test';
import { RangeSource } from '../../js/worker/range-source.js';
import { fileBytes, readAll, sourceSuite } from './source-suite.js';

const SECRET = '?token=secret';
const model = fileBytes(400_000);

interface Asked {
  first: number;
  last: number;
  /** How many requests came before this one. */
  index: number;
}
type Answer = (asked: Asked, response: ServerResponse, request: IncomingMessage) => void;

/** A server that answers as it is told; gives the address and the requests that came. */
async function serve(t: Pick<TestContext, 'after'>, answer: Answer): Promise<{ url: string; asked: Asked[] }> {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? 'bytes=0-999999999');
    assert.ok(range, `a closed range, not ${String(request.headers.range)}`);
    assert.equal(request.method, 'GET');
    const ask = { first: Number(range[1]), last: Number(range[2]), index: asked.length };
    asked.push(ask);
    answer(ask, response, request);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/m/model.gguf`,
    asked,
  };
}

/** The right answer. */
function good(bytes: Uint8Array, headers: Record<string, string> = {}): Answer {
  return ({ first, last }, response) => {
    if (first >= bytes.length) {
      response.writeHead(416, { 'content-range': `bytes */${bytes.length}` }).end();
      return;
    }
    const body = bytes.subarray(first, Math.min(last + 1, bytes.length));
    const range = `bytes ${first}-${first + body.length - 1}/${bytes.length}`;
    response.writeHead(206, { 'content-range': range, 'content-length': body.length, ...headers }).end(body);
  };
}

const quick = { backoffMs: 1, stallMs: 300 };
const open = (url: string): Promise<RangeSource> => RangeSource.open([url + SECRET], quick);

/** Runs `answer` for the requests after the first one, which gets the right answer. */
const later =
  (answer: Answer): Answer =>
  (asked, response, request) => {
    (asked.index === 0 ? good(model) : answer)(asked, response, request);
  };

const cleanups: (() => void)[] = [];
after(() => {
  for (const cleanup of cleanups) cleanup();
});
sourceSuite('range', async (files) => {
  const t = { after: (cleanup: () => void) => cleanups.push(cleanup) } as unknown as TestContext;
  const servers = await Promise.all(files.map((bytes) => serve(t, good(bytes))));
  return RangeSource.open(servers.map(({ url }) => url));
});

test('the first bytes are not fetched twice', async (t) => {
  const { url, asked } = await serve(t, good(model));
  const source = await open(url);
  await readAll(source, 0, 0, 100_000);
  assert.equal(source.rereads, false, 'nothing is read over the network in every pass');
  assert.deepEqual(
    asked.map(({ first }) => first),
    [0, 65_536],
  );
});

test('headers are sent as given, and only they', async (t) => {
  const seen: unknown[] = [];
  const { url } = await serve(t, (asked, response, request) => {
    seen.push(request.headers.authorization, request.headers['if-range']);
    good(model)(asked, response, request);
  });
  await RangeSource.open([url], { headers: { Authorization: 'Bearer x' } });
  assert.deepEqual(seen, ['Bearer x', undefined]);
});

test('a file smaller than the first request is known whole', async (t) => {
  const { url, asked } = await serve(t, good(model.subarray(0, 1000)));
  const source = await open(url);
  assert.equal(source.size(0), 1000);
  assert.deepEqual(await readAll(source, 0, 10, 990), model.subarray(10, 1000));
  assert.equal(asked.length, 1);
});

test('without a readable Content-Range the bytes are the same and the size unknown', async (t) => {
  const { url } = await serve(t, ({ first, last }, response) => response.writeHead(206).end(model.subarray(first, last + 1)));
  const source = await open(url);
  assert.equal(source.size(0), undefined);
  assert.deepEqual(await readAll(source, 0, 100, 300_000), model.subarray(100, 300_100));
  await assert.rejects(readAll(source, 0, 399_999, 5), { code: 'source_failed', message: /ends at byte 400000.*cut off/ });
});

test('a connection that breaks goes on where it stopped', async (t) => {
  const { url, asked } = await serve(
    t,
    later(({ first, last, index }, response) => {
      const body = model.subarray(first, last + 1);
      response.writeHead(206, { 'content-range': `bytes ${first}-${last}/${model.length}`, 'content-length': body.length });
      if (index >= 4) response.end(body);
      else response.write(body.subarray(0, 50_000), () => setTimeout(() => response.destroy(), 5));
    }),
  );
  const source = await open(url);
  assert.deepEqual(await readAll(source, 0, 100_000, 250_000), model.subarray(100_000, 350_000));
  assert.equal(asked.length, 5);
  assert.equal(asked[4]?.last, 349_999);
  assert.ok((asked[4]?.first ?? 0) >= 100_000 + 3 * 40_000, 'what had arrived is not fetched again');
});

test('a server that goes silent is asked again', async (t) => {
  const { url, asked } = await serve(
    t,
    later((ask, response, request) => {
      if (ask.index > 1) good(model)(ask, response, request);
    }),
  );
  const source = await open(url);
  assert.deepEqual(await readAll(source, 0, 100_000, 10), model.subarray(100_000, 100_010));
  assert.equal(asked.length, 3);
});

test('a busy server is asked again, and given up in the end', async (t) => {
  const { url, asked } = await serve(
    t,
    later(({ index }, response) => {
      response.writeHead([429, 500, 502, 503][index % 4] ?? 503).end('busy');
    }),
  );
  const source = await open(url);
  await assert.rejects(readAll(source, 0, 100_000, 10), {
    code: 'source_failed',
    message: new RegExp(`bytes 100000-100009 of ${url} \\(status \\d+\\)`),
  });
  assert.equal(asked.length, 7);
});

test('a busy server that recovers costs nothing but time', async (t) => {
  const { url } = await serve(
    t,
    later((ask, response, request) => {
      if (ask.index < 3) response.writeHead(503, { 'retry-after': '0' }).end();
      else good(model)(ask, response, request);
    }),
  );
  assert.deepEqual(await readAll(await open(url), 0, 70_000, 10), model.subarray(70_000, 70_010));
});

test('each pause before another try is twice as long as the last, and no shorter than the server asks for', async (t) => {
  const at: number[] = [];
  const { url } = await serve(
    t,
    later((ask, response, request) => {
      at.push(performance.now());
      if (at.length < 4) response.writeHead(503).end();
      else if (at.length === 4) response.writeHead(429, { 'retry-after': '1' }).end();
      else good(model)(ask, response, request);
    }),
  );
  const source = await RangeSource.open([url], { backoffMs: 40, stallMs: 10_000 });
  assert.deepEqual(await readAll(source, 0, 100_000, 10), model.subarray(100_000, 100_010));
  const pauses = at.slice(1).map((time, i) => time - (at[i] ?? 0));
  [40, 80, 160, 1000].forEach((least, i) => {
    // A timer may be a millisecond early by this clock.
    assert.ok((pauses[i] ?? 0) >= least - 2, `pauses of ${pauses.join(', ')} ms`);
  });
});

/** Answers that are wrong for good: one request, one error, the address without its query. */
const wrong: [string, Answer, string, RegExp][] = [
  ['404', (_, response) => response.writeHead(404).end('<html>'), 'source_failed', /no file at .*\(status 404\)/],
  ['403', (_, response) => response.writeHead(403).end(), 'source_failed', /refuses .*status 403.*headers/],
  ['416', (_, response) => response.writeHead(416).end(), 'source_failed', /ends before byte.*cut off/],
  [
    'an HTML page',
    (_, response) => response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end('<!doctype html>'),
    'invalid_model',
    /is a web page/,
  ],
  [
    'other bytes',
    ({ first, last }, response) => response.writeHead(206, { 'content-range': `bytes ${first + 1}-${last + 1}/400000` }).end('x'),
    'source_failed',
    /sent other bytes/,
  ],
  [
    'too many bytes',
    ({ first, last }, response) => response.writeHead(206).end(model.subarray(first, last + 3)),
    'source_failed',
    /more than the \d+ bytes/,
  ],
  [
    'compressed bytes',
    (_, response) => response.writeHead(206, { 'content-encoding': 'br' }).end(Uint8Array.of(0x3b)),
    'source_failed',
    /compressed bytes \(br\)|could not be read/,
  ],
];
for (const [name, answer, code, message] of wrong) {
  test(`${name}: at the first request`, async (t) => {
    const { url, asked } = await serve(t, answer);
    await assert.rejects(open(url), (error) => {
      assert.ok(error instanceof Error && 'code' in error);
      assert.equal(error.code, code);
      assert.match(error.message, message);
      assert.ok(error.message.includes(url) && !error.message.includes('secret'), error.message);
      return true;
    });
    // A server that refuses the first range is asked once without one.
    if (name !== 'compressed bytes') assert.equal(asked.length, name === '416' ? 2 : 1);
  });
}

test('from a server that ignores ranges the file is taken once, whole, with news of how far it is', async (t) => {
  const { url, asked } = await serve(t, ({ index }, response) => {
    response.writeHead(200, { 'content-length': model.length });
    if (index > 0) response.end(model);
    else response.write(model.subarray(0, 100_000), () => setTimeout(() => response.destroy(), 5));
  });
  const heard: number[] = [];
  const source = await RangeSource.open([url], { ...quick, onDownload: (loaded, total) => heard.push(loaded / total) });
  assert.equal(asked.length, 2, 'one that broke and one that did not');
  assert.equal(heard.at(-1), 1);
  assert.equal(source.size(0), model.length);
  assert.equal(source.rereads, true);
  assert.deepEqual(await readAll(source, 0, 100_000, 200_000), model.subarray(100_000, 300_000));
  assert.deepEqual(await readAll(source, 0, 0, 1000), model.subarray(0, 1000));
  assert.equal(asked.length, 2);
});

test('a server that forgets its ranges in between is a failure', async (t) => {
  const { url } = await serve(
    t,
    later((_, response) => response.writeHead(200, { 'content-length': model.length }).end(model)),
  );
  const source = await open(url);
  await assert.rejects(readAll(source, 0, 100_000, 10), { code: 'source_failed', message: /whole file.*must support Range/ });
});

test('a file that changes on the server is noticed', async (t) => {
  for (const after of [good(model, { etag: '"b"' }), good(model.subarray(0, 300_000), { etag: '"a"' })]) {
    const { url } = await serve(t, (ask, response, request) => {
      (ask.index === 0 ? good(model, { etag: '"a"' }) : after)(ask, response, request);
    });
    await assert.rejects(readAll(await open(url), 0, 100_000, 10), {
      code: 'source_failed',
      message: /has changed on the server/,
    });
  }
});

test('nobody there: tried again, then a failure that names address and remedy', async (t) => {
  const { url } = await serve(t, good(model));
  const gone = url.replace(/:\d+/, ':1');
  await assert.rejects(open(gone), { code: 'source_failed', message: new RegExp(`${gone}.*check the connection.*CORS`) });
});

test('at most four requests are under way', async (t) => {
  let [now, most] = [0, 0];
  const { url } = await serve(
    t,
    later((ask, response, request) => {
      now += 1;
      most = Math.max(most, now);
      setTimeout(() => {
        now -= 1;
        good(model)(ask, response, request);
      }, 10);
    }),
  );
  const source = await open(url);
  await Promise.all(Array.from({ length: 12 }, (_, i) => readAll(source, 0, 100_000 + i * 10, 10)));
  assert.equal(most, 4);
});

test('what the browser says of an address keeps its secrets', async () => {
  const url = 'http://user:password@127.0.0.1:9/m.gguf?token=secret';
  const refuse = (): never => {
    throw new TypeError(`cannot be constructed from a URL that includes credentials: ${url}, nor http://host/x?key=secret`);
  };
  const thrown: unknown = await RangeSource.open([url], { ...quick, fetch: refuse }).catch((error: unknown) => error);
  assert.ok(thrown instanceof Error);
  assert.match(thrown.message, /credentials: http:\/\/127.0.0.1:9\/m.gguf, nor http:\/\/host\/x/);
  assert.doesNotMatch(JSON.stringify([thrown.message, thrown]), /secret|password/);
});
