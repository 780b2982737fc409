// Each folder of examples/ does what it says.
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { launch } from '../../scripts/browsers/index.mjs';
import { root } from '../../scripts/repo.mjs';
import { serveExamples } from '../../scripts/serve/examples.mjs';
import { smollm2 } from './models.mjs';

const DEADLINE_MS = 60_000;

// Example → what a visitor does there, and what then shows.
const visits = {
  generate: {
    shows: { answer: /^ Paris/, figures: /tokens\/s in \d+ MB/ },
  },
  abort: {
    async does(page) {
      await page.waitFor(() => document.getElementById('answer').textContent.length > 20, [], DEADLINE_MS);
      await page.evaluate(() => document.getElementById('stop').click());
    },
    shows: { answer: /\w/, status: /France is Paris\./ },
  },
  'picked-file': {
    does: (page) => page.setFiles('#file', [smollm2]),
    shows: { answer: /^ Paris/, status: /30 layers/ },
  },
  budget: {
    async does(page) {
      await page.setFiles('#file', [smollm2]);
      await page.waitFor(() => /% of the weights/.test(document.getElementById('plan').textContent), [], DEADLINE_MS);
      await page.evaluate(() => document.getElementById('run').click());
    },
    shows: { answer: /^ Paris/, figures: /tokens\/s, \d+\.\d MB at most/ },
  },
  chat: {
    async does(page) {
      await page.waitFor(() => document.body.dataset.ready === 'true', [], DEADLINE_MS);
      await page.evaluate(() => {
        document.getElementById('text').value = 'What is the capital of France?';
        document.querySelector('form').requestSubmit();
      });
    },
    shows: { log: /France\?\s*\S{2}/ },
  },
  search: {
    async does(page) {
      await page.waitFor(() => document.body.dataset.ready === 'true', [], DEADLINE_MS);
      await page.evaluate(() => {
        document.getElementById('query').value = 'How is a loaf made?';
        document.querySelector('form').requestSubmit();
      });
    },
    shows: { found: /^\s*Bread/ },
  },
  'openai-sdk': {
    shows: { answer: /\w{3}/ },
  },
  inspect: {
    shows: { table: /SmolLM2.*50MB.*needs.*300MBtakes/i },
  },
};

describe('examples', { timeout: 6 * DEADLINE_MS }, () => {
  let server, browser, page;
  before(async () => {
    server = await serveExamples();
    browser = await launch('chromium');
    page = await browser.newPage();
  });
  after(async () => {
    await browser?.close();
    await server?.close();
  });

  for (const [name, { does, shows }] of Object.entries(visits)) {
    it(name, async () => {
      await page.goto(`${server.origin}/${name}/`);
      await does?.(page);
      for (const [id, text] of Object.entries(shows)) {
        const shown = (id, source) => new RegExp(source, 'is').test(document.getElementById(id).textContent);
        await page.waitFor(shown, [id, text.source], DEADLINE_MS);
      }
      assert.deepEqual(page.console, []);
    });
  }

  it('none is left out', async () => {
    const folders = await readdir(path.join(root, 'examples'), { withFileTypes: true });
    assert.deepEqual(
      folders
        .filter((entry) => entry.isDirectory())
        .map(({ name }) => name)
        .sort(),
      Object.keys(visits).sort(),
    );
  });
});
