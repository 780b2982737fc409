/** The package's face on the page: starts a worker, opens a model in it, and streams answers out of it. */

import { SluiceError } from './errors.js';
import { type EnginePort, launch, openRequest, sendable } from './launch.js';
import type {
  BuildName,
  Chunk,
  EffectiveConfig,
  GenerateOptions,
  ModelFacts,
  ModelSource,
  OpenOptions,
  PlanReport,
  Prompt,
  Stats,
} from './options.js';
import type { Calls, News } from './protocol.js';
import type { Client } from './rpc.js';

/** Opens a model in a worker of its own. Rejects with a `SluiceError`, or with the signal's reason. */
export async function open(source: ModelSource, options: OpenOptions = {}): Promise<Engine> {
  options.signal?.throwIfAborted();
  const { port, client, build } = launch(options, ({ progress }) => options.onProgress?.(progress));
  return Engine.connect(port, client, build, source, options);
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
    try {
      const opened = await client.call('open', openRequest(source, options, build), options.signal);
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

function tokenIds(ids: readonly number[] | Uint32Array, option: string): Uint32Array {
  const wrong = Array.from(ids).find((id) => !Number.isInteger(id) || id < 0 || id > 0xffff_ffff);
  if (wrong === undefined) return Uint32Array.from(ids);
  throw new SluiceError('invalid_option', `'${option}' holds ${String(wrong)}, which is not a token id`, { key: option });
}
