//! What changes single logits before any filter: bias, the three penalties on tokens in the window, DRY.
//!
//! Only the tokens concerned are touched; the logits themselves are never copied.

use super::chain::room;
use super::config::SamplerConfig;
use super::dry::Dry;
use super::history::History;
use crate::TokenId;
use crate::error::Result;

/// The edits of one step, and what makes them.
#[derive(Debug)]
pub(crate) struct LogitEdits {
    bias: Vec<(TokenId, f32)>,
    penalties: Penalties,
    dry: Option<Dry>,
    /// The window's tokens in order of id.
    window: Vec<TokenId>,
    /// New logits of the tokens concerned, in order of id.
    edited: Vec<(TokenId, f32)>,
}

#[derive(Debug, Clone, Copy)]
struct Penalties {
    repeat: f64,
    frequency: f64,
    presence: f64,
    last_n: usize,
}

impl LogitEdits {
    /// Memory for each token of the context when the penalties and DRY both look all the way back: the token in the
    /// history and in the window, one edit for each of the two, and DRY's room.
    pub(crate) const BYTES_PER_POSITION: u64 = (2 * size_of::<TokenId>()
        + 2 * size_of::<(TokenId, f32)>()
        + size_of::<u32>()
        + size_of::<(TokenId, f64)>()) as u64;

    /// For windows of at most `n_ctx` tokens.
    pub(crate) fn new(config: &SamplerConfig, n_ctx: usize) -> Result<Self> {
        let active = config.repeat_penalty != 1.0
            || config.frequency_penalty != 0.0
            || config.presence_penalty != 0.0;
        let penalties = Penalties {
            repeat: f64::from(config.repeat_penalty),
            frequency: f64::from(config.frequency_penalty),
            presence: f64::from(config.presence_penalty),
            last_n: if active { window_len(config.repeat_last_n, n_ctx) } else { 0 },
        };
        let dry = Dry::new(config, n_ctx)?;
        let mut bias = config.logit_bias.clone();
        bias.sort_by_key(|(token, _)| *token);
        let n_edited = bias.len() + penalties.last_n + dry.as_ref().map_or(0, Dry::last_n);
        Ok(Self { bias, penalties, dry, window: room(penalties.last_n)?, edited: room(n_edited)? })
    }

    /// Tokens that must be remembered.
    pub(crate) fn history_len(&self) -> usize {
        self.penalties.last_n.max(self.dry.as_ref().map_or(0, Dry::last_n))
    }

    /// The new logits of the tokens concerned, in order of id; a banned token's is negative infinity.
    pub(crate) fn apply(&mut self, logits: &[f32], history: &History) -> &[(TokenId, f32)] {
        let Self { bias, penalties, dry, window, edited } = self;
        window.clear();
        let n = penalties.last_n.min(history.len());
        window.extend((0..n).map(|back| history.back(back)));
        window.sort_unstable();
        let repeats = dry.as_mut().map_or(&[][..], |dry| dry.penalties(history));

        edited.clear();
        edited.extend(bias.iter().map(|b| (b.0, logits[b.0 as usize])));
        edited.extend(window.iter().map(|&token| (token, logits[token as usize])));
        edited.extend(repeats.iter().map(|r| (r.0, logits[r.0 as usize])));
        edited.sort_unstable_by_key(|e| e.0);
        edited.dedup_by_key(|e| e.0);

        for (token, logit) in edited.iter_mut() {
            let bias: f64 = run_of(bias, *token, |b| b.0).iter().map(|b| f64::from(b.1)).sum();
            if bias == f64::NEG_INFINITY {
                *logit = f32::NEG_INFINITY;
                continue;
            }
            let count = run_of(window, *token, |&t| t).len();
            let x = penalties.apply(f64::from(*logit) + bias, count);
            let x = run_of(repeats, *token, |r| r.0).iter().fold(x, |x, r| x - r.1);
            #[allow(
                clippy::cast_possible_truncation,
                reason = "clamped to f32; the rounding is meant"
            )]
            let finite = x.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32;
            *logit = finite;
        }
        edited
    }
}

impl Penalties {
    /// The logit `x` of a token that is `count` times in the window.
    fn apply(&self, x: f64, count: usize) -> f64 {
        if count == 0 {
            return x;
        }
        let x = if x > 0.0 { x / self.repeat } else { x * self.repeat };
        x - count as f64 * self.frequency - self.presence
    }
}

/// Tokens that a window of `last_n` spans in a context of `n_ctx`; -1 spans it all.
pub(crate) fn window_len(last_n: i64, n_ctx: usize) -> usize {
    usize::try_from(last_n).map_or(n_ctx, |n| n.min(n_ctx))
}

/// The run of equal keys `key` in a slice that is in order of `key_of`.
fn run_of<T, K: Ord + Copy>(sorted: &[T], key: K, key_of: impl Fn(&T) -> K) -> &[T] {
    let from = sorted.partition_point(|t| key_of(t) < key);
    let n = sorted[from..].partition_point(|t| key_of(t) <= key);
    &sorted[from..from + n]
}
