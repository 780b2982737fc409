//! The filters of the chain: each takes the candidates and its own numbers, and keeps nothing.
//!
//! Every one of them leaves at least one candidate.

use super::candidates::{Candidate, Candidates};
use super::rng::Rng;
use crate::kernels::math::ln_f64;

/// Keeps the `k` likeliest; 0 keeps all.
pub(crate) fn top_k(c: &mut Candidates, k: usize) {
    if k > 0 && k < c.len() {
        c.sort_first(k);
        c.truncate(k);
    }
}

/// Keeps those whose surprise is nearest to the mean surprise and that together have probability `p`.
pub(crate) fn typical_p(c: &mut Candidates, p: f32) {
    if p >= 1.0 {
        return;
    }
    let weights = c.weights();
    let log_sum = weights.log_sum();
    let total = weights.total as f64;
    let mean: f64 = c
        .as_slice()
        .iter()
        .map(|c| weights.of(c) as f64 / total * (log_sum - f64::from(c.logit)))
        .sum();
    let distance = |c: &Candidate| (log_sum - f64::from(c.logit) - mean).abs();
    c.keep_share_by(f64::from(p), |a, b| {
        distance(a).total_cmp(&distance(b)).then_with(|| super::candidates::likelier(a, b))
    });
}

/// Keeps the likeliest that together have probability `p`.
pub(crate) fn top_p(c: &mut Candidates, p: f32) {
    if p < 1.0 {
        c.keep_share(f64::from(p));
    }
}

/// Keeps those with at least `p` of the likeliest one's probability.
pub(crate) fn min_p(c: &mut Candidates, p: f32) {
    if p > 0.0 {
        c.keep_from(f64::from(c.max_logit()) + ln_f64(f64::from(p)));
    }
}

/// With probability `probability`: of the candidates with a probability of at least `threshold`, drops all but the least likely.
pub(crate) fn xtc(c: &mut Candidates, probability: f32, threshold: f32, rng: &mut Rng) {
    if probability <= 0.0 || threshold > 0.5 || rng.unit() >= f64::from(probability) {
        return;
    }
    let weights = c.weights();
    let least = f64::from(threshold) * weights.total as f64;
    let n_above = c.as_slice().iter().filter(|c| weights.of(c) as f64 >= least).count();
    if n_above > 1 {
        c.sort_first(n_above);
        c.drop_first(n_above - 1);
    }
}

/// Divides the distances to the highest logit by `t`, which is more than 0.
pub(crate) fn temperature(c: &mut Candidates, t: f32) {
    let max = c.max_logit();
    c.map_logits(|logit| ((logit - max) / t).max(f32::MIN));
}
