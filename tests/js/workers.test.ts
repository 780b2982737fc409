/** Who starts which worker when, with workers that do nothing. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FromPage, ToPage, Welcome } from '../../js/protocol.js';
import { startMain } from '../../js/workers.js';

class IdleWorker extends EventTarget {
  static readonly all: IdleWorker[] = [];
  readonly name: string;
  welcome: Welcome | undefined;
  ended = false;

  constructor(url: URL) {
    super();
    this.name = url.pathname;
    IdleWorker.all.push(this);
  }

  postMessage(message: Welcome): void {
    this.welcome = message;
  }

  terminate(): void {
    this.ended = true;
  }
}

Object.assign(globalThis, { Worker: IdleWorker });

/** The main worker asks for helper `n`; what it hears of the page within a moment. */
async function hire(main: IdleWorker | undefined, n: number): Promise<FromPage | undefined> {
  const page = main?.welcome?.page;
  const employer = new MessageChannel();
  const heard = new Promise<FromPage | undefined>((resolve) => {
    setTimeout(() => resolve(undefined), 50);
    if (page !== undefined) page.onmessage = ({ data }: MessageEvent<FromPage>) => resolve(data);
  });
  page?.postMessage({ kind: 'hire', n, role: 'helper', employer: employer.port2 } satisfies ToPage, [employer.port2]);
  const said = await heard;
  employer.port1.close();
  return said;
}

test('the first helpers load beside the engine’s worker, are handed to it, and end with it', async () => {
  const main = startMain(new URL('http://host/worker/main.js'), () => undefined, 2);
  const names = (): string[] => IdleWorker.all.map(({ name }) => name);
  assert.deepEqual(names(), ['/worker/main.js', '/worker/helper.js', '/worker/helper.js']);
  const [worker, first, second] = IdleWorker.all;
  assert.equal(await hire(worker, 1), undefined);
  assert.equal(first?.welcome?.kind, 'welcome');
  assert.equal(second?.welcome, undefined, 'nobody has asked for it');
  assert.equal(IdleWorker.all.length, 3);

  second?.dispatchEvent(new Event('error')); // it could not be loaded
  assert.deepEqual(await hire(worker, 2), { kind: 'fault', n: 2, said: '' });
  await hire(worker, 3);
  assert.equal(IdleWorker.all.length, 4, 'one more than load beforehand');

  main.terminate();
  worker?.welcome?.page.close();
  assert.ok(IdleWorker.all.every(({ ended }) => ended));
  IdleWorker.all.length = 0;
  startMain(new URL('http://host/worker/main.js'), () => undefined, 2).terminate();
  IdleWorker.all[0]?.welcome?.page.close();
  assert.ok(IdleWorker.all.length === 3 && IdleWorker.all.every(({ ended }) => ended), 'also those nobody asked for');
});
