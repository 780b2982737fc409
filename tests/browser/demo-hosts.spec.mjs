// Where the demo is served from and what the network does: a sub-path, with and without the headers of cross-origin isolation, a download that
// a reload interrupts, no network at all; what a first visit transfers; and what axe finds.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { gzipSync } from 'node:zlib';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { launch } from '../../scripts/browsers/index.mjs';
import { siteDir } from '../../scripts/repo.mjs';
import { fixture } from './models.mjs';
import { DEADLINE_MS, serveDemo, visitor } from './visitor.mjs';

const FIRST_PAINT_BYTES = 150_000;
const QUESTION = 'What is the capital of France?';

for (const name of ['chromium', 'firefox']) {
  describe(`the demo on hosts, in ${name}`, { timeout: 6 * DEADLINE_MS }, () => {
    let browser, page, me;
    const servers = [];
    const serve = async (options) => {
      const server = await serveDemo(options);
      servers.push(server);
      return server;
    };
    before(async () => {
      browser = await launch(name);
      page = await browser.newPage();
      me = visitor(page);
    });
    after(async () => {
      await browser?.close();
      for (const server of servers) await server.close();
    });

    it('continues a download after a reload in the middle of it', async () => {
      const server = await serve({ base: '/some/folder/' });
      await me.visit(server.url);
      await me.set({ temperature: '0', maxTokens: '8' });
      await me.begin();
      server.traffic.bytesPerSecond = 6e6;
      await me.press('#open');
      await me.waitFor(() => Number(document.getElementById('bar').value) > 30e6);
      assert.match(await me.text('loaded'), /MB of 98\.4 MB · [\d.]+ MB\/s · \d+ s left/);
      await page.reload();
      server.traffic.bytesPerSecond = undefined;
      await me.waitFor(() => /^Continue the download/.test(document.getElementById('open')?.textContent ?? ''));
      await me.judged();
      assert.match(await me.text('stored'), /smollm2.* of 98\.4 MB/);
      await me.open();
      await me.ask(QUESTION);
      assert.match(await me.answered(), /Paris/);
      await me.waitFor(() => /complete/.test(document.getElementById('stored').textContent));
      // What was on its way when the page went is fetched again, and the header was read for two verdicts.
      assert.ok(server.traffic.bytes < server.size + 16e6, `${server.traffic.bytes} bytes were served`);
    });

    it('works from a sub-path without a network, with a stored model', async () => {
      const [server] = servers;
      await me.waitFor(() => /^Works offline/.test(document.getElementById('offline').textContent));
      await servers.shift().close();
      await page.goto(server.url);
      await me.waitFor(() => document.getElementById('open')?.textContent === 'Open');
      await me.judged();
      await me.open();
      await me.press('#new-chat');
      await me.ask(QUESTION);
      assert.match(await me.answered(), /Paris/);
      // The charts and what draws Markdown were kept as well.
      assert.equal(await me.evaluate(() => document.querySelectorAll('.answer .body p').length), 1);
    });

    it('says which build runs and why, with and without isolation', async () => {
      const plain = await serve({ isolated: false });
      await me.visit(plain.url);
      assert.match(await me.text('reasons'), /not cross-origin isolated/);
      assert.match(await me.text('figures'), /relaxed$|simd$/);
      const isolated = await serve();
      await me.visit(isolated.url);
      assert.doesNotMatch(await me.text('reasons'), /not cross-origin isolated/);
    });

    it('deletes what is stored', async () => {
      const [plain] = servers;
      await me.visit(plain.url);
      await me.begin();
      await me.open();
      await me.waitFor(() => document.querySelector('#stored button') !== null);
      const remove = '#stored li button:last-child';
      await me.press(remove);
      assert.equal(await me.evaluate(() => document.querySelector('#stored li button:last-child').textContent), 'Really delete?');
      await me.press(remove);
      await me.waitFor(() => /Nothing yet/.test(document.getElementById('stored').textContent));
      assert.equal(await me.evaluate(() => window.sluice.phase), 'none');
    });
  });
}

