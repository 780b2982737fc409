/** The wasm module itself, in Node: options, queue, aborts and errors at the boundary, and the oracle's numbers behind it. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { Snapshot } from '../../js/layout.js';
import type {
  EngineOptions,
  FinishReason,
  ModelFacts,
  PlanReport,
  PoolingOptions,
  SamplingOptions,
  Stats,
  TemplateOptions,
} from '../../js/options.js';
import type * as Module from '../../target/js/wasm/simd/sluice.js';
import { BlobSource } from '../../js/worker/blob-source.js';

const wasm = (await import(pathToFileURL(path.resolve('target/js/wasm/simd/sluice.js')).href)) as typeof Module;
wasm.initSync({ module: readFileSync('pkg/wasm/simd/sluice_bg.wasm') });

const fixture = (name: string): Buffer<ArrayBuffer> => readFileSync(`tests/fixtures/${name}`);
interface Golden {
  prompt: number[];
  greedy: number[];
}
const golden = JSON.parse(fixture('models/llama-gqa.json').toString()) as Golden;

interface Shown {
  stats: Stats[];
  snapshots: Snapshot[];
}

const host = (turns: { count: number }, shown?: Shown): Parameters<typeof wasm.open>[0] => ({
  deviceBytes: undefined,
  progress: () => undefined,
  wants: () => (shown === undefined ? 0 : 3),
  stats: (stats) => shown?.stats.push(stats),
  snapshot: (snapshot) => shown?.snapshots.push(snapshot),
  watch: () => undefined,
  turn: () => {
    turns.count += 1;
    return new Promise((resolve) => setImmediate(resolve));
  },
});

function open(options: EngineOptions = {}, name = 'models/llama-gqa.gguf', turns = { count: 0 }): Promise<Module.Session> {
  return wasm.open(host(turns), new BlobSource([new Blob([fixture(name)])]), options, new wasm.Call());
}

/** What should have been refused was not. */
function unexpected(): never {
  assert.fail('it was not refused');
}

interface Answer {
  ids: number[];
  text: string;
  reason: FinishReason;
}

async function generate(
  session: Module.Session,
  prompt: string | number[],
  options: SamplingOptions,
  call = new wasm.Call(),
  onToken: (n: number) => void = () => undefined,
): Promise<Answer> {
  const ids: number[] = [];
  let text = '';
  const { finishReason } = await session.generate(
    typeof prompt === 'string' ? prompt : Uint32Array.from(prompt),
    options,
    call,
    (piece, id) => {
      text += piece;
      if (id !== null) ids.push(id);
      onToken(ids.length);
    },
  );
  return { ids, text, reason: finishReason };
}

async function logits(session: Module.Session, ids: number[], chunk: number | null): Promise<Float32Array> {
  const rows: number[] = [];
  await session.logits(ids, chunk, new wasm.Call(), (row) => rows.push(...row));
  return Float32Array.from(rows);
}

test('greedy ids are the oracle’s', async () => {
  const session = await open({ precision: 'exact' });
  const { ids, reason } = await generate(session, golden.prompt, {
    maxTokens: golden.greedy.length,
    temperature: 0,
    ignoreEog: true,
  });
  assert.deepEqual(ids, golden.greedy);
  assert.equal(reason, 'length');
  const stats = session.stats();
  assert.equal(stats.promptTokens, golden.prompt.length);
  assert.equal(stats.generatedTokens, golden.greedy.length);
  assert.equal(stats.build, 'simd');
  assert.ok(stats.memoryBytes > 0 && stats.decodeTokensPerSecond > 0);
});

test('logits are the oracle’s, and the same bits whole or token by token', async () => {
  const session = await open({ precision: 'exact', allLogits: true });
  const whole = await logits(session, golden.prompt, null);
  const bytes = fixture('models/llama-gqa.logits.f32');
  const expected = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
  assert.equal(whole.length, expected.length);
  const worst = expected.reduce((most, value, i) => Math.max(most, Math.abs(value - (whole[i] ?? Infinity))), 0);
  assert.ok(worst < 2e-4, `off by ${worst}`);
  assert.deepEqual(await logits(session, golden.prompt, 1), whole);
});

