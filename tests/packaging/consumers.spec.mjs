// Whoever installs the packed package streams SmolLM2 with it: bundled by webpack, Vite (built and in development), esbuild, or not
// at all; under a strict Content-Security-Policy, cross-origin isolated and not.
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, describe, it } from 'node:test';
import { createServer } from 'vite';
import { launch } from '../../scripts/browsers/index.mjs';
import { run } from '../../scripts/command.mjs';
import { builders, consumer } from '../../scripts/packaging/consumer.mjs';
import { modelsDir } from '../../scripts/repo.mjs';
import { serve } from '../../scripts/serve/server.mjs';

const DEADLINE_MS = 120_000;

// Nothing but files of the page's own origin, no inline script, no blob: worker.
const CSP = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; img-src 'self' data:";

// Consumer → where its built page is, and the browsers it runs in.
const consumers = [
  { name: 'none', browsers: ['chromium', 'firefox', 'webkit'] },
  { name: 'webpack', browsers: ['chromium', 'firefox', 'webkit'] },
  { name: 'vite', page: 'dist', browsers: ['chromium', 'firefox', 'webkit'] },
  { name: 'esbuild', browsers: ['chromium'] },
];

describe('the packed package', { timeout: 10 * DEADLINE_MS }, () => {
  const opened = new Map();
  /** The one page of the browser `name`, which is started when it is first needed. */
  const pageOf = async (name) => {
    if (!opened.has(name)) {
      const browser = await launch(name);
      opened.set(name, { browser, page: await browser.newPage() });
    }
    return opened.get(name).page;
  };
  after(async () => {
    for (const { browser } of opened.values()) await browser.close();
  });

  for (const { name, page = '.', browsers } of consumers) {
    describe(name === 'none' ? 'without a bundler' : `bundled by ${name}`, () => {
      let home;
      it('builds', async () => {
        home = await consumer(name);
        await builders[name](home);
      });
      for (const isolated of [true, false]) {
        for (const where of isolated ? browsers : ['chromium']) {
          it(`streams in ${where}${isolated ? '' : ', not isolated'}`, async () => {
            const site = await serve({
              isolated,
              mounts: { '/models': modelsDir, '/': path.join(home, page) },
              routes: (app) => app.use(strictPolicy),
            });
            // WebKitGTK has no shared memory as it comes.
            const threads = isolated && where !== 'webkit';
            await streams(await pageOf(where), site.origin, threads)
              .then(async () => assert.match(await violate(await pageOf(where)), /^script-src/, 'the policy is in force'))
              .finally(site.close);
          });
        }
      }
    });
  }

  it('streams in Node', async () => {
    const model = path.join(modelsDir, 'smollm2-135m-q4_1.gguf');
    const said = await run(process.execPath, ['main.mjs', model], { cwd: await consumer('node'), capture: true });
    assert.match(said, /^ Paris/);
  });

  it("Vite's development server serves it", async () => {
    const models = await serve({ mounts: { '/models': modelsDir } });
    const root = await consumer('vite');
    const vite = await createServer({ root, logLevel: 'error', server: { port: 0, proxy: { '/models': models.origin } } });
    try {
      await vite.listen();
      await streams(await pageOf('chromium'), vite.resolvedUrls.local[0], false);
    } finally {
      await vite.close();
      await models.close();
    }
  });
});

function strictPolicy(request, response, next) {
  response.set('Content-Security-Policy', CSP);
  next();
}

/** Adds a script that the policy forbids: what the browser says it has blocked. */
function violate(page) {
  return page.evaluate(
    () =>
      new Promise((resolve) => {
        document.addEventListener('securitypolicyviolation', (event) => resolve(event.effectiveDirective), { once: true });
        const script = document.createElement('script');
        script.textContent = 'document.title = "inline scripts run"';
        document.head.append(script);
        setTimeout(() => resolve(document.title), 2000);
      }),
  );
}

async function streams(page, address, threads) {
  const before = page.console.length;
  await page.goto(address);
  const ended = () => (['done', 'failed'].includes(document.title) ? document.body.textContent : null);
  assert.match(await page.waitFor(ended, [], DEADLINE_MS), / Paris/);
  assert.equal(await page.evaluate(() => document.body.dataset.build.endsWith('-threads')), threads);
  const pieces = await page.evaluate(() => document.body.childNodes.length);
  assert.ok(pieces > 4, `the answer came in ${pieces} pieces`);
  const lines = page.console.slice(before).filter((line) => !line.startsWith('[vite]'));
  assert.deepEqual(lines, []);
}