describe('the demo, looked at', { timeout: 4 * DEADLINE_MS }, () => {
  let server, browser, page, me;
  before(async () => {
    server = await serveDemo();
    browser = await launch('chromium');
    page = await browser.newPage();
    me = visitor(page);
  });
  after(async () => {
    await browser?.close();
    await server?.close();
  });

  it(`paints first with less than ${FIRST_PAINT_BYTES / 1000} KB, compressed`, async () => {
    await me.visit(server.url);
    const loaded = await me.evaluate(() => performance.getEntriesByType('resource').map(({ name }) => name));
    const names = loaded.filter((url) => /\.(js|css)$/.test(url) && !url.endsWith('sw.js')).map((url) => path.basename(url));
    assert.ok(names.length >= 2, 'the page has a script and a style sheet');
    assert.ok(!loaded.some((url) => url.endsWith('.wasm')), 'no wasm module before a model is chosen');
    // What the service worker keeps for later comes after the first paint.
    const early = names.filter((file) => file.startsWith('main.'));
    let sum = 0;
    for (const file of ['index.html', ...early]) sum += gzipSync(await readFile(path.join(siteDir, file))).length;
    assert.ok(sum < FIRST_PAINT_BYTES, `${sum} bytes`);
    assert.deepEqual(
      names.filter((file) => !file.startsWith('main.')),
      [],
    );
  });

  it('has nothing serious for axe, in any state', async () => {
    const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
    const check = async (state) => {
      await me.evaluate((source) => window.axe ?? (0, eval)(source) ?? null, axe);
      for (const theme of ['light', 'dark']) {
        await me.theme(theme);
        const found = await me.evaluate(findings);
        assert.deepEqual(found, [], `${state}, ${theme}`);
      }
    };
    await page.resize(1360, 900);
    await check('welcome');
    await me.set({ temperature: '0', maxTokens: '24' });
    await me.begin();
    await check('verdict');
    await me.open();
    await me.dial(60);
    await me.ask('Write a list of three towns and one line of `code`.');
    await me.answered();
    await check('answer and flow');
    await page.resize(390, 800);
    for (const view of ['chat', 'model', 'memory', 'flow']) {
      await me.press(`#views [data-to=${view}]`);
      await check(`phone, ${view}`);
      assert.equal(await me.evaluate(() => document.documentElement.scrollWidth), 390, `${view} is no wider than the phone`);
    }
    await me.press('#views [data-to=chat]');
    await me.press('#settings-open');
    await check('settings');
    await me.evaluate(() => document.getElementById('settings').close());
    await me.pick(fixture('parser/bad/alignment-3.gguf'));
    await me.press('#views [data-to=chat]');
    await check('failure');
  });

  it('draws nothing of an answer that could act or load', async () => {
    await me.evaluate(
      keepAnswer,
      '**bold** <img src="x" onerror="window.acted = 1"> [link](javascript:window.acted=2) [good](https://h/)',
    );
    await page.reload();
    await me.waitFor(() => document.querySelector('.answer .body strong') !== null);
    assert.deepEqual(await me.evaluate(drawn), { images: 0, links: [null, 'https://h/'], acted: null });
    await page.allowClipboard();
    assert.match(await me.evaluate(copyAnswer), /^\*\*bold\*\* <img/, 'the answer as it was written');
    await me.press('#new-chat');
  });

  it('takes an address', async () => {
    const url = `${server.url}models/smollm2-135m-q4_1.gguf?signed=secret`;
    await me.look(url);
    assert.match(await me.text('verdict'), /SmolLM2|135M/i);
    await me.look(`${server.url}none.gguf`);
    assert.equal(await me.text('failure-code'), 'source_failed');
    assert.match(await me.text('failure-message'), /404/);
  });

  it('takes a dropped file', async () => {
    await me.evaluate(dropFile, '/models/smollm2-135m-q4_1.gguf');
    await me.judged();
    assert.match(await me.text('verdict'), /none: your file/);
  });
});

// The following run in the page.

async function findings() {
  const { violations } = await window.axe.run(document);
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`));
}

/** Copies the last answer by its button: what the clipboard has then. */
async function copyAnswer() {
  window.focus();
  const button = [...document.querySelectorAll('.answer .tools button')].filter((each) => each.textContent === 'Copy').at(-1);
  button.focus();
  button.click();
  while (button.textContent === 'Copy') await new Promise((resolve) => setTimeout(resolve, 20));
  return button.textContent === 'Copied' ? navigator.clipboard.readText() : button.textContent;
}

/** Leaves a conversation with this answer for the next load of the page. */
function keepAnswer(text) {
  const turns = [
    { role: 'user', text: 'Hello' },
    { role: 'assistant', text, ending: 'done' },
  ];
  sessionStorage.setItem('sluice-demo-chat', JSON.stringify(turns));
}

/** What the answer has become, after its links were clicked. */
async function drawn() {
  const body = document.querySelector('.answer .body');
  const links = [...body.querySelectorAll('a')];
  for (const link of links) if (!link.href.startsWith('https:')) link.click();
  await new Promise((resolve) => setTimeout(resolve, 200));
  const images = body.querySelectorAll('img').length;
  return { images, links: links.map((link) => link.getAttribute('href')), acted: window.acted ?? null };
}

async function dropFile(url) {
  const blob = await (await fetch(url)).blob();
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([blob], 'dropped.gguf'));
  document.body.dispatchEvent(new DragEvent('dragover', { dataTransfer, bubbles: true, cancelable: true }));
  document.body.dispatchEvent(new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true }));
}
