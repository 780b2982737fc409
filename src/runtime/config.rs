//! What a caller decides, complete and validated. The defaults of all options live here and nowhere else.

use crate::TokenId;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{KvType, Precision};
use crate::sampler::SamplerConfig;

/// How an engine is opened.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenConfig {
    /// Bytes that the engine may take in all; `None`: a quarter of the device's memory.
    pub budget_bytes: Option<u64>,
    /// Runs the smallest plan where no plan fits the budget.
    pub force: bool,
    /// Memory of the device in bytes; `None` where it does not say.
    pub device_bytes: Option<u64>,
    /// Bytes that are taken before the model is opened: code, static data, stacks.
    pub base_bytes: u64,
    /// Threads that compute, at most; those beside the first come from the host.
    pub n_threads: u32,
    /// Bytes of the other threads' stacks.
    pub stack_bytes: u64,
    /// What the host takes for compiled code and for the threads, outside of the engine's memory; an estimate.
    pub host_bytes: u64,
    /// Positions of the context; `None`: what the model was trained for, at most 4096.
    pub n_ctx: Option<u32>,
    /// Columns of a prefill chunk; `None`: the planner's choice.
    pub n_batch: Option<u32>,
    /// How keys and values are kept; `None`: f16, or f32 when the arithmetic is exact (by `precision` or `residency`).
    pub kv: Option<KvType>,
    /// How activations meet quantised weights.
    pub precision: Precision,
    /// How weights are kept and handed to the kernels.
    pub residency: Residency,
    /// Reads ahead while computing. Without it the ring has one slot.
    pub prefetch: bool,
    /// Another thread reads, so that reading ahead gains something even where a read ends at once.
    pub reads_beside: bool,
    /// Slots of the ring where weights stream; `None`: the planner's choice.
    pub n_slots: Option<u32>,
    /// Bytes of a slot where weights stream; `None`: the planner's choice.
    pub slot_bytes: Option<u64>,
    /// Keeps logits of every position of a chunk (for [`crate::runtime::Engine::logits`]).
    pub all_logits: bool,
    /// Takes the memory of [`crate::runtime::Engine::embed`] at open, as a part of the plan.
    pub embeddings: bool,
}

impl Default for OpenConfig {
    fn default() -> Self {
        Self {
            budget_bytes: None,
            force: false,
            device_bytes: None,
            base_bytes: 0,
            n_threads: 1,
            stack_bytes: 0,
            host_bytes: 0,
            n_ctx: None,
            n_batch: None,
            kv: None,
            precision: Precision::Fast,
            residency: Residency::Quantized,
            prefetch: true,
            reads_beside: false,
            n_slots: None,
            slot_bytes: None,
            all_logits: false,
            embeddings: false,
        }
    }
}

impl OpenConfig {
    /// The KV format in force.
    #[must_use]
    pub fn kv_type(&self) -> KvType {
        self.kv.unwrap_or(match (self.precision, self.residency) {
            (Precision::Fast, Residency::Quantized) => KvType::F16,
            _ => KvType::F32,
        })
    }

    /// Refuses values that no model can be opened with, naming the option.
    ///
    /// # Errors
    /// `invalid_option` for a context or a batch of zero.
    pub fn validate(&self) -> Result<()> {
        if self.n_ctx == Some(0) {
            return Err(invalid("context", "must be at least 1 position"));
        }
        if self.n_batch == Some(0) {
            return Err(invalid("batch", "must be at least 1 token"));
        }
        Ok(())
    }
}

/// How weights are kept and handed to the kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Residency {
    /// As they are stored.
    Quantized,
    /// Decoded to f32 when they are read: the bits of exact arithmetic, at many times the memory. For checks.
    F32,
}

/// What is fed before the first new token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prompt {
    /// Text, encoded with the model's vocabulary; BOS comes first where the model asks for it and the sequence is fresh.
    Text(String),
    /// Token ids, fed as they are.
    Ids(Vec<TokenId>),
}

/// How text is generated.
#[derive(Debug, Clone, PartialEq)]
pub struct GenerateConfig {
    /// New tokens at most.
    pub max_tokens: u32,
    /// How the next token is chosen.
    pub sampler: SamplerConfig,
    /// Texts that DRY lets no repeated sequence go across; they take the place of the sampler's own breakers.
    pub dry_breakers: Vec<String>,
    /// Texts that end generation; they are not part of the answer.
    pub stop: Vec<String>,
    /// Goes on past end-of-generation tokens.
    pub ignore_eog: bool,
    /// Finds special tokens written out in a text prompt.
    pub parse_special: bool,
    /// Goes on from where the last call ended instead of starting a fresh sequence.
    pub resume: bool,
    /// Keeps a copy of the logits that the first new token was chosen from.
    pub keep_first_logits: bool,
}

impl Default for GenerateConfig {
    fn default() -> Self {
        Self {
            max_tokens: 256,
            sampler: SamplerConfig::default(),
            dry_breakers: ["\n", ":", "\"", "*"].map(str::to_owned).to_vec(),
            stop: Vec::new(),
            ignore_eog: false,
            parse_special: false,
            resume: false,
            keep_first_logits: false,
        }
    }
}

impl GenerateConfig {
    /// Refuses values that mean nothing, naming the option.
    ///
    /// # Errors
    /// `invalid_option` for an empty stop string or a sampler value out of range.
    pub fn validate(&self) -> Result<()> {
        if self.stop.iter().any(String::is_empty) {
            return Err(invalid(
                "stop",
                "holds an empty string, which would stop at once; leave it out",
            ));
        }
        if self.dry_breakers.iter().any(String::is_empty) {
            return Err(invalid("dryBreakers", "holds an empty text; leave it out"));
        }
        self.sampler.validate()
    }
}

fn invalid(key: &'static str, what: &str) -> Error {
    Error::new(ErrorKind::InvalidOption, format!("option '{key}' {what}")).with("key", key)
}
