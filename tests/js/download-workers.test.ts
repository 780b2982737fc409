/** One download worker after the other: those that do not start, those that fall mute, and the end of them all. This test is the workers. */

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { SluiceError } from '../../js/errors.js';
import type { FromDownload, ToDownload } from '../../js/store/download-protocol.js';
import { StoreEntry } from '../../js/store/entry.js';
import { type FakePage, beWorker, until, useFakePage } from './fake-page.js';
import { useFakeStore } from './fake-store.js';

beWorker();
const { DownloadWorkers } = await import('../../js/worker/download-workers.js');
const { Downloader } = await import('../../js/worker/downloader.js');

/** Workers that are started again whenever one is missing, and what becomes of them. */
interface Started extends FakePage {
  readonly workers: InstanceType<typeof DownloadWorkers>;
  readonly heard: FromDownload[];
  readonly failed: SluiceError[];
}

/** Starts one; time is the test's. */
function start(t: TestContext): Started {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const [heard, failed]: [FromDownload[], SluiceError[]] = [[], []];
  const page = useFakePage();
  const workers = new DownloadWorkers({
    onMessage: (message) => heard.push(message),
    onMissing: () => workers.start(),
    onFailed: (error) => failed.push(error),
  });
  t.after(() => workers.stop());
  workers.start();
  return { ...page, workers, heard, failed };
}

/** The worker at work is ended `ms` and a moment from now, and no sooner. */
function assertEndsAfter(t: TestContext, { dismissed }: FakePage, ms: number): void {
  const before = dismissed.length;
  t.mock.timers.tick(ms);
  t.mock.timers.tick(199);
  assert.equal(dismissed.length, before, `not before ${ms} ms`);
  t.mock.timers.tick(1);
  assert.equal(dismissed.length, before + 1, `after ${ms} ms`);
}

async function say({ hired, heard }: Started, message: FromDownload): Promise<void> {
  const before = heard.length;
  hired.at(-1)?.postMessage(message);
  await until(() => heard.length > before);
}

test('a worker that does not start is replaced, each next one gets twice the time, and the fourth is the last', (t) => {
  const started = start(t);
  for (const ms of [5000, 10_000, 20_000, 40_000]) assertEndsAfter(t, started, ms);
  const { hired, failed } = started;
  assert.deepEqual([hired.length, failed.length, failed[0]?.code], [4, 1, 'source_failed']);
  assert.match(failed[0]?.message ?? '', /worker\/download\.js cannot be used \(it did not start in time\).*cache: 'none'/);
});

test('a worker that falls mute is asked, and replaced when it does not answer', async (t) => {
  const started = start(t);
  const asked: ToDownload[] = [];
  const [first] = started.hired;
  if (first) first.onmessage = ({ data }: MessageEvent<ToDownload>) => asked.push(data);
  await say(started, { kind: 'alive' });
  const fallSilent = (): void => {
    t.mock.timers.tick(10_000);
    t.mock.timers.tick(200);
  };
  fallSilent();
  await until(() => asked.length > 0);
  assert.deepEqual(asked, [{ kind: 'ask' }]);
  await say(started, { kind: 'alive' });
  fallSilent();
  assertEndsAfter(t, started, 20_000);
  assert.deepEqual([started.hired.length, started.failed.length], [2, 0]);
  // That one after the other only says that it is there does not go on for ever.
  await say(started, { kind: 'alive' });
  fallSilent();
  assertEndsAfter(t, started, 20_000);
  assertEndsAfter(t, started, 20_000); // the third has said nothing
  await say(started, { kind: 'stored', bytes: 1 });
  fallSilent();
  assertEndsAfter(t, started, 20_000);
  assertEndsAfter(t, started, 10_000); // the first in a row was the last one
  assert.deepEqual([started.hired.length, started.failed.length], [6, 0]);
});

test('the next worker loads while the last one ends, and takes its place', (t) => {
  const started = start(t);
  started.workers.prepare();
  started.workers.prepare();
  assert.equal(started.hired.length, 2);
  started.workers.leave();
  assert.equal(started.workers.isRunning, false);
  started.workers.start();
  assert.deepEqual([started.hired.length, started.dismissed.length, started.workers.isRunning], [2, 1, true]);
  assertEndsAfter(t, started, 5000);
});

test('when all is stored no worker is left, nor the one that was to be next', async () => {
  useFakeStore();
  const page = useFakePage();
  const urls = ['https://models.test/a.gguf'];
  const entry = await StoreEntry.open(urls);
  const ignore = (): void => undefined;
  const events = { onFinished: ignore, onReleased: ignore, onSpoilt: ignore, onStored: ignore };
  const downloader = new Downloader(entry, { urls, headers: {}, credentials: null }, events);
  const confirmed = downloader.start([0]);
  await until(() => page.hired.length === 1);
  const [worker] = page.hired;
  const [facts] = entry.facts.files;
  assert.ok(worker && facts);
  const messages: FromDownload[] = [
    { kind: 'alive' },
    { kind: 'facts', file: 0, facts },
    { kind: 'retiring' },
    { kind: 'ended', complete: true, buffers: [] },
  ];
  for (const message of messages) worker.postMessage(message);
  await confirmed;
  await until(() => downloader.complete);
  assert.deepEqual([page.hired.length, page.dismissed.length], [2, 2]);
  downloader.close();
});
