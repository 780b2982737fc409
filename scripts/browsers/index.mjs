// Three real browsers behind one small interface, for the tests and for browser-run. Every call has a hard deadline, and
// closing a browser ends exactly the processes that were started for it.
import { findBrowsers } from './programs.mjs';
import { sleep } from './deadline.mjs';
import { launchPuppeteer } from './puppeteer.mjs';
import { launchWebkit } from './webkit.mjs';

/** The names that `launch` takes. */
export const browserNames = ['chromium', 'firefox', 'webkit'];

/**
 * Starts a browser with a fresh profile: `{ name, version, pid, newPage(), close() }`.
 * Options: `args` (more command-line arguments), `log(line)` (called for every console line), `deadlineMs` (of a single call, 30 s),
 * `profile` (a folder kept by the caller) and `program` (one that starts the browser) not in WebKit, `preferences` (by name; Firefox),
 * `sharedMemory` (WebKit: SharedArrayBuffer on).
 *
 * A page: `goto(url)`, `reload()`, `evaluate(fn, values, deadlineMs)`, `waitFor(fn, values, deadlineMs)`, `setFiles(selector, paths)`,
 * `resize(width, height)` (not in WebKit), `limitQuota(bytes)` (of the page's origin, Chromium only), `screenshot(file)`, `workers()` (their addresses; not in WebKit), `close()`, `console` (the lines so far).
 * `fn` is a function that runs in the page (it closes over nothing);
 * `values`, its arguments, and its result are JSON.
 */
export async function launch(name, { args = [], log = () => {}, deadlineMs = 30_000, ...rest } = {}) {
  if (!browserNames.includes(name)) throw new Error(`there is no browser ${name}: ${browserNames.join(', ')}`);
  const programs = (await findBrowsers())[name];
  if (programs === null) throw new Error(`${name} is not here: run \`npm run setup -- browsers\``);
  const options = { args, log, deadlineMs, ...rest };
  const browser = name === 'webkit' ? await launchWebkit(programs, options) : await launchPuppeteer(name, programs, options);
  return { name, ...browser, newPage: async () => withSugar(await browser.newPage(), deadlineMs) };
}

/** Runs `use(browser)` and closes the browser whatever happens. */
export async function withBrowser(name, options, use) {
  const browser = await launch(name, options);
  try {
    return await use(browser);
  } finally {
    await browser.close();
  }
}

function withSugar(page, deadlineMs) {
  const evaluate = (fn, values = [], ms = deadlineMs) => page.evaluate(String(fn), values, ms);
  return {
    ...page,
    evaluate,
    /** Asks again until the function gives something truthy, which is the result. */
    waitFor: async (fn, values = [], ms = deadlineMs) => {
      const end = Date.now() + ms;
      for (;;) {
        const value = await evaluate(fn, values, ms);
        if (value) return value;
        if (Date.now() > end) throw new Error(`nothing within ${ms / 1000} s: ${String(fn).slice(0, 200)}`);
        await sleep(50);
      }
    },
  };
}
