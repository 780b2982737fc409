// `npm start` itself: it builds and serves the demo, which answers in every browser. What the demo does is in demo.spec.mjs.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { withDeadline } from '../../scripts/browsers/deadline.mjs';
import { browserNames, launch } from '../../scripts/browsers/index.mjs';
import { startOwned } from '../../scripts/browsers/owned-process.mjs';
import { root } from '../../scripts/repo.mjs';
import { DEADLINE_MS, visitor } from './visitor.mjs';

describe('npm start', { timeout: 12 * DEADLINE_MS }, () => {
  let started, origin;
  before(async () => {
    started = await startOwned('npm', ['start', '--silent', '--', '--port', '0'], { cwd: root });
    origin = await withDeadline(printedOrigin(started), 10 * DEADLINE_MS, 'npm start');
  });
  after(() => started?.stop());

  for (const name of browserNames) {
    describe(name, () => {
      let browser, page, me;
      before(async () => {
        browser = await launch(name);
        page = await browser.newPage();
        me = visitor(page);
      });
      after(() => browser?.close());

      it('serves the demo with a model that answers', async () => {
        await me.visit(`${origin}/`);
        await me.set({ temperature: '0', maxTokens: '12' });
        await me.begin();
        await me.open();
        await me.ask('What is the capital of France?');
        assert.match(await me.answered(), /Paris/);
        assert.equal(await me.evaluate(() => document.getElementById('failure').hidden), true);
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
