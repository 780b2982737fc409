/** What the demo decides by itself, without a page: the conversation, the dial's scale, the picture's geometry, figures and settings. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Engine, type OpenOptions, SluiceError, type Verdict } from 'sluice-llm';
import { answer } from '../../www/answering.js';
import { Conversation } from '../../www/conversation.js';
import { PLACES, bytesAt, isFree, placeOf } from '../../www/dial.js';
import { columnOf, flowLayout, rowsOf } from '../../www/flow-layout.js';
import { exact, percent, progress, seconds, size } from '../../www/format.js';
import { latest } from '../../www/latest.js';
import { newestPage } from '../../www/offline/newest-page.js';
import { Samples } from '../../www/samples.js';
import { Session, nameOf } from '../../www/session.js';
import { chatOptions, restoredSettings } from '../../www/settings.js';

describe('conversation', () => {
  const talked = (): Conversation => {
    const conversation = new Conversation();
    for (const [question, answer] of [
      ['a?', 'A'],
      ['b?', 'B'],
      ['c?', 'C'],
    ] as const) {
      Object.assign(conversation.ask(question), { text: answer, ending: 'done' });
    }
    return conversation;
  };
  const texts = (conversation: Conversation): string[] => conversation.turns.map(({ text }) => text);

  test('a retried answer drops all that came after it, an edited question its own answer too', () => {
    const conversation = talked();
    conversation.retry(3);
    assert.deepEqual(texts(conversation), ['a?', 'A', 'b?', '']);
    conversation.edit(0, 'z?');
    assert.deepEqual(texts(conversation), ['z?', '']);
    assert.throws(() => conversation.retry(0), RangeError);
  });

  test('the model is given the system prompt, and no question that has no answer but the last', () => {
    const conversation = talked();
    Object.assign(conversation.turns[3] ?? {}, { text: '', ending: 'failed' });
    conversation.ask('d?');
    assert.deepEqual(
      conversation.messages(' Be brief. ').map(({ role, content }) => `${role}: ${JSON.stringify(content)}`),
      ['system: "Be brief."', 'user: "a?"', 'assistant: "A"', 'user: "c?"', 'assistant: "C"', 'user: "d?"'],
    );
    assert.equal(new Conversation().messages(' ').length, 0);
  });

  test('it survives a reload; what is no conversation does not', () => {
    const conversation = talked();
    conversation.ask('d?').text = 'half';
    const restored = Conversation.restored(conversation.saved());
    assert.deepEqual(texts(restored), texts(conversation));
    assert.equal(restored.turns.at(-1)?.ending, 'stopped');
    for (const bad of [null, '', '{', '{}', '[1]', '[{"role":"assistant","text":"x"}]', '[{"role":"user","text":"x"}]']) {
      assert.equal(Conversation.restored(bad).turns.length, 0, String(bad));
    }
  });
});

describe('dial', () => {
  const scale = { floorBytes: 19_136_512, fullBytes: 201_064_448 };

  test('its ends are the floor and all, its places lie between and say themselves again', () => {
    assert.equal(bytesAt(scale, 0), scale.floorBytes);
    assert.equal(bytesAt(scale, PLACES), scale.fullBytes);
    let last = 0;
    for (let place = 0; place <= PLACES; place += 1) {
      const bytes = bytesAt(scale, place);
      assert.ok(bytes > last && bytes >= scale.floorBytes && bytes <= scale.fullBytes, `place ${place}: ${bytes}`);
      assert.equal(placeOf(scale, bytes), place);
      last = bytes;
    }
  });

  test('without room there is nothing to choose', () => {
    assert.ok(isFree(scale));
    assert.ok(!isFree({ floorBytes: 5e6, fullBytes: 5e6 }));
    assert.equal(placeOf({ floorBytes: 5e6, fullBytes: 5e6 }, 5e6), PLACES);
  });
});

describe('flow', () => {
  const layer = (index: number): { name: string; bytes: number }[] => [
    { name: `blk.${index}.attn_norm.weight`, bytes: 2304 },
    { name: `blk.${index}.attn_q.weight`, bytes: 207_360 },
    { name: `blk.${index}.ffn_down.weight`, bytes: 552_960 },
  ];
  const tensors = [
    { name: 'output_norm.weight', bytes: 2304 },
    { name: 'token_embd.weight', bytes: 30_000_000 },
    ...Array.from({ length: 30 }, (_, index) => layer(index)).flat(),
    { name: 'output.weight', bytes: 30_000_000 },
  ];

  test('each tensor has its cell, inside of the picture and beside no other', () => {
    const cells = flowLayout(tensors, 30, 360, 150);
    assert.equal(cells.length, tensors.length);
    for (const [index, cell] of cells.entries()) {
      assert.equal(cell.tensor, index);
      assert.ok(cell.width > 0 && cell.height > 0, tensors[index]?.name);
      assert.ok(
        cell.x >= 0 && cell.x + cell.width <= 360 && cell.y >= 0 && cell.y + cell.height <= 150.001,
        tensors[index]?.name,
      );
      for (const other of cells.slice(index + 1)) {
        const apart =
          cell.x + cell.width <= other.x ||
          other.x + other.width <= cell.x ||
          cell.y + cell.height <= other.y ||
          other.y + other.height <= cell.y;
        assert.ok(apart, `${String(tensors[index]?.name)} and ${String(tensors[other.tensor]?.name)}`);
      }
    }
  });

  test('columns follow the pass: what comes before the layers, the layers, what comes behind them', () => {
    assert.equal(columnOf('token_embd.weight', 30, false), 31, 'it is the head too');
    assert.deepEqual(
      ['token_embd.weight', 'rope_freqs.weight', 'blk.0.attn_q.weight', 'blk.29.ffn_up.weight', 'output.weight'].map((name) =>
        columnOf(name, 30, true),
      ),
      [0, 0, 1, 30, 31],
    );
  });

  test('rows are a part of their cell', () => {
    const cell = { tensor: 0, x: 0, y: 10, width: 5, height: 100 };
    assert.deepEqual(rowsOf(cell, 200, 50, 100), { ...cell, y: 35, height: 50 });
    assert.deepEqual(rowsOf(cell, 200, 150, 100), { ...cell, y: 85, height: 25 });
    assert.equal(rowsOf(cell, 0, 0, 1).height, 0);
  });
});

describe('figures', () => {
  test('sizes, shares, times', () => {
    assert.deepEqual([999, 98_362_432, 201_064_448, 4_683_074_240].map(size), ['1 kB', '98.4 MB', '201 MB', '4.68 GB']);
    assert.equal(exact(98_362_432), '98,362,432');
    assert.deepEqual([0, 0.001, 0.5, 0.999, 1].map(percent), ['0 %', '1 %', '50 %', '99 %', '100 %']);
    assert.deepEqual([0.2, 75, 3700].map(seconds), ['1 s', '1 min 15 s', '1 h 1 min']);
    assert.equal(progress(1e6, 98e6, 2e6, 48.5), '1.0 MB of 98.0 MB · 2.0 MB/s · 49 s left');
    assert.equal(progress(98e6, 98e6, 2e6, 0), '98.0 MB of 98.0 MB · 2.0 MB/s');
  });

  test('counts become rates, another engine begins anew, the oldest go', () => {
    const stats = {
      memoryBytes: 5e7,
      budgetBytes: 6e7,
      bytesRead: 0,
      stallMs: 0,
      decodeTokensPerSecond: 9,
    };
    const samples = new Samples();
    samples.add(1000, stats, true);
    samples.add(1500, { ...stats, bytesRead: 1e6, stallMs: 100 }, true);
    samples.add(2000, { ...stats, bytesRead: 1000, stallMs: 0 }, false);
    assert.deepEqual(samples.time, [0, 0.5, 1]);
    assert.deepEqual(samples.reading, [0, 2, 0]);
    assert.deepEqual(samples.stall, [0, 200, 0]);
    assert.deepEqual(samples.speed, [9, 9, 0]);
    for (let at = 0; at < 1000; at += 1) samples.add(3000 + at * 250, stats, false);
    assert.equal(samples.time.length, 240);
    assert.equal(samples.memory.length, 240);
  });
});

describe('settings', () => {
  test('what is empty or out of range is left to the package', () => {
    assert.deepEqual(
      chatOptions({ temperature: '0', topK: '12.7', topP: '1.5', minP: 'x', maxTokens: '', system: 'Be brief.' }),
      {
        contextShift: true,
        temperature: 0,
        topK: 12,
      },
    );
  });

  test('only texts of known names are taken back', () => {
    assert.deepEqual(restoredSettings('{"topK":"4","evil":"x","seed":7}'), { topK: '4' });
    for (const bad of [null, '', 'null', '3', '{']) assert.deepEqual(restoredSettings(bad), {});
  });
});

describe('session', () => {
  const refused = new SluiceError('invalid_option', 'refused');
  /** A session with a package that is made up; `plans` may be told to fail. */
  const made = async (): Promise<{ session: Session; faults: { plan: boolean }; opened: () => void; engines: Engine[] }> => {
    const faults = { plan: false };
    const fit = { floorBytes: 1, plan: { totalBytes: 9, budgetBytes: 9 }, refused: null };
    const plan = (): Promise<unknown> => (faults.plan ? Promise.reject(refused) : Promise.resolve(fit));
    const verdict = { model: {}, fit, plan, close: () => undefined } as unknown as Verdict;
    const waiting: (() => void)[] = [];
    const engines: Engine[] = [];
    const session = new Session(() => undefined, {
      inspect: () => Promise.resolve(verdict),
      open: (async (_: unknown, options: OpenOptions) => {
        await new Promise<void>((resolve, reject) => {
          waiting.push(resolve);
          options.signal?.addEventListener('abort', () => reject(refused));
        });
        const engine = {
          model: { chatTemplate: 'file' },
          stats: { generatedTokens: 1, decodeTokensPerSecond: 1 },
          close: () => Promise.resolve(),
          async *chat() {
            yield await Promise.resolve({ text: 'Paris', finishReason: 'stop' });
          },
        } as unknown as Engine;
        engines.push(engine);
        return engine;
      }) as never,
    });
    await session.choose({ url: 'http://h/m.gguf' });
    return { session, faults, opened: () => waiting.forEach((go) => go()), engines };
  };

  test('a change that is refused leaves an open engine open, and is forgotten with the next one', async () => {
    const { session, faults, opened, engines } = await made();
    assert.equal(session.phase, 'chosen');
    const opening = session.open();
    opened();
    await opening;
    faults.plan = true;
    await session.change({ context: 1e9, threads: undefined });
    assert.deepEqual([session.phase, session.failure?.error], ['ready', refused]);
    assert.equal(session.engine, engines[0]);
    faults.plan = false;
    await session.change({ context: undefined, threads: undefined });
    assert.equal(session.failure, undefined);
    await session.open();
    assert.equal(engines.length, 1);
  });

  test('a question that is asked while a model is being opened waits for it', async () => {
    const { session, opened, engines } = await made();
    void session.open();
    const conversation = new Conversation();
    const turn = conversation.ask('What is the capital of France?');
    const news = { onStatus: () => undefined, onAnswer: () => undefined };
    const answered = answer(session, conversation, turn, {}, new AbortController().signal, news);
    opened();
    await answered;
    assert.deepEqual([turn.text, turn.ending, engines.length], ['Paris', 'done', 1]);
  });

  test('opening that was given up is not waited for by the next one', async () => {
    const { session, opened, engines } = await made();
    const first = session.open();
    await session.shut();
    const second = session.open();
    await first;
    assert.equal(session.phase, 'opening');
    opened();
    await second;
    assert.deepEqual([session.phase, session.engine === engines[0], session.failure], ['ready', true, undefined]);
  });

  test('a dial that is moved while the verdict is given anew is planned by the new one', async () => {
    const fit = (totalBytes: number): unknown => ({ floorBytes: 1, plan: { totalBytes, budgetBytes: 9 }, refused: null });
    const verdict = (name: string): unknown => ({
      model: {},
      fit: { name },
      plan: ({ memory }: { memory?: number }) =>
        Promise.resolve({ ...(fit(9) as object), name: `${name} at ${memory ?? 'any'}` }),
      close: () => undefined,
    });
    let say = (_: unknown): void => undefined;
    const inspected = [Promise.resolve(verdict('first')), new Promise((resolve) => (say = resolve))];
    const session = new Session(() => undefined, { inspect: () => inspected.shift() as never, open: undefined as never });
    await session.choose({ url: 'http://h/m.gguf' });
    const reviewed = session.review();
    session.plan(5);
    say(verdict('second'));
    await reviewed;
    await new Promise((resolve) => setTimeout(resolve));
    assert.equal((session.fit as unknown as { name: string }).name, 'second at 5');
  });

  test('a source is called by the last part of its address, also by one that is badly written', () => {
    assert.equal(nameOf({ url: 'https://h/a/my%20model.gguf?token=x#y' }), 'my model.gguf');
    assert.equal(nameOf({ url: 'https://h/100%.gguf' }), '100%.gguf');
    assert.equal(nameOf({ url: 'https://h/' }), 'https://h/');
  });
});

