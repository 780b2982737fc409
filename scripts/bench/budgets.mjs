// The dial between memory and speed: decode at six budgets from the floor to the one that keeps all weights, read from OPFS.
import { storeFiles } from '../browsers/engine-run.mjs';
import { withBrowser } from '../browsers/index.mjs';
import { median } from '../measure/pss.mjs';
import { openInPage, serveContestants } from './contestants.mjs';
import { shortPrompt } from './prompts.mjs';
import { refuseOthers } from './speed.mjs';

const STEPS = 5;
const TOKENS = 48;
const DEADLINE_MS = 300_000;

/**
 * `{ points: [{ memory, streamedBytes, rounds, tokensPerSecond }], rises }`: whether each budget is faster than the one below, by the
 * middle one of the quotients of each turn.
 */
export async function budgets({ browser, model, file, threads, build, rounds, log }) {
  const server = await serveContestants(model);
  try {
    return await withBrowser(browser, { deadlineMs: DEADLINE_MS }, async (running) => {
      const page = await running.newPage();
      await page.goto(`${server.origin}/`);
      const [stored] = await storeFiles(page, [`${server.origin}/models/${encodeURIComponent(file)}`], DEADLINE_MS);
      const open = (memory) => openInPage(running, 'sluice', server.origin, file, { stored, build, threads, memory });
      const whole = await open(WHOLE);
      refuseOthers(whole.opened, threads);
      const { floorBytes: floor, totalBytes: all } = whole.opened.plan;
      await whole.close();
      const points = Array.from({ length: STEPS + 1 }, (_, step) => ({
        memory: megabyteAbove(floor + ((all - floor) * step) / STEPS),
        rounds: [],
      }));
      for (let turn = 0; turn < rounds; turn++) {
        for (const point of points) {
          const contestant = await open(point.memory);
          point.streamedBytes = contestant.opened.plan.streamedBytesPerToken;
          await contestant.generate(shortPrompt(-1), TOKENS / 2); // warms code and caches
          const { tokens, decodeMs } = await contestant.generate(shortPrompt(turn), TOKENS);
          point.rounds.push(((tokens - 1) * 1000) / decodeMs);
          await contestant.close();
        }
        log(
          `round ${turn + 1}: ${points.map(({ memory, rounds }) => `${memory / 1e6} MB ${rounds.at(-1).toFixed(1)}`).join(', ')} tok/s`,
        );
      }
      for (const point of points) point.tokensPerSecond = median(point.rounds);
      const step = (below, above) => median(above.rounds.map((speed, turn) => speed / below.rounds[turn]));
      const rises = points.slice(1).every((point, i) => step(points[i], point) > 1);
      return { points, rises };
    });
  } finally {
    await server.close();
  }
}

/** More than any of the models takes. */
const WHOLE = 2e9;
const megabyteAbove = (bytes) => Math.ceil(bytes / 1e6) * 1e6;