/** Every key of the TypeScript types; the compiler refuses this table when one is missing or too many. */
const engineKeys: Record<keyof EngineOptions, true> = {
  allLogits: true,
  batch: true,
  context: true,
  embeddings: true,
  force: true,
  kvType: true,
  memory: true,
  precision: true,
  threads: true,
};
const samplingKeys: Record<keyof SamplingOptions, true> = {
  dryAllowedLength: true,
  dryBase: true,
  dryBreakers: true,
  dryLastN: true,
  dryMultiplier: true,
  frequencyPenalty: true,
  ignoreEog: true,
  logitBias: true,
  logprobs: true,
  maxTokens: true,
  minP: true,
  mirostat: true,
  mirostatEta: true,
  mirostatTau: true,
  parseSpecial: true,
  presencePenalty: true,
  repeatLastN: true,
  repeatPenalty: true,
  resume: true,
  seed: true,
  stop: true,
  temperature: true,
  topK: true,
  topP: true,
  typicalP: true,
  xtcProbability: true,
  xtcThreshold: true,
};

const templateKeys: Record<keyof TemplateOptions, true> = {
  contextShift: true,
  template: true,
  templateArguments: true,
  tools: true,
};

const poolingKeys: Record<keyof PoolingOptions, true> = {
  normalize: true,
  pooling: true,
};

test('Rust accepts the keys that the types have, and no others', async () => {
  const session = await open();
  const refusals = [
    [engineKeys, () => open({ what: 1 } as EngineOptions)],
    [samplingKeys, () => generate(session, [1], { what: 1 } as SamplingOptions)],
    [poolingKeys, () => session.embed([], { what: 1 } as PoolingOptions, new wasm.Call())],
    [templateKeys, async () => Promise.resolve(session.renderChat([], { what: 1 } as TemplateOptions))],
  ] as const;
  for (const [keys, refusal] of refusals) {
    const message = `unknown option 'what'; the engine has ${Object.keys(keys).sort().join(', ')}; docs/api.md lists those of the page too`;
    await assert.rejects(refusal, { code: 'invalid_option', message, details: { key: 'what' } });
  }
});

const statsKeys: Record<keyof Stats, true> = {
  budgetBytes: true,
  build: true,
  bytesRead: true,
  contextMax: true,
  contextUsed: true,
  decodeMs: true,
  decodeTokensPerSecond: true,
  generatedTokens: true,
  kvBytes: true,
  loadMs: true,
  memoryBytes: true,
  memoryPeakBytes: true,
  prefetchHits: true,
  prefetchMisses: true,
  prefillMs: true,
  prefillTokensPerSecond: true,
  promptTokens: true,
  residentBytes: true,
  residentShare: true,
  reusedTokens: true,
  seed: true,
  stallMs: true,
  threads: true,
  ttftMs: true,
};
const planKeys: Record<keyof PlanReport, true> = {
  batch: true,
  budgetBytes: true,
  context: true,
  floorBytes: true,
  forced: true,
  ledger: true,
  residentBytes: true,
  slotBytes: true,
  slots: true,
  streamedBytesPerToken: true,
  totalBytes: true,
  weightBytes: true,
};
const modelKeys: Record<keyof ModelFacts, true> = {
  architecture: true,
  kind: true,
  layers: true,
  name: true,
  trainedContext: true,
  chatTemplate: true,
  vocabulary: true,
  width: true,
};

test('figures and facts have the fields that the types have', async () => {
  const session = await open();
  const { plan, model } = session.facts();
  for (const [given, keys] of [
    [session.stats(), statsKeys],
    [plan, planKeys],
    [model, modelKeys],
  ] as const) {
    assert.deepEqual(Object.keys(given).sort(), Object.keys(keys).sort());
  }
  assert.deepEqual(model, {
    architecture: 'llama',
    kind: 'decoder',
    name: 'llama-gqa',
    layers: 3,
    vocabulary: 96,
    width: 64,
    trainedContext: 256,
    chatTemplate: null,
  });
  assert.equal(
    Object.values(plan.ledger).reduce((sum, bytes) => sum + bytes, 0),
    plan.totalBytes,
  );
});

