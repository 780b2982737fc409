/** The engine on the page against a worker that is made up: what is sent, what comes out, how it ends. */

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Engine } from '../../js/engine.js';
import { SluiceError } from '../../js/errors.js';
import type { EnginePort } from '../../js/launch.js';
import type { ModelSource, OpenOptions, PlanReport, Stats } from '../../js/options.js';
import type { Calls, News } from '../../js/protocol.js';
import { Client } from '../../js/rpc.js';
import { type Handlers, Server } from '../../js/rpc-server.js';

const stats = (generatedTokens: number): Stats => ({ generatedTokens }) as Stats;

interface Made {
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
      const model = { architecture: 'llama', name: null, layers: 1, vocabulary: 2, trainedContext: 3 };
      return Promise.resolve({ facts: { config, model, plan: {} as PlanReport }, stats: stats(0) });
    },
    inspect: () => assert.fail('nobody inspects'),
    refit: () => assert.fail('nobody inspects'),
    generate(request, { item }) {
      requests.push(request);
      void item({ chunk: { text: 'Par', id: 5, logprob: null, finishReason: null }, stats: stats(1) });
      void item({ chunk: { text: 'is', id: 6, logprob: null, finishReason: null }, stats: null });
      void item({ chunk: { text: '', id: null, logprob: null, finishReason: 'length' }, stats: stats(2) });
      return Promise.resolve(null);
    },
    tokenize: ({ text }) => Promise.resolve({ ids: Uint32Array.from(text, (c) => c.charCodeAt(0)) }),
    detokenize: ({ ids }) => Promise.resolve({ text: String.fromCharCode(...ids) }),
    logits({ ids }, { item }) {
      for (const id of ids) void item(Float32Array.of(id, -id));
      return Promise.resolve({ stats: stats(7) });
    },
    ...change,
  };
  const server = new Server<Calls, News>(port2, handlers);
  port1.start();
  port2.start();
  let terminated = 0;
  const port: EnginePort = Object.assign(port1, { terminate: () => (terminated += 1) });
  const open = (source: ModelSource = 'http://host/m.gguf', options: OpenOptions = {}): Promise<Engine> =>
    Engine.connect(
      port,
      new Client<Calls, News>(port1, ({ progress }) => options.onProgress?.(progress)),
      'simd',
      source,
      options,
    );
  return { open, server, requests, terminated: () => terminated };
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
    assets: { wasm: 'http://cdn/wasm' },
    onProgress: () => undefined,
  });
  assert.deepEqual(requests, [
    {
      source: { kind: 'range', urls: ['http://host/m.gguf?key=1'], headers: { Authorization: 'x' }, credentials: 'include' },
      options: { memory: '300MB', kvType: 'f16' },
      build: 'simd',
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
  await assert.rejects(open('http://host/m', { onProgres: () => undefined } as OpenOptions), {
    code: 'invalid_option',
    message: /'onProgres'/,
    details: { key: 'onProgres' },
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

test('text and ids, both ways, and logits by position', async (t) => {
  const engine = await made(t).open();
  assert.deepEqual(await engine.tokenize('AB'), [65, 66]);
  assert.equal(await engine.detokenize([65, 66]), 'AB');
  assert.deepEqual(await all(engine.logits([3, 4])), [Float32Array.of(3, -3), Float32Array.of(4, -4)]);
  assert.equal(engine.stats.generatedTokens, 7);
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
  server.tell({ kind: 'progress', progress: { loadedBytes: 9, totalBytes: 10, bytesPerSecond: 1 } });
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
