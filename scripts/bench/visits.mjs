// The first and the later visit of a page: from nothing to the first token of a prompt of about 30 tokens. Every visit has a browser
// process of its own; the later one has the profile that the first one left.
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { withBrowser } from '../browsers/index.mjs';
import { median } from '../measure/pss.mjs';
import { openInPage, serveContestants } from './contestants.mjs';
import { visitPrompt } from './prompts.mjs';
import { eachKey, firstLine, refuseOthers } from './speed.mjs';

const DEADLINE_MS = 300_000;

/** Milliseconds of opening and until the first token, of first and later visits: `{ NAME: { rounds, median } | { absent } }`. */
export async function visits({ browser, model, file, threads, build, rounds, log }) {
  const server = await serveContestants(model);
  const found = { sluice: { rounds: [] }, wllama: { rounds: [] } };
  try {
    for (let turn = 0; turn < rounds; turn++) {
      for (const [name, one] of Object.entries(found)) {
        if (one.absent !== undefined) continue;
        const options = name === 'sluice' ? { threads, build } : { threads };
        try {
          one.rounds.push(await twoVisits(browser, name, server.origin, file, options));
          const { firstToken, laterToken } = one.rounds.at(-1);
          log(`round ${turn + 1}: ${name}: first token after ${firstToken.toFixed(0)} ms, later ${laterToken.toFixed(0)} ms`);
        } catch (error) {
          found[name] = { absent: firstLine(error) };
          log(`${name} is absent: ${firstLine(error)}`);
        }
      }
    }
  } finally {
    await server.close();
  }
  for (const one of Object.values(found)) if (one.rounds !== undefined) one.median = eachKey(one.rounds, median);
  return { contestants: found };
}

async function twoVisits(browser, name, origin, file, options) {
  const profile = await mkdtemp(path.join(os.tmpdir(), 'visits-'));
  const visit = () =>
    withBrowser(browser, { profile, deadlineMs: DEADLINE_MS }, async (running) => {
      const contestant = await openInPage(running, name, origin, file, options);
      refuseOthers(contestant.opened, options.threads);
      const { firstMs, promptTokens } = await contestant.generate(visitPrompt(), 2);
      await contestant.close();
      return { open: contestant.opened.openMs, token: contestant.opened.openMs + firstMs, promptTokens };
    });
  try {
    const first = await visit();
    const later = await visit();
    return {
      promptTokens: first.promptTokens,
      firstOpen: first.open,
      firstToken: first.token,
      laterOpen: later.open,
      laterToken: later.token,
    };
  } finally {
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  }
}