test('the layout has every tensor, and what of it stays in memory', async () => {
  const whole = (await open()).facts().layout;
  assert.equal(whole.slots, 0);
  const embedding = whole.tensors.find(({ name }) => name === 'token_embd.weight');
  assert.deepEqual(
    { ...embedding, bytes: 0, offset: 0 },
    {
      name: 'token_embd.weight',
      type: embedding?.type,
      rows: 96,
      bytes: 0,
      file: 0,
      offset: 0,
      firstResidentRow: 0,
      residentRows: 96,
    },
  );
  assert.ok(whole.tensors.every(({ rows, residentRows }) => residentRows === rows));
});

test('figures move and the ring is seen while the prompt is read', async () => {
  const shown: Shown = { stats: [], snapshots: [] };
  const file = new BlobSource([new Blob([readFileSync('models/smollm2-135m-q4_1.gguf')])]);
  const session = await wasm.open(host({ count: 0 }, shown), file, { memory: '48MB', context: 512 }, new wasm.Call());
  const { layout } = session.facts();
  assert.ok(layout.slots > 0 && layout.tensors.some(({ rows, residentRows }) => residentRows === 0 && rows > 1));
  await generate(session, [...Array(300).keys()], { maxTokens: 2 });
  const prefill = shown.stats.filter(({ generatedTokens }) => generatedTokens === 0);
  const counts = prefill.map(({ promptTokens }) => promptTokens);
  assert.ok(new Set(counts).size > 5, `the count of read tokens has ${new Set(counts).size} values`);
  assert.deepEqual(
    counts,
    [...counts].sort((a, b) => a - b),
  );
  assert.ok(prefill.every(({ promptTokens, prefillMs }) => promptTokens < 300 && prefillMs > 0));
  assert.ok((prefill.at(-1)?.bytesRead ?? 0) > (prefill[0]?.bytesRead ?? 0));
  assert.equal(session.stats().promptTokens, 300);
  const reading = shown.snapshots.filter(({ prefill }) => prefill);
  assert.ok(new Set(reading.map(({ stage }) => stage)).size > 5);
  const seen = reading.flatMap(({ slots }) => slots);
  assert.ok(seen.length === reading.length * layout.slots && seen.some(({ state, bytes }) => state === 'ready' && bytes > 0));
  for (const { tensor, firstRow, nRows } of [...seen, ...reading]) {
    assert.ok(
      tensor === null || firstRow + nRows <= (layout.tensors[tensor]?.rows ?? 0),
      `rows ${firstRow}+${nRows} of ${tensor}`,
    );
  }
});

test('a seed that nobody gave is told, and gives the same answer again', async () => {
  const session = await open();
  const options = { maxTokens: 12, temperature: 2, ignoreEog: true };
  assert.equal(session.stats().seed, null);
  const drawn = await generate(session, golden.prompt, options);
  const { seed } = session.stats();
  assert.ok(seed !== null && Number.isSafeInteger(seed));
  assert.deepEqual(await generate(session, golden.prompt, { ...options, seed }), drawn);
  await generate(session, golden.prompt, options);
  assert.notEqual(session.stats().seed, seed);
});

test('no options are the documented defaults', async () => {
  const { config } = (await open()).facts();
  assert.deepEqual(config, { memory: 2 ** 30, context: 256, batch: config.batch, kvType: 'f16', precision: 'fast', threads: 1 });
  assert.equal((await open({ precision: 'exact' })).facts().config.kvType, 'f32');
  // Undefined is not given.
  const unset = { context: undefined, memory: undefined } as unknown as EngineOptions;
  assert.deepEqual((await open(unset)).facts().config, config);
});

