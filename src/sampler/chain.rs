//! The chain: from the logits of one position to one token.

use super::breakers::DryBreakers;
use super::candidates::{Candidate, Candidates};
use super::config::SamplerConfig;
use super::filters;
use super::history::History;
use super::logit_edits::LogitEdits;
use super::logprobs::{Logprobs, TokenLogprob};
use super::mirostat::MirostatState;
use super::rng::Rng;
use super::scan;
use crate::TokenId;
use crate::error::{Error, ErrorKind, Result};

/// The choice of one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// The token.
    pub id: TokenId,
    /// ln of its probability in the unfiltered distribution, when log-probabilities were asked for.
    pub logprob: Option<f32>,
}

/// Chooses tokens. It allocates when it is made and never after.
#[derive(Debug)]
pub struct Sampler {
    config: SamplerConfig,
    n_vocab: usize,
    top_k: usize,
    edits: LogitEdits,
    history: History,
    candidates: Candidates,
    mirostat: Option<MirostatState>,
    logprobs: Option<Logprobs>,
    rng: Rng,
}

impl Sampler {
    /// A sampler for `n_vocab` tokens in a context of `n_ctx`. Errors: `invalid_option` for what is out of range, and
    /// `out_of_memory`.
    pub fn new(config: &SamplerConfig, n_vocab: usize, n_ctx: usize) -> Result<Self> {
        config.validate()?;
        check_tokens(config, n_vocab)?;
        if n_vocab >= MAX_VOCAB {
            let message = format!(
                "a vocabulary of {n_vocab} tokens; the sampler takes fewer than {MAX_VOCAB}"
            );
            return Err(Error::new(ErrorKind::UnsupportedModel, message));
        }
        let greedy = config.temperature <= 0.0;
        let all = if config.mirostat == 2 { 0 } else { usize::try_from(config.top_k).unwrap_or(0) };
        let top_k = if all == 0 || all >= n_vocab { n_vocab } else { all };
        let n_candidates = if greedy { 0 } else { n_vocab.min(top_k.saturating_mul(2)) };
        let edits = LogitEdits::new(config, n_ctx)?;
        Ok(Self {
            n_vocab,
            top_k,
            history: History::new(edits.history_len())?,
            edits,
            candidates: Candidates::with_items(room(n_candidates)?),
            mirostat: (config.mirostat == 2 && !greedy)
                .then(|| MirostatState::new(config.mirostat_tau, config.mirostat_eta)),
            logprobs: config
                .logprobs
                .map(|n| Logprobs::new((n as usize).min(n_vocab)))
                .transpose()?,
            rng: Rng::new(config.seed),
            config: SamplerConfig {
                logit_bias: Vec::new(),
                dry_breakers: DryBreakers::default(),
                ..*config
            },
        })
    }

    /// The most bytes that any configuration takes, breakers and biases aside.
    #[must_use]
    pub fn max_bytes(n_vocab: u64, n_ctx: u64) -> u64 {
        let candidate = size_of::<Candidate>() as u64;
        n_vocab * candidate + n_ctx * LogitEdits::BYTES_PER_POSITION + LOGPROBS_BYTES
    }

    /// Remembers a token of the sequence, prompt or answer: the penalties look at these.
    pub fn accept(&mut self, token: TokenId) {
        debug_assert!((token as usize) < self.n_vocab, "ids are checked where they come in");
        if (token as usize) < self.n_vocab {
            self.history.push(token);
        }
    }

    /// Chooses a token by `logits: [n_vocab]`. Errors: `invalid_model` for a logit that is not finite, `invalid_option` if
    /// every token is banned.
    pub fn sample(&mut self, logits: &[f32]) -> Result<Sample> {
        check_logits(logits, self.n_vocab)?;
        let edits = self.edits.apply(logits, &self.history);
        let token = if self.config.temperature <= 0.0 {
            likeliest(logits, edits)
        } else {
            collect(&mut self.candidates, logits, edits, self.top_k);
            self.choose()
        };
        let Some(id) = token else {
            let message = "`logitBias` bans every token of the vocabulary; leave at least one";
            return Err(Error::new(ErrorKind::InvalidOption, message).with("key", "logitBias"));
        };
        Ok(Sample { id, logprob: self.logprobs.as_mut().map(|l| l.measure(logits, id)) })
    }

