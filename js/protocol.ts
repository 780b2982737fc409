/** Everything that page and engine worker say to each other: one entry a call, with its request, reply and items, and the worker's news. */

import type {
  BuildName,
  Chunk,
  EffectiveConfig,
  EngineOptions,
  Fit,
  ModelCard,
  ModelFacts,
  PlanReport,
  Progress,
  SamplingOptions,
  Stats,
} from './options.js';

/** The calls. Items come one by one and are flow-controlled. */
export interface Calls {
  /** Makes the engine; the first call and made once. */
  open: {
    request: { source: SourceSpec; options: EngineOptions; build: BuildName; wasm: string | null };
    reply: { facts: Facts; stats: Stats };
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
    item: GeneratedItem;
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
    reply: { stats: Stats };
    item: Float32Array<ArrayBuffer>;
  };
}

/** What the worker says unasked. */
export interface News {
  kind: 'progress';
  progress: Progress;
}

/** A chunk, now and then with fresh figures; the last one always has them. */
export interface GeneratedItem {
  chunk: Chunk;
  stats: Stats | null;
}

/** Where the worker reads the model. */
export type SourceSpec =
  | {
      kind: 'range';
      urls: readonly string[];
      headers: Readonly<Record<string, string>>;
      credentials: RequestCredentials | null;
    }
  | { kind: 'blob'; blobs: readonly Blob[] }
  | { kind: 'handle'; handles: readonly FileSystemFileHandle[] };

/** What stays as it is while the model is open. */
export interface Facts {
  config: EffectiveConfig;
  model: ModelFacts;
  plan: PlanReport;
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