test('values are checked, and the refusal names the key', async () => {
  const session = await open();
  const wrong: [string, unknown[]][] = [
    ['memory', ['300X', -1, 0, 1.5, true, Number.NaN]],
    ['context', [0, -1, 1.5, '4096', 2 ** 32]],
    ['batch', [0, -1, Infinity]],
    ['kvType', ['f64', 16, null]],
    ['precision', ['slow', 1]],
    ['threads', [0, 65, 1.5, 'all']],
    ['force', ['yes', 1]],
    ['embeddings', [0, 'yes']],
    ['allLogits', [0]],
  ];
  for (const [key, values] of wrong) {
    for (const value of values) {
      await assert.rejects(open({ [key]: value }), { code: 'invalid_option', message: new RegExp(key), details: { key } });
    }
  }
  const wrongSampling: [string, unknown[]][] = [
    ['temperature', ['hot', Number.NaN, Infinity]],
    ['topK', [-1, 1.5, '40']],
    ['topP', [-0.1, 1.1]],
    ['minP', [2]],
    ['seed', [-1, 1.5, 2 ** 53]],
    ['stop', [5, [5], ''] as unknown[]],
    ['maxTokens', [-1, '5']],
    ['logitBias', [5, { a: 1 }, { 1: 'x' }, { 1: Infinity }]],
    ['logprobs', [101]],
    ['repeatPenalty', [0]],
    ['typicalP', [-1, 1.5, '1']],
    ['frequencyPenalty', ['1', Number.NaN]],
    ['presencePenalty', [true, -Infinity]],
    ['repeatLastN', [-2, 0.5]],
    ['dryMultiplier', [-1]],
    ['dryBase', [0.5]],
    ['dryAllowedLength', [-1, 1.5]],
    ['dryLastN', [-2, '64']],
    ['dryBreakers', [[''], [5]]],
    ['mirostat', [1, 0.5, '2']],
    ['mirostatTau', [0, Number.NaN]],
    ['mirostatEta', [-0.1, 1.1]],
    ['xtcProbability', [2]],
    ['xtcThreshold', [-1]],
    ['ignoreEog', [1]],
    ['parseSpecial', ['yes']],
    ['resume', [null, 0]],
  ];
  assert.deepEqual(wrong.map(([key]) => key).sort(), Object.keys(engineKeys).sort());
  assert.deepEqual(wrongSampling.map(([key]) => key).sort(), Object.keys(samplingKeys).sort());
  for (const [key, values] of wrongSampling) {
    for (const value of values) {
      await assert.rejects(generate(session, [1], { [key]: value }), {
        code: 'invalid_option',
        message: new RegExp(key),
        details: { key },
      });
    }
  }
  await assert.rejects(open(5 as EngineOptions), { code: 'invalid_option', message: /must be an object/ });
});

test('sizes are read as people write them', async () => {
  for (const [memory, bytes] of [
    ['300MB', 3e8],
    ['300MiB', 300 * 2 ** 20],
    [3e8, 3e8],
    ['0.5 GB', 5e8],
  ] as const) {
    assert.equal((await open({ memory })).facts().config.memory, bytes);
  }
});

test('a budget that is too small says what it would take', async () => {
  const refused = await open({ memory: 70_000 }).then(
    unexpected,
    (error: unknown) => error as Error & { details: Record<string, number> },
  );
  assert.match(refused.message, /needs at least \d+ bytes/);
  const needed = refused.details['neededBytes'];
  assert.ok(needed !== undefined && needed > 70_000);
  assert.equal(refused.details['availableBytes'], 70_000);
});

test('calls take turns in the order they came', async () => {
  const session = await open();
  const ended: number[] = [];
  const run = async (n: number): Promise<number[]> => {
    const { ids } = await generate(session, golden.prompt, { maxTokens: 12 - n, temperature: 0, ignoreEog: true });
    ended.push(n);
    return ids;
  };
  const [first, ...others] = await Promise.all([0, 1, 2, 3].map(run));
  assert.deepEqual(ended, [0, 1, 2, 3]);
  others.forEach((ids, i) => {
    assert.deepEqual(ids, first?.slice(0, 11 - i));
  });
});

test('figures of an answer are its own, whoever has the engine by then', async () => {
  const session = await open();
  const options = { maxTokens: 3, temperature: 0, ignoreEog: true };
  const asked = [golden.prompt, [1, 2], [1]].map((ids) =>
    session.generate(Uint32Array.from(ids), options, new wasm.Call(), () => undefined),
  );
  const told = (await Promise.all(asked)).map(({ stats }) => [stats.promptTokens, stats.generatedTokens]);
  assert.deepEqual(told, [
    [golden.prompt.length, 3],
    [2, 3],
    [1, 3],
  ]);
});

