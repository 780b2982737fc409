/** The package's face on the page: starts a worker, opens a model in it, and streams answers out of it. */

import { capabilities } from './capabilities.js';
import { INTERNAL_MESSAGE, SluiceError } from './errors.js';
import type {
  Assets,
  BuildName,
  Chunk,
  EffectiveConfig,
  GenerateOptions,
  ModelFacts,
  ModelFile,
  ModelSource,
  OpenOptions,
  PlanReport,
  Prompt,
  Stats,
} from './options.js';
import type { Calls, News, SourceSpec } from './protocol.js';
import { Client, type Endpoint } from './rpc.js';

/** A worker, or what stands for one in tests. */
export interface EnginePort extends Endpoint {
  terminate(): void;
}

/** Opens a model in a worker of its own. Rejects with a `SluiceError`, or with the signal's reason. */
export async function open(source: ModelSource, options: OpenOptions = {}): Promise<Engine> {
  options.signal?.throwIfAborted();
  const build = chooseBuild(options.build ?? 'auto');
  const worker = startWorker(options.assets);
  const client = new Client<Calls, News>(worker, ({ progress }) => options.onProgress?.(progress));
  worker.addEventListener('error', (event) => {
    event.preventDefault();
    client.fail(workerError(event));
    worker.terminate();
  });
  return Engine.connect(worker, client, build, source, options);
}

/** An opened model. Calls queue and run one after the other. */
export class Engine {
  /** What is in force after all options and defaults. */
  readonly config: Readonly<EffectiveConfig>;
  /** Facts of the opened file. */
  readonly model: Readonly<ModelFacts>;
  /** Where the bytes go. */
  readonly plan: Readonly<PlanReport>;
  readonly #port: EnginePort;
  readonly #client: Client<Calls, News>;
  #stats: Stats;

  private constructor(port: EnginePort, client: Client<Calls, News>, opened: Calls['open']['reply']) {
    this.#port = port;
    this.#client = client;
    this.#stats = opened.stats;
    this.config = opened.facts.config;
    this.model = opened.facts.model;
    this.plan = opened.facts.plan;
  }

  /** Opens a model in a worker that runs already; the worker is ended when that fails. */
  static async connect(
    port: EnginePort,
    client: Client<Calls, News>,
    build: BuildName,
    source: ModelSource,
    options: OpenOptions,
  ): Promise<Engine> {
    const { build: _build, headers, credentials, assets, signal, onProgress: _onProgress, ...engineOptions } = options;
    try {
      const request = {
        source: sourceSpec(source, headers, credentials),
        options: sendable(engineOptions),
        build,
        wasm: assets?.wasm === undefined ? null : absoluteUrl(assets.wasm, 'assets.wasm'),
      };
      const opened = await client.call('open', request, signal);
      return new Engine(port, client, opened);
    } catch (error) {
      port.terminate();
      throw error;
    }
  }

  /** The latest figures. */
  get stats(): Readonly<Stats> {
    return this.#stats;
  }

  /** Continues `prompt`, token by token. Starts when it is first iterated; leaving the loop stops it. */
  async *generate(prompt: Prompt, options: GenerateOptions = {}): AsyncGenerator<Chunk, void, undefined> {
    const { signal, ...sampling } = options;
    const request = { prompt: typeof prompt === 'string' ? prompt : tokenIds(prompt, 'prompt'), options: sendable(sampling) };
    for await (const { chunk, stats } of this.#client.stream('generate', request, signal)) {
      if (stats !== null) this.#stats = stats;
      yield chunk;
    }
  }

  /** The ids of `text`. `addSpecial` (BOS where the model asks for it) and `parseSpecial` are off unless asked for. */
  async tokenize(text: string, options: { addSpecial?: boolean; parseSpecial?: boolean } = {}): Promise<number[]> {
    const { addSpecial = false, parseSpecial = false } = options;
    const { ids } = await this.#client.call('tokenize', { text, addSpecial, parseSpecial });
    return Array.from(ids);
  }

  /** The text of `ids`; special tokens are left out unless asked for. */
  async detokenize(ids: readonly number[] | Uint32Array, options: { special?: boolean } = {}): Promise<string> {
    const request = { ids: tokenIds(ids, 'ids'), special: options.special ?? false };
    return (await this.#client.call('detokenize', request)).text;
  }

  /** Logits of each position of `ids` as a fresh sequence, `[n_vocab]` each. Needs a model opened with `allLogits`. */
  async *logits(
    ids: readonly number[] | Uint32Array,
    options: { chunk?: number; signal?: AbortSignal } = {},
  ): AsyncGenerator<Float32Array<ArrayBuffer>, void, undefined> {
    const request = { ids: tokenIds(ids, 'ids'), chunk: options.chunk ?? null };
    const stream = this.#client.stream('logits', request, options.signal);
    for (let next = await stream.next(); ; next = await stream.next()) {
      if (next.done === true) {
        this.#stats = next.value.stats;
        return;
      }
      yield next.value;
    }
  }

  /** Ends the worker: its memory is returned, and everything pending rejects with `misuse`. */
  async close(): Promise<void> {
    this.#client.fail(new SluiceError('misuse', 'the engine was closed'));
    this.#port.terminate();
    return Promise.resolve();
  }
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

/** Refuses what no message can carry; everything else is Rust's to judge. */
function sendable<T extends object>(options: T): T {
  for (const [option, value] of Object.entries(options)) {
    if (typeof value === 'function' || typeof value === 'symbol') {
      throw new SluiceError('invalid_option', `unknown option '${option}'`, { key: option });
    }
  }
  return options;
}

function tokenIds(ids: readonly number[] | Uint32Array, option: string): Uint32Array {
  const wrong = Array.from(ids).find((id) => !Number.isInteger(id) || id < 0 || id > 0xffff_ffff);
  if (wrong === undefined) return Uint32Array.from(ids);
  throw new SluiceError('invalid_option', `'${option}' holds ${String(wrong)}, which is not a token id`, { key: option });
}
