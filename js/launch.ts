/** What every call that works in a worker of its own begins with: which build, the worker, and the model's source as messages carry it. */

import { capabilities } from './capabilities.js';
import { INTERNAL_MESSAGE, SluiceError } from './errors.js';
import { absoluteUrl, checkedAssets, checkedCredentials, plainHeaders } from './given.js';
import { whenGone } from './life.js';
import type { Assets, BuildName, EngineOptions, ModelFile, ModelSource, OpenOptions } from './options.js';
import type { Calls, News, SourceSpec } from './protocol.js';
import { Client } from './rpc.js';
import { type EnginePort, type OnFault, startMain } from './workers.js';

/** What a page in a browser and a program in Node do differently. */
export interface Surroundings {
  /**
   * Starts the engine's worker, the package's own without a `url`; `onFault` hears once what it died of, an empty text if it never ran.
   * It is going to ask for `nHelpers` at once.
   */
  startWorker(url: URL | undefined, onFault: OnFault, nHelpers: number): EnginePort;
  /** The path that `file` names, if it is not the address of something to fetch. */
  localPath(file: string | URL): string | undefined;
}

/** The package runs elsewhere than in a page. */
export function runIn(other: Surroundings): void {
  surroundings = other;
}

/** A running worker and the calling side of its calls. */
export interface Launched {
  client: Client<Calls, News>;
  build: BuildName;
  /** Ends the worker: all that is pending and all that comes later rejects with `error`. Resolves when what it held is free. */
  end: (error: unknown) => Promise<void>;
}

/** Starts a worker that will `open` or `inspect` a model. */
export function launch(options: Pick<OpenOptions, 'assets' | 'build'>, purpose: 'open' | 'inspect'): Launched {
  const build = chooseBuild(options.build ?? 'auto');
  const onFault = (said: string): void => fault(said);
  const nHelpers = purpose === 'open' && build.endsWith('-threads') ? FIRST_HELPERS : 0;
  const port = surroundings.startWorker(workerUrl(options.assets), onFault, nHelpers);
  const { fault, ...launched } = attach(port, build, SILENCE_MS);
  return launched;
}

/**
 * The calling side of a worker that runs. `fault` is for what the worker died of. One that has not said within `silenceMs` that it lives
 * is none of ours.
 */
export function attach(port: EnginePort, build: BuildName, silenceMs?: number): Launched & { fault: (said: string) => void } {
  const client = new Client<Calls, News>(port, () => port.terminate());
  const lost = (error: SluiceError): void => {
    client.fail(error);
    port.terminate();
  };
  const stopWaiting = silenceMs === undefined ? () => undefined : after(silenceMs, () => lost(silentWorker(silenceMs)));
  const fault = (said: string): void => {
    stopWaiting();
    lost(workerError(said));
  };
  port.addEventListener('messageerror', () => fault('a message that could not be read'));
  let over: Promise<void> | undefined;
  client.hear((news) => {
    if (news.kind !== 'alive') return;
    stopWaiting();
    if (news.lock === null) return;
    over = whenGone(news.lock);
    over.then(() => fault('it ended without a word')).catch(() => undefined);
  });
  const end = async (error: unknown): Promise<void> => {
    stopWaiting();
    // A worker that is not known to live has opened nothing; one that is at work comes to it within a step.
    if (over === undefined) client.fail(error);
    else await atMost(LET_GO_MS, client.end(error));
    await port.terminate();
    if (over !== undefined) await atMost(GONE_MS, over);
  };
  return { client, build, end, fault };
}

/** Calls `late` after `ms`, unless what it gives back was called. In two halves: a page that was stopped meanwhile reads its messages first. */
function after(ms: number, late: () => void): () => void {
  let timer = setTimeout(() => (timer = setTimeout(late, ms / 2)), ms / 2);
  return () => clearTimeout(timer);
}

/** Waits for `done`, whatever becomes of it, but not longer than that. */
async function atMost(ms: number, done: Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)));
  await Promise.race([done.catch(() => undefined), late]);
  clearTimeout(timer);
}

/** What `open` and `inspect` ask of the worker: the source, the engine's own options, and where the wasm module is. */
export function openRequest(source: ModelSource, options: OpenOptions, build: BuildName): Calls['open']['request'] {
  const assets = checkedAssets(options.assets);
  return {
    source: sourceSpec(source, options),
    options: engineOptions(options),
    build,
    wasm: assets.wasm === undefined ? null : absoluteUrl(assets.wasm, 'assets.wasm'),
    usefulThreads: usefulThreads(build),
  };
}

/** The options that are for the engine in the worker. */
export function engineOptions(options: OpenOptions): EngineOptions {
  const { build: _b, headers: _h, credentials: _c, cache: _k, assets: _a, signal: _s, onProgress: _p, ...rest } = options;
  return sendable(rest);
}

/** Refuses what no message can carry; everything else is Rust's to judge. */
export function sendable<T extends object>(options: T): T {
  for (const [option, value] of Object.entries(options)) {
    if (typeof value === 'function' || typeof value === 'symbol') {
      throw new SluiceError('invalid_option', `unknown option '${option}'`, { key: option });
    }
  }
  return options;
}

/** Keeps what was measured: how many threads are worth having on this device. */
export function keepUsefulThreads(build: BuildName, n: number): void {
  known.set(build, n);
  try {
    localStorage.setItem(threadsKey(build), String(n));
  } catch {
    // a page without storage measures again at its next visit
  }
}

