// `inspect` in every browser: the verdict costs the header's bytes and no more, and planning again costs none.
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { browserNames } from '../../scripts/browsers/index.mjs';
import { onBarePage } from './bare.mjs';
import { serveFaulty } from './faulty-server.mjs';
import { fixture, smollm2 } from './models.mjs';

const DEADLINE_MS = 60_000;
/** SmolLM2's header (49152 tokens with their merges) has 1.8 MB of the file's 98, and is read in pieces that end before this byte. */
const HEADER_BYTES = 4_000_000;

for (const name of browserNames) {
  describe(`inspect in ${name}`, { timeout: 6 * DEADLINE_MS }, () => {
    let server, page, close;
    before(async () => {
      ({ server, page, close } = await onBarePage(name, serveFaulty()));
    });
    after(() => close?.());
    const inspect = (...steps) => page.evaluate(inPage, steps, DEADLINE_MS);

    it('asks a server for the header only, plans again without a request, and streams from the store alone', async () => {
      const url = server.faulty('sound', smollm2);
      const options = { memory: '300MB', context: 512, cache: 'none' };
      await inspect(url, options, []);
      const requests = server.requests.splice(0);
      const { model, fits } = await inspect(url, options, ['48MB']);
      assert.equal(server.requests.splice(0).length, requests.length, 'planning again asks for nothing');
      assert.ok(requests.length > 0);
      for (const { range } of requests) {
        const [, end] = /^bytes=\d+-(\d+)$/.exec(range).map(Number);
        assert.ok(end < HEADER_BYTES, `${range} is beyond the header`);
      }
      assert.ok(requests.reduce((sum, { bytes }) => sum + bytes, 0) < HEADER_BYTES + 64 * 1024);
      assert.deepEqual(
        { ...model, name: typeof model.name, types: Object.keys(model.types).includes('Q4_1') },
        {
          architecture: 'llama',
          kind: 'decoder',
          name: 'string',
          parameters: 134_515_008,
          layers: 30,
          vocabulary: 49152,
          trainedContext: 8192,
          chatTemplate: 'file',
          fileBytes: statSync(smollm2).size,
          types: true,
        },
      );
      const [roomy, small] = fits;
      assert.equal(roomy.refused, null);
      assert.equal(roomy.residentShare, 1);
      assert.ok(roomy.plan.totalBytes <= 300e6 && roomy.plan.totalBytes > statSync(smollm2).size * 0.9);
      assert.equal(small.plan, null);
      assert.equal(small.refused.code, 'out_of_memory');
      assert.equal(small.refused.details.neededBytes, small.floorBytes);
      assert.ok(small.floorBytes > 48e6 && small.floorBytes <= roomy.plan.totalBytes);
      assertSpeed(roomy.predicted);
      assert.equal(roomy.predicted.basis.storageBytesPerSecond, null);
      assert.equal(small.predicted, null);
      const { fits: stored } = await inspect(url, { memory: '48MB', context: 512 }, []);
      if (name === 'webkit') return assert.equal(stored[0].plan, null, 'it has no store');
      assert.ok(stored[0].plan.streamedBytesPerToken > 30e6);
      assert.equal(stored[0].predicted, null, 'the store was not measured');
    });

    it('plans to stream a picked file, and tells what the storage does to the speed', async () => {
      await page.setFiles('input[type=file]', [smollm2]);
      const { fits } = await inspect(null, { memory: '48MB', context: 512 }, ['300MB', { kvType: 'q8_0' }, '1MB']);
      const [small, roomy, narrow, tiny] = fits;
      assert.equal(small.refused, null);
      assert.ok(small.plan.totalBytes <= 48e6 && small.plan.streamedBytesPerToken > 30e6);
      assert.ok(small.residentShare < 0.6 && small.floorBytes <= 32e6);
      assertSpeed(small.predicted);
      assert.ok(small.predicted.basis.storageBytesPerSecond > 1e6);
      assert.equal(roomy.residentShare, 1);
      assert.ok(roomy.predicted.decodeTokensPerSecond > small.predicted.decodeTokensPerSecond);
      assert.equal(roomy.predicted.basis.format, small.predicted.basis.format);
      assert.ok(narrow.plan.ledger.kv < small.plan.ledger.kv, 'q8_0 keeps keys and values in less');
      assert.equal(tiny.floorBytes, small.floorBytes);
    });

    it('keeps what it measured for the next visit', async () => {
      await inspect(server.addFile(smollm2), { memory: '300MB', context: 512 }, []);
      const key = await page.evaluate(spoilRates, [], DEADLINE_MS);
      assert.equal(key, 'sluice-rates');
      await page.reload();
      await page.waitFor(() => window.sluice !== undefined, [], DEADLINE_MS);
      const { fits } = await inspect(server.addFile(smollm2), { memory: '300MB', context: 512 }, []);
      assert.equal(fits[0].predicted.basis.decodeWeightsPerSecond, 123_456_789);
      await page.evaluate(() => void localStorage.clear());
      await page.reload();
      await page.waitFor(() => window.sluice !== undefined, [], DEADLINE_MS);
      const { fits: again } = await inspect(server.addFile(smollm2), { memory: '300MB', context: 512 }, []);
      assert.notEqual(again[0].predicted.basis.decodeWeightsPerSecond, 123_456_789, 'measured again');
    });

    it('agrees with what open does', async () => {
      const url = server.addFile(fixture('models/llama-gqa.gguf'));
      const { fits, opened } = await inspect(url, { memory: '40MB', context: 64 }, [], true);
      assert.deepEqual(fits[0].plan, opened);
    });

    it('tells why a model cannot run, and rejects what is none', async () => {
      const { model, fits } = await inspect(server.addFile(fixture('parser/bad/unknown-architecture.gguf')), {}, []);
      assert.equal(fits[0].refused.code, 'unsupported_model');
      assert.notEqual(model.architecture, '');
      const failures = [
        [server.faulty('not-found', smollm2), {}, /source_failed/],
        [server.faulty('html-page', smollm2), {}, /invalid_model/],
        [server.addFile(import.meta.filename), {}, /invalid_model/],
        [server.addFile(smollm2), { memories: '1GB' }, /invalid_option/],
      ];
      for (const [url, options, code] of failures) {
        const { error } = await inspect(url, options, []);
        assert.equal(error?.name, 'SluiceError', url);
        assert.match(error.code, code, url);
      }
    });

    it('rejects to plan once closed', async () => {
      const { closed } = await inspect(server.addFile(fixture('models/llama-gqa.gguf')), {}, []);
      assert.equal(closed, 'misuse');
    });
  });
}

