/** Sluice: large language models in a browser tab, in the memory you choose. */

export { capabilities, type Capabilities } from './capabilities.js';
export { type Engine, open } from './engine.js';
export { type ErrorCode, type ErrorDetails, SluiceError } from './errors.js';
export type {
  Assets,
  BuildName,
  ByteSize,
  Chunk,
  EffectiveConfig,
  EngineOptions,
  FinishReason,
  GenerateOptions,
  ModelFacts,
  ModelFile,
  ModelSource,
  OpenOptions,
  PlanReport,
  Progress,
  Prompt,
  SamplingOptions,
  Stats,
} from './options.js';
