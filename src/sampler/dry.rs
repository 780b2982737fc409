//! DRY ("don't repeat yourself"): the penalty on tokens that would continue a sequence that was there before.

use super::breakers::{DryBreakers, SplitBreaker};
use super::chain::room;
use super::config::SamplerConfig;
use super::history::History;
use super::logit_edits::window_len;
use crate::TokenId;
use crate::error::Result;

/// DRY's numbers and its room to work in.
#[derive(Debug)]
pub(crate) struct Dry {
    multiplier: f64,
    base: f64,
    allowed: usize,
    last_n: usize,
    breakers: DryBreakers,
    /// `common[j]`: how many of the last tokens, going back, equal those going back from `j` places before the end.
    common: Vec<u32>,
    penalties: Vec<(TokenId, f64)>,
}

impl Dry {
    /// Nothing when it is off.
    pub(crate) fn new(config: &SamplerConfig, n_ctx: usize) -> Result<Option<Self>> {
        let last_n = window_len(config.dry_last_n, n_ctx);
        if config.dry_multiplier == 0.0 || last_n == 0 {
            return Ok(None);
        }
        let mut breakers = config.dry_breakers.clone();
        breakers.tokens.sort_unstable();
        breakers.split.iter_mut().for_each(|b| b.heads.sort_unstable());
        Ok(Some(Self {
            multiplier: f64::from(config.dry_multiplier),
            base: f64::from(config.dry_base),
            allowed: usize::try_from(config.dry_allowed_length).unwrap_or(usize::MAX),
            last_n,
            breakers,
            common: room(last_n)?,
            penalties: room(last_n)?,
        }))
    }

    /// Tokens that it looks back.
    pub(crate) fn last_n(&self) -> usize {
        self.last_n
    }

    /// What to subtract from the logits of tokens that would continue a repeat, in order of id.
    pub(crate) fn penalties(&mut self, history: &History) -> &[(TokenId, f64)] {
        self.penalties.clear();
        let n = self.last_n.min(history.len());
        let limit = self.since_breaker(history, n);
        if n <= self.allowed || limit < self.allowed {
            return &[];
        }
        self.find_common(history, n);
        for j in 1..n {
            let len = (self.common[j] as usize).min(limit);
            let token = history.back(j - 1);
            if len >= self.allowed && self.breakers.tokens.binary_search(&token).is_err() {
                self.penalties
                    .push((token, self.multiplier * power(self.base, len - self.allowed)));
            }
        }
        // The longest repeat of a token counts: it comes first, and the others go.
        self.penalties.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        self.penalties.dedup_by_key(|p| p.0);
        &self.penalties
    }

    /// Tokens after the end of the last breaker, at most `n`.
    fn since_breaker(&self, history: &History, n: usize) -> usize {
        let ends_at = |back: usize, breaker: &SplitBreaker| {
            let head = back + breaker.tail.len();
            let mut tail = breaker.tail.iter().rev().zip(back..);
            head < n
                && tail.all(|(&token, back)| history.back(back) == token)
                && breaker.heads.binary_search(&history.back(head)).is_ok()
        };
        let is_end = |back: &usize| {
            self.breakers.tokens.binary_search(&history.back(*back)).is_ok()
                || self.breakers.split.iter().any(|b| ends_at(*back, b))
        };
        (0..n).find(is_end).unwrap_or(n)
    }

    /// Fills `common` (the Z-algorithm on the sequence read backwards: linear in `n`).
    fn find_common(&mut self, history: &History, n: usize) {
        self.common.clear();
        self.common.push(0);
        // The run that reaches furthest so far is `from..to`.
        let (mut from, mut to) = (0, 0);
        for j in 1..n {
            let mut len = if j < to { (self.common[j - from] as usize).min(to - j) } else { 0 };
            while j + len < n && history.back(len) == history.back(j + len) {
                len += 1;
            }
            if j + len > to {
                (from, to) = (j, j + len);
            }
            self.common.push(u32::try_from(len).unwrap_or(u32::MAX));
        }
    }
}

/// `base` to the power `n`, `base >= 1`, by multiplication alone.
fn power(base: f64, n: usize) -> f64 {
    let (mut product, mut square, mut n) = (1.0, base, n);
    while n > 0 {
        if n & 1 == 1 {
            product *= square;
        }
        square *= square;
        n >>= 1;
    }
    product
}
