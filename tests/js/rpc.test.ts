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
  ports: [MessagePort, MessagePort];
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
  const letGo = async (): Promise<void> => {
    await turn();
    aborted.push('let go');
  };
  const server = new Server<Calls, string>(port2, handlers, (thrown) => faults.push(thrown), letGo);
  const client = new Client<Calls, string>(port1);
  client.hear((text) => news.push(text));
  port1.start();
  port2.start();
  return { client, server, ports: [port1, port2], news, faults, sent: () => sent, aborted };
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

test('an abort when all has come and not all is read rejects: nothing is missing without a word', async (t) => {
  const { client } = pair(t);
  const controller = new AbortController();
  const stream = client.stream('count', { to: 5 }, controller.signal);
  assert.equal((await stream.next()).done, false);
  await settle();
  controller.abort('enough');
  await assert.rejects(stream.next(), (reason) => reason === 'enough');
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

test('what was on its way when a call was aborted is not read', async (t) => {
  const { client } = pair(t);
  const controller = new AbortController();
  const stream = client.stream('count', { to: 1000 }, controller.signal);
  await stream.next();
  controller.abort('stop');
  await settle();
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
  void server.die(new SluiceError('internal', 'gone'));
  for (const call of pending) await assert.rejects(call, { code: 'internal', message: 'gone' });
  await assert.rejects(client.call('add', { a: 1, b: 1 }), { code: 'internal' });
});

test('news comes without a request', async (t) => {
  const { client, server, news } = pair(t);
  server.tell('half way');
  await client.call('add', { a: 1, b: 1 });
  assert.deepEqual(news, ['half way']);
});

test('what cannot be sent is an option of the caller and leaves the client usable', async (t) => {
  const { client } = pair(t);
  await assert.rejects(client.call('hang', { callback: () => 1 }), (error) => {
    assert.ok(error instanceof SluiceError);
    assert.equal(error.code, 'invalid_option');
    assert.match(error.message, /hang.*plain data.*could not be cloned/);
    return true;
  });
  assert.equal(await client.call('add', { a: 1, b: 2 }), 3);
});

test('an end waits until the other side has stopped and let go of what it holds', async (t) => {
  const { client, aborted } = pair(t);
  const hanging = client.call('hang', {});
  const ended = client.end('enough');
  await assert.rejects(hanging, (reason) => reason === 'enough');
  await ended;
  assert.deepEqual(aborted, ['hang', 'let go']);
  await client.end('again');
  await assert.rejects(client.call('add', { a: 1, b: 1 }), (reason) => reason === 'enough');
});

test('what fails because the other side dies is not told, but what it dies of', async (t) => {
  const { client, server } = pair(t);
  const failing = client.call('hang', {});
  await settle();
  const dying = server.die(new SluiceError('internal', 'gone'));
  const late = client.call('fail', { how: 'ours' });
  await Promise.all([
    assert.rejects(failing, { message: 'gone' }),
    assert.rejects(late, { code: 'internal', message: 'gone' }),
    dying,
  ]);
});

test('the death of the other side is an end too', async (t) => {
  const { client, server } = pair(t);
  const ended = client.end('enough');
  void server.die(new SluiceError('internal', 'gone'));
  await ended;
});

test('a message that cannot be read is a fault of the answering side', async (t) => {
  const { ports, faults } = pair(t);
  ports[1].dispatchEvent(new Event('messageerror'));
  await settle();
  assert.match(String(faults[0]), /could not be read/);
});
