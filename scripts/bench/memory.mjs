// Peak memory of a later visit over a blank page: the proportional set size of the whole browser, Sluice with all weights resident and at
// the small budget, and wllama. What is measured runs in a browser of its own, with the profile of the visit before.
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { storeFiles } from '../browsers/engine-run.mjs';
import { withBrowser } from '../browsers/index.mjs';
import { measureBlank } from '../measure/memory.mjs';
import { median, samplePss } from '../measure/pss.mjs';
import { openInPage, serveContestants } from './contestants.mjs';
import { visitPrompt } from './prompts.mjs';
import { eachKey, firstLine, refuseOthers } from './speed.mjs';

const TOKENS = 32;
/** Sizes scatter less than times. */
const ROUNDS = 3;
const DEADLINE_MS = 300_000;

/** Bytes over a blank page: `{ NAME: { rounds: [{ peak, anonymous }], median } | { absent } }`. */
export async function memory({ browser, model, file, threads, build, small, rounds, log }) {
  const server = await serveContestants(model);
  const found = { sluice: { rounds: [] }, 'sluice-small': { rounds: [] }, wllama: { rounds: [] } };
  const options = { sluice: { threads, build }, 'sluice-small': { threads, build, memory: small }, wllama: { threads } };
  try {
    const blank = await measureBlank(browser);
    for (let turn = 0; turn < Math.min(rounds, ROUNDS); turn++) {
      for (const [name, one] of Object.entries(found)) {
        if (one.absent !== undefined) continue;
        try {
          one.rounds.push(await laterVisit(browser, name, server.origin, file, options[name], blank));
          log(`round ${turn + 1}: ${name} ${(one.rounds.at(-1).peak / 1e6).toFixed(1)} MB over a blank page`);
        } catch (error) {
          found[name] = { absent: firstLine(error) };
          log(`${name} is absent: ${firstLine(error)}`);
        }
      }
    }
    for (const one of Object.values(found)) if (one.rounds !== undefined) one.median = eachKey(one.rounds, median);
    return { blank: blank.total, budget: small, contestants: found };
  } finally {
    await server.close();
  }
}

async function laterVisit(browser, name, origin, file, options, blank) {
  const profile = await mkdtemp(path.join(os.tmpdir(), 'memory-'));
  const visit = (use) => withBrowser(browser, { profile, deadlineMs: DEADLINE_MS }, use);
  // A budget that streams needs a stored file.
  const stored = name === 'sluice-small' ? { stored: file } : {};
  try {
    await visit(async (running) => {
      if (stored.stored === undefined) return (await openInPage(running, name, origin, file, options)).close();
      const page = await running.newPage();
      await page.goto(`${origin}/`);
      await storeFiles(page, [`${origin}/models/${encodeURIComponent(file)}`], DEADLINE_MS);
    });
    return await visit(async (running) => {
      const sampling = samplePss(running.pid);
      const contestant = await openInPage(running, name === 'wllama' ? 'wllama' : 'sluice', origin, file, {
        ...options,
        ...stored,
      });
      refuseOthers(contestant.opened, options.threads);
      await contestant.generate(visitPrompt(), TOKENS);
      const samples = await sampling.stop();
      const peak = (key) => Math.max(...samples.map((sample) => sample[key])) - blank[key];
      return { peak: peak('total'), anonymous: peak('anonymous') };
    });
  } finally {
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  }
}
