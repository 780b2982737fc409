/** Everything that page and engine worker say to each other: one entry a call, with its request, reply and items, and the worker's news. */

import type { Layout, Snapshot } from './layout.js';
import type {
  BuildName,
  ChatMessage,
  Chunk,
  EffectiveConfig,
  EngineOptions,
  Fit,
  ModelCard,
  ModelFacts,
  PlanReport,
  PoolingOptions,
  Progress,
  SamplingOptions,
  Stats,
  TemplateOptions,
} from './options.js';

/** The calls. Items come one by one and are flow-controlled. */
export interface Calls {
  /** Makes the engine; the first call and made once. */
  open: {
    request: {
      source: SourceSpec;
      options: EngineOptions;
      build: BuildName;
      wasm: string | null;
      /** Threads that were found useful on this device before. */
      usefulThreads: number | null;
    };
    reply: { facts: Facts; stats: Stats; usefulThreads: number | null };
    item: never;
  };
  /** Reads a model's header alone; the first call and made once, instead of `open`. */
  inspect: {
    request: Calls['open']['request'] & { rates: DeviceRates };
    reply: { card: ModelCard; fit: Fit; rates: DeviceRates };
    item: never;
  };
  /** Plans the inspected model under other options. */
  refit: {
    request: { options: EngineOptions };
    reply: { fit: Fit; rates: DeviceRates };
    item: never;
  };
  generate: {
    request: { prompt: string | Uint32Array; options: SamplingOptions };
    reply: null;
    item: Chunk;
  };
  chat: {
    request: { messages: readonly ChatMessage[]; chat: TemplateOptions; options: SamplingOptions };
    reply: null;
    item: Chunk;
  };
  /** What a conversation becomes. */
  renderChat: {
    request: { messages: readonly ChatMessage[]; chat: TemplateOptions };
    reply: { text: string; ids: Uint32Array };
    item: never;
  };
  /** From now on so many pictures a second at most while the engine works; `0`: none. */
  watch: {
    request: { framesPerSecond: number };
    reply: null;
    item: never;
  };
  /** All vectors in a row, each `width` long. */
  embed: {
    request: { texts: readonly string[]; options: PoolingOptions };
    reply: { vectors: Float32Array<ArrayBuffer>; width: number; tokens: number };
    item: never;
  };
  tokenize: {
    request: { text: string; addSpecial: boolean; parseSpecial: boolean };
    reply: { ids: Uint32Array };
    item: never;
  };
  detokenize: {
    request: { ids: Uint32Array; special: boolean };
    reply: { text: string };
    item: never;
  };
  /** Logits of each position, `[ids.length, n_vocab]`, one item a position. */
  logits: {
    request: { ids: Uint32Array; chunk: number | null };
    reply: null;
    item: Float32Array<ArrayBuffer>;
  };
}

/** What the worker says unasked. */
export type News =
  | { kind: 'progress'; progress: Progress }
  /** The first word, without a lock; later, where there are locks, the one that the worker holds for as long as it lives. */
  | { kind: 'alive'; lock: string | null }
  /** The latest figures. They come this way alone, so that none is older than what was heard before. */
  | { kind: 'stats'; stats: Stats }
  | { kind: 'snapshot'; snapshot: Snapshot };

/** Where the worker reads the model. */
export type SourceSpec =
  | {
      kind: 'range';
      urls: readonly string[];
      headers: Readonly<Record<string, string>>;
      credentials: RequestCredentials | null;
      cache: 'opfs' | 'none';
    }
  | { kind: 'file'; paths: readonly string[] }
  | { kind: 'blob'; blobs: readonly Blob[] }
  | { kind: 'handle'; handles: readonly FileSystemFileHandle[] };

/** What stays as it is while the model is open. */
export interface Facts {
  config: EffectiveConfig;
  model: ModelFacts;
  plan: PlanReport;
  layout: Layout;
}

/** Speed of the matrix kernels, in weights multiplied by one column per second. */
export interface KernelRates {
  decodeWeightsPerSecond: number;
  prefillWeightsPerSecond: number;
}

/** What was measured on this device: kernels by build, format, row and precision, and storage (bytes per second) by kind of source. */
export interface DeviceRates {
  kernels: Readonly<Record<string, KernelRates>>;
  storage: Readonly<Record<string, number>>;
}

/** What a worker is for. */
export type WorkerRole = 'main' | 'helper' | 'download';

/** The first message to every worker: where it asks for others, and its channel to who asked for it. */
export interface Welcome {
  kind: 'welcome';
  page: MessagePort;
  employer: MessagePort | null;
}

/** What a worker asks the page. Numbers are the worker's own. */
export type ToPage = { kind: 'hire'; n: number; role: WorkerRole; employer: MessagePort } | { kind: 'dismiss'; n: number };

/** What the page says to it: one that it asked for broke, and said something, or never ran. */
export interface FromPage {
  kind: 'fault';
  n: number;
  said: string;
}
