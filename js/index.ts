/** Sluice: large language models in a browser tab, in the memory you choose. */

export { capabilities, type Capabilities } from './capabilities.js';
export { type Engine, open } from './engine.js';
export { type ErrorCode, type ErrorDetails, SluiceError } from './errors.js';
export { type Verdict, inspect } from './inspect.js';
export type {
  Assets,
  BuildName,
  ByteSize,
  Chunk,
  EffectiveConfig,
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
  Prediction,
  Progress,
  Prompt,
  Refusal,
  SamplingOptions,
  Stats,
  TokenLogprob,
} from './options.js';
