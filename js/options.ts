/** What callers may pass. Every field is optional; defaults and ranges live in Rust, which refuses unknown keys by name. */

import type { ErrorCode, ErrorDetails } from './errors.js';

/** A size: bytes, or a text such as `'300MB'` (1000² each) or `'300MiB'` (1024² each). */
export type ByteSize = number | string;

/** Where a model is: an address, a picked file, a file handle, or the files of a split model in order. */
export type ModelSource = ModelFile | readonly ModelFile[];

/** One file of a model. */
export type ModelFile = string | URL | Blob | FileSystemFileHandle;

/** The wasm modules of the package. */
export type BuildName = 'simd' | 'relaxed' | 'simd-threads' | 'relaxed-threads';

/** Options of `open` that the engine itself understands. */
export interface EngineOptions {
  /** The budget: linear memory and JS buffers together. */
  memory?: ByteSize;
  /** Positions of the context. */
  context?: number;
  /** Tokens of one prefill chunk. */
  batch?: number;
  /** How keys and values are kept. */
  kvType?: 'f32' | 'f16' | 'q8_0';
  /** `fast` rounds activations to int8 (the same bits everywhere); `exact` computes in f32. */
  precision?: 'fast' | 'exact';
  /** Compute threads. `auto` takes as many as a short measurement on this device found useful; a build without threads has one. */
  threads?: number | 'auto';
  /** Runs the smallest plan where no plan fits the budget. */
  force?: boolean;
  /** Keeps the logits of every position of a chunk, for `logits`. */
  allLogits?: boolean;
  /** Plans the memory that `embed` takes beside a conversation. */
  embeddings?: boolean;
}

/** Options of `open`. */
export interface OpenOptions extends EngineOptions {
  /** Which wasm module; `auto` takes the best that the browser runs. */
  build?: BuildName | 'auto';
  /** Headers for the model's requests (gated models). They are sent and never stored. */
  headers?: Readonly<Record<string, string>> | Headers;
  /** The requests' credentials mode, as in `fetch`. */
  credentials?: RequestCredentials;
  /**
   * Where downloads are kept. `opfs`, which is taken where the browser has it: in the origin's private file system, so that every byte is
   * fetched once. `none`: nowhere; the weights must then fit the budget.
   */
  cache?: 'opfs' | 'none';
  /** Where the package's own files are, when a bundler cannot follow `new URL(…, import.meta.url)`. */
  assets?: Assets;
  /** Stops opening; `open` rejects with the signal's reason. */
  signal?: AbortSignal;
  /** Called up to ten times a second while weights arrive, while they are read, and during passes. */
  onProgress?: (progress: Progress) => void;
}

/** Addresses of the package's own files. */
export interface Assets {
  /** The worker's module, `worker/main.js`. */
  worker?: string | URL;
  /** The folder with one folder per build, each holding `sluice_bg.wasm`. */
  wasm?: string | URL;
}

/** How far one of the things that take time has got. */
export interface Progress {
  /** `download`: the model's files come over the network; `load`: weights that stay in memory are read; `pass`: a pass goes through all weights. */
  stage: 'download' | 'load' | 'pass';
  loadedBytes: number;
  totalBytes: number;
  /** Since the stage began. */
  bytesPerSecond: number;
  /** `null` while there is nothing to divide by. */
  secondsLeft: number | null;
  /** The layer that is next; `null` before and behind the layers, and for downloads. */
  layer: number | null;
  /** Layers of the model; 0 where that does not matter. */
  layers: number;
}

/** What text continues: text, or token ids fed as they are. */
export type Prompt = string | readonly number[] | Uint32Array;

/** Options of `generate` that the engine itself understands; `docs/sampling.md` defines each filter, its range and default. */
export interface SamplingOptions {
  /** New tokens at most; 256 unless given. */
  maxTokens?: number;
  /** Texts that end generation; they are never part of the answer. */
  stop?: string | readonly string[];
  /** Goes on past end-of-generation tokens. */
  ignoreEog?: boolean;
  /** Finds special tokens written out in a text prompt. */
  parseSpecial?: boolean;
  /** Goes on from where the last call ended instead of starting afresh. */
  resume?: boolean;
  /** Starts the random numbers; the same seed gives the same answer. */
  seed?: number;
  /** 0 takes the likeliest token always. */
  temperature?: number;
  topK?: number;
  topP?: number;
  minP?: number;
  typicalP?: number;
  repeatPenalty?: number;
  frequencyPenalty?: number;
  presencePenalty?: number;
  /** Tokens that the three penalties look back. */
  repeatLastN?: number;
  dryMultiplier?: number;
  dryBase?: number;
  dryAllowedLength?: number;
  dryLastN?: number;
  /** Texts that no repeated sequence goes across. */
  dryBreakers?: readonly string[];
  xtcProbability?: number;
  xtcThreshold?: number;
  /** 2 for mirostat 2, which takes the place of the filters that drop tokens; 0 for none. */
  mirostat?: 0 | 2;
  mirostatTau?: number;
  mirostatEta?: number;
  /** Added to the logits of single tokens, by id; `-Infinity` bans one. */
  logitBias?: Readonly<Record<number, number>>;
  /** Reports log-probabilities: of each token, and of this many likeliest ones in its place. */
  logprobs?: number;
}

