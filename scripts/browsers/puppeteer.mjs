// Chromium and Firefox, driven by puppeteer-core. Pages are opened in the browser's default context: an incognito-like one
// measures slower storage than users have.
import puppeteer from 'puppeteer-core';
import { withDeadline } from './deadline.mjs';

const CHROMIUM_ARGS = [
  '--disable-quic',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
];

/**
 * Starts one of the two; `profile` is a folder that survives the browser, by default it is a fresh one; `program` stands in for the
 * browser's; `preferences` are Firefox's.
 */
export async function launchPuppeteer(name, programs, { args = [], profile, program, preferences, log, deadlineMs }) {
  const chromium = name === 'chromium';
  const root = process.getuid?.() === 0;
  const browser = await puppeteer.launch({
    browser: chromium ? 'chrome' : 'firefox',
    executablePath: program ?? programs.browser,
    headless: true,
    args: [...(chromium ? CHROMIUM_ARGS : []), ...(chromium && root ? ['--no-sandbox'] : []), ...args],
    protocolTimeout: 0, // deadlines are ours
    timeout: deadlineMs,
    networkEnabled: false, // else Chromium keeps what every page fetches for a debugger to look at: tens of megabytes
    ...(profile === undefined ? {} : { userDataDir: profile }),
    ...(preferences === undefined ? {} : { extraPrefsFirefox: preferences }),
  });
  return {
    version: await browser.version(),
    pid: browser.process().pid,
    newPage: async () => wrapPage(await browser.newPage(), { log, deadlineMs }),
    close: async () => {
      const child = browser.process();
      try {
        await withDeadline(browser.close(), 10_000, `${name} closing`);
      } catch {
        // A browser that crashed or hangs: its process is ours to end.
        child.kill('SIGKILL');
      }
    },
  };
}

function wrapPage(page, { log, deadlineMs }) {
  const lines = [];
  const record = (line) => {
    lines.push(line);
    log(line);
  };
  let fail;
  const crashed = new Promise((_, reject) => (fail = reject));
  crashed.catch(() => {});
  page.on('console', (message) => record(message.text()));
  page.on('pageerror', (error) => record(`uncaught: ${error?.stack ?? error}`));
  page.on('error', (error) => fail(error));
  let session; // what is overridden in it is so as long as it lives
  const guard = (promise, ms, what) => withDeadline(Promise.race([promise, crashed]), ms, what);
  return {
    console: lines,
    goto: (url) => guard(page.goto(url, { timeout: 0 }), deadlineMs, `loading ${url}`),
    reload: () => guard(page.reload({ timeout: 0 }), deadlineMs, 'reloading'),
    evaluate: (script, values, ms) => guard(page.evaluate(asSource(script, values)), ms ?? deadlineMs, 'the page'),
    setFiles: async (selector, files) => {
      const input = await guard(page.$(selector), deadlineMs, selector);
      await guard(input.uploadFile(...files), deadlineMs, `files for ${selector}`);
    },
    resize: (width, height) => guard(page.setViewport({ width, height }), deadlineMs, 'resizing'),
    limitQuota: async (bytes) => {
      session ??= await page.createCDPSession();
      const origin = new URL(page.url()).origin;
      const quota = bytes === undefined ? {} : { quotaSize: bytes };
      await guard(session.send('Storage.overrideQuotaForOrigin', { origin, ...quota }), deadlineMs, 'the quota');
    },
    /** Lets the page read and write the clipboard. */
    allowClipboard: async () => {
      session ??= await page.createCDPSession();
      const { origin } = new URL(page.url());
      const permissions = ['clipboardReadWrite', 'clipboardSanitizedWrite'];
      await guard(session.send('Browser.grantPermissions', { origin, permissions }), deadlineMs, 'the clipboard');
    },
    screenshot: (file) => guard(page.screenshot({ path: file }), deadlineMs, 'a screenshot'),
    workers: () => page.workers().map((worker) => worker.url()),
    close: () => guard(page.close(), deadlineMs, 'closing the page'),
  };
}

// Both protocols take source text; values go along as JSON, so that all three browsers see the same thing.
const asSource = (script, values) => `(${script})(...${JSON.stringify(values)})`;
