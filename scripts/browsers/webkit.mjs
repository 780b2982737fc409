// WebKitGTK's MiniBrowser under Xvfb, driven by WebKitWebDriver. One command at a time: the protocol has one current window.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { once } from 'node:events';
import os from 'node:os';
import path from 'node:path';
import { sleep, withDeadline } from './deadline.mjs';
import { startOwned } from './owned-process.mjs';
import { ELEMENT, command } from './webdriver.mjs';

/** Starts it. `sharedMemory` switches SharedArrayBuffer on, which this engine has but does not offer by default. */
export async function launchWebkit(programs, { args = [], sharedMemory = false, log, deadlineMs }) {
  const home = await mkdtemp(path.join(os.tmpdir(), 'webkit-'));
  const stack = [() => rm(home, { recursive: true, force: true })];
  const close = async () => {
    while (stack.length > 0)
      await stack
        .pop()()
        .catch(() => {});
  };
  try {
    const display = await startXvfb(programs.xvfb, stack, deadlineMs);
    const env = { DISPLAY: display, HOME: home, XDG_CACHE_HOME: home, XDG_CONFIG_HOME: home, XDG_DATA_HOME: home };
    env.JSC_useSharedArrayBuffer = sharedMemory ? '1' : '0';
    if (process.getuid?.() === 0) env.WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS = '1';
    const { origin, pid } = await startDriver(programs.driver, env, stack, deadlineMs);
    const options = { binary: programs.browser, args: ['--automation', ...args] };
    const capabilities = { alwaysMatch: { 'webkitgtk:browserOptions': options } };
    const started = command(origin, 'POST', '/session', { capabilities });
    const session = await withDeadline(started, deadlineMs, 'WebKit starting');
    const send = oneAtATime((method, path, body) => command(origin, method, `/session/${session.sessionId}${path}`, body));
    stack.push(() => withDeadline(send(null, 'DELETE', ''), 3000, 'WebKit closing'));
    await send(null, 'POST', '/timeouts', { script: null, pageLoad: 3_600_000 }); // deadlines are ours
    let first = await send(null, 'GET', '/window');
    const newPage = async () => {
      const handle = first ?? (await send(null, 'POST', '/window/new', { type: 'tab' })).handle;
      first = null;
      return wrapPage((...rest) => send(handle, ...rest), { log, deadlineMs });
    };
    return { version: `${session.capabilities.browserName}/${session.capabilities.browserVersion}`, pid, newPage, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function startXvfb(program, stack, deadlineMs) {
  const args = ['-displayfd', '3', '-screen', '0', '1280x1024x24', '-nolisten', 'tcp'];
  const { child, stop } = await startOwned(program, args, { stdio: ['ignore', 'ignore', 'ignore', 'pipe'] });
  stack.push(stop);
  const [text] = await withDeadline(once(child.stdio[3].setEncoding('utf8'), 'data'), deadlineMs, 'Xvfb starting');
  return `:${text.trim()}`;
}

async function startDriver(program, env, stack, deadlineMs) {
  const port = await freePort();
  const { child, stop } = await startOwned(program, [`--port=${port}`, '--host=127.0.0.1'], { env, stdio: 'ignore' });
  stack.push(stop);
  const origin = `http://127.0.0.1:${port}`;
  const end = Date.now() + deadlineMs;
  while (!(await command(origin, 'GET', '/status').catch(() => null))) {
    if (Date.now() > end) throw new Error('WebKitWebDriver does not answer');
    await sleep(50);
  }
  return { origin, pid: child.pid };
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

// Commands wait for those before them; one for another window than the last first switches to it.
function oneAtATime(send) {
  let last = Promise.resolve();
  let current = null;
  return (handle, ...rest) => {
    const result = last.then(async () => {
      if (handle !== null && handle !== current) {
        await send('POST', '/window', { handle });
        current = handle;
      }
      return send(...rest);
    });
    last = result.catch(() => {});
    return result;
  };
}

function wrapPage(send, { log, deadlineMs }) {
  const lines = [];
  const timed = (promise, ms, what) => withDeadline(promise, ms ?? deadlineMs, what);
  const evaluate = async (script, values, ms) => {
    const started = `window.__evaluated = { done: false }; (async () => (${script})(...arguments[0]))().then(
      (value) => (window.__evaluated = { done: true, value }),
      (error) => (window.__evaluated = { done: true, error: String(error?.message ?? error), stack: error?.stack }));`;
    const polled = async () => {
      await send('POST', '/execute/sync', { script: started, args: [values] });
      // Polled, so that a script which never settles does not block the driver's only command channel.
      for (;;) {
        const { done, value, error, stack } = await send('POST', '/execute/sync', { script: TAKE_EVALUATED, args: [] });
        if (error !== undefined) throw Object.assign(new Error(error), { pageStack: stack });
        if (done) return value;
        await sleep(20);
      }
    };
    try {
      return await timed(polled(), ms, 'the page');
    } finally {
      await drain();
    }
  };
  const drain = async () => {
    const taken = await send('POST', '/execute/sync', { script: TAKE_CONSOLE, args: [] }).catch(() => []);
    for (const line of taken ?? []) {
      lines.push(line);
      log(line);
    }
  };
  const record = () => send('POST', '/execute/sync', { script: RECORD_CONSOLE, args: [] });
  return {
    console: lines,
    goto: async (url) => {
      await timed(send('POST', '/url', { url }), undefined, `loading ${url}`);
      await record();
    },
    reload: async () => {
      await timed(send('POST', '/refresh'), undefined, 'reloading');
      await record();
    },
    evaluate,
    setFiles: async (selector, files) => {
      const element = await send('POST', '/element', { using: 'css selector', value: selector });
      await timed(send('POST', `/element/${element[ELEMENT]}/value`, { text: files.join('\n') }), undefined, selector);
    },
    screenshot: async (file) => {
      const png = await timed(send('GET', '/screenshot'), undefined, 'a screenshot');
      await writeFile(file, Buffer.from(png, 'base64'));
    },
    close: async () => {
      await drain();
      await timed(send('DELETE', '/window'), undefined, 'closing the page');
    },
  };
}

const TAKE_EVALUATED = 'return window.__evaluated;';
const TAKE_CONSOLE = 'return window.__console ? window.__console.splice(0) : [];';

// This driver has no command for the console, so the page keeps it; what it wrote before its load event is not seen.
const RECORD_CONSOLE = `
  if (window.__console) return;
  const lines = (window.__console = []);
  const show = (value) => (value instanceof Error ? String(value.stack || value) : typeof value === 'object' ? JSON.stringify(value) : String(value));
  for (const level of ['debug', 'log', 'info', 'warn', 'error']) {
    const write = console[level].bind(console);
    console[level] = (...values) => { lines.push(values.map(show).join(' ')); write(...values); };
  }
  addEventListener('error', (event) => lines.push('uncaught: ' + (event.error ? show(event.error) : event.message)));
  addEventListener('unhandledrejection', (event) => lines.push('uncaught: ' + show(event.reason)));`;