    /// The likeliest tokens at the last step, as many as were asked for.
    #[must_use]
    pub fn top_logprobs(&self) -> &[TokenLogprob] {
        self.logprobs.as_ref().map_or(&[], Logprobs::top)
    }

    /// Filters the candidates and draws one; nothing when there are none.
    fn choose(&mut self) -> Option<TokenId> {
        let (c, config) = (&mut self.candidates, &self.config);
        if c.len() == 0 {
            return None;
        }
        let drawn = if let Some(mirostat) = &mut self.mirostat {
            filters::temperature(c, config.temperature);
            mirostat.draw(c, &mut self.rng)
        } else {
            filters::top_k(c, self.top_k);
            filters::typical_p(c, config.typical_p);
            filters::top_p(c, config.top_p);
            filters::min_p(c, config.min_p);
            filters::xtc(c, config.xtc_probability, config.xtc_threshold, &mut self.rng);
            filters::temperature(c, config.temperature);
            c.draw(&mut self.rng)
        };
        Some(c.as_slice()[drawn].token)
    }
}

/// Fills `candidates` with the `k` likeliest tokens that are not banned, and perhaps some more.
pub(crate) fn collect(
    candidates: &mut Candidates,
    logits: &[f32],
    edits: &[(TokenId, f32)],
    k: usize,
) {
    candidates.clear();
    let mut least = f32::NEG_INFINITY;
    // Of equal logits the lower id is before the higher, so an equal one cannot get in any more.
    scan::each_above(logits, edits, least, |token, logit| {
        if candidates.is_full() {
            least = candidates.keep_likeliest(k);
        }
        if logit > least {
            candidates.push(logit, token);
        }
        least
    });
}

/// The token of the highest logit that is not banned, the lowest id of equals.
fn likeliest(logits: &[f32], edits: &[(TokenId, f32)]) -> Option<TokenId> {
    let mut found = None;
    scan::each_above(logits, edits, f32::NEG_INFINITY, |token, logit| {
        found = Some(token);
        logit
    });
    found
}

fn check_logits(logits: &[f32], n_vocab: usize) -> Result<()> {
    if logits.len() != n_vocab {
        let message = format!("{} logits for a vocabulary of {n_vocab}", logits.len());
        return Err(Error::new(ErrorKind::Internal, message));
    }
    if scan::all_finite(logits) {
        return Ok(());
    }
    let token = logits.iter().position(|x| !x.is_finite()).unwrap_or(0);
    let message = format!(
        "the logit of token {token} is {}: the model's weights or an overflow in its layers make numbers that are not finite",
        logits[token]
    );
    Err(Error::new(ErrorKind::InvalidModel, message).with("token", token as u64))
}

fn check_tokens(config: &SamplerConfig, n_vocab: usize) -> Result<()> {
    let outside = |token: &TokenId| *token as usize >= n_vocab;
    let bias = config.logit_bias.iter().map(|b| b.0).find(outside).map(|t| ("logitBias", t));
    let breaker = || config.dry_breakers.ids().find(outside).map(|t| ("dryBreakers", t));
    match bias.or_else(breaker) {
        None => Ok(()),
        Some((key, token)) => {
            let message = format!(
                "`{key}` names token {token}; the vocabulary has ids 0 to {}",
                n_vocab.saturating_sub(1)
            );
            Err(Error::new(ErrorKind::InvalidOption, message).with("key", key))
        }
    }
}

/// An empty vector with room for exactly `n`, or `out_of_memory`.
pub(crate) fn room<T>(n: usize) -> Result<Vec<T>> {
    let mut v = Vec::new();
    let bytes = n.saturating_mul(size_of::<T>()) as u64;
    v.try_reserve_exact(n).map_err(|_| {
        let message = format!("no memory for the sampler: {bytes} bytes");
        Error::new(ErrorKind::OutOfMemory, message).with("needed_bytes", bytes)
    })?;
    Ok(v)
}

/// More than the likeliest tokens take: 20 of them, chosen from 40 candidates.
const LOGPROBS_BYTES: u64 = 4096;

/// With more, the sum of the candidates' weights could overflow.
const MAX_VOCAB: usize = 1 << 22;
