//! The tokens that may still be drawn, in the one order that decides ties: likelier first, then the lower id.
//!
//! Probabilities are fixed-point integers, so their sums do not depend on the order of the storage.

use core::cmp::Ordering;

use super::rng::Rng;
use super::scan::{self, LANES};
use crate::TokenId;
use crate::kernels::math::{exp, ln_f64};

/// A token that may still be drawn. Its logit is finite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) logit: f32,
    pub(crate) token: TokenId,
}

/// Candidates in storage that is never reallocated.
#[derive(Debug)]
pub(crate) struct Candidates {
    items: Vec<Candidate>,
    /// The first `n_sorted` are in order, and before all the others in order.
    n_sorted: usize,
}

/// Likelier first, then the lower id: no two candidates are equal.
pub(crate) fn likelier(a: &Candidate, b: &Candidate) -> Ordering {
    a.rank().cmp(&b.rank())
}

impl Candidate {
    /// A number that is smaller for the likelier candidate: one comparison of integers instead of two of pairs.
    fn rank(&self) -> u64 {
        let bits = self.logit.to_bits();
        // As integers, the bits of positive floats rise with them, and those of negative floats fall.
        let falling = if bits >> 31 == 0 { !bits & !(1 << 31) } else { bits };
        u64::from(falling) << 32 | u64::from(self.token)
    }
}

impl Candidates {
    /// An empty set that never holds more than `items` has room for.
    pub(crate) fn with_items(items: Vec<Candidate>) -> Self {
        Self { items, n_sorted: 0 }
    }

    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.n_sorted = 0;
    }

    /// Adds one; the caller keeps within the capacity.
    pub(crate) fn push(&mut self, logit: f32, token: TokenId) {
        debug_assert!(self.items.len() < self.items.capacity(), "no allocation while sampling");
        // Adding zero makes -0 the same as 0.
        self.items.push(Candidate { logit: logit + 0.0, token });
    }

    pub(crate) fn is_full(&self) -> bool {
        self.items.len() == self.items.capacity()
    }

    pub(crate) fn as_slice(&self) -> &[Candidate] {
        &self.items
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// The highest logit; negative infinity of an empty set.
    pub(crate) fn max_logit(&self) -> f32 {
        if self.n_sorted > 0 {
            return self.items[0].logit;
        }
        self.items.iter().fold(f32::NEG_INFINITY, |max, c| scan::higher(max, c.logit))
    }

    /// Keeps the `n` likeliest, unsorted, and gives the least of their logits; `0 < n < len`.
    pub(crate) fn keep_likeliest(&mut self, n: usize) -> f32 {
        let least = self.items.select_nth_unstable_by(n - 1, likelier).1.logit;
        self.truncate(n);
        self.n_sorted = 0;
        least
    }

    /// Brings the `n` likeliest to the front, in order.
    pub(crate) fn sort_first(&mut self, n: usize) {
        let n = n.min(self.items.len());
        if n > self.n_sorted {
            sort_range(&mut self.items, self.n_sorted, n, likelier);
            self.n_sorted = n;
        }
    }

    /// Keeps the first `n`.
    pub(crate) fn truncate(&mut self, n: usize) {
        self.items.truncate(n);
        self.n_sorted = self.n_sorted.min(n);
    }

    /// Drops the first `n`, which are in order.
    pub(crate) fn drop_first(&mut self, n: usize) {
        self.items.drain(..n);
        self.n_sorted = self.n_sorted.saturating_sub(n);
    }

    /// Keeps the candidates with a logit of at least `least`.
    pub(crate) fn keep_from(&mut self, least: f64) {
        self.items.retain(|c| f64::from(c.logit) >= least);
        self.n_sorted = self.n_sorted.min(self.items.len());
    }

    /// Keeps the shortest run, in the order of `order`, whose mass is at least `share` of the whole, and leaves it unsorted.
    pub(crate) fn keep_share_by(
        &mut self,
        share: f64,
        order: impl Fn(&Candidate, &Candidate) -> Ordering,
    ) {
        let weights = self.weights();
        let kept = shortest_run(&mut self.items, 0, &weights, share, order).0;
        self.items.truncate(kept);
        self.n_sorted = 0;
    }

    /// Keeps the shortest run of the likeliest whose mass is at least `share` of the whole.
    pub(crate) fn keep_share(&mut self, share: f64) {
        let weights = self.weights();
        let (kept, n_sorted) =
            shortest_run(&mut self.items, self.n_sorted, &weights, share, likelier);
        self.n_sorted = n_sorted;
        self.truncate(kept);
    }

    /// Replaces every logit by `f` of it; `f` never turns the order round.
    pub(crate) fn map_logits(&mut self, f: impl Fn(f32) -> f32) {
        for c in &mut self.items {
            c.logit = f(c.logit) + 0.0;
        }
    }

    /// How probable each candidate is, in fixed point.
    pub(crate) fn weights(&self) -> Weights {
        let max = self.max_logit();
        let (chunks, rest) = self.items.as_chunks::<LANES>();
        let mut total = 0;
        for chunk in chunks {
            // All exponentials first: they are computed several at a time.
            let shares = chunk.map(|c| exp(c.logit - max));
            total += shares.into_iter().map(weight).sum::<u64>();
        }
        let rest = rest.iter().map(|c| weight(exp(c.logit - max)));
        Weights { max, total: total + rest.sum::<u64>() }
    }

    /// Draws one by probability; gives its place. The set is not empty.
    pub(crate) fn draw(&mut self, rng: &mut Rng) -> usize {
        let weights = self.weights();
        let mut left = rng.below(weights.total);
        for i in 0..self.items.len() {
            if i == self.n_sorted {
                self.sort_first(grown(i));
            }
            let weight = weights.of(&self.items[i]);
            if left < weight {
                return i;
            }
            left -= weight;
        }
        0
    }
}

