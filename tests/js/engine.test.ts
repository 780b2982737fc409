/** The engine on the page against a worker that is made up: what is sent, what comes out, how it ends. */

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Engine, open as openModel } from '../../js/engine.js';
import { inspect } from '../../js/inspect.js';
import type { Snapshot } from '../../js/layout.js';
import { SluiceError } from '../../js/errors.js';
import { attach } from '../../js/launch.js';
import { models } from '../../js/models.js';
import type { EnginePort } from '../../js/workers.js';
import type { ModelSource, OpenOptions, PlanReport, Progress, Stats } from '../../js/options.js';
import type { Calls, News } from '../../js/protocol.js';
import { type Handlers, Server } from '../../js/rpc-server.js';

const stats = (generatedTokens: number): Stats => ({ generatedTokens }) as Stats;
const piece = { text: '', id: null, logprob: null, finishReason: null, usage: null } as const;

interface Made {
  port: EnginePort;
  open: (source?: ModelSource, options?: OpenOptions) => Promise<Engine>;
  server: Server<Calls, News>;
  requests: unknown[];
  terminated: () => number;
}

function made(t: TestContext, change: Partial<Handlers<Calls>> = {}): Made {
  const { port1, port2 } = new MessageChannel();
  t.after(() => {
    port1.close();
  });
  const requests: unknown[] = [];
  const handlers: Handlers<Calls> = {
    open(request) {
      requests.push(request);
      const config = { memory: 1, context: 2, batch: 3, kvType: 'f16', precision: 'fast', threads: 1 } as const;
      const model = {
        architecture: 'llama',
        kind: 'decoder' as const,
        name: null,
        layers: 1,
        vocabulary: 2,
        width: 4,
        trainedContext: 3,
        chatTemplate: null,
      };
      const layout = { tensors: [], slots: 0, slotBytes: 0 };
      return Promise.resolve({ facts: { config, model, plan: {} as PlanReport, layout }, stats: stats(0), usefulThreads: null });
    },
    inspect: () => assert.fail('nobody inspects'),
    refit: () => assert.fail('nobody inspects'),
    generate(request, { item }) {
      requests.push(request);
      void item({ ...piece, text: 'Par', id: 5 });
      void item({ ...piece, text: 'is', id: 6 });
      server.tell({ kind: 'stats', stats: stats(2) });
      void item({ ...piece, finishReason: 'length', usage: { promptTokens: 2, generatedTokens: 2, reusedTokens: 0 } });
      return Promise.resolve(null);
    },
    chat({ messages, chat, options }, { item }) {
      const text = JSON.stringify({ messages, chat, options });
      void item({ ...piece, text, finishReason: 'stop' });
      return Promise.resolve(null);
    },
    renderChat: ({ messages }) => Promise.resolve({ text: JSON.stringify(messages), ids: Uint32Array.of(1, 2) }),
    watch(request) {
      requests.push(request);
      return Promise.resolve(null);
    },
    embed: ({ texts, options }) =>
      Promise.resolve({
        vectors: Float32Array.from(texts, (t) => t.length),
        width: 1,
        tokens: options.normalize === true ? 1 : 2,
      }),
    tokenize: ({ text }) => Promise.resolve({ ids: Uint32Array.from(text, (c) => c.charCodeAt(0)) }),
    detokenize: ({ ids }) => Promise.resolve({ text: String.fromCharCode(...ids) }),
    logits({ ids }, { item }) {
      for (const id of ids) void item(Float32Array.of(id, -id));
      server.tell({ kind: 'stats', stats: stats(7) });
      return Promise.resolve(null);
    },
    ...change,
  };
  const server = new Server<Calls, News>(port2, handlers);
  port1.start();
  port2.start();
  let terminated = 0;
  const port: EnginePort = Object.assign(port1, { terminate: () => (terminated += 1) });
  const open = (source: ModelSource = 'http://host/m.gguf', options: OpenOptions = {}): Promise<Engine> =>
    Engine.connect(attach(port, 'simd'), source, options);
  return { port, open, server, requests, terminated: () => terminated };
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}

