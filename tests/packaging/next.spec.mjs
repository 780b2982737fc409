// A client component of Next.js streams SmolLM2 with the packed package, built by either of its bundlers. It installs the framework
// (350 MB), so it runs on demand: `npm run check:packaging -- next`.
import assert from 'node:assert/strict';
import { mkdir, symlink } from 'node:fs/promises';
import path from 'node:path';
import { before, describe, it } from 'node:test';
import { withDeadline } from '../../scripts/browsers/deadline.mjs';
import { withBrowser } from '../../scripts/browsers/index.mjs';
import { startOwned } from '../../scripts/browsers/owned-process.mjs';
import { run } from '../../scripts/command.mjs';
import { consumer } from '../../scripts/packaging/consumer.mjs';
import { modelsDir } from '../../scripts/repo.mjs';

const DEADLINE_MS = 120_000;
const env = { NEXT_TELEMETRY_DISABLED: '1' };

describe('Next.js', { timeout: 10 * DEADLINE_MS }, () => {
  let home, next;
  before(async () => {
    home = await consumer('next');
    next = path.join(home, 'node_modules/next/dist/bin/next');
    await mkdir(path.join(home, 'public'));
    await symlink(modelsDir, path.join(home, 'public/models'));
  });

  for (const bundler of ['turbopack', 'webpack']) {
    it(`a client component streams, built by ${bundler}`, async () => {
      await run(process.execPath, [next, 'build', `--${bundler}`], { capture: true, cwd: home, env });
      const server = await startOwned(process.execPath, [next, 'start', '--port', '0'], { cwd: home, env });
      const origin = await withDeadline(printedOrigin(server), DEADLINE_MS, 'next start');
      await withBrowser('chromium', {}, async (browser) => {
        const page = await browser.newPage();
        await page.goto(origin);
        const ended = () => (['done', 'failed'].includes(document.title) ? document.body.textContent : null);
        assert.match(await page.waitFor(ended, [], DEADLINE_MS), / Paris/);
        assert.deepEqual(page.console, []);
      }).finally(() => server.stop());
    });
  }
});

// It is listened to until it ends: a program whose output is closed may die of that.
function printedOrigin({ child, ended }) {
  let text = '';
  const printed = new Promise((resolve) => {
    child.stdout.setEncoding('utf8').on('data', (part) => {
      const url = /http:\/\/localhost:\d+/.exec((text += part));
      if (url) resolve(url[0]);
    });
  });
  return Promise.race([printed, ended.then(() => Promise.reject(new Error(`next start ended\n${text}`)))]);
}