/** What was measured on this page or at an earlier visit. */
function usefulThreads(build: BuildName): number | null {
  try {
    const stored = Number(globalThis.localStorage?.getItem(threadsKey(build)));
    if (stored >= 1 && stored <= MOST_THREADS && Number.isInteger(stored)) return stored;
  } catch {
    // a page without storage
  }
  return known.get(build) ?? null;
}

/** Another processor, or another number of cores that the browser shows, is another device. */
function threadsKey(build: BuildName): string {
  return `sluice.threads.${build}.${navigator.hardwareConcurrency}`;
}

const known = new Map<BuildName, number>();

/** More than any measurement finds: who wrote that? */
const MOST_THREADS = 64;

function chooseBuild(wish: string): BuildName {
  const { build: best, relaxedSimd, threads, reasons } = capabilities();
  if (wish !== 'auto' && !isBuild(wish)) {
    const names = BUILDS.map((name) => `'${name}'`).join(', ');
    throw new SluiceError('invalid_option', `option 'build' must be 'auto' or one of ${names}`, { key: 'build' });
  }
  if (best === null) throw new SluiceError('misuse', `this browser cannot run Sluice: ${reasons[0] ?? ''}`);
  if (wish === 'auto') return best;
  const lacking = (what: string): SluiceError =>
    new SluiceError('invalid_option', `option 'build': ${what}; use 'auto'`, { key: 'build' });
  if (wish.startsWith('relaxed') && !relaxedSimd) throw lacking('this browser has no relaxed SIMD');
  if (wish.endsWith('-threads') && !threads) throw lacking(reasons.find((reason) => reason.startsWith('one')) ?? 'no threads');
  return wish;
}

function isBuild(name: string): name is BuildName {
  return (BUILDS as readonly string[]).includes(name);
}

function workerUrl(assets: Assets | undefined): URL | undefined {
  const { worker } = checkedAssets(assets);
  return worker === undefined ? undefined : new URL(absoluteUrl(worker, 'assets.worker'));
}

const browser: Surroundings = {
  startWorker(url, onFault, nHelpers) {
    try {
      return startMain(url, onFault, nHelpers);
    } catch {
      throw workerError(''); // a worker of another origin, or a policy that is enforced at once
    }
  },
  localPath: () => undefined,
};

let surroundings = browser;

/** What a fault of the worker means: it broke, and says something, or its module could not be loaded. */
function workerError(said: string): SluiceError {
  if (said) return new SluiceError('internal', INTERNAL_MESSAGE, { thrown: 'worker' });
  const message =
    "the engine's worker could not be started: its file worker/main.js is missing where the package looks for it, or of another origin (see the option 'assets'), " +
    'or the page forbids workers (Content-Security-Policy worker-src)';
  return new SluiceError('source_failed', message, { reason: 'worker' });
}

/** The worker runs, and is not ours. */
function silentWorker(ms: number): SluiceError {
  const message =
    `the engine's worker has said nothing for ${ms / 1000} s: what the option 'assets.worker' names is not the file worker/main.js ` +
    'of this package, or it and what it imports take too long to load; name that file, or leave the option out';
  return new SluiceError('source_failed', message, { reason: 'worker' });
}

function sourceSpec(source: ModelSource, requests: Pick<OpenOptions, 'headers' | 'credentials' | 'cache'>): SourceSpec {
  const { headers, credentials, cache = 'opfs' } = requests;
  if (cache !== 'opfs' && cache !== 'none') {
    throw new SluiceError('invalid_option', "option 'cache' must be 'opfs' or 'none'", { key: 'cache' });
  }
  checkedCredentials(credentials);
  const files: readonly ModelFile[] = isList(source) ? source : [source];
  const urls: string[] = [];
  const paths: string[] = [];
  const blobs: Blob[] = [];
  const handles: FileSystemFileHandle[] = [];
  for (const file of files) {
    if (typeof file === 'string' || file instanceof URL) {
      const path = surroundings.localPath(file);
      if (path === undefined) urls.push(absoluteUrl(file, 'source'));
      else paths.push(path);
    } else if (file instanceof Blob) blobs.push(file);
    else if (typeof file?.getFile === 'function') handles.push(file);
    else throw wrongSource('must be an address, a File or Blob, a file handle, or a list of these');
  }
  if (files.length === 0) throw wrongSource('is an empty list');
  if (urls.length === files.length)
    return { kind: 'range', urls, headers: plainHeaders(headers), credentials: credentials ?? null, cache };
  if (paths.length === files.length) return { kind: 'file', paths };
  if (blobs.length === files.length) return { kind: 'blob', blobs };
  if (handles.length === files.length) return { kind: 'handle', handles };
  throw wrongSource('mixes kinds: the files of a split model must all be addresses, all be picked files or all be file handles');
}

function wrongSource(what: string): SluiceError {
  return new SluiceError('invalid_option', `the source ${what}`, { key: 'source' });
}

function isList(source: ModelSource): source is readonly ModelFile[] {
  return Array.isArray(source);
}

/** The worker says that it lives before it loads the wasm module; what it needs for that is one small file. */
const SILENCE_MS = 60_000;
/** A step of the engine takes some 20 ms; a worker that says nothing for so long is ended as it is. */
const LET_GO_MS = 1000;
/** A browser that keeps the lock of a worker that has ended must not keep the page. */
const GONE_MS = 5000;

const BUILDS = ['simd', 'relaxed', 'simd-threads', 'relaxed-threads'] as const satisfies readonly BuildName[];
/** Every engine with threads has one that plans and one that reads; those that compute are wanted later. */
const FIRST_HELPERS = 2;
