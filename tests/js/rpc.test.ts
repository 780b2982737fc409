/** The RPC between two ends of a message channel: replies, streams with credit, aborts, failures, death. */

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { SluiceError } from '../../js/errors.js';
import { Client } from '../../js/rpc.js';
import { type Handlers, Server } from '../../js/rpc-server.js';

interface Calls {
  add: { request: { a: number; b: number }; reply: number; item: never };
  count: { request: { to: number }; reply: string; item: number };
  fail: { request: { how: 'ours' | 'bug' }; reply: never; item: never };
  hang: { request: object; reply: string; item: never };
}

interface Pair {
  client: Client<Calls, string>;
  server: Server<Calls, string>;
  news: string[];
  faults: unknown[];
  /** Items that the server has sent. */
  sent: () => number;
  aborted: string[];
}

function pair(t: TestContext): Pair {
  const { port1, port2 } = new MessageChannel();
  t.after(() => {
    port1.close();
  });
  let sent = 0;
  const [news, faults, aborted]: [string[], unknown[], string[]] = [[], [], []];
  const handlers: Handlers<Calls> = {
    add: ({ a, b }) => Promise.resolve(a + b),
    async count({ to }, { item, signal }) {
      for (let i = 0; i < to && !signal.aborted; i++) {
        const credit = item(i);
        sent += 1;
        if (credit) await credit;
      }
      if (signal.aborted) aborted.push('count');
      return 'counted';
    },
    fail({ how }) {
      if (how === 'ours') throw new SluiceError('context_full', 'too long', { needed: 9 });
      throw new RangeError('secret text of a bug');
    },
    hang: (_, { signal }) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          aborted.push('hang');
          resolve('late');
        });
      }),
  };
  const server = new Server<Calls, string>(port2, handlers, (thrown) => faults.push(thrown));
  const client = new Client<Calls, string>(port1, (text) => news.push(text));
  port1.start();
  port2.start();
  return { client, server, news, faults, sent: () => sent, aborted };
}

async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await turn();
}

test('replies find their requests, whatever order they come in', async (t) => {
  const { client } = pair(t);
  const sums = await Promise.all([1, 2, 3].map((n) => client.call('add', { a: n, b: n })));
  assert.deepEqual(sums, [2, 4, 6]);
});

test('a stream gives all items in order and its reply at the end', async (t) => {
  const { client } = pair(t);
  const stream = client.stream('count', { to: 200 });
  const seen: number[] = [];
  let next = await stream.next();
  for (; next.done !== true; next = await stream.next()) seen.push(next.value);
  assert.deepEqual(seen, [...Array(200).keys()]);
  assert.equal(next.value, 'counted');
});

test('a reader that stops reading stops the writer', async (t) => {
  const { client, sent } = pair(t);
  const stream = client.stream('count', { to: 1000 });
  await stream.next();
  await settle();
  const ahead = sent();
  assert.ok(ahead >= 8 && ahead <= 64, `the writer is ${ahead} items ahead`);
  await settle();
  assert.equal(sent(), ahead);
  for (let i = 0; i < 100; i++) await stream.next();
  await settle();
  assert.ok(sent() > ahead && sent() < 200, `${sent()} items after 101 were read`);
  await stream.return('enough');
});

test('leaving the loop early stops the writer', async (t) => {
  const { client, aborted } = pair(t);
  for await (const item of client.stream('count', { to: 1000 })) if (item === 3) break;
  await settle();
  assert.deepEqual(aborted, ['count']);
  assert.equal(await client.call('add', { a: 1, b: 1 }), 2);
});

test('an abort rejects at once with the reason of the signal, and reaches the handler', async (t) => {
  const { client, aborted } = pair(t);
  const controller = new AbortController();
  const hanging = client.call('hang', {}, controller.signal);
  await settle();
  const reason = new Error('changed my mind');
  controller.abort(reason);
  await assert.rejects(hanging, (error) => error === reason);
  await settle();
  assert.deepEqual(aborted, ['hang']);
  assert.equal(await client.call('add', { a: 2, b: 2 }), 4);
});

test('a signal that has aborted before keeps the request at home', async (t) => {
  const { client, aborted } = pair(t);
  await assert.rejects(client.call('hang', {}, AbortSignal.abort('early')), (reason) => reason === 'early');
  await settle();
  assert.deepEqual(aborted, []);
});

test('an abort in the middle of a stream drops what was not read yet', async (t) => {
  const { client } = pair(t);
  const controller = new AbortController();
  const stream = client.stream('count', { to: 1000 }, controller.signal);
  await stream.next();
  await settle();
  controller.abort('stop');
  await assert.rejects(stream.next(), (reason) => reason === 'stop');
});

test('an error of ours keeps code, message and details', async (t) => {
  const { client, faults } = pair(t);
  await assert.rejects(client.call('fail', { how: 'ours' }), (error) => {
    assert.ok(error instanceof SluiceError);
    assert.equal(error.code, 'context_full');
    assert.equal(error.message, 'too long');
    assert.deepEqual(error.details, { needed: 9 });
    return true;
  });
  assert.deepEqual(faults, []);
});

test('a bug becomes internal without its own text, and the server hears of it', async (t) => {
  const { client, faults } = pair(t);
  await assert.rejects(client.call('fail', { how: 'bug' }), (error) => {
    assert.ok(error instanceof SluiceError);
    assert.equal(error.code, 'internal');
    assert.doesNotMatch(error.message, /secret/);
    assert.deepEqual(error.details, { thrown: 'RangeError' });
    return true;
  });
  assert.equal(faults.length, 1);
});

test('the death of the other side rejects everything pending and everything later', async (t) => {
  const { client, server } = pair(t);
  const pending = [client.call('hang', {}), client.call('hang', {})];
  await settle();
  server.die(new SluiceError('internal', 'gone'));
  for (const call of pending) await assert.rejects(call, { code: 'internal', message: 'gone' });
  await assert.rejects(client.call('add', { a: 1, b: 1 }), { code: 'internal' });
});

test('news comes without a request', async (t) => {
  const { client, server, news } = pair(t);
  server.tell('half way');
  await client.call('add', { a: 1, b: 1 });
  assert.deepEqual(news, ['half way']);
});

test('what cannot be sent rejects the call and leaves the client usable', async (t) => {
  const { client } = pair(t);
  await assert.rejects(client.call('hang', { callback: () => 1 }), { name: 'DataCloneError' });
  assert.equal(await client.call('add', { a: 1, b: 2 }), 3);
});
