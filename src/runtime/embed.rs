//! Embeddings: what the model makes of whole texts, as vectors. Texts run in a sequence of their own, so a conversation stays as it
//! is in its KV cache.

use std::sync::Arc;

use super::Engine;
use super::config::OpenConfig;
use super::host::{Host, Outcome};
use crate::TokenId;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{LogitsWanted, Model, ModelKind, Pooling, Shape, State};
use crate::planner::Plan;
use crate::team::Team;

/// How texts are embedded.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct EmbedConfig {
    /// How a text becomes one vector; `None`: as the file says, or by the mean where it does not.
    pub pooling: Option<Pooling>,
    /// Divides each vector by its length.
    pub normalize: bool,
}

/// What embedding texts gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Embeddings {
    /// One vector a text, `[n_texts, n_embd]`.
    pub vectors: Vec<f32>,
    /// Values of a vector.
    pub n_embd: usize,
    /// Tokens of all texts.
    pub n_tokens: u32,
}

impl Engine {
    /// The ids that `text` is embedded by: with BOS and EOS as the vocabulary asks.
    ///
    /// # Errors
    /// `invalid_option` for an empty text; as encoding.
    pub fn embedding_ids(&self, text: &str) -> Result<Vec<TokenId>> {
        self.check_length("at least ", self.tokenizer.least_tokens(text.len()))?;
        let ids = self.tokenizer.encode(text, true, false)?;
        if text.is_empty() || ids.is_empty() {
            let message = "a text to embed is empty; leave it out";
            return Err(Error::new(ErrorKind::InvalidOption, message).with("key", "texts"));
        }
        Ok(ids)
    }

    /// Embeds `texts`, one after the other, of at most [`EMBED_POSITIONS`] tokens each. Their sequence is planned where the model
    /// was opened with `embeddings`; else the first call takes what the budget has left, and can.
    ///
    /// # Errors
    /// `invalid_option` for ids that are not in the vocabulary or none, `context_full` for a text that is too long, `out_of_memory`
    /// when the budget has no room beside the conversation, `source_failed`.
    pub async fn embed(
        &mut self,
        texts: &[Vec<TokenId>],
        config: &EmbedConfig,
        host: &dyn Host,
    ) -> Outcome<Embeddings> {
        let aside = self.set_conversation_aside(host)?;
        let n_embd = self.model.hparams().n_embd as usize;
        let n_tokens = texts.iter().map(Vec::len).sum::<usize>();
        let mut vectors = Vec::with_capacity(texts.len() * n_embd);
        let used = self.stats.context_used;
        let mut done = Ok(());
        for ids in texts {
            done = self.embed_one(ids, config, host, &mut vectors).await;
            if done.is_err() {
                break;
            }
        }
        if let Some((state, history)) = aside {
            self.embedding = Some(core::mem::replace(&mut self.state, state));
            self.history = history;
        }
        self.stats.context_used = used;
        done?;
        Ok(Embeddings { vectors, n_embd, n_tokens: super::generate::count(n_tokens) })
    }

    /// Passes run on the engine's state: puts the sequence for texts in its place, whatever happens to it then. An encoder has
    /// no conversation, and its state is that for texts.
    fn set_conversation_aside(&mut self, host: &dyn Host) -> Result<Option<(State, Vec<TokenId>)>> {
        if self.model.kind() == ModelKind::Encoder {
            return Ok(None);
        }
        let state = match self.embedding.take() {
            Some(state) => state,
            None => self.embedding_state(host.team())?,
        };
        let conversation = core::mem::replace(&mut self.state, state);
        Ok(Some((conversation, core::mem::take(&mut self.history))))
    }

