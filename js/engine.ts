/** The package's face on the page: starts a worker, opens a model in it, and streams answers out of it. */

import { SluiceError } from './errors.js';
import { checked, checkedBiases, checkedFunction, checkedOnly } from './given.js';
import { type Launched, keepUsefulThreads, launch, openRequest, sendable } from './launch.js';
import type { Layout, Snapshot } from './layout.js';
import type {
  ChatMessage,
  ChatOptions,
  Chunk,
  EffectiveConfig,
  EmbedOptions,
  Embeddings,
  GenerateOptions,
  ModelFacts,
  ModelSource,
  OpenOptions,
  PlanReport,
  Prompt,
  SamplingOptions,
  Stats,
  TemplateOptions,
} from './options.js';
import type { Calls, News } from './protocol.js';
import { type Client, callEach } from './rpc.js';

/** A model that is being opened. */
export interface Opening extends Promise<Engine> {
  /** Gives it up: the promise rejects with `misuse`, and the worker is ended. Closes the engine if it is open already. */
  close(): Promise<void>;
}

/** Opens a model in a worker of its own. Rejects with a `SluiceError`, or with the signal's reason. */
export function open(source: ModelSource, options: OpenOptions = {}): Opening {
  const given = new AbortController();
  const start = async (): Promise<Engine> => {
    const { signal } = checked(options);
    signal?.throwIfAborted();
    const onAbort = (): void => given.abort(signal?.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      return await Engine.connect(launch(options, 'open'), source, { ...options, signal: given.signal });
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  };
  const opening = start();
  const close = async (): Promise<void> => {
    given.abort(new SluiceError('misuse', 'the engine was closed while it was being opened'));
    const engine = await opening.catch(() => undefined);
    await engine?.close();
  };
  return Object.assign(opening, { close });
}

/** An opened model. Calls that compute queue and run one after the other; those that need the vocabulary alone wait for nobody. */
export class Engine {
  /** What is in force after all options and defaults. */
  readonly config: Readonly<EffectiveConfig>;
  /** Facts of the opened file. */
  readonly model: Readonly<ModelFacts>;
  /** Where the bytes go. */
  readonly plan: Readonly<PlanReport>;
  /** Every tensor, and which of its rows stay in memory. */
  readonly layout: Readonly<Layout>;
  readonly #end: Launched['end'];
  readonly #client: Client<Calls, News>;
  readonly #watchers = new Map<(snapshot: Snapshot) => void, number>();
  #stats: Stats;
  #closed: Promise<void> | undefined;

  private constructor({ client, end }: Launched, { facts, stats }: Calls['open']['reply']) {
    this.#end = end;
    this.#client = client;
    this.#stats = stats;
    this.config = facts.config;
    this.model = facts.model;
    this.plan = facts.plan;
    this.layout = facts.layout;
    client.hear((news) => {
      if (news.kind === 'stats') this.#stats = news.stats;
      if (news.kind === 'snapshot') callEach([...this.#watchers.keys()], news.snapshot);
    });
  }

  /**
   * Opens a model in a worker that runs already; the worker is ended when that fails.
   * @internal
   */
  static async connect(launched: Launched, source: ModelSource, options: OpenOptions): Promise<Engine> {
    const { client, build } = launched;
    client.hear((news) => {
      if (news.kind === 'progress') options.onProgress?.(news.progress);
    });
    try {
      const opened = await client.call('open', openRequest(source, options, build), options.signal);
      if (opened.usefulThreads !== null) keepUsefulThreads(build, opened.usefulThreads);
      return new Engine(launched, opened);
    } catch (error) {
      await launched.end(error);
      throw error;
    }
  }

  /** The latest figures; they move while the engine works, ten times a second. */
  get stats(): Readonly<Stats> {
    return this.#stats;
  }

  /**
   * Continues `prompt`, token by token. Starts when it is first iterated; leaving the loop stops it. Calls to one engine queue: a loop over
   * an answer must not wait for another answer of the same engine, which would wait for the loop to end.
   */
  async *generate(prompt: Prompt, options: GenerateOptions = {}): AsyncGenerator<Chunk, void, undefined> {
    const { signal, ...sampling } = checked(options);
    const request = {
      prompt: typeof prompt === 'string' ? prompt : tokenIds(prompt, 'prompt'),
      options: samplingOptions(sampling),
    };
    yield* this.#client.stream('generate', request, signal);
  }

  /** Answers a conversation by the model's chat template. What the last one had in common with it is not computed again. */
  async *chat(messages: readonly ChatMessage[], options: ChatOptions = {}): AsyncGenerator<Chunk, void, undefined> {
    const { signal, ...rest } = checked(options);
    const { chat, options: sampling } = chatRequest(rest);
    yield* this.#client.stream('chat', { messages: plain(messages, 'messages'), chat, options: sampling }, signal);
  }

  /** The text and the token ids that a conversation becomes, without answering it. */
  async renderChat(messages: readonly ChatMessage[], options: TemplateOptions = {}): Promise<{ text: string; ids: number[] }> {
    const request = { messages: plain(messages, 'messages'), chat: plain(checked(options), 'options') };
    const { text, ids } = await this.#client.call('renderChat', request);
    return { text, ids: Array.from(ids) };
  }

  /**
   * Calls `onSnapshot` with pictures of the ring while the engine works, at most 15 a second unless `framesPerSecond` says otherwise.
   * The function that it gives back ends that; nothing is sampled while nobody watches.
   */
  watch(onSnapshot: (snapshot: Snapshot) => void, options: { framesPerSecond?: number } = {}): () => void {
    checkedFunction('onSnapshot', onSnapshot);
    const { framesPerSecond = 15 } = checkedOnly(options, { framesPerSecond: 'number' });
    if (!(framesPerSecond > 0 && framesPerSecond <= 60)) {
      throw new SluiceError('invalid_option', "option 'framesPerSecond' must be above 0 and at most 60", {
        key: 'framesPerSecond',
      });
    }
    const watcher = (snapshot: Snapshot): void => onSnapshot(snapshot);
    const tell = (): void => {
      // A closed engine samples nothing.
      this.#client.call('watch', { framesPerSecond: Math.max(0, ...this.#watchers.values()) }).catch(() => undefined);
    };
    this.#watchers.set(watcher, framesPerSecond);
    tell();
    return () => {
      if (this.#watchers.delete(watcher)) tell();
    };
  }

  /** Embeds texts: one vector each. A conversation stays as it is; the first call takes memory of its own. */
  async embed(texts: string | readonly string[], options: EmbedOptions = {}): Promise<Embeddings> {
    const { signal, ...pooling } = checked(options);
    const list = typeof texts === 'string' ? [texts] : texts;
    if (!Array.isArray(list) || list.some((text) => typeof text !== 'string')) {
      throw new SluiceError('invalid_option', "'texts' must be a text or a list of texts", { key: 'texts' });
    }
    const reply = await this.#client.call('embed', { texts: list, options: sendable(pooling) }, signal);
    const vectors = list.map((_, i) => reply.vectors.slice(i * reply.width, (i + 1) * reply.width));
    return { vectors, tokens: reply.tokens };
  }

  /** The ids of `text`. `addSpecial` (BOS where the model asks for it) and `parseSpecial` are off unless asked for. */
  async tokenize(text: string, options: { addSpecial?: boolean; parseSpecial?: boolean } = {}): Promise<number[]> {
    const { addSpecial = false, parseSpecial = false } = checkedOnly(options, { addSpecial: 'boolean', parseSpecial: 'boolean' });
    if (typeof text !== 'string') throw new SluiceError('invalid_option', "'text' must be a text", { key: 'text' });
    const { ids } = await this.#client.call('tokenize', { text, addSpecial, parseSpecial });
    return Array.from(ids);
  }

  /** The text of `ids`; special tokens are left out unless asked for. */
  async detokenize(ids: readonly number[] | Uint32Array, options: { special?: boolean } = {}): Promise<string> {
    const { special = false } = checkedOnly(options, { special: 'boolean' });
    const request = { ids: tokenIds(ids, 'ids'), special };
    return (await this.#client.call('detokenize', request)).text;
  }

  /** Logits of each position of `ids` as a fresh sequence, `[n_vocab]` each. Needs a model opened with `allLogits`. */
  async *logits(
    ids: readonly number[] | Uint32Array,
    options: { chunk?: number; signal?: AbortSignal } = {},
  ): AsyncGenerator<Float32Array<ArrayBuffer>, void, undefined> {
    const { chunk = null } = checkedOnly(options, { chunk: 'number', signal: 'object' });
    const request = { ids: tokenIds(ids, 'ids'), chunk };
    yield* this.#client.stream('logits', request, options.signal);
  }

  /**
   * Ends the worker: everything pending rejects with `misuse`. Resolves when the worker is gone, its memory returned and the model's files
   * free for others.
   */
  close(): Promise<void> {
    return (this.#closed ??= this.#end(new SluiceError('misuse', 'the engine was closed')));
  }
}

/** The options of a chat, those of the template apart. */
function chatRequest(options: Omit<ChatOptions, 'signal'>): Pick<Calls['chat']['request'], 'chat' | 'options'> {
  const { contextShift, template, templateArguments, tools, ...sampling } = options;
  const chat = { contextShift, template, templateArguments, tools };
  const given = Object.entries(chat).filter(([, value]) => value !== undefined);
  return { chat: plain(Object.fromEntries(given), 'options'), options: samplingOptions(sampling) };
}

/** What `generate` and `chat` send of their options. */
function samplingOptions<T extends SamplingOptions>(options: T): T {
  checkedBiases(options.logitBias);
  return sendable(options);
}

/** A copy as JSON carries it: messages often come as objects that no message to a worker can hold. */
function plain<T>(value: T, option: string): T {
  try {
    return JSON.parse(JSON.stringify(value)) as T; // the same type, as far as JSON goes
  } catch {
    throw new SluiceError('invalid_option', `'${option}' is not plain data that JSON can carry`, { key: option });
  }
}

function tokenIds(ids: readonly number[] | Uint32Array, option: string): Uint32Array {
  if (!isList(ids)) {
    const wanted = `${option === 'prompt' ? 'a text or ' : ''}token ids, an array or a Uint32Array`;
    throw new SluiceError('invalid_option', `'${option}' must be ${wanted}`, { key: option });
  }
  const wrong = Array.from(ids).find((id) => !Number.isInteger(id) || id < 0 || id > 0xffff_ffff);
  if (wrong === undefined) return Uint32Array.from(ids);
  throw new SluiceError('invalid_option', `'${option}' holds ${String(wrong)}, which is not a token id`, { key: option });
}

function isList(ids: unknown): boolean {
  return Array.isArray(ids) || ids instanceof Uint32Array;
}