test('open sends the engine its own options only, and keeps what it answers', async (t) => {
  const { open, requests } = made(t);
  const engine = await open('http://host/m.gguf?key=1', {
    memory: '300MB',
    kvType: 'f16',
    headers: { Authorization: 'x' },
    credentials: 'include',
    cache: 'opfs',
    assets: { wasm: 'http://cdn/wasm' },
    onProgress: () => undefined,
  });
  assert.deepEqual(requests, [
    {
      source: {
        kind: 'range',
        urls: ['http://host/m.gguf?key=1'],
        headers: { Authorization: 'x' },
        credentials: 'include',
        cache: 'opfs',
      },
      options: { memory: '300MB', kvType: 'f16' },
      build: 'simd',
      usefulThreads: null,
      wasm: 'http://cdn/wasm',
    },
  ]);
  assert.equal(engine.config.context, 2);
  assert.equal(engine.model.architecture, 'llama');
});

test('picked files arrive as blobs', async (t) => {
  const { open, requests } = made(t);
  await open([new File(['GGUF'], 'm.gguf'), new Blob(['12'])]);
  const { source } = requests[0] as Calls['open']['request'];
  assert.equal(source.kind, 'blob');
  assert.deepEqual(source.kind === 'blob' && source.blobs.map((blob) => blob.size), [4, 2]);
});

test('sources that are none are refused, and the worker is ended', async (t) => {
  const { open, terminated } = made(t);
  const wrong = [[], 'http://', 5, ['http://host/m', new Blob()]] as ModelSource[];
  for (const source of wrong) await assert.rejects(open(source), { code: 'invalid_option', details: { key: 'source' } });
  assert.equal(terminated(), wrong.length);
});

test('options that no message can carry are refused by name', async (t) => {
  const { open } = made(t);
  await assert.rejects(open('http://host/m', { whenLoaded: () => undefined } as OpenOptions), {
    code: 'invalid_option',
    message: /'whenLoaded'/,
    details: { key: 'whenLoaded' },
  });
});

test('an answer streams chunk by chunk and brings figures', async (t) => {
  const { open, requests } = made(t);
  const engine = await open();
  const chunks = await all(engine.generate([1, 2], { maxTokens: 2, stop: ['x'] }));
  assert.equal(chunks.map(({ text }) => text).join(''), 'Paris');
  assert.deepEqual(
    chunks.map(({ finishReason }) => finishReason),
    [null, null, 'length'],
  );
  assert.equal(engine.stats.generatedTokens, 2);
  assert.deepEqual(requests[1], { prompt: Uint32Array.of(1, 2), options: { maxTokens: 2, stop: ['x'] } });
});

test('what is no token id never becomes one', async (t) => {
  const engine = await made(t).open();
  for (const id of [-1, 1.5, Number.NaN, 2 ** 32]) {
    await assert.rejects(all(engine.generate([1, id])), { code: 'invalid_option', message: new RegExp(`'prompt' holds ${id}`) });
  }
});

test('a chat goes over as plain data, the options of its template apart', async (t) => {
  const engine = await made(t).open();
  const messages = [{ role: 'user', content: 'x', more: undefined }];
  const chunks = await all(engine.chat(messages, { tools: [{ a: 1 }], contextShift: true, maxTokens: 3 }));
  const sent = {
    messages: [{ role: 'user', content: 'x' }],
    chat: { contextShift: true, tools: [{ a: 1 }] },
    options: { maxTokens: 3 },
  };
  assert.deepEqual(JSON.parse(chunks[0]?.text ?? ''), sent);
  assert.deepEqual(await engine.renderChat(messages), { text: '[{"role":"user","content":"x"}]', ids: [1, 2] });
  const circle: Record<string, unknown> = { role: 'user' };
  circle['content'] = circle;
  await assert.rejects(all(engine.chat([circle as { role: string }])), { code: 'invalid_option', details: { key: 'messages' } });
});

