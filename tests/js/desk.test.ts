/** The reading side of a desk: what ends when, and that nothing is written to a place once its read has ended. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type FromReader, PortDesk, serveDesk } from '../../js/worker/desk.js';
import type { Sink, Source } from '../../js/worker/source.js';

const PLACE = 4096;
const [BELL, N_ENDED, HEAD_WORDS, ENTRY_WORDS] = [0, 1, 4, 8];
const [POSTED, DONE, FAILED, CANCELLED] = [1, 2, 3, 4];

/** A desk with a reader at it; `read` is what its source does. */
function served(source: Partial<Source>): {
  desk: PortDesk;
  memory: WebAssembly.Memory;
  /** Asks for a read; `rings` after it. */
  post: (entry: number, length: number, rings?: boolean) => void;
  state: (entry: number) => number;
  ended: () => Promise<void>;
  over: Promise<void>;
  close: () => void;
} {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
  const words = new Int32Array(memory.buffer);
  const { port1, port2 } = new MessageChannel();
  const desk = new PortDesk(port1, memory);
  void desk.serve(0);
  const said: FromReader[] = [];
  const port = { postMessage: (message: FromReader) => said.push(message) } as unknown as MessagePort;
  const none: Source = {
    fileCount: 1,
    bufferBytes: 0,
    rereads: true,
    size: () => 100,
    read: () => Promise.reject(new Error('unread')),
    cancel: () => undefined,
  };
  const over = serveDesk({ ...none, ...source }, { kind: 'serve', memory, address: 0 }, port);
  const at = (entry: number): number => HEAD_WORDS + entry * ENTRY_WORDS;
  return {
    desk,
    memory,
    post(entry, length, rings = true) {
      words.set([POSTED, 0, 0, 0, length, PLACE, 0], at(entry));
      Atomics.add(words, BELL, 1);
      if (rings) Atomics.notify(words, BELL);
    },
    state: (entry) => Atomics.load(words, at(entry)),
    ended: () => desk.changed(Atomics.load(words, N_ENDED)),
    over,
    close: () => (port1.close(), port2.close()),
  };
}

const byte = ({ memory }: { memory: WebAssembly.Memory }): number => new Uint8Array(memory.buffer)[PLACE] ?? -1;

test('bytes that come when their read has failed do not touch memory', async (t) => {
  let late: Sink | undefined;
  const reader = served({
    read(_file, _offset, _length, sink) {
      late = sink;
      return Promise.reject(new Error('the server went away'));
    },
  });
  t.after(reader.close);
  const ended = reader.ended();
  reader.post(0, 4);
  await ended;
  assert.equal(reader.state(0), FAILED);
  assert.equal(late?.(0, Uint8Array.of(7, 7, 7, 7)), false, 'nobody wants it');
  assert.equal(byte(reader), 0);
  reader.desk.close();
  await reader.over;
});

test('a desk that is closed ends what was asked for, and later bytes do not touch memory', async (t) => {
  let sinks = 0;
  let give = (): void => undefined;
  const reader = served({
    read: (_file, _offset, _length, sink) =>
      new Promise((resolve) => {
        give = () => {
          assert.equal(sink(0, Uint8Array.of(7, 7, 7, 7)), false, 'nobody wants it');
          sinks += 1;
          resolve();
        };
      }),
  });
  t.after(reader.close);
  reader.post(0, 4);
  await new Promise((resolve) => setTimeout(resolve, 20));
  reader.desk.close();
  reader.post(1, 4);
  await reader.over;
  assert.equal(reader.state(1), CANCELLED, 'what nobody had begun ends with the desk');
  const ended = reader.ended();
  give();
  await ended;
  assert.deepEqual([reader.state(0), sinks, byte(reader)], [CANCELLED, 1, 0]);
});

test('a ring that is lost delays a read and no more', async (t) => {
  const reader = served({ read: (_file, _offset, _length, sink) => (sink(0, Uint8Array.of(7, 7, 7, 7)), Promise.resolve()) });
  t.after(reader.close);
  await new Promise((resolve) => setTimeout(resolve, 20)); // it waits
  const ended = reader.ended();
  reader.post(0, 4, false);
  await ended;
  assert.deepEqual([reader.state(0), byte(reader)], [DONE, 7]);
  reader.desk.close();
  await reader.over;
});

test('a reader at rest leaves the thread to others, and reads on when it is rung', async (t) => {
  const reader = served({
    readInto: (_file, _offset, place) => {
      place.fill(9);
      return true;
    },
  });
  t.after(reader.close);
  let turns = 0;
  const turn = setInterval(() => (turns += 1), 1);
  t.after(() => clearInterval(turn));
  // One that blocked again and again would leave room for three in every 60 ms; a busy machine does so now and then.
  for (let window = 0; turns <= 5; window++) {
    assert.ok(window < 50, `${turns} turns: the reader blocks its thread`);
    turns = 0;
    await new Promise((resolve) => setTimeout(resolve, 60));
  }
  const ended = reader.ended();
  reader.post(0, 4);
  await ended;
  assert.deepEqual([reader.state(0), byte(reader)], [DONE, 9]);
  reader.desk.close();
  await reader.over;
});
