// `node scripts/demo-shots.mjs [FOLDER]`: pictures of the demo's states, at desktop and phone width, light and dark, from Chromium. The demo
// must be built (`npm run build`, then `npm start` once). For looking at: nothing compares them.
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { fixture, smollm2 } from '../tests/browser/models.mjs';
import { serveDemo, visitor } from '../tests/browser/visitor.mjs';
import { withBrowser } from './browsers/index.mjs';
import { root } from './repo.mjs';

const folder = path.resolve(process.argv[2] ?? path.join(root, 'target/demo-shots'));
const SIZES = { desktop: [1360, 900], phone: [390, 800] };
const QUESTION = 'List three facts about Paris, with **bold** names, and a short `code` example.';

await mkdir(folder, { recursive: true });
const server = await serveDemo();
try {
  for (const [width, sides] of Object.entries(SIZES)) {
    for (const theme of ['light', 'dark']) {
      await withBrowser('chromium', {}, async (browser) => {
        const page = await browser.newPage();
        await page.resize(...sides);
        await states(page, (name) => page.screenshot(path.join(folder, `${width}-${theme}-${name}.png`)), theme);
      });
    }
  }
} finally {
  await server.close();
}
console.log(`demo-shots: ${folder}`);

async function states(page, shoot, theme) {
  const me = visitor(page);
  const view = (name) => me.evaluate((name) => document.querySelector(`#views [data-to=${name}]`).click(), name);
  const down = (id) => me.evaluate((id) => document.getElementById(id).scrollIntoView({ block: 'start' }), id);
  server.traffic.bytesPerSecond = undefined;
  await me.visit(server.url);
  await me.theme(theme);
  await me.set({ temperature: '0', maxTokens: '160' });
  await shoot('1-welcome');
  await me.begin();
  await shoot('2-verdict');
  server.traffic.bytesPerSecond = 2e6;
  await me.press('#open');
  await me.waitFor(() => /left/.test(document.getElementById('loaded').textContent));
  await view('chat');
  await shoot('3-download');
  await page.reload();
  await me.waitFor(() => /Continue/.test(document.getElementById('open')?.textContent ?? ''));
  await shoot('4-resume');
  server.traffic.bytesPerSecond = undefined;
  await me.open();
  await me.dial(50);
  await view('memory');
  await down('memory');
  await shoot('5-dial');
  await me.ask(QUESTION);
  await me.waitFor(() => document.querySelector('.answer .body')?.textContent.length > 40);
  await view('flow');
  await down('flow');
  await new Promise((resolve) => setTimeout(resolve, 4000));
  await shoot('6-flow');
  await me.answered();
  await view('chat');
  await shoot('7-answer');
  await view('flow');
  await down('run');
  await shoot('8-run');
  await view('chat');
  await me.press('#settings-open');
  await shoot('9-settings');
  await me.evaluate(() => document.getElementById('settings').close());
  await me.pick(fixture('parser/bad/alignment-3.gguf'));
  await view('chat');
  await shoot('10-failure');
  await me.pick(smollm2);
  await shoot('11-picked');
}