test('arguments of another type are refused by name, and the engine lives on', async (t) => {
  const { open, terminated } = made(t);
  const engine = await open();
  const refused = (key: string): object => ({ name: 'SluiceError', code: 'invalid_option', details: { key } });
  for (const wrong of [null, undefined, 5, {}, true] as never[]) {
    await assert.rejects(all(engine.generate(wrong)), refused('prompt'));
    await assert.rejects(engine.tokenize(wrong), refused('text'));
    await assert.rejects(engine.detokenize(wrong), refused('ids'));
    await assert.rejects(engine.embed(wrong), refused('texts'));
    await assert.rejects(all(engine.logits(wrong)), refused('ids'));
  }
  for (const wrong of [null, 'x', 5] as never[]) {
    await assert.rejects(all(engine.generate('x', wrong)), refused('options'));
    await assert.rejects(all(engine.chat([], wrong)), refused('options'));
    await assert.rejects(engine.tokenize('x', wrong), refused('options'));
    await assert.rejects(engine.embed('x', wrong), refused('options'));
    await assert.rejects(engine.renderChat([], wrong), refused('options'));
    await assert.rejects(openModel('http://host/m', wrong), refused('options'));
    await assert.rejects(inspect('http://host/m', wrong), refused('options'));
    await assert.rejects(engine.detokenize([1], wrong), refused('options'));
    await assert.rejects(all(engine.logits([1], wrong)), refused('options'));
  }
  assert.equal(terminated(), 0);
  assert.equal(await engine.detokenize([65, 66]), 'AB');
});

test('wrong kinds of values are refused by the name of their option', async (t) => {
  const { open, terminated } = made(t);
  const refused = (key: string): object => ({ name: 'SluiceError', code: 'invalid_option', details: { key } });
  const engine = await open();
  for (const signal of [5, {}, 'stop', new AbortController()] as never[]) {
    await assert.rejects(openModel('http://host/m', { signal }), refused('signal'));
    await assert.rejects(inspect('http://host/m', { signal }), refused('signal'));
    await assert.rejects(all(engine.generate('x', { signal })), refused('signal'));
    await assert.rejects(all(engine.chat([], { signal })), refused('signal'));
    await assert.rejects(engine.embed('x', { signal }), refused('signal'));
    await assert.rejects(all(engine.logits([1], { signal })), refused('signal'));
  }
  for (const logitBias of [new Map([[1, 2]]), [1], 5] as never[]) {
    await assert.rejects(all(engine.generate('x', { logitBias })), refused('logitBias'));
    await assert.rejects(all(engine.chat([], { logitBias })), refused('logitBias'));
  }
  await assert.rejects(openModel('http://host/m', { onProgress: 5 as never }), refused('onProgress'));
  await assert.rejects(engine.tokenize('x', { addSpecail: true } as never), refused('addSpecail'));
  await assert.rejects(engine.tokenize('x', { addSpecial: 'yes' as never }), refused('addSpecial'));
  await assert.rejects(engine.detokenize([1], { special: 1 as never }), refused('special'));
  await assert.rejects(models.import(...([] as never[] as [never, never])), refused('files'));
  await assert.rejects(models.import(new Blob(), 'http://'), refused('urls'));
  assert.throws(() => engine.watch(null as never), refused('onSnapshot'));
  assert.throws(() => engine.watch(() => undefined, null as never), refused('options'));
  assert.equal(terminated(), 0);
});

