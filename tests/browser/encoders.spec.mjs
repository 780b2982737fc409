// Encoders: in every browser and build, with threads and in the smallest budget, the bits of the native command, within 1e-4 of llama.cpp.
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { runJob } from '../../scripts/browsers/engine-run.mjs';
import { browserNames, launch } from '../../scripts/browsers/index.mjs';
import { serveBarePage } from '../../scripts/serve/bare-page.mjs';
import { sluice } from './models.mjs';
import { wordedEncoder } from './worded.mjs';

const DEADLINE_MS = 60_000;
// WebKitGTK has no relaxed SIMD.
const all = ['simd', 'relaxed', 'simd-threads', 'relaxed-threads'];
const builds = { chromium: all, firefox: all, webkit: ['simd', 'simd-threads'] };

describe('embeddings of encoders', { timeout: 6 * DEADLINE_MS }, () => {
  let folder;
  const cases = [];
  before(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), 'encoders-'));
    for (const name of ['bert', 'nomic-bert']) {
      const encoder = await wordedEncoder(name, folder);
      const native = JSON.parse(await sluice('embed', encoder.model, '-p', encoder.text));
      cases.push({ ...encoder, native: native.map(Math.fround) });
    }
  });
  after(() => rm(folder, { recursive: true, force: true }));

  it('natively are those of llama.cpp', () => {
    for (const { name, native, vector } of cases) {
      const worst = Math.max(...native.map((x, i) => Math.abs(x - vector[i])));
      assert.ok(native.length === vector.length && worst <= 1e-4, `${name}: ${worst}`);
    }
  });

  for (const browserName of browserNames) {
    it(`in ${browserName} have the same bits`, async () => {
      const server = await serveBarePage();
      const browser = await launch(browserName, { sharedMemory: true });
      try {
        const page = await browser.newPage();
        await page.goto(`${server.origin}/`);
        for (const { name, model, text, native } of cases) {
          const url = server.addFile(model);
          // More than go into the engine at once.
          const texts = [text, ...Array(40).fill('aa ab'), text];
          const run = (open, source) => runJob(page, { ...source, open, embed: { texts } }, DEADLINE_MS);
          for (const build of builds[browserName]) {
            const threads = build.endsWith('-threads') ? 2 : 1;
            const found = await run({ build, threads }, { urls: [url] });
            assert.equal(found.error, undefined, `${name}, ${build}`);
            assert.deepEqual([found.model.kind, found.stats.build, found.stats.threads], ['encoder', build, threads]);
            assert.deepEqual([found.vectors[0], found.vectors.at(-1)], [native, native], `${name}, ${build}`);
            assert.ok(found.stats.memoryPeakBytes <= found.plan.totalBytes, `${name}, ${build}: inside the plan`);
          }
          const { neededBytes } = (await run({ build: 'simd', threads: 1, context: 64, memory: 1 }, { files: [model] })).error
            .details;
          const tight = await run({ build: 'simd', threads: 1, context: 64, memory: neededBytes }, { files: [model] });
          assert.equal(tight.error, undefined, `${name}, in ${neededBytes} bytes`);
          assert.deepEqual(tight.vectors[0], native, `${name}, in ${neededBytes} bytes`);
        }
        const refused = {
          urls: [server.addFile(cases[0].model)],
          open: { build: 'simd' },
          generate: { prompt: 'aa', options: {} },
        };
        const { error } = await runJob(page, refused, DEADLINE_MS);
        assert.equal(error.code, 'misuse');
        assert.match(error.message, /'bert' is an encoder.*`embed`/);
      } finally {
        await browser.close();
        await server.close();
      }
    });
  }
});
