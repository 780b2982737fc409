//! Open → plan → build → generate: the one place where all modules meet.
//!
//! One token, top to bottom: [`Engine::generate`] → `Engine::run_chunk` (a pass: tiles from the loader into the model's
//! steps, a checkpoint between steps) → sampler → tokenizer → stop rules → the caller's callback. It knows no browser and
//! no terminal: time, turns of an event loop and aborts come in through [`Host`].

mod budget;
mod config;
mod engine;
mod generate;
mod host;
mod inspect;
mod logits;
mod measure;
#[cfg(not(target_arch = "wasm32"))]
pub mod native;
mod open;
mod pass;
mod predict;
mod profile;
mod stats;
mod stop;

pub use crate::model::{KvType, Precision};
pub use crate::planner::{Letters, parse_size};
pub use crate::sampler::{SamplerConfig, TokenLogprob};
pub use crate::source::WeightSource;
#[cfg(target_arch = "wasm32")]
pub use crate::source::web;
pub use config::{GenerateConfig, OpenConfig, Prompt, Residency};
pub use engine::Engine;
pub use generate::{Chunk, Finish, FinishReason, StoppedBy};
pub use host::{Checkpoint, Halted, Host, OpenProgress, Outcome};
pub use inspect::{Fit, Inspection, ModelCard, PlanReport, Refusal, Verdict};
pub use measure::measure;
pub use open::read_tokenizer;
pub use predict::{
    Basis, KernelRates, MainKernel, PREFILL_COLUMNS, Prediction, Rates, Work, predict,
};
pub use profile::{LayerTimes, PassProfile, ProfileSink};
pub use stats::Stats;
pub use stop::StopFilter;
