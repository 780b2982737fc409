//! An opened model: the stack of modules, and where its sequence stands.

use std::rc::Rc;

use super::live::{Computed, Prefill};
use super::profile::LayerTimes;
use super::stats::Stats;
use super::stop::StopFilter;
use super::vectors::Vectors;
use crate::TokenId;
use crate::error::{Error, ErrorKind, Result};
use crate::gguf::Header;
use crate::loader::Loader;
use crate::model::{Model, ModelKind, State};
use crate::planner::Plan;
use crate::tokenizer::Tokenizer;

/// A model that is open and ready to generate.
#[derive(Debug)]
pub struct Engine {
    pub(super) header: Rc<Header>,
    pub(super) model: Model,
    pub(super) state: State,
    pub(super) loader: Loader,
    pub(super) vectors: Vectors,
    pub(super) tokenizer: Rc<Tokenizer>,
    pub(super) plan: Plan,
    pub(super) stats: Stats,
    /// Tokens whose keys and values are in the cache, in order; its length is the position.
    pub(super) history: Vec<TokenId>,
    pub(super) times: Vec<LayerTimes>,
    pub(super) first_logits: Vec<f32>,
    pub(super) stop: StopFilter,
    pub(super) all_logits: bool,
    /// The prompt that is being read, if one is.
    pub(super) prefill: Option<Prefill>,
    /// The rows of the pass that were computed with last.
    pub(super) computed: Option<Computed>,
    /// Where texts are embedded, once one was: a sequence of its own.
    pub(super) embedding: Option<State>,
}

impl Engine {
    /// The directory and metadata of the file.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The model's facts.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The planner's decision in force.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The vocabulary.
    #[must_use]
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Live figures.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Tokens that the KV cache holds, in order.
    #[must_use]
    pub fn history(&self) -> &[TokenId] {
        &self.history
    }

    /// The logits that the first new token of the last call was chosen from, if the call asked to keep them:
    /// `[n_vocab]`, else empty.
    #[must_use]
    pub fn first_logits(&self) -> &[f32] {
        &self.first_logits
    }

    /// Refuses to go on from text that an encoder reads whole.
    pub(super) fn require_decoder(&self) -> Result<()> {
        if self.model.kind() == ModelKind::Decoder {
            return Ok(());
        }
        let arch = self.model.hparams().arch.clone();
        let message = format!(
            "a model of architecture '{arch}' is an encoder and generates no text: `embed` is what it can do"
        );
        Err(Error::new(ErrorKind::Misuse, message).with("architecture", arch))
    }

    /// Forgets the sequence; the next call starts a fresh one.
    pub fn reset(&mut self) {
        // Position 0 is where every state can go back to.
        let _ = self.state.rewind(0);
        self.history.clear();
        self.stats.context_used = 0;
    }

    /// Takes the loader's counters over into the stats.
    pub(super) fn see_loader(&mut self) {
        let seen = self.loader.stats();
        self.stats.bytes_read = seen.bytes_read;
        self.stats.prefetch_hits = seen.prefetch_hits;
        self.stats.prefetch_misses = seen.prefetch_misses;
        self.stats.resident_bytes = seen.resident_bytes;
        self.stats.resident_share = share(seen.resident_bytes, self.plan.weight_bytes);
    }
}

#[allow(clippy::cast_precision_loss, reason = "a share for people")]
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 1.0 } else { (part as f64 / whole as f64).min(1.0) }
}