test('the kept page stands in for a network that fails, is slow or answers with an error', async () => {
  const kept = new Response('kept');
  const got = (fetched: () => Promise<Response>, page: Response | undefined = kept): Promise<Response> =>
    newestPage(fetched, () => Promise.resolve(page), 20);
  const fresh = new Response('fresh');
  const failing = new Response('', { status: 503 });
  const redirection = Object.defineProperty(new Response(null, { status: 301 }), 'type', { value: 'opaqueredirect' });
  assert.equal(await got(() => Promise.resolve(fresh)), fresh);
  assert.equal(await got(() => Promise.resolve(redirection)), redirection);
  assert.equal(await got(() => Promise.resolve(failing)), kept);
  assert.equal(await got(() => Promise.reject(new TypeError('no network'))), kept);
  assert.equal(await got(() => new Promise(() => undefined)), kept);
  const none = (fetched: () => Promise<Response>): Promise<Response> => newestPage(fetched, () => Promise.resolve(undefined), 20);
  assert.equal(await none(() => Promise.resolve(failing)), failing);
  assert.equal((await none(() => Promise.reject(new TypeError('no network')))).type, 'error');
});

test('of requests that come while one is worked on only the last is done', async () => {
  const shown: number[] = [];
  const ask = latest(
    async (input: number) => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      if (input === 3) throw new Error('given up');
      return input * 10;
    },
    (result) => shown.push(result),
  );
  for (const input of [1, 2, 3, 4]) ask(input);
  await new Promise((resolve) => setTimeout(resolve, 40));
  ask(3);
  ask(5);
  await new Promise((resolve) => setTimeout(resolve, 40));
  assert.deepEqual(shown, [10, 40, 50]);
});