test('an abort ends a call, waiting or running, and the next answer is right', async () => {
  const session = await open();
  const options = { maxTokens: 200, temperature: 0, ignoreEog: true };
  const [running, waiting] = [new wasm.Call(), new wasm.Call()];
  let seen = 0;
  const first = generate(session, golden.prompt, options, running, (n) => {
    seen = n;
    if (n === 3) running.abort();
  });
  waiting.abort();
  const second = generate(session, golden.prompt, options, waiting, () => assert.fail('it was aborted before its turn'));
  for (const call of [first, second]) {
    const ended = await call.then(
      ({ reason }) => reason,
      (error: unknown) => (error as { code: string }).code,
    );
    assert.match(ended, /^(abort|misuse)$/);
  }
  assert.equal(seen, 3);
  const exact = await open({ precision: 'exact' });
  const { ids } = await generate(exact, golden.prompt, { maxTokens: 4, temperature: 0, ignoreEog: true });
  assert.deepEqual(ids, golden.greedy.slice(0, 4));
});

test('a held call waits, and goes on where it was', async () => {
  const session = await open({ precision: 'exact' });
  const call = new wasm.Call();
  let seen = 0;
  let answer: ReturnType<typeof generate> | undefined;
  await new Promise<void>((held) => {
    answer = generate(session, golden.prompt, { maxTokens: 8, temperature: 0, ignoreEog: true }, call, (n) => {
      seen = n;
      if (n !== 2) return;
      call.hold();
      held();
    });
  });
  await new Promise((resolve) => setTimeout(resolve, 30));
  assert.equal(seen, 2);
  call.proceed();
  assert.deepEqual((await answer)?.ids, golden.greedy.slice(0, 8));
});

test('a seed that is given decides, and one that is not differs', async () => {
  const session = await open();
  const options = { maxTokens: 24, temperature: 2, topK: 0, topP: 1, minP: 0, ignoreEog: true };
  const [a, b, c, d] = await Promise.all(
    [{ seed: 7 }, { seed: 7 }, {}, {}].map(async (seed) =>
      (await generate(session, [1, 2, 3], { ...options, ...seed })).ids.join(),
    ),
  );
  assert.equal(a, b);
  assert.notEqual(c, d);
});

test('log-probabilities come when they are asked for', async () => {
  const session = await open();
  const logprobs: (number | null)[] = [];
  const likeliest: (Float64Array | null)[] = [];
  for (const options of [{}, { logprobs: 0 }, { logprobs: 2 }]) {
    await session.generate(
      Uint32Array.of(1, 2, 3),
      { maxTokens: 1, temperature: 0, ...options },
      new wasm.Call(),
      (_text, _id, logprob, top) => {
        logprobs.push(logprob);
        likeliest.push(top);
      },
    );
  }
  assert.equal(logprobs[0], null);
  assert.ok(typeof logprobs[1] === 'number' && logprobs[1] < 0 && logprobs[1] > -5, String(logprobs[1]));
  assert.deepEqual(likeliest.slice(0, 2), [null, null]);
  const [id, first, other, second] = likeliest[2] ?? [];
  assert.equal(likeliest[2]?.length, 4);
  assert.equal(first, logprobs[2]);
  assert.ok(other !== id && Number(second) < Number(first), String(likeliest[2]));
});

test('a source that fails or lies is an error of the call, not of the module', async () => {
  const failing = { fileCount: 1, bufferBytes: 0, rereads: false, size: () => undefined, cancel: () => undefined };
  const lies = [
    {
      ...failing,
      read: () => Promise.reject(Object.assign(new Error('no bytes'), { code: 'source_failed', details: { status: 500 } })),
    },
    { ...failing, read: () => Promise.reject(new TypeError('secret')) },
    { ...failing, read: () => Promise.resolve() },
  ];
  const errors = await Promise.all(
    lies.map((source) => wasm.open(host({ count: 0 }), source, {}, new wasm.Call()).then(unexpected, (error: unknown) => error)),
  );
  const [told, foreign, short] = errors as (Error & { code: string; details: Record<string, unknown> })[];
  assert.deepEqual([told?.code, told?.details['status']], ['source_failed', 500]);
  assert.match(told?.message ?? '', /no bytes$/);
  assert.deepEqual([foreign?.code, foreign?.details['thrown']], ['internal', 'TypeError']);
  assert.doesNotMatch(foreign?.message ?? '', /secret/);
  assert.equal(short?.code, 'source_failed');
  await open();
});
