/** The package in Node, as `import 'sluice-llm'` gives it there: worker threads, files by path, the same answers and errors. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream, openAsBlob, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import type * as Package from '../../js/index.js';
import { FileSource } from '../../js/node/file-source.js';

const entry = pathToFileURL(path.resolve('pkg/node/index.js')).href;
const { open, inspect, SluiceError } = (await import(entry)) as typeof Package;

const tiny = 'tests/fixtures/models/llama-gqa.gguf';
const golden = JSON.parse(readFileSync('tests/fixtures/models/llama-gqa.json', 'utf8')) as { prompt: number[]; greedy: number[] };

async function answer(engine: Package.Engine): Promise<number[]> {
  const ids: number[] = [];
  const options = { maxTokens: golden.greedy.length, temperature: 0, ignoreEog: true };
  for await (const { id } of engine.generate(golden.prompt, options)) if (id !== null) ids.push(id);
  return ids;
}

/** A server of one file, with ranges. */
async function served(t: TestContext, file: string): Promise<string> {
  const { size } = statSync(file);
  const server = createServer((request, response) => {
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
    const [start, end] = [Number(first), Math.min(Number(last), size - 1)];
    response.writeHead(206, { 'content-range': `bytes ${start}-${end}/${size}`, 'content-length': end - start + 1 });
    createReadStream(file, { start, end }).pipe(response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/model.gguf`;
}

test('a Blob of a file is refused with what to give instead', { timeout: 60_000 }, async () => {
  await assert.rejects(open(await openAsBlob(tiny)), { code: 'invalid_option', message: /fs\.openAsBlob.* the file's path/ });
});

test('a path, a file: address, a Blob and an http address give the same answer', { timeout: 60_000 }, async (t) => {
  const sources = [tiny, pathToFileURL(path.resolve(tiny)), new Blob([readFileSync(tiny)]), await served(t, tiny)];
  for (const source of sources) {
    const engine = await open(source, { precision: 'exact', context: 64 });
    assert.deepEqual(await answer(engine), golden.greedy);
    await engine.close();
  }
});

test('weights stream from a local file', { timeout: 60_000 }, async () => {
  const engine = await open('models/smollm2-135m-q4_1.gguf', { memory: '48MB', context: 256 });
  let text = '';
  for await (const chunk of engine.generate('The capital of France is', { maxTokens: 1, temperature: 0 })) text += chunk.text;
  assert.equal(text, ' Paris');
  assert.ok(engine.stats.memoryBytes <= 48e6 && engine.stats.residentShare < 1);
  await engine.close();
});

test('an abort in a long prefill frees the engine at once', { timeout: 60_000 }, async () => {
  const engine = await open('models/smollm2-135m-q4_1.gguf', { context: 1024 });
  const one = async (): Promise<number> => {
    const started = performance.now();
    for await (const _ of engine.generate('x', { maxTokens: 1 }));
    return performance.now() - started;
  };
  await one();
  const controller = new AbortController();
  const long = engine.generate('word '.repeat(900), { signal: controller.signal });
  const aborted = assert.rejects(long.next(), { name: 'AbortError' });
  setTimeout(() => controller.abort(), 100);
  await aborted;
  const ms = await one();
  assert.ok(ms < 1000, `the next answer took ${ms} ms`);
  await engine.close();
});

test('what needs the vocabulary alone is answered in the middle of an answer', { timeout: 60_000 }, async () => {
  const engine = await open('models/smollm2-135m-q4_1.gguf', { context: 256 });
  let [asked, n] = [0, 0];
  for await (const { id } of engine.generate('Once upon a time', { maxTokens: 40, temperature: 0, ignoreEog: true })) {
    n += id === null ? 0 : 1;
    if (id === null || asked > 0) continue;
    const ids = await engine.tokenize('a word');
    assert.equal(await engine.detokenize(ids), 'a word');
    assert.match((await engine.renderChat([{ role: 'user', content: 'x' }])).text, /user\nx/);
    asked += 1;
  }
  assert.deepEqual([asked, n], [1, 40]);
  await engine.close();
});

test(
  'a worker that dies rejects what it is asked and all to come, and the program can open again',
  { timeout: 60_000 },
  async () => {
    const dying = new URL(
      `data:text/javascript,${encodeURIComponent(`
    await import(${JSON.stringify(new URL('./worker.js', entry).href)});
    const { parentPort } = await import('node:worker_threads');
    parentPort.on('message', ({ name }) => { if (name === 'detokenize') process.exit(3); });`)}`,
    );
    const engine = await open(tiny, { context: 64, assets: { worker: dying } });
    const running = answer(engine);
    const failures = await Promise.allSettled([engine.detokenize([1]), engine.renderChat([]), running]);
    const codes = failures.map((found) => (found.status === 'rejected' ? (found.reason as { code: string }).code : 'none'));
    assert.equal(codes[0], 'internal'); // what was asked before may have been answered
    await assert.rejects(answer(engine), { code: 'internal' });
    await engine.close();
    const again = await open(tiny, { precision: 'exact', context: 64 });
    assert.deepEqual(await answer(again), golden.greedy);
    await again.close();
  },
);

test('a verdict, and what cannot be opened', { timeout: 60_000 }, async () => {
  const verdict = await inspect(tiny);
  assert.equal(verdict.model.architecture, 'llama');
  assert.equal(verdict.fit.refused, null);
  await verdict.close();
  await assert.rejects(open('no/such/file.gguf'), {
    name: 'SluiceError',
    code: 'source_failed',
    message: /no\/such\/file.gguf: there is no such/,
  });
  await assert.rejects(open('package.json'), { code: 'invalid_model', message: /JSON/ });
  await assert.rejects(open(new URL('ftp://host/m.gguf')), SluiceError);
});

test('opening is given up by close and by a signal', { timeout: 60_000 }, async () => {
  const opening = open('models/smollm2-135m-q4_1.gguf');
  await Promise.all([assert.rejects(opening, { code: 'misuse', message: /closed/ }), opening.close()]);
  const controller = new AbortController();
  const aborted = open('models/smollm2-135m-q4_1.gguf', { signal: controller.signal });
  controller.abort('enough');
  await assert.rejects(aborted, (reason) => reason === 'enough');
});

test('a program that has closed its engines ends', { timeout: 60_000 }, async () => {
  const program = `
    const { open, inspect } = await import(${JSON.stringify(entry)});
    const engine = await open(${JSON.stringify(tiny)});
    for await (const { id } of engine.generate([1], { maxTokens: 2 })) if (id === null) console.log('answered');
    await engine.close();
    (await inspect(${JSON.stringify(tiny)})).close();
    await open('no/such/file.gguf').catch(({ code }) => console.log(code));`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 30_000,
  });
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text));
  const [status] = (await once(child, 'close')) as [number | null];
  assert.deepEqual([status, said], [0, 'answered\nsource_failed\n']);
});

test('a local file is read at any place, and one that is cut off says so', () => {
  const bytes = readFileSync(tiny);
  const source = FileSource.open([tiny]);
  assert.deepEqual([source.fileCount, source.size(0), source.rereads], [1, bytes.byteLength, true]);
  for (const [offset, length] of [
    [0, 1],
    [1, 70_000],
    [bytes.byteLength - 5, 5],
  ] as const) {
    const place = new Uint8Array(length);
    source.readInto(0, offset, place);
    assert.deepEqual(Buffer.from(place), bytes.subarray(offset, offset + length));
  }
  assert.throws(() => source.readInto(0, bytes.byteLength - 5, new Uint8Array(6)), { code: 'source_failed', message: /cut off/ });
  source.close();
  assert.throws(() => source.readInto(0, 0, new Uint8Array(1)), { code: 'source_failed', message: /cannot be read any more/ });
});
