//! Prefill once, then decode token by token until something ends it.

use core::ops::ControlFlow;

use super::config::{GenerateConfig, Prompt};
use super::host::{Host, Outcome};
use super::live::Prefill;
use super::profile::ProfileSink;
use super::stop::StopFilter;
use super::texts::check_fits;
use super::{Engine, stats::Stats};
use crate::TokenId;
use crate::error::{Error, ErrorKind, Result};
use crate::model::LogitsWanted;
use crate::sampler::{DryBreakers, Pieces, Sample, Sampler, SamplerConfig, TokenLogprob};
use crate::tokenizer::Detokenizer;

/// A piece of the answer: whole UTF-8, never part of a stop string.
#[derive(Debug)]
pub struct Chunk<'a> {
    /// Text that is ready; may be empty while a character or a stop string is incomplete.
    pub text: &'a str,
    /// The token of this chunk; `None` for text that was held back until the end.
    pub token: Option<&'a Sample>,
    /// The likeliest tokens where this one was chosen, as many as were asked for.
    pub top_logprobs: &'a [TokenLogprob],
}

/// Why generation ended, in the words of the OpenAI wire format and one more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishReason {
    /// An end-of-generation token or a stop string.
    Stop,
    /// The token limit or the context.
    Length,
    /// The caller.
    Abort,
}

/// What exactly ended generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoppedBy {
    /// An end-of-generation token.
    EndOfGeneration,
    /// A stop string.
    StopString,
    /// `max_tokens`.
    MaxTokens,
    /// The context is full.
    Context,
    /// The callback or the host.
    Caller,
}

impl FinishReason {
    /// The word of the wire format.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::Abort => "abort",
        }
    }
}

impl StoppedBy {
    /// The reason in the coarser words.
    #[must_use]
    pub const fn reason(self) -> FinishReason {
        match self {
            Self::EndOfGeneration | Self::StopString => FinishReason::Stop,
            Self::MaxTokens | Self::Context => FinishReason::Length,
            Self::Caller => FinishReason::Abort,
        }
    }
}

/// The end of a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finish {
    /// What ended it.
    pub stopped_by: StoppedBy,
}