/// Probabilities in fixed point: the likeliest candidate weighs 2^42, so that four million candidates fit a `u64`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weights {
    max: f32,
    pub(crate) total: u64,
}

impl Weights {
    /// The weight of `c`; 0 below 2^-42 of the likeliest.
    pub(crate) fn of(&self, c: &Candidate) -> u64 {
        weight(exp(c.logit - self.max))
    }

    /// ln of the sum of e to the logits.
    pub(crate) fn log_sum(&self) -> f64 {
        f64::from(self.max) + ln_f64(self.total as f64 / ONE)
    }
}

/// `share` of the likeliest candidate, in fixed point.
fn weight(share: f32) -> u64 {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and 2^42"
    )]
    let weight = (share * ONE as f32) as u64;
    weight
}

/// Length of the shortest run in the order of `order` whose mass is at least `share`, and how many are sorted after it.
fn shortest_run(
    items: &mut [Candidate],
    mut n_sorted: usize,
    weights: &Weights,
    share: f64,
    order: impl Fn(&Candidate, &Candidate) -> Ordering,
) -> (usize, usize) {
    let enough = share * weights.total as f64;
    let mut mass = 0;
    for i in 0..items.len() {
        if i == n_sorted {
            let to = grown(i).min(items.len());
            sort_range(items, i, to, &order);
            n_sorted = to;
        }
        mass += weights.of(&items[i]);
        if mass as f64 >= enough {
            return (i + 1, n_sorted);
        }
    }
    (items.len(), n_sorted)
}

/// Sorts `from..to` when `..from` is in order and before all the others: only the part that is looked at costs a sort.
fn sort_range(
    items: &mut [Candidate],
    from: usize,
    to: usize,
    order: impl Fn(&Candidate, &Candidate) -> Ordering,
) {
    if to < items.len() {
        items[from..].select_nth_unstable_by(to - from, &order);
    }
    items[from..to].sort_unstable_by(order);
}

fn grown(n: usize) -> usize {
    (n * 16).max(64)
}

/// 1 in fixed point, 2^42: the weights of fewer than 2^22 candidates add up to less than 2^64.
const ONE: f64 = 4_398_046_511_104.0;