/** Options of `generate`. */
export interface GenerateOptions extends SamplingOptions {
  /** Stops generating; the iteration rejects with the signal's reason, and the engine can be used again. */
  signal?: AbortSignal;
}

/** A message of a conversation. Fields beside role and content are for the template: `tool_calls`, `name`, `tool_call_id`, … */
export interface ChatMessage {
  /** `system`, `user`, `assistant`, `tool` or another word that the template knows. */
  role: string;
  /** What is said. Special tokens that it spells out are text and nothing else. */
  content?: string | readonly TextPart[] | null;
  [more: string]: unknown;
}

/** A part of a message's content; models here read text only. */
export interface TextPart {
  type: 'text';
  text: string;
}

/** Options of `chat` that say how a conversation becomes a prompt. */
export interface TemplateOptions {
  /** Drops the oldest turns after the system message when the context is full, and computes the rest anew. */
  contextShift?: boolean;
  /** A chat template in place of the file's: Jinja, or the name of one of `docs/chat.md`. */
  template?: string;
  /** More variables of the template, such as `{ enable_thinking: false }`. */
  templateArguments?: Readonly<Record<string, unknown>>;
  /** Definitions of tools, for templates that know tools; calls are not parsed out of the answer. */
  tools?: readonly unknown[];
}

/** Options of `chat`. */
export interface ChatOptions extends Omit<GenerateOptions, 'resume' | 'parseSpecial'>, TemplateOptions {}

/** Options of `embed` that the engine itself understands. */
export interface PoolingOptions {
  /** How the vectors of a text's tokens become one: their mean, or that of the last or the first token. Unless given, as the file says. */
  pooling?: 'mean' | 'last' | 'cls';
  /** Gives vectors of length 1. */
  normalize?: boolean;
}

/** Options of `embed`. */
export interface EmbedOptions extends PoolingOptions {
  /** Stops embedding; the promise rejects with the signal's reason. */
  signal?: AbortSignal;
}

/** Texts as vectors. */
export interface Embeddings {
  /** One vector a text, in order. */
  vectors: Float32Array<ArrayBuffer>[];
  /** Tokens of all texts. */
  tokens: number;
}

/** Why an answer ended: an end-of-generation token or a stop text, or the token limit or the context. One that its caller stops has no last piece. */
export type FinishReason = 'stop' | 'length';

/** Tokens of one answer. */
export interface TokenCounts {
  /** Of the prompt, reused ones included. */
  promptTokens: number;
  generatedTokens: number;
  /** Of the prompt, those that were still in the KV cache. */
  reusedTokens: number;
}

/** A token with the natural logarithm of its probability. */
export interface TokenLogprob {
  id: number;
  logprob: number;
}

/** A piece of an answer. */
export interface Chunk {
  /** Whole characters, never part of a stop text; empty while a character or a possible stop text is incomplete. */
  text: string;
  /** The token of this piece; `null` for the last piece, which closes the answer. */
  id: number | null;
  /** Natural logarithm of the token's probability in the model's own distribution, when `logprobs` was asked for. */
  logprob: number | null;
  /** The likeliest tokens in this place, likeliest first: as many as `logprobs` says, absent if that is 0. */
  topLogprobs?: readonly TokenLogprob[];
  /** Set in the last piece only. */
  finishReason: FinishReason | null;
  /** What the answer took; set in the last piece only. */
  usage: TokenCounts | null;
}

/** Figures of the engine and of the answer under way (or the last one). Rates are 0 until there is something to divide. */
export interface Stats {
  /** Tokens of the prompt, reused ones included. */
  promptTokens: number;
  /** New tokens so far. */
  generatedTokens: number;
  /** Milliseconds from open to ready. */
  loadMs: number;
  /** Milliseconds of prefill. */
  prefillMs: number;
  /** Milliseconds of decoding. */
  decodeMs: number;
  /** Milliseconds from the call to the first new token. */
  ttftMs: number;
  prefillTokensPerSecond: number;
  decodeTokensPerSecond: number;
  /** Bytes read from the source since open. */
  bytesRead: number;
  /** Milliseconds that computing waited for reads, since open. */
  stallMs: number;
  prefetchHits: number;
  prefetchMisses: number;
  /** Weight bytes that stay in memory. */
  residentBytes: number;
  /** Their share of the weights of a pass, 0 to 1. */
  residentShare: number;
  kvBytes: number;
  contextUsed: number;
  contextMax: number;
  /** Linear memory and what the package holds beside it. */
  memoryBytes: number;
  memoryPeakBytes: number;
  budgetBytes: number;
  /** Prompt tokens that were still in the KV cache. */
  reusedTokens: number;
  /** Which build of the engine runs. */
  build: string;
  /** Threads that compute. */
  threads: number;
  /** What the random numbers of the answer under way (or the last one) started from; `null` before the first. */
  seed: number | null;
}

