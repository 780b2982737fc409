//! Open → plan → build → generate: the one place where all modules meet.
//!
//! One token, top to bottom: [`Engine::generate`] → `Engine::run_chunk` (a pass: tiles from the loader into the model's
//! steps, a checkpoint between steps) → sampler → tokenizer → stop rules → the caller's callback. It knows no browser and
//! no terminal: time, turns of an event loop and aborts come in through [`Host`].

mod budget;
mod chat;
mod choose_threads;
mod config;
mod embed;
mod engine;
mod generate;
mod host;
mod inspect;
mod layout;
mod live;
mod logits;
mod measure;
#[cfg(not(target_arch = "wasm32"))]
pub mod native;
mod open;
mod pass;
mod predict;
mod profile;
mod residents;
mod stats;
mod stop;
mod texts;
mod vectors;

pub use crate::model::{KvType, ModelKind, Pooling, Precision};
pub use crate::planner::{Letters, PAGE_BYTES, parse_size};
pub use crate::sampler::{SamplerConfig, TokenLogprob};
pub use crate::source::WeightSource;
#[cfg(target_arch = "wasm32")]
pub use crate::source::web;
pub use crate::team::{Pool, THREADS, Team};
pub use crate::tokenizer::{Conversation, Json, LocalTime, RenderedChat};
pub use chat::ChatConfig;
pub use choose_threads::choose_threads;
pub use config::{GenerateConfig, OpenConfig, Prompt, Residency};
pub use embed::{EMBED_POSITIONS, EmbedConfig, Embeddings};
pub use engine::Engine;
pub use generate::{Chunk, Finish, FinishReason, StoppedBy};
pub use host::{Checkpoint, Halted, Host, Outcome, Progress, Stage};
pub use inspect::{Fit, Inspection, ModelCard, PlanReport, Refusal, Verdict};
pub use layout::{Layout, TensorLayout};
pub use live::{SlotPicture, Snapshot, Wants};
pub use measure::measure;
pub use open::read_tokenizer;
pub use predict::{
    Basis, FormatWork, Kernel, KernelRates, MATRIX_SHARE, PREFILL_COLUMNS, Prediction, Rates, Work,
    predict,
};
pub use profile::{LayerTimes, PassProfile, ProfileSink};
pub use stats::Stats;
pub use stop::StopFilter;
pub use texts::Texts;
