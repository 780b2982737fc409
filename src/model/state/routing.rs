//! Which token goes through which expert: the router's choice, sorted by expert so that each expert meets its tokens in
//! one run.

use super::scratch::filled;
use crate::error::Result;
use crate::kernels::softmax;
use crate::model::program::Weighting;

/// The routing of a chunk. A pair is one token and one of its experts; pairs are sorted by expert, then by token.
#[derive(Debug)]
pub(crate) struct Routing {
    /// Chosen experts of each token, `[n_tokens, n_used]`, the most probable first.
    chosen: Vec<u32>,
    /// Their weights.
    chosen_weights: Vec<f32>,
    /// Token of each pair.
    tokens: Vec<u32>,
    /// Weight of each pair.
    weights: Vec<f32>,
    /// First pair of each expert; one more at the end: `[n_expert + 1]`.
    starts: Vec<u32>,
    /// Where the next pair of an expert goes, while they are sorted: `[n_expert]`.
    next: Vec<u32>,
}

impl Routing {
    pub(crate) fn new(pairs: u64, n_expert: u64) -> Result<Self> {
        Ok(Self {
            chosen: filled(pairs)?,
            chosen_weights: filled(pairs)?,
            tokens: filled(pairs)?,
            weights: filled(pairs)?,
            starts: filled(if n_expert > 0 { n_expert + 1 } else { 0 })?,
            next: filled(n_expert)?,
        })
    }

    /// Chooses the experts of token `token` from the router's opinion of it, which is overwritten. Of two experts that
    /// are equally probable the first wins.
    pub(crate) fn choose(
        &mut self,
        token: usize,
        opinion: &mut [f32],
        n_used: usize,
        weighting: Weighting,
    ) {
        if weighting != Weighting::SoftmaxOfChosen {
            softmax(opinion);
        }
        let places = token * n_used..(token + 1) * n_used;
        let chosen = &mut self.chosen[places.clone()];
        let weights = &mut self.chosen_weights[places];
        for rank in 0..n_used {
            let mut best = None;
            for (expert, &p) in (0u32..).zip(opinion.iter()) {
                let taken = chosen[..rank].contains(&expert);
                if !taken && best.is_none_or(|(_, best_p)| p > best_p) {
                    best = Some((expert, p));
                }
            }
            // There are at least as many experts as are used.
            (chosen[rank], weights[rank]) = best.unwrap_or((0, 0.0));
        }
        match weighting {
            Weighting::Probability => {}
            Weighting::Normalized => {
                let mut sum = 0.0;
                weights.iter().for_each(|w| sum += w);
                weights.iter_mut().for_each(|w| *w /= sum);
            }
            Weighting::SoftmaxOfChosen => softmax(weights),
        }
    }

    /// Sorts the choices of `tokens` by expert.
    pub(crate) fn sort(&mut self, tokens: core::ops::Range<usize>, n_used: usize) {
        let places = tokens.start * n_used..tokens.end * n_used;
        self.starts.fill(0);
        for &expert in &self.chosen[places.clone()] {
            self.starts[expert as usize + 1] += 1;
        }
        for expert in 0..self.next.len() {
            self.next[expert] = self.starts[expert];
            self.starts[expert + 1] += self.starts[expert];
        }
        for place in places {
            let next = &mut self.next[self.chosen[place] as usize];
            let pair = *next as usize;
            *next += 1;
            #[allow(
                clippy::cast_possible_truncation,
                reason = "a chunk has fewer than 2^32 tokens"
            )]
            let token = (place / n_used) as u32;
            self.tokens[pair] = token;
            self.weights[pair] = self.chosen_weights[place];
        }
    }

    /// The first expert from `expert` on that has a pair, and its pairs.
    pub(crate) fn busy_from(&self, expert: usize) -> Option<(usize, core::ops::Range<usize>)> {
        (expert..self.next.len())
            .map(|expert| (expert, self.pairs(expert)))
            .find(|(_, pairs)| !pairs.is_empty())
    }

    /// Pairs of an expert.
    pub(crate) fn pairs(&self, expert: usize) -> core::ops::Range<usize> {
        self.starts[expert] as usize..self.starts[expert + 1] as usize
    }

    /// Token of each of `pairs`.
    pub(crate) fn tokens(&self, pairs: core::ops::Range<usize>) -> &[u32] {
        &self.tokens[pairs]
    }

    /// Weight of each of `pairs`.
    pub(crate) fn weights(&self, pairs: core::ops::Range<usize>) -> &[f32] {
        &self.weights[pairs]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equally_probable_experts_the_first_wins() {
        let mut routing = Routing::new(2, 4).unwrap();
        routing.choose(0, &mut [1.0, 3.0, 1.0, 1.0], 2, Weighting::Normalized);
        assert_eq!(routing.chosen, [1, 0]);
        let sum: f32 = routing.chosen_weights.iter().sum();
        assert!((sum - 1.0).abs() < 1e-6, "normalised weights sum to {sum}");
    }

    #[test]
    fn an_opinion_of_nothing_still_names_different_experts() {
        let mut routing = Routing::new(3, 3).unwrap();
        routing.choose(0, &mut [f32::NAN; 3], 3, Weighting::Probability);
        assert_eq!(routing.chosen, [0, 1, 2]);
    }

    #[test]
    fn pairs_are_sorted_by_expert_then_by_token() {
        let mut routing = Routing::new(6, 4).unwrap();
        for (token, opinion) in
            [[9.0, 8.0, 0.0, 0.0], [0.0, 9.0, 0.0, 8.0], [9.0, 0.0, 0.0, 8.0]].iter().enumerate()
        {
            routing.choose(token, &mut opinion.clone(), 2, Weighting::Probability);
        }
        routing.sort(0..3, 2);
        let all: Vec<_> = (0..4).map(|expert| of_pairs(&routing, expert)).collect();
        assert_eq!(all, [vec![0, 2], vec![0, 1], vec![], vec![1, 2]]);
        assert_eq!(routing.busy_from(2), Some((3, 4..6)));
        assert_eq!(routing.busy_from(4), None);
        // Only the last token, as in a last layer.
        routing.sort(2..3, 2);
        assert_eq!([of_pairs(&routing, 0), of_pairs(&routing, 3)], [vec![2], vec![2]]);
    }

    fn of_pairs(routing: &Routing, expert: usize) -> Vec<u32> {
        routing.tokens(routing.pairs(expert)).to_vec()
    }
}