/** The engine's decisions after all options and defaults. */
export interface EffectiveConfig {
  memory: number;
  context: number;
  batch: number;
  kvType: 'f32' | 'f16' | 'q8_0';
  precision: 'fast' | 'exact';
  threads: number;
}

/** Facts of the opened file. */
export interface ModelFacts {
  architecture: string;
  /** An encoder embeds texts and generates none. */
  kind: 'decoder' | 'encoder';
  name: string | null;
  layers: number;
  vocabulary: number;
  /** Numbers of a vector of `embed`. */
  width: number;
  trainedContext: number;
  /** Where the chat template comes from: `file`, the name of the fallback that the vocabulary chose, or `null` when `chat` needs the option `template`. */
  chatTemplate: string | null;
}

/** The planner's decision: where the bytes go. */
export interface PlanReport {
  context: number;
  batch: number;
  /** Slots of the ring through which weights stream. */
  slots: number;
  slotBytes: number;
  totalBytes: number;
  /** The smallest budget that runs the model with these options. */
  floorBytes: number;
  budgetBytes: number;
  /** It does not fit the budget and runs because `force` was given. */
  forced: boolean;
  residentBytes: number;
  /** Weight bytes of a pass. */
  weightBytes: number;
  /** Weight bytes that each token reads again. */
  streamedBytesPerToken: number;
  /** Bytes by item. */
  ledger: Readonly<Record<string, number>>;
}

/** Options of `inspect`: those of `open`, as the verdict is about opening with them. */
export type InspectOptions = Omit<OpenOptions, 'onProgress'>;

/** What a model is, whatever it is opened with. */
export interface ModelCard {
  /** As GGUF names it; empty where the file does not say. */
  architecture: string;
  /** An encoder embeds texts and generates none; `null` for a model that cannot run. */
  kind: 'decoder' | 'encoder' | null;
  /** The model's own name; `null` where the file does not say. */
  name: string | null;
  /** Values of all tensors. */
  parameters: number;
  /** 0 for a model that cannot run. */
  layers: number;
  /** Tokens of the vocabulary; 0 for a model that cannot run. */
  vocabulary: number;
  /** Positions; 0 for a model that cannot run. */
  trainedContext: number;
  /** Where the chat template comes from: `file`, or the name of the fallback that the vocabulary chose; `null` where there is neither. */
  chatTemplate: string | null;
  /** Bytes of all files: what a download takes. */
  fileBytes: number;
  /** Bytes of tensors by number format. */
  types: Readonly<Record<string, number>>;
}

/** How a model fits into a budget. */
export interface Fit {
  /** Where the bytes would go; `null` when the model cannot run so. `streamedBytesPerToken` and the ledger are in it. */
  plan: Readonly<PlanReport> | null;
  /** Why it cannot run so; `null` when it can. */
  refused: Readonly<Refusal> | null;
  /** The smallest budget that runs the model with these options, also when the given one is too small; `null` when none does. */
  floorBytes: number | null;
  /** Share of the weights that stays in memory, 0 to 1; the rest is read again for each token. */
  residentShare: number | null;
  /** Expected speed; `null` when the model cannot run, or the speed of the storage that it streams from is not known. */
  predicted: Readonly<Prediction> | null;
}

/** Why a model cannot run: what `open` would reject with. */
export interface Refusal {
  code: ErrorCode;
  message: string;
  details: ErrorDetails;
}

/**
 * Expected speed of one thread that reads and computes in turn, from what was measured on this device. Attention, which costs more the
 * longer the context gets, is left out: take it as the speed at the start of a conversation.
 */
export interface Prediction {
  decodeTokensPerSecond: number;
  /** `null` when the plan's chunks are shorter than the measured ones. */
  prefillTokensPerSecond: number | null;
  /** What was measured. */
  basis: {
    /** Number format with the most weights, and its kernel's speed; others that have a tenth of the weights were measured too. */
    format: string;
    decodeWeightsPerSecond: number;
    prefillWeightsPerSecond: number;
    /** `null` when nothing streams. What the operating system keeps in memory is measured at the speed of memory. */
    storageBytesPerSecond: number | null;
  };
}
