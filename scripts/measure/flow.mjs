// `node scripts/measure/flow.mjs [--pairs N] [--browser NAME]`: what the demo's picture and charts cost. The same answer, alternating with the
// flow shown and not, on one compute thread, SmolLM2 streaming in a quarter of the dial; prints each pair's speeds and the median ratio.
import { parseArgs } from 'node:util';
import { serveDemo, visitor } from '../../tests/browser/visitor.mjs';
import { withBrowser } from '../browsers/index.mjs';

const { values } = parseArgs({
  options: {
    pairs: { type: 'string', default: '11' },
    browser: { type: 'string', default: 'chromium' },
    place: { type: 'string', default: '50' },
  },
});

const server = await serveDemo();
try {
  await withBrowser(values.browser, {}, measure);
} finally {
  await server.close();
}

async function measure(browser) {
  const page = await browser.newPage();
  if (page.resize) await page.resize(1360, 900);
  const me = visitor(page);
  await me.visit(server.url);
  await me.set({ temperature: '0', maxTokens: '96' });
  await me.evaluate(takeOneThread);
  await me.begin();
  await me.open();
  await me.ask('Tell me a long story about a river.');
  await me.answered();
  await me.dial(Number(values.place));
  await me.evaluate(() => document.getElementById('flow').scrollIntoView());
  const speed = async (on) => {
    await me.evaluate(showFlow, on);
    await me.press('#turns li:last-child .tools button');
    await me.answered();
    return me.evaluate(() => window.sluice.engine.stats.decodeTokensPerSecond);
  };
  await speed(true);
  const ratios = [];
  for (let pair = 0; pair < Number(values.pairs); pair += 1) {
    // Which one is first alternates too, so that a machine that warms up favours neither.
    const [first, second] = [await speed(pair % 2 === 0), await speed(pair % 2 !== 0)];
    const [on, off] = pair % 2 === 0 ? [first, second] : [second, first];
    ratios.push(on / off);
    console.log(`pair ${pair + 1}: ${on.toFixed(2)} tok/s with the flow, ${off.toFixed(2)} without: ${(on / off).toFixed(3)}`);
  }
  const median = ratios.sort((a, b) => a - b)[ratios.length >> 1];
  console.log(`flow: median of ${ratios.length} pairs ${median.toFixed(3)}`);
  console.log(`threads: ${await me.evaluate(() => window.sluice.engine.stats.threads)}`);
}

// These run in the page.

function takeOneThread() {
  const threads = document.getElementById('threads');
  threads.value = '1';
  threads.dispatchEvent(new Event('change'));
}

function showFlow(on) {
  const box = document.getElementById('flow-on');
  if (box.checked !== on) box.click();
}
