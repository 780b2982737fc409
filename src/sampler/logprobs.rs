//! Log-probabilities: of the distribution that the model gave, before bias, penalties, filters and temperature.

use super::candidates::Candidates;
use super::chain::{collect, room};
use super::scan;
use crate::TokenId;
use crate::error::Result;
use crate::kernels::math::ln_f64;

/// A token with the natural logarithm of its probability.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenLogprob {
    /// The token.
    pub token: TokenId,
    /// ln of its probability.
    pub logprob: f32,
}

/// The log-probabilities of one step.
#[derive(Debug)]
pub(crate) struct Logprobs {
    n: usize,
    likeliest: Candidates,
    top: Vec<TokenLogprob>,
}

impl Logprobs {
    /// For the `n` likeliest tokens.
    pub(crate) fn new(n: usize) -> Result<Self> {
        Ok(Self { n, likeliest: Candidates::with_items(room(2 * n)?), top: room(n)? })
    }

    /// Finds the likeliest tokens of `logits`, and gives the log-probability of `chosen`.
    pub(crate) fn measure(&mut self, logits: &[f32], chosen: TokenId) -> f32 {
        let max = scan::highest(logits);
        let log_sum = f64::from(max) + ln_f64(scan::sum_of_exp(logits, max));
        #[allow(clippy::cast_possible_truncation, reason = "the rounding is meant")]
        let logprob = |logit: f32| (f64::from(logit) - log_sum) as f32;
        self.top.clear();
        if self.n > 0 {
            collect(&mut self.likeliest, logits, &[], self.n);
            self.likeliest.sort_first(self.n);
            let found = self.likeliest.as_slice().iter().take(self.n);
            self.top
                .extend(found.map(|c| TokenLogprob { token: c.token, logprob: logprob(c.logit) }));
        }
        logprob(logits[chosen as usize])
    }

    /// The likeliest tokens of the last step, the likeliest first.
    pub(crate) fn top(&self) -> &[TokenLogprob] {
        &self.top
    }
}