test('wrong values for requests and files of the package are refused by name', async (t) => {
  const { open } = made(t);
  const refused = (key: string): object => ({ name: 'SluiceError', code: 'invalid_option', details: { key } });
  const at = (options: object): Promise<Engine> => open('http://host/m', options);
  const wrongHeaders = [5, new Map([['a', 'b']]), [['a', 'b']], { a: 5 }, { 'a b': 'c' }, { a: 'secret\n' + 'x' }];
  for (const headers of wrongHeaders) await assert.rejects(at({ headers }), refused('headers'));
  await assert.rejects(at({ headers: { a: 'secret\nx' } }), ({ message }: Error) => !message.includes('secret'));
  for (const credentials of ['foo', 5, null]) await assert.rejects(at({ credentials }), refused('credentials'));
  for (const assets of [5, 'here', null]) await assert.rejects(at({ assets }), refused('assets'));
  await assert.rejects(at({ assets: { wasm: 5 } }), refused('assets.wasm'));
  await assert.rejects(at({ assets: { wsam: '/x' } }), refused('assets.wsam'));
});

test('a worker that is another script is given up, and one that lives may take its time', async (t) => {
  const silent = made(t, { open: () => new Promise(() => undefined) });
  const connect = (port: EnginePort): Promise<Engine> => Engine.connect(attach(port, 'simd', 40), 'http://host/m', {});
  await assert.rejects(connect(silent.port), { code: 'source_failed', message: /assets\.worker/, details: { reason: 'worker' } });
  assert.ok(silent.terminated() > 0);
  const slow = made(t, {
    open: () => new Promise((_, reject) => setTimeout(() => reject(new SluiceError('invalid_model', 'late')), 200)),
  });
  const opening = connect(slow.port);
  slow.server.tell({ kind: 'alive', lock: null });
  await assert.rejects(opening, { code: 'invalid_model', message: 'late' });
});

test('texts become vectors, one each', async (t) => {
  const engine = await made(t).open();
  const found = await engine.embed(['a', 'bcd'], { normalize: true });
  assert.deepEqual(found, { vectors: [Float32Array.of(1), Float32Array.of(3)], tokens: 1 });
  assert.equal((await engine.embed('xy')).vectors.length, 1);
  await assert.rejects(engine.embed([1 as never]), { code: 'invalid_option', details: { key: 'texts' } });
});

test('text and ids, both ways, and logits by position', async (t) => {
  const engine = await made(t).open();
  assert.deepEqual(await engine.tokenize('AB'), [65, 66]);
  assert.equal(await engine.detokenize([65, 66]), 'AB');
  assert.deepEqual(await all(engine.logits([3, 4])), [Float32Array.of(3, -3), Float32Array.of(4, -4)]);
  assert.equal(engine.stats.generatedTokens, 7);
});

test('logits that are left early are aborted', async (t) => {
  let aborted = false;
  const engine = await made(t, {
    async logits({ ids }, { item, signal }) {
      for (const id of ids) await item(Float32Array.of(id));
      aborted = signal.aborted;
      return null;
    },
  }).open();
  for await (const _ of engine.logits(Array.from({ length: 100 }, (_, i) => i))) break;
  await engine.tokenize('A');
  assert.equal(aborted, true);
});

test('an open that fails or is aborted ends the worker', async (t) => {
  const failing = made(t, { open: () => Promise.reject(new SluiceError('invalid_model', 'no GGUF')) });
  await assert.rejects(failing.open(), { name: 'SluiceError', code: 'invalid_model', message: 'no GGUF' });
  assert.equal(failing.terminated(), 1);
  const hanging = made(t, { open: () => new Promise(() => undefined) });
  const controller = new AbortController();
  const opening = hanging.open('http://host/m', { signal: controller.signal });
  controller.abort('enough');
  await assert.rejects(opening, (reason) => reason === 'enough');
  assert.equal(hanging.terminated(), 1);
});

test('progress is heard while opening and after', async (t) => {
  const heard: unknown[] = [];
  const { open, server } = made(t);
  const engine = await open('http://host/m', { onProgress: ({ loadedBytes }) => heard.push(loadedBytes) });
  const progress = {
    stage: 'load',
    loadedBytes: 9,
    totalBytes: 10,
    bytesPerSecond: 1,
    secondsLeft: 1,
    layer: 0,
    layers: 2,
  } as const;
  server.tell({ kind: 'progress', progress });
  await engine.tokenize('');
  assert.deepEqual(heard, [9]);
});

