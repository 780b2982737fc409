/** Sluice: large language models in a browser tab, in the memory you choose. */

export { capabilities, type Capabilities } from './capabilities.js';
export { type Engine, type Opening, open } from './engine.js';
export { type ErrorCode, type ErrorDetails, SluiceError } from './errors.js';
export { type Verdict, inspect } from './inspect.js';
export type { Layout, SlotPicture, Snapshot, TensorLayout } from './layout.js';
export { type StorageEstimate, type StoredModel, models } from './models.js';
export type {
  Assets,
  BuildName,
  ByteSize,
  ChatMessage,
  ChatOptions,
  Chunk,
  EffectiveConfig,
  EmbedOptions,
  Embeddings,
  EngineOptions,
  FinishReason,
  Fit,
  GenerateOptions,
  InspectOptions,
  ModelCard,
  ModelFacts,
  ModelFile,
  ModelSource,
  OpenOptions,
  PlanReport,
  PoolingOptions,
  Prediction,
  Progress,
  Prompt,
  Refusal,
  SamplingOptions,
  Stats,
  TemplateOptions,
  TextPart,
  TokenCounts,
  TokenLogprob,
} from './options.js';
