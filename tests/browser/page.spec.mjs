// The page that `npm start` serves, used as a visitor would: ask, watch the answer come, stop, pick a file, meet a failure.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { withDeadline } from '../../scripts/browsers/deadline.mjs';
import { browserNames, launch } from '../../scripts/browsers/index.mjs';
import { startOwned } from '../../scripts/browsers/owned-process.mjs';
import { root } from '../../scripts/repo.mjs';
import { fixture, smollm2 } from './models.mjs';

const DEADLINE_MS = 120_000;

describe('npm start', { timeout: 12 * DEADLINE_MS }, () => {
  let started, origin;
  before(async () => {
    started = await startOwned('npm', ['start', '--silent', '--', '--port', '0'], { cwd: root });
    origin = await withDeadline(printedOrigin(started), 10 * DEADLINE_MS, 'npm start');
  });
  after(() => started?.stop());

  for (const name of browserNames) {
    describe(name, () => {
      let browser, page;
      before(async () => {
        browser = await launch(name);
        page = await browser.newPage();
        await page.goto(`${origin}/`);
      });
      after(() => browser?.close());
      const shown = (id) => page.evaluate((id) => document.getElementById(id).textContent, [id]);
      const idle = () => page.waitFor(() => !document.getElementById('go').disabled, [], DEADLINE_MS);

      it('answers a prompt, token by token', async () => {
        await page.evaluate(ask, [{ prompt: 'The capital of France is', 'max-tokens': '12' }]);
        const lengths = new Set();
        while (await page.evaluate(() => document.getElementById('go').disabled)) {
          lengths.add((await shown('answer')).length);
        }
        assert.match(await shown('answer'), /Paris/);
        assert.ok(lengths.size > 2, `the answer came in ${lengths.size} pieces`);
        assert.match(await shown('figures'), /tokens\/s/);
        assert.equal(await page.evaluate(() => document.getElementById('error').hidden), true);
      });

      it('stops when told to, and answers again', async () => {
        await page.evaluate(ask, [{ prompt: 'Once upon a time', 'max-tokens': '200' }]);
        await page.waitFor(() => document.getElementById('answer').textContent.length > 30, [], DEADLINE_MS);
        await page.evaluate(() => document.getElementById('stop').click());
        await idle();
        assert.match(await shown('status'), /Stopped/);
        await page.evaluate(ask, [{ prompt: 'The capital of France is', 'max-tokens': '4' }]);
        await idle();
        assert.match(await shown('answer'), /Paris/);
      });

      it('says what is wrong with a picked file, and takes a right one', async () => {
        await page.setFiles('#file', [fixture('parser/bad/unknown-architecture.gguf')]);
        await page.evaluate(ask, [{}]);
        await idle();
        assert.equal(await shown('error-code'), 'unsupported_model');
        assert.match(await shown('error-message'), /architecture/);
        await page.setFiles('#file', [smollm2]);
        await page.evaluate(ask, [{ prompt: 'The capital of France is', 'max-tokens': '4' }]);
        await idle();
        assert.match(await shown('answer'), /Paris/);
      });

      it('logs nothing unexpected', () => {
        assert.deepEqual(page.console, []);
      });
    });
  }
});

async function printedOrigin({ child, ended }) {
  let text = '';
  const found = new Promise((resolve) => {
    const look = (part) => {
      text += part;
      const url = /start: open (http:\/\/[^/\s]+)/.exec(text);
      if (url) resolve(url[1]);
    };
    child.stdout.setEncoding('utf8').on('data', look);
    child.stderr.setEncoding('utf8').on('data', look);
  });
  const failed = ended.then(() => Promise.reject(new Error(`npm start ended\n${text}`)));
  return Promise.race([found, failed]);
}

// Runs in the page: fills the form in and sends it.
function ask(values) {
  for (const [id, value] of Object.entries(values)) document.getElementById(id).value = value;
  document.getElementById('form').requestSubmit();
  return true;
}