test('closing ends the worker and rejects what is pending and what comes later', async (t) => {
  const { open, terminated } = made(t, { tokenize: () => new Promise(() => undefined) });
  const engine = await open();
  const pending = engine.tokenize('x');
  await engine.close();
  await engine.close();
  assert.ok(terminated() >= 1);
  await assert.rejects(pending, { code: 'misuse', message: /closed/ });
  await assert.rejects(all(engine.generate('x')), { code: 'misuse' });
});

test('a worker whose message cannot be read is ended, and says so', async (t) => {
  const { port, open, terminated } = made(t, { tokenize: () => new Promise(() => undefined) });
  const engine = await open();
  const pending = engine.tokenize('x');
  (port as unknown as MessagePort).dispatchEvent(new Event('messageerror'));
  await assert.rejects(pending, { code: 'internal', message: /fault of its own/ });
  assert.equal(terminated(), 1);
  await engine.close();
});

test('a reader that is behind brings no older figures back', async (t) => {
  const { open, server } = made(t);
  const engine = await open();
  const pieces = engine.generate('x');
  await pieces.next();
  server.tell({ kind: 'stats', stats: stats(9) });
  await engine.tokenize('');
  assert.equal(engine.stats.generatedTokens, 9);
  const rest = await all(pieces);
  assert.deepEqual(rest.at(-1)?.usage, { promptTokens: 2, generatedTokens: 2, reusedTokens: 0 });
  assert.equal(engine.stats.generatedTokens, 9);
});

test('callbacks that throw are errors of the page: others are called, and the engine works on', async (t) => {
  const thrown: string[] = [];
  const globals = globalThis as { reportError?: (error: unknown) => void };
  globals.reportError = (error) => thrown.push(String(error));
  t.after(() => delete globals.reportError);
  const fail = (what: string) => (): never => {
    throw new Error(what);
  };
  const { open, server } = made(t);
  const engine = await open('http://host/m', { onProgress: fail('onProgress') });
  const seen: Snapshot[] = [];
  engine.watch(fail('watch'));
  engine.watch((snapshot) => seen.push(snapshot));
  server.tell({ kind: 'progress', progress: {} as Progress });
  server.tell({ kind: 'snapshot', snapshot: {} as Snapshot });
  assert.deepEqual(await engine.tokenize('A'), [65]);
  assert.deepEqual([thrown, seen.length], [['Error: onProgress', 'Error: watch'], 1]);
});

test('figures move unasked', async (t) => {
  const { open, server } = made(t);
  const engine = await open();
  server.tell({ kind: 'stats', stats: stats(3) });
  await engine.tokenize('');
  assert.equal(engine.stats.generatedTokens, 3);
});

test('pictures are sampled while somebody watches, as often as the most eager one wants', async (t) => {
  const { open, server, requests } = made(t);
  const engine = await open();
  const [first, second]: [Snapshot[], Snapshot[]] = [[], []];
  const stopFirst = engine.watch((snapshot) => first.push(snapshot));
  const stopSecond = engine.watch((snapshot) => second.push(snapshot), { framesPerSecond: 5 });
  const snapshot = { prefill: true } as Snapshot;
  server.tell({ kind: 'snapshot', snapshot });
  await engine.tokenize('');
  stopFirst();
  stopFirst();
  server.tell({ kind: 'snapshot', snapshot });
  await engine.tokenize('');
  stopSecond();
  await engine.tokenize('');
  assert.deepEqual([first, second], [[snapshot], [snapshot, snapshot]]);
  assert.deepEqual(
    requests.slice(1),
    [15, 15, 5, 0].map((framesPerSecond) => ({ framesPerSecond })),
  );
  for (const framesPerSecond of [0, -1, 61, Number.NaN]) {
    assert.throws(() => engine.watch(() => undefined, { framesPerSecond }), {
      code: 'invalid_option',
      message: /framesPerSecond/,
    });
  }
});
