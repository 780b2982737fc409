// The demo as a visitor uses it, in every browser: choose, read the verdict, open, ask, watch, stop, move the dial, pick a file, meet a
// failure.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { browserNames, launch } from '../../scripts/browsers/index.mjs';
import { fixture, smollm2 } from './models.mjs';
import { DEADLINE_MS, serveDemo, visitor } from './visitor.mjs';

const QUESTION = 'What is the capital of France?';

for (const name of browserNames) {
  describe(`the demo in ${name}`, { timeout: 6 * DEADLINE_MS }, () => {
    const hasStore = name !== 'webkit';
    let server, browser, page, me;
    before(async () => {
      server = await serveDemo();
      browser = await launch(name);
      page = await browser.newPage();
      me = visitor(page);
      await me.visit(server.url);
      await me.set({ temperature: '0', maxTokens: '12' });
    });
    after(async () => {
      await browser?.close();
      await server?.close();
    });

    it('gives the verdict before anything is downloaded', async () => {
      await me.begin();
      const verdict = await me.figures('verdict dl');
      assert.equal(verdict['Download'], '98.4 MB');
      assert.match(verdict['Kind'], /llama, 135 M/);
      assert.match(verdict['Needs at least'], /^\d+(\.\d)? MB$/);
      assert.equal(verdict['Stays in memory'], '100 %');
      assert.match(verdict['Expected speed'], /tok\/s/);
      assert.ok(server.traffic.bytes < 8e6, `${server.traffic.bytes} bytes were read for the verdict`);
    });

    it('opens, and answers in the memory that it shows', async () => {
      await me.open();
      await me.ask(QUESTION);
      assert.match(await me.answered(), /Paris/);
      assert.match(await me.text('spoken'), /Paris/);
      const shown = await me.evaluate(shownAndCounted);
      assert.equal(shown.memory, `${shown.memoryBytes.toLocaleString('en-US')} bytes`);
      assert.ok(shown.memoryBytes <= shown.budgetBytes);
    });

    it('draws the model in the colours of its legend, light and dark', async () => {
      await me.press('#views [data-to=flow]'); // a narrow window shows one part of the page
      await me.evaluate(lookAtPicture);
      const pages = {};
      for (const theme of ['auto', 'dark', 'light']) {
        await me.theme(theme);
        const { picture, legend, page } = await me.waitFor(coloursSeen);
        assert.equal(picture, legend, theme);
        pages[theme] = page;
      }
      assert.notEqual(pages.dark, pages.light);
      assert.equal(pages.auto, pages[await me.evaluate(systemTheme)]);
      await me.theme('auto');
      await me.press('#views [data-to=chat]');
    });

    it('shows the answer as it comes, stops when told to, answers again, and lets a question be edited', async () => {
      await me.set({ maxTokens: '200' });
      await me.evaluate(countPieces);
      await me.ask('Tell me a long story about a river.');
      await me.waitFor(() => [...document.querySelectorAll('.answer .body')].at(-1).textContent.length > 60);
      await me.evaluate(() => document.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' })));
      await me.answered();
      assert.equal(await me.text('status'), 'Stopped.');
      const pieces = await me.evaluate(() => window.pieces.size);
      assert.ok(pieces > 4, `the answer came in ${pieces} pieces`);
      await me.set({ maxTokens: '8' });
      await me.press('#turns li:last-child .tools button');
      assert.ok((await me.answered()).length > 8, 'the retried answer has a text');
      const last = await me.evaluate(editByKey);
      assert.equal(last, 'Tell me a long story about a river.', 'the last question is there to be edited');
      await me.press('#turns li:nth-last-child(2) .tools button');
      await me.evaluate(editTo, QUESTION);
      assert.match(await me.answered(), /Paris|capital/);
      assert.equal(await me.evaluate(() => document.querySelectorAll('#turns > li').length), 4);
    });

    it('is stopped by its button too, and the keyboard is where the next question is written', async () => {
      await me.press('#new-chat');
      await me.waitFor(() => document.querySelectorAll('#turns > li').length === 0);
      await me.set({ maxTokens: '200' });
      await me.evaluate(stopWhenWriting);
      await me.ask('Tell me a long story about a mountain.');
      await me.answered();
      assert.equal(await me.text('status'), 'Stopped.');
      assert.equal(await me.evaluate(() => document.activeElement.id), 'question');
    });

    it('asks with the system prompt and the settings of the dialog', async () => {
      await me.evaluate(watchChat);
      await me.press('#settings-open');
      await me.set({ system: 'Answer in one word.', temperature: '0.5', topK: '7', seed: '5', maxTokens: '4' });
      await me.press('#settings-form [value=done]');
      await me.ask(QUESTION);
      await me.answered();
      const { messages, options } = await me.evaluate(() => window.asked);
      assert.deepEqual(messages[0], { role: 'system', content: 'Answer in one word.' });
      assert.deepEqual(messages.at(-1), { role: 'user', content: QUESTION });
      const { temperature, topK, seed, maxTokens } = options;
      assert.deepEqual({ temperature, topK, seed, maxTokens }, { temperature: 0.5, topK: 7, seed: 5, maxTokens: 4 });
      await me.press('#settings-reset');
      await me.set({ temperature: '0' });
    });

    if (hasStore) {
      it('says what is stored and how much room there is', async () => {
        await me.waitFor(() => /98\.4 MB, complete/.test(document.getElementById('stored').textContent));
        assert.match(await me.text('room'), /^\d+(\.\d+)? MB of \d+(\.\d+)? [MG]B in use/);
      });

      it('shows what a place of the dial keeps and streams while it is moved, and nothing reopens', async () => {
        assert.equal((await me.figures('plan'))['Streams for each token'], 'nothing');
        await me.evaluate(() => {
          window.engineBefore = window.sluice.engine;
        });
        let last = 0;
        for (const place of [170, 150, 120]) {
          await me.turn(place);
          last = await me.waitFor(moreStreamed, last);
        }
        assert.equal(await me.evaluate(() => window.sluice.engine === window.engineBefore), true);
      });

      it('runs on in the least memory when the dial is moved there, and the conversation stays', async () => {
        const before = await me.evaluate(() => window.sluice.engine.stats.memoryBytes);
        const turns = await me.evaluate(() => document.querySelectorAll('#turns > li').length);
        await me.dial(0);
        assert.match((await me.figures('plan'))['Streams for each token'], /MB/);
        await me.set({ maxTokens: '96' }); // long enough for many pictures on any machine
        await me.evaluate(watchFlow);
        await me.ask('Tell me a long story about Italy.');
        assert.ok((await me.answered()).length > 0);
        const { moments, charts, colours } = await me.evaluate(flowSeen);
        assert.ok(moments.filter((moment) => /layer \d+ of 30/.test(moment)).length > 0, moments.join('; '));
        assert.equal(charts, 4);
        assert.ok(colours.includes('kept') || colours.includes('streamed'), 'the model is drawn');
        assert.ok(colours.includes('computing'), 'what is computed is drawn');
        assert.ok(colours.includes('reading') || colours.includes('ready'), 'what is in slots is drawn');
        assert.equal(await me.evaluate(() => document.querySelectorAll('#turns > li').length), turns + 2);
        const { memoryBytes, budgetBytes } = await me.evaluate(shownAndCounted);
        assert.ok(
          memoryBytes <= budgetBytes && memoryBytes < before / 4,
          `${memoryBytes} of ${budgetBytes} bytes, ${before} before`,
        );
      });
    } else {
      it('says why the dial streams nothing from an address', async () => {
        assert.match(await me.text('dial-why'), /no storage .* Pick the file/);
        assert.match(await me.text('room'), /OPFS/);
      });
    }

    it('refuses broken and foreign files by name, with a remedy', async () => {
      await me.pick(fixture('parser/bad/alignment-3.gguf'));
      assert.equal(await me.text('failure-code'), 'invalid_model');
      assert.match(await me.text('failure-message'), /alignment/);
      assert.match(await me.text('failure-remedy'), /another file/);
      await me.pick(fixture('parser/bad/unknown-architecture.gguf'));
      assert.match(await me.text('verdict'), /architecture/);
      assert.equal(await me.evaluate(() => document.getElementById('open').hidden), true);
    });

    it('reads a picked file where it is, in the memory that the dial says', async () => {
      await me.pick(smollm2);
      assert.match(await me.text('verdict'), /none: your file/);
      await me.open();
      await me.dial(30);
      assert.match((await me.figures('plan'))['Streams for each token'], /MB/);
      await me.press('#new-chat');
      await me.waitFor(() => document.querySelectorAll('#turns > li').length === 0);
      await me.set({ maxTokens: '8' });
      await me.ask(QUESTION);
      assert.match(await me.answered(), /Paris/);
      const { memoryBytes, budgetBytes } = await me.evaluate(shownAndCounted);
      assert.ok(memoryBytes <= budgetBytes && memoryBytes < 60e6, `${memoryBytes} of ${budgetBytes} bytes`);
    });

    it('logs nothing unexpected', () => {
      assert.deepEqual(page.console, []);
    });
  });
}

// The following run in the page.

/** Memory as the page shows it, once it shows what the engine says. */
async function shownAndCounted() {
  await new Promise((resolve) => setTimeout(resolve, 400)); // figures are shown four times a second
  const { memoryBytes, budgetBytes } = window.sluice.engine.stats;
  const memory = [...document.querySelectorAll('#figures > div')].find((each) => each.firstChild.textContent === 'Memory');
  return { memory: memory.lastChild.textContent, memoryBytes, budgetBytes };
}

/** From now on `window.colours()` counts the colours of the picture. */
function lookAtPicture() {
  const canvas = document.getElementById('picture');
  const copy = document.createElement('canvas');
  const context = copy.getContext('2d', { willReadFrequently: true });
  window.colours = () => {
    const counts = new Map();
    if (canvas.width === 0 || canvas.height === 0) return counts;
    Object.assign(copy, { width: canvas.width, height: canvas.height });
    context.drawImage(canvas, 0, 0);
    const { data } = context.getImageData(0, 0, copy.width, copy.height);
    for (let at = 0; at < data.length; at += 4) {
      if (data[at + 3] !== 255) continue;
      const colour = `rgb(${data[at]}, ${data[at + 1]}, ${data[at + 2]})`;
      counts.set(colour, (counts.get(colour) ?? 0) + 1);
    }
    return counts;
  };
  window.legend = (name) => getComputedStyle(document.querySelector(`.legend .${name}`), '::before').backgroundColor;
}

/** Once the picture is drawn: its most frequent colour, that of what is kept in the legend, and that of the page. */
function coloursSeen() {
  const [most] = [...window.colours()].sort(([, a], [, b]) => b - a);
  const page = getComputedStyle(document.body).backgroundColor;
  return most === undefined ? null : { picture: most[0], legend: window.legend('kept'), page };
}

function systemTheme() {
  return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
}

/** From now on: what the picture of the flow is said to show. */
async function watchFlow() {
  document.querySelector('#views [data-to=flow]').click(); // a narrow window shows one part of the page
  document.getElementById('flow').scrollIntoView();
  await new Promise((resolve) => setTimeout(resolve, 300)); // it is noticed that it is seen
  const said = document.getElementById('flow-text');
  window.flow = { moments: [], charts: 0, colours: new Set(), on: true };
  const names = ['kept', 'streamed', 'reading', 'ready', 'computing'];
  const look = () => {
    const seen = window.colours();
    for (const name of names) if (seen.has(window.legend(name))) window.flow.colours.add(name);
    if (window.flow.on) requestAnimationFrame(look);
  };
  look();
  new MutationObserver(() => {
    window.flow.moments.push(said.textContent);
    window.flow.charts = document.querySelectorAll('#charts canvas').length;
  }).observe(said, { childList: true });
}

/** Ends `watchFlow`: what was seen. */
function flowSeen() {
  window.flow.on = false;
  const { moments, charts, colours } = window.flow;
  return { moments, charts, colours: [...colours] };
}

/** Presses the button once the answer has begun. */
function stopWhenWriting() {
  const stop = document.getElementById('stop');
  const observer = new MutationObserver(() => {
    if (stop.hidden || !(document.querySelector('.answer .body')?.textContent.length > 10)) return;
    observer.disconnect();
    stop.focus();
    stop.click();
  });
  observer.observe(document.getElementById('turns'), { childList: true, subtree: true });
}

/** The megabytes that the plan streams for each token, once they are more than `last`. */
function moreStreamed(last) {
  const shown = [...document.querySelectorAll('#plan > div')].find(({ firstChild }) => /^Streams/.test(firstChild.textContent));
  const megabytes = parseFloat(shown?.lastChild.textContent);
  return megabytes > last ? megabytes : null;
}

/** From now on: what the engine is asked. */
function watchChat() {
  const { engine } = window.sluice;
  const { chat } = engine;
  engine.chat = (messages, options) => {
    window.asked = { messages, options: { ...options, signal: undefined } };
    return chat.call(engine, messages, options);
  };
}

/** From now on: the lengths that answers have had. */
function countPieces() {
  window.pieces = new Set();
  const count = () => window.pieces.add([...document.querySelectorAll('.answer .body')].at(-1)?.textContent.length);
  new MutationObserver(count).observe(document.getElementById('turns'), { childList: true, subtree: true });
}

/** Edits the last question by the key for it, and gives that up: what the field for it held. */
function editByKey() {
  const key = (element, key) => element.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
  key(document.getElementById('question'), 'ArrowUp');
  const field = document.querySelector('#turns textarea');
  const { value } = field;
  key(field, 'Escape');
  if (document.querySelector('#turns textarea') !== null) throw new Error('the edit was not given up');
  return value;
}

function editTo(text) {
  const field = document.querySelector('#turns textarea');
  field.value = text;
  field.form.requestSubmit();
}