function assertSpeed({ decodeTokensPerSecond, prefillTokensPerSecond, basis }) {
  assert.ok(decodeTokensPerSecond > 0.1 && decodeTokensPerSecond < 1e4, `${decodeTokensPerSecond} tok/s`);
  assert.ok(prefillTokensPerSecond > 0.1 && prefillTokensPerSecond < 1e5, `${prefillTokensPerSecond} tok/s`);
  assert.ok(basis.decodeWeightsPerSecond > 1e6 && basis.prefillWeightsPerSecond > 1e6, JSON.stringify(basis));
}

// Runs in the page: figures that no measuring gives, in the place of those that are kept.
function spoilRates() {
  const [key] = Object.keys(localStorage);
  const kept = JSON.parse(localStorage.getItem(key));
  for (const rates of Object.values(kept.kernels)) rates.decodeWeightsPerSecond = 123_456_789;
  localStorage.setItem(key, JSON.stringify(kept));
  return key;
}

// Runs in the page. Without an address it takes the picked file.
async function inPage(url, options, changes, alsoOpen = false) {
  const source = url ?? document.querySelector('input[type=file]').files[0];
  try {
    const verdict = await window.sluice.inspect(source, options);
    const fits = [verdict.fit];
    for (const change of changes) fits.push(await verdict.plan(change));
    verdict.close();
    const closed = await verdict.plan(1).catch(({ code }) => code);
    let opened;
    if (alsoOpen) {
      const engine = await window.sluice.open(source, options);
      opened = engine.plan;
      await engine.close();
    }
    return { model: verdict.model, fits, closed, opened };
  } catch (error) {
    return { error: { name: error.name, code: error.code, message: error.message } };
  }
}
