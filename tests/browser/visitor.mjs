// A visitor of the demo: looks at what the page shows and uses its controls, in any of the three browsers.
import { access, stat } from 'node:fs/promises';
import path from 'node:path';
import { modelsDir, siteDir } from '../../scripts/repo.mjs';
import { serve } from '../../scripts/serve/server.mjs';
import { faults } from './faults.mjs';
import { smollm2 } from './models.mjs';

export const DEADLINE_MS = 120_000;

/**
 * Serves the built demo with its model below the path `base`. `bytes` counts what is given of the model; `bytesPerSecond` of each connection
 * can be set.
 */
export async function serveDemo({ base = '/', isolated = true } = {}) {
  await access(path.join(siteDir, 'index.html')).catch(() =>
    Promise.reject(new Error('dist/ has no demo: `npm start` builds it')),
  );
  const traffic = { bytes: 0, bytesPerSecond: undefined };
  const routes = (app) =>
    app.get(`${base}models/:name`, (request, response, next) => {
      if (request.method !== 'GET') return next();
      const write = response.write.bind(response);
      response.write = (chunk, ...rest) => {
        traffic.bytes += chunk.length;
        return write(chunk, ...rest);
      };
      const sendFile = () => response.sendFile(smollm2, { cacheControl: false }, () => undefined);
      if (traffic.bytesPerSecond === undefined) sendFile();
      else faults.slow({ response, sendFile, bytesPerSecond: traffic.bytesPerSecond });
    });
  const server = await serve({ mounts: { [`${base}models`]: modelsDir, [base]: siteDir }, routes, isolated });
  return { ...server, traffic, size: (await stat(smollm2)).size, url: `${server.origin}${base}` };
}

/** What a visitor does on `page`; every step waits for what it shows. */
export function visitor(page) {
  const evaluate = (fn, ...values) => page.evaluate(fn, values, DEADLINE_MS);
  const waitFor = (fn, ...values) => page.waitFor(fn, values, DEADLINE_MS);
  const text = (id) => evaluate((id) => document.getElementById(id).textContent, id);
  const press = (selector) => evaluate(pressIn, selector);
  /** Waits for the verdict on another model than that of before. */
  const judged = () =>
    waitFor(() => {
      const open = document.getElementById('open');
      const { source, phase } = window.sluice;
      if (source === undefined || source === window.sourceBefore || phase === 'inspecting') return false;
      return !document.getElementById('failure').hidden || open.hidden || !open.disabled;
    });
  const choosing = () =>
    evaluate(() => {
      window.sourceBefore = window.sluice.source;
    });
  const answered = async () => {
    await waitFor(() => !document.getElementById('send').hidden);
    return evaluate(() => [...document.querySelectorAll('.answer .body')].at(-1)?.textContent ?? '');
  };
  return {
    evaluate,
    waitFor,
    text,
    press,
    judged,
    answered,
    /** Goes to the page and waits until it offers its own model. */
    visit: async (url) => {
      await page.goto(url);
      await waitFor(() => /135M/.test(document.getElementById('catalogue').textContent));
    },
    /** Chooses the page's own model and waits for the verdict. */
    begin: async () => {
      await choosing();
      await press('#begin');
      await judged();
    },
    /** Picks files and waits for the verdict. */
    pick: async (...files) => {
      await choosing();
      await page.setFiles('#file', files);
      await judged();
    },
    /** Asks for the model behind an address and waits for the verdict. */
    look: async (url) => {
      await choosing();
      await evaluate(lookAt, url);
      await judged();
    },
    /** Opens the chosen model and waits until it can be asked. */
    open: async () => {
      await press('#open');
      await waitFor(() => /^Ready/.test(document.getElementById('status').textContent));
    },
    /** Chooses between light, dark and what the system has. */
    theme: (theme) => evaluate(setTheme, theme),
    /** Sets fields of the settings. */
    set: (settings) => evaluate(fillSettings, settings),
    /** Asks; `answered` waits for the answer. */
    ask: (question) => evaluate(askIn, question),
    /** Moves the dial to a place without letting go of it. */
    turn: (place) => evaluate(moveDial, place),
    /** Moves the dial to a place and lets go of it. */
    dial: async (place) => {
      await evaluate(moveDial, place);
      await evaluate(() => document.getElementById('dial').dispatchEvent(new Event('change', { bubbles: true })));
      await waitFor(() => window.sluice.phase === 'ready' && /^Ready/.test(document.getElementById('status').textContent));
    },
    /** A list of figures as an object. */
    figures: (id) =>
      evaluate(
        (id) =>
          Object.fromEntries(
            [...document.querySelectorAll(`#${id} > div`)].map((each) => [...each.children].map((part) => part.textContent)),
          ),
        id,
      ),
  };
}

// The following run in the page.

function pressIn(selector) {
  const found = document.querySelector(selector);
  if (found === null || found.disabled || found.closest('[hidden]')) throw new Error(`${selector} cannot be pressed`);
  found.focus();
  found.click();
}

function lookAt(url) {
  document.getElementById('url').value = url;
  document.getElementById('address').requestSubmit();
}

function askIn(question) {
  const field = document.getElementById('question');
  field.focus();
  field.value = question;
  field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true }));
}

function fillSettings(settings) {
  for (const [name, value] of Object.entries(settings)) {
    const field = document.querySelector(`#settings [name="${name}"]`);
    field.value = value;
    field.dispatchEvent(new Event('input', { bubbles: true }));
  }
}

function setTheme(theme) {
  const select = document.getElementById('theme');
  select.value = theme;
  select.dispatchEvent(new Event('change'));
}

function moveDial(place) {
  const dial = document.getElementById('dial');
  if (dial.disabled) throw new Error('the dial cannot be moved');
  dial.value = String(place);
  dial.dispatchEvent(new Event('input', { bubbles: true }));
}