    async fn embed_one(
        &mut self,
        ids: &[TokenId],
        config: &EmbedConfig,
        host: &dyn Host,
        vectors: &mut Vec<f32>,
    ) -> Outcome<()> {
        self.check_text(ids)?;
        self.state.rewind(0)?;
        let hparams = self.model.hparams();
        let pooling = config.pooling.or(hparams.pooling).unwrap_or(Pooling::Mean);
        let n_embd = self.model.hparams().n_embd as usize;
        let mut sum = vec![0.0f64; n_embd];
        for (index, chunk) in ids.chunks(self.plan.n_batch as usize).enumerate() {
            self.run_chunk(chunk, LogitsWanted::Hidden, true, host, None).await?;
            for (at, row) in self.state.hidden(&self.model).chunks_exact(n_embd).enumerate() {
                let is_first = index == 0 && at == 0;
                let take = |sum: &mut [f64], share: f64| {
                    sum.iter_mut().zip(row).for_each(|(s, x)| *s = *s * share + f64::from(*x));
                };
                match pooling {
                    Pooling::Mean => take(&mut sum, 1.0),
                    Pooling::Last => take(&mut sum, 0.0),
                    Pooling::Cls if is_first => take(&mut sum, 0.0),
                    Pooling::Cls => {}
                }
            }
        }
        #[allow(clippy::cast_precision_loss, reason = "a count of tokens")]
        let divisor = if pooling == Pooling::Mean { ids.len() as f64 } else { 1.0 };
        let length =
            if config.normalize { sum.iter().map(|x| x * x).sum::<f64>().sqrt() } else { divisor };
        if !length.is_finite() {
            let message =
                "the model gave values that are not finite: the file's weights are damaged";
            return Err(Error::new(ErrorKind::InvalidModel, message).into());
        }
        let divisor = if length == 0.0 { 1.0 } else { length };
        #[allow(clippy::cast_possible_truncation, reason = "the rounding is meant")]
        vectors.extend(sum.iter().map(|x| (x / divisor) as f32));
        Ok(())
    }

    fn check_text(&self, ids: &[TokenId]) -> Result<()> {
        self.check_vocabulary(ids)?;
        if ids.is_empty() {
            return Err(Error::new(ErrorKind::InvalidOption, "a text to embed has no tokens"));
        }
        self.check_length("", ids.len())
    }

    /// Refuses a text of `n_tokens`, `at_least` or exactly, that is too long, before memory is taken for it.
    fn check_length(&self, at_least: &str, n_tokens: usize) -> Result<()> {
        let most = match self.model.kind() {
            ModelKind::Decoder => self.embedding_shape().n_ctx,
            ModelKind::Encoder => self.plan.n_ctx,
        };
        if n_tokens <= most as usize {
            return Ok(());
        }
        let message = format!(
            "a text to embed has {at_least}{n_tokens} tokens, at most {most} go into one: split it"
        );
        Err(Error::new(ErrorKind::ContextFull, message)
            .with("needed", n_tokens as u64)
            .with("available", u64::from(most)))
    }

    fn embedding_shape(&self) -> Shape {
        embedding_shape(self.plan.n_ctx, self.plan.n_batch)
    }

    /// A sequence of its own, if there is room beside what was planned.
    fn embedding_state(&self, team: Option<Arc<dyn Team>>) -> Result<State> {
        let shape = self.embedding_shape();
        let needed = embedding_bytes(&self.model, &shape, self.stats.threads);
        let available = self.plan.budget_bytes.saturating_sub(self.plan.total_bytes);
        let state = if needed > available {
            None
        } else {
            State::with_team(&self.model, &shape, team).ok()
        };
        state.ok_or_else(|| {
            let message = format!(
                "embedding needs {needed} bytes beside the conversation, which were not planned for: open the model with option \
                 'embeddings'"
            );
            Error::new(ErrorKind::OutOfMemory, message)
                .with("needed_bytes", needed)
                .with("available_bytes", available)
        })
    }
}

/// The sequence that texts are embedded in, beside a conversation of `n_ctx` positions.
pub(super) fn embedding_shape(n_ctx: u32, n_batch: u32) -> Shape {
    Shape { n_ctx: n_ctx.min(EMBED_POSITIONS), n_batch, n_logits: 1 }
}

/// That sequence, where `config` has it planned.
pub(super) fn planned_state(
    model: &Model,
    plan: &Plan,
    config: &OpenConfig,
    team: Option<&Arc<dyn Team>>,
) -> Result<Option<State>> {
    let shape = embedding_shape(plan.n_ctx, plan.n_batch);
    let planned = config.embeddings && model.kind() == ModelKind::Decoder;
    planned.then(|| State::with_team(model, &shape, team.cloned())).transpose()
}

/// What it takes when `n_threads` share its steps.
pub(super) fn embedding_bytes(model: &Model, shape: &Shape, n_threads: u32) -> u64 {
    let takes = model.memory(shape);
    let bytes = [takes.scratch_bytes, takes.logits_bytes, takes.kv_bytes];
    bytes.into_iter().fold(model.team_bytes(shape, n_threads), u64::saturating_add)
}

/// Tokens of a text that a decoder embeds, at most; fewer where the context is smaller. An encoder takes as many as its context has.
pub const EMBED_POSITIONS: u32 = 512;
