/** What every call that works in a worker of its own begins with: which build, the worker, and the model's source as messages carry it. */

import { capabilities } from './capabilities.js';
import { INTERNAL_MESSAGE, SluiceError } from './errors.js';
import type { Assets, BuildName, EngineOptions, ModelFile, ModelSource, OpenOptions } from './options.js';
import type { Calls, News, SourceSpec } from './protocol.js';
import { Client, type Endpoint } from './rpc.js';

/** A worker, or what stands for one in tests. */
export interface EnginePort extends Endpoint {
  terminate(): void;
}

/** A running worker and the calling side of its calls. */
export interface Launched {
  port: EnginePort;
  client: Client<Calls, News>;
  build: BuildName;
}

/** Starts a worker for `build`; `onNews` hears what it says unasked. */
export function launch(options: Pick<OpenOptions, 'assets' | 'build'>, onNews?: (news: News) => void): Launched {
  const build = chooseBuild(options.build ?? 'auto');
  const port = startWorker(options.assets);
  const client = new Client<Calls, News>(port, onNews);
  port.addEventListener('error', (event) => {
    event.preventDefault();
    client.fail(workerError(event));
    port.terminate();
  });
  return { port, client, build };
}

/** What `open` and `inspect` ask of the worker: the source, the engine's own options, and where the wasm module is. */
export function openRequest(source: ModelSource, options: OpenOptions, build: BuildName): Calls['open']['request'] {
  const { headers, credentials, assets } = options;
  return {
    source: sourceSpec(source, headers, credentials),
    options: engineOptions(options),
    build,
    wasm: assets?.wasm === undefined ? null : absoluteUrl(assets.wasm, 'assets.wasm'),
  };
}

/** The options that are for the engine in the worker. */
export function engineOptions(options: OpenOptions): EngineOptions {
  const { build: _b, headers: _h, credentials: _c, assets: _a, signal: _s, onProgress: _p, ...rest } = options;
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

function chooseBuild(wish: string): BuildName {
  const { build: best, relaxedSimd, reasons } = capabilities();
  if (wish !== 'auto' && wish !== 'simd' && wish !== 'relaxed') {
    throw new SluiceError('invalid_option', "option 'build' must be 'auto', 'simd' or 'relaxed'", { key: 'build' });
  }
  if (best === null) throw new SluiceError('misuse', `this browser cannot run Sluice: ${reasons[0] ?? ''}`);
  if (wish === 'relaxed' && !relaxedSimd) {
    throw new SluiceError('invalid_option', "option 'build': this browser has no relaxed SIMD; use 'auto'", { key: 'build' });
  }
  return wish === 'auto' ? best : wish;
}

function startWorker(assets: Assets | undefined): Worker {
  if (assets?.worker !== undefined) {
    return new Worker(absoluteUrl(assets.worker, 'assets.worker'), { type: 'module', name: 'sluice' });
  }
  return new Worker(new URL('./worker/main.js', import.meta.url), { type: 'module', name: 'sluice' });
}

/** What an `error` event of the worker means: its module could not be loaded, or it broke. */
function workerError(event: ErrorEvent): SluiceError {
  if (event.message) return new SluiceError('internal', INTERNAL_MESSAGE, { thrown: 'worker' });
  const message =
    "the engine's worker could not be started: its file worker/main.js is missing where the package looks for it (see the option 'assets'), " +
    'or the page forbids workers (Content-Security-Policy worker-src)';
  return new SluiceError('source_failed', message, { reason: 'worker' });
}

function sourceSpec(source: ModelSource, headers: OpenOptions['headers'], credentials: OpenOptions['credentials']): SourceSpec {
  const files: readonly ModelFile[] = isList(source) ? source : [source];
  const urls: string[] = [];
  const blobs: Blob[] = [];
  const handles: FileSystemFileHandle[] = [];
  for (const file of files) {
    if (typeof file === 'string' || file instanceof URL) urls.push(absoluteUrl(file, 'source'));
    else if (file instanceof Blob) blobs.push(file);
    else if (typeof file?.getFile === 'function') handles.push(file);
    else throw wrongSource('must be an address, a File or Blob, a file handle, or a list of these');
  }
  if (files.length === 0) throw wrongSource('is an empty list');
  if (urls.length === files.length) return { kind: 'range', urls, headers: { ...headers }, credentials: credentials ?? null };
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

function absoluteUrl(url: string | URL, option: string): string {
  if (url === '') throw new SluiceError('invalid_option', `'${option}' is empty: give an address`, { key: option });
  try {
    return new URL(url, globalThis.location?.href).href;
  } catch {
    throw new SluiceError('invalid_option', `'${option}' is not an address: ${String(url)}`, { key: option });
  }
}