impl Engine {
    /// Feeds `prompt` and generates until a stop rule holds; every piece of text goes to `on_chunk`, which can end it.
    ///
    /// The end-of-generation token that ends a run is not given to `on_chunk`. The last token that is given is not in the
    /// KV cache until a call that resumes feeds it.
    ///
    /// # Errors
    /// `misuse` for an encoder, `invalid_option` (empty prompt, unknown ids, bad sampling values), `context_full` (the prompt does not fit),
    /// `source_failed` (weights could not be read), `invalid_model` (non-finite logits). After each of them the engine works on.
    pub async fn generate(
        &mut self,
        prompt: &Prompt,
        config: &GenerateConfig,
        host: &dyn Host,
        sink: Option<&mut (dyn ProfileSink + '_)>,
        on_chunk: &mut dyn FnMut(&Chunk<'_>, &Stats) -> ControlFlow<()>,
    ) -> Outcome<Finish> {
        self.require_decoder()?;
        config.validate()?;
        let ids = self.prompt_ids(prompt, config)?;
        let sampler = self.sampler(config)?;
        if !config.resume {
            self.reset();
        }
        let mut text = self.begin_text(config);
        let counted = self.history.len();
        let finish =
            self.answer(&ids, counted, sampler, config, &mut text, host, sink, on_chunk).await?;
        self.end_text(finish, &mut text, on_chunk);
        Ok(finish)
    }

    /// Feeds `ids`, which fit, behind what the KV cache holds, and generates. The prompt of the stats begins at position
    /// `counted`: what is held from there on counts as reused. The answer goes on with `text` and the stop filter as they are, and
    /// leaves in them what is no whole character or may become a stop string.
    pub(super) async fn answer(
        &mut self,
        ids: &[TokenId],
        counted: usize,
        mut sampler: Sampler,
        config: &GenerateConfig,
        text: &mut Detokenizer,
        host: &dyn Host,
        mut sink: Option<&mut (dyn ProfileSink + '_)>,
        on_chunk: &mut dyn FnMut(&Chunk<'_>, &Stats) -> ControlFlow<()>,
    ) -> Outcome<Finish> {
        let started = host.now_ms();
        self.start_sequence(ids, config, &mut sampler);
        self.stats.reused_tokens = count(self.history.len() - counted);
        let read = self.read_prompt(ids, started, host, sink.as_deref_mut()).await;
        self.prefill = None;
        read?;
        if config.keep_first_logits {
            self.first_logits.extend_from_slice(self.state.logits());
        }
        self.decode(config, &mut sampler, text, host, sink, on_chunk, started).await
    }

    /// Prefill: the prompt in chunks, logits of its last token.
    async fn read_prompt(
        &mut self,
        ids: &[TokenId],
        started_ms: f64,
        host: &dyn Host,
        mut sink: Option<&mut (dyn ProfileSink + '_)>,
    ) -> Outcome<()> {
        let n_batch = self.plan.n_batch as usize;
        let mut done = self.stats.reused_tokens;
        for (index, chunk) in ids.chunks(n_batch).enumerate() {
            self.prefill = Some(Prefill { started_ms, done, chunk: count(chunk.len()) });
            done += count(chunk.len());
            let last = (index + 1) * n_batch >= ids.len();
            let want = if last { LogitsWanted::Last } else { LogitsWanted::None };
            self.run_chunk(chunk, want, true, host, sink.as_deref_mut()).await?;
            self.history.extend_from_slice(chunk);
            self.stats.prefill_ms = host.now_ms() - started_ms;
            self.stats.prompt_tokens = done;
            self.stats.update_rates();
        }
        Ok(())
    }

    async fn decode(
        &mut self,
        config: &GenerateConfig,
        sampler: &mut Sampler,
        text: &mut Detokenizer,
        host: &dyn Host,
        mut sink: Option<&mut (dyn ProfileSink + '_)>,
        on_chunk: &mut dyn FnMut(&Chunk<'_>, &Stats) -> ControlFlow<()>,
        started: f64,
    ) -> Outcome<Finish> {
        let mut decode_started = None;
        let stopped_by = loop {
            if self.stats.generated_tokens >= config.max_tokens {
                break StoppedBy::MaxTokens;
            }
            let sample = sampler.sample(self.state.logits())?;
            let now = host.now_ms();
            let first_at = *decode_started.get_or_insert(now);
            self.stats.ttft_ms = first_at - started;
            self.stats.decode_ms = now - first_at;
            if !config.ignore_eog && self.tokenizer.is_eog(sample.id) {
                break StoppedBy::EndOfGeneration;
            }
            sampler.accept(sample.id);
            self.stats.generated_tokens += 1;
            self.stats.update_rates();
            let (shown, met) = self.stop.push(text.push(&self.tokenizer, sample.id));
            let top_logprobs = sampler.top_logprobs();
            let chunk = Chunk { text: shown, token: Some(&sample), top_logprobs };
            let flow = on_chunk(&chunk, &self.stats);
            if met {
                return Ok(Finish { stopped_by: StoppedBy::StopString });
            }
            if flow.is_break() {
                return Ok(Finish { stopped_by: StoppedBy::Caller });
            }
            if self.stats.generated_tokens >= config.max_tokens {
                break StoppedBy::MaxTokens;
            }
            if self.state.pos() >= self.plan.n_ctx {
                break StoppedBy::Context;
            }
            self.run_chunk(&[sample.id], LogitsWanted::Last, false, host, sink.as_deref_mut())
                .await?;
            self.history.push(sample.id);
        };
        Ok(Finish { stopped_by })
    }

    /// The decoder of an answer's ids, which the stop filter gets ready for.
    pub(super) fn begin_text(&mut self, config: &GenerateConfig) -> Detokenizer {
        let text_bytes = Detokenizer::max_text_bytes(&self.tokenizer);
        self.stop = StopFilter::new(&config.stop, text_bytes);
        Detokenizer::continuing(&self.tokenizer, false)
    }

    /// What the decoder and the stop filter still hold is text after all, unless a stop string or the caller ended it.
    pub(super) fn end_text(
        &mut self,
        finish: Finish,
        text: &mut Detokenizer,
        on_chunk: &mut dyn FnMut(&Chunk<'_>, &Stats) -> ControlFlow<()>,
    ) {
        if matches!(finish.stopped_by, StoppedBy::StopString | StoppedBy::Caller) {
            return;
        }
        let (shown, met) = self.stop.push(text.flush());
        if !shown.is_empty() {
            // The run is over: whether the caller wants more makes no difference.
            let chunk = Chunk { text: shown, token: None, top_logprobs: &[] };
            let _ = on_chunk(&chunk, &self.stats);
        }
        if met {
            return;
        }
        let rest = self.stop.flush();
        if !rest.is_empty() {
            let chunk = Chunk { text: rest, token: None, top_logprobs: &[] };
            let _ = on_chunk(&chunk, &self.stats);
        }
    }

    /// The sampler of a run.
    pub(super) fn sampler(&self, config: &GenerateConfig) -> Result<Sampler> {
        let n_vocab = self.model.hparams().n_vocab;
        let new = |config| Sampler::new(config, n_vocab as usize, self.plan.n_ctx as usize);
        if config.sampler.dry_multiplier == 0.0 {
            return new(&config.sampler);
        }
        let pieces = Pieces {
            n_vocab: n_vocab.min(count(self.tokenizer.n_vocab())),
            bytes: &|id| self.tokenizer.token_bytes(id),
            encode: &|text| self.tokenizer.encode(text, false, false),
        };
        let dry_breakers = DryBreakers::of_texts(&config.dry_breakers, &pieces)?;
        new(&SamplerConfig { dry_breakers, ..config.sampler.clone() })
    }

    /// The ids to feed, checked against vocabulary and context.
    pub(super) fn prompt_ids(
        &self,
        prompt: &Prompt,
        config: &GenerateConfig,
    ) -> Result<Vec<TokenId>> {
        let used = if config.resume { self.history.len() } else { 0 };
        if let Prompt::Text(text) = prompt
            && !config.parse_special
        {
            self.texts().check_size(text.len(), used)?;
        }
        let ids = match prompt {
            Prompt::Text(text) if text.is_empty() => Vec::new(),
            Prompt::Text(text) => self.tokenizer.encode(text, used == 0, config.parse_special)?,
            Prompt::Ids(ids) => ids.clone(),
        };
        if ids.is_empty() {
            return Err(Error::new(
                ErrorKind::InvalidOption,
                "the prompt is empty: give some text, or the token ids to start from",
            )
            .with("key", "prompt"));
        }
        self.check_ids(&ids, used)?;
        Ok(ids)
    }

    /// Refuses ids that are not in the vocabulary and prompts that do not fit behind `used` positions.
    pub(super) fn check_ids(&self, ids: &[TokenId], used: usize) -> Result<()> {
        self.check_vocabulary(ids)?;
        check_fits("needs", used + ids.len(), self.plan.n_ctx)
    }

    /// Clears what belonged to the last call and seeds the penalties with the prompt.
    fn start_sequence(&mut self, ids: &[TokenId], config: &GenerateConfig, sampler: &mut Sampler) {
        for &id in self.history.iter().chain(ids) {
            sampler.accept(id);
        }
        self.first_logits.clear();
        let stats = &mut self.stats;
        stats.seed = Some(config.sampler.seed);
        (stats.prompt_tokens, stats.generated_tokens, stats.reused_tokens) = (0, 0, 0);
        (stats.prefill_ms, stats.decode_ms, stats.ttft_ms) = (0.0, 0.0, 0.0);
        stats.update_rates();
    }
}

pub(super) fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
