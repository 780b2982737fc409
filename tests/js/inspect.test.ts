/** `inspect` on the page against a worker that is made up: what is sent, what comes out, what is remembered, how it ends. */

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { SluiceError } from '../../js/errors.js';
import { Verdict } from '../../js/inspect.js';
import { attach } from '../../js/launch.js';
import type { EnginePort } from '../../js/workers.js';
import type { EngineOptions, Fit, InspectOptions, ModelCard, ModelSource } from '../../js/options.js';
import type { Calls, DeviceRates, News } from '../../js/protocol.js';
import { type Handlers, Server } from '../../js/rpc-server.js';

interface Made {
  inspect: (source?: ModelSource, options?: InspectOptions) => Promise<Verdict>;
  requests: unknown[];
  terminated: () => number;
}

const card = { architecture: 'llama', name: 'M', layers: 3 } as ModelCard;
const fitOf = ({ memory }: EngineOptions): Fit => ({ floorBytes: memory }) as Fit;

function made(t: TestContext, change: Partial<Handlers<Calls>> = {}, learnt: Partial<DeviceRates> = {}): Made {
  const { port1, port2 } = new MessageChannel();
  t.after(() => {
    port1.close();
  });
  const requests: unknown[] = [];
  const rates: DeviceRates = { kernels: {}, storage: {}, ...learnt };
  const unused = (): never => assert.fail('not called');
  const handlers: Handlers<Calls> = {
    open: unused,
    generate: unused,
    chat: unused,
    renderChat: unused,
    watch: unused,
    embed: unused,
    tokenize: unused,
    detokenize: unused,
    logits: unused,
    inspect(request) {
      requests.push(request);
      return Promise.resolve({ card, fit: fitOf(request.options), rates });
    },
    refit(request) {
      requests.push(request);
      return Promise.resolve({ fit: fitOf(request.options), rates });
    },
    ...change,
  };
  new Server<Calls, News>(port2, handlers);
  port1.start();
  port2.start();
  let terminated = 0;
  const port: EnginePort = Object.assign(port1, { terminate: () => (terminated += 1) });
  const inspect = (source: ModelSource = 'http://host/m.gguf', options: InspectOptions = {}): Promise<Verdict> =>
    Verdict.connect(attach(port, 'simd'), source, options);
  return { inspect, requests, terminated: () => terminated };
}

test('inspect sends what open would, and gives the verdict', async (t) => {
  const { inspect, requests, terminated } = made(t);
  const verdict = await inspect('http://host/m.gguf', { memory: 5, headers: { Authorization: 'x' }, build: 'auto' });
  assert.deepEqual(requests, [
    {
      source: { kind: 'range', urls: ['http://host/m.gguf'], headers: { Authorization: 'x' }, credentials: null, cache: 'opfs' },
      options: { memory: 5 },
      build: 'simd',
      usefulThreads: null,
      wasm: null,
      rates: { kernels: {}, storage: {} },
    },
  ]);
  assert.deepEqual([verdict.model, verdict.fit], [card, { floorBytes: 5 }]);
  assert.equal(terminated(), 0);
});

test('plans again with another budget, or with other options over the first ones', async (t) => {
  const { inspect, requests } = made(t);
  const verdict = await inspect('http://host/m.gguf', { memory: '48MB', context: 512 });
  assert.equal((await verdict.plan('200MB')).floorBytes, '200MB');
  await verdict.plan({ context: 64, kvType: 'q8_0' });
  assert.deepEqual(requests.slice(1), [
    { options: { memory: '200MB', context: 512 } },
    { options: { memory: '48MB', context: 64, kvType: 'q8_0' } },
  ]);
  assert.equal(verdict.fit.floorBytes, '48MB');
  await assert.rejects(verdict.plan({ contexts: () => 1 } as EngineOptions), {
    code: 'invalid_option',
    details: { key: 'contexts' },
  });
});

test('what was measured goes with the next inspection', async (t) => {
  const kernels = { 'simd Q4_1 576 fast': { decodeWeightsPerSecond: 1, prefillWeightsPerSecond: 2 } };
  await made(t, {}, { kernels }).inspect();
  await (await made(t, {}, { storage: { blob: 3 } }).inspect()).plan(1);
  const last = made(t);
  await last.inspect();
  assert.deepEqual((last.requests[0] as Calls['inspect']['request']).rates, { kernels, storage: { blob: 3 } });
});

test('an inspection that fails or is aborted ends the worker', async (t) => {
  const failing = made(t, { inspect: () => Promise.reject(new SluiceError('source_failed', '404')) });
  await assert.rejects(failing.inspect(), { name: 'SluiceError', code: 'source_failed' });
  assert.equal(failing.terminated(), 1);
  const hanging = made(t, { inspect: () => new Promise(() => undefined) });
  const controller = new AbortController();
  const inspecting = hanging.inspect('http://host/m', { signal: controller.signal });
  controller.abort('enough');
  await assert.rejects(inspecting, (reason) => reason === 'enough');
  assert.equal(hanging.terminated(), 1);
  const wrong = made(t);
  await assert.rejects(wrong.inspect([]), { code: 'invalid_option', details: { key: 'source' } });
  assert.equal(wrong.terminated(), 1);
});

test('closing ends the worker; what was said stays', async (t) => {
  const { inspect, terminated } = made(t, { refit: () => new Promise(() => undefined) });
  const verdict = await inspect();
  const refused = assert.rejects(verdict.plan(1), { code: 'misuse', message: /closed/ });
  await verdict.close();
  await verdict.close();
  assert.ok(terminated() >= 1);
  await refused;
  await assert.rejects(verdict.plan(1), { code: 'misuse' });
  assert.deepEqual(verdict.model, card);
});
