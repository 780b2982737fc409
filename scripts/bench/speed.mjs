// Decode at a short context, and prefill and decode at about 550 tokens: Sluice, wllama and native llama.cpp take turns.
import { withBrowser } from '../browsers/index.mjs';
import { median } from '../measure/pss.mjs';
import { openInPage, openNative, serveContestants } from './contestants.mjs';
import { longPrompt, shortPrompt } from './prompts.mjs';

const SHORT_TOKENS = 48;
const LONG_TOKENS = 24;
const DEADLINE_MS = 300_000;

/** Tokens per second of decoding behind a few tokens of context. */
export function decode(setting) {
  return takeTurns(setting, async (contestant, turn) => ({
    decode: decodeRate(await contestant.generate(shortPrompt(turn), SHORT_TOKENS)),
  }));
}

/**
 * Tokens per second of prefill of about 550 tokens and of decoding behind them. Sluice decodes behind a short context in the same
 * turn: `kept` is the share of that speed which is left.
 */
export function prefill(setting) {
  return takeTurns(setting, async (contestant, turn, name) => {
    const long = await contestant.generate(longPrompt(turn), LONG_TOKENS);
    const found = {
      promptTokens: long.promptTokens,
      prefill: (long.promptTokens * 1000) / long.firstMs,
      longDecode: decodeRate(long),
    };
    if (name !== 'sluice') return found;
    const short = decodeRate(await contestant.generate(shortPrompt(turn), SHORT_TOKENS));
    return { ...found, kept: found.longDecode / short };
  });
}

const decodeRate = ({ tokens, decodeMs }) => ((tokens - 1) * 1000) / decodeMs;

/**
 * Opens all contestants, and measures them in turn. Gives `{ contestants: { NAME: { opened, rounds, median } | { absent } }, ratios }`:
 * `ratios` is for each other contestant the middle quotient, figure by figure, of Sluice's and its figure in the same turn.
 */
async function takeTurns({ browser, model, file, threads, build, rounds, python, log }, measure) {
  const server = await serveContestants(model);
  try {
    return await withBrowser(browser, { deadlineMs: DEADLINE_MS }, async (running) => {
      const start = {
        sluice: () => openInPage(running, 'sluice', server.origin, file, { threads, build }),
        wllama: () => openInPage(running, 'wllama', server.origin, file, { threads }),
        native: () => openNative(python, model, threads),
      };
      const contestants = {};
      const absent = {};
      for (const [name, open] of Object.entries(start)) {
        try {
          contestants[name] = await open();
          refuseOthers(contestants[name].opened, threads);
          await measure(contestants[name], -1, name); // warms code and caches
        } catch (error) {
          absent[name] = { absent: firstLine(error) };
          delete contestants[name];
          log(`${name} is absent: ${firstLine(error)}`);
        }
      }
      const found = Object.fromEntries(Object.entries(contestants).map(([name, { opened }]) => [name, { opened, rounds: [] }]));
      for (let turn = 0; turn < rounds; turn++) {
        for (const [name, contestant] of Object.entries(contestants))
          found[name].rounds.push(await measure(contestant, turn, name));
        log(
          `round ${turn + 1}: ${Object.entries(found)
            .map(([name, { rounds }]) => `${name} ${inWords(rounds.at(-1))}`)
            .join(' · ')}`,
        );
      }
      await contestants.native?.close();
      return { contestants: { ...withMedians(found), ...absent }, ratios: ratiosOf(found) };
    });
  } finally {
    await server.close();
  }
}

/** A figure of two threads that one thread made would be none. */
export function refuseOthers(opened, threads) {
  if (opened.threads !== threads) throw new Error(`it runs ${opened.threads} thread(s) where ${threads} were asked for`);
}

/** The first line of what went wrong. */
export const firstLine = (error) => String(error?.message ?? error).split('\n')[0];

const withMedians = (found) =>
  Object.fromEntries(Object.entries(found).map(([name, one]) => [name, { ...one, median: eachKey(one.rounds, median) }]));

function ratiosOf({ sluice, ...others }) {
  if (sluice === undefined) return {};
  const quotients = (other) =>
    other.rounds.map((theirs, turn) =>
      Object.fromEntries(
        Object.entries(theirs)
          .filter(([key]) => key !== 'promptTokens')
          .map(([key, value]) => [key, sluice.rounds[turn][key] / value]),
      ),
    );
  return Object.fromEntries(Object.entries(others).map(([name, other]) => [name, eachKey(quotients(other), median)]));
}

/** One object out of many with the same keys. */
export function eachKey(objects, reduce) {
  return Object.fromEntries(Object.keys(objects[0] ?? {}).map((key) => [key, reduce(objects.map((object) => object[key]))]));
}

const inWords = (figures) =>
  Object.entries(figures)
    .filter(([key]) => key !== 'promptTokens')
    .map(([key, value]) => `${key} ${value.toFixed(key === 'kept' ? 2 : 1)}`)
    .join(', ');
