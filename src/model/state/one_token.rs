//! Attention of one token by several threads. They share its parts, each in the way that gives all of them as much: scores by
//! positions, weights by heads, sums of values by elements. So every key and value is read and decoded once for all heads that
//! it belongs to, whatever the numbers of threads and heads.

use core::mem::take;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};

use super::scratch::Own;
use super::shared::{Attention, WORTH_SHARING};
use crate::kernels::{self, Queries, Scoring};
use crate::team::{Grid, Team};

impl Attention<'_> {
    /// Some heads, whole groups, for one token, in place of its queries: `data` begins with that of head 0.
    pub(super) fn one_token(
        &self,
        team: &dyn Team,
        own: &mut [Own],
        heads: Range<usize>,
        token: usize,
        data: &mut [f32],
    ) {
        let positions = self.span(token);
        // Threads have their stage to work in.
        let mut scores = take(&mut own[0].scores);
        // At least a group: there are scores for one with the longest span.
        let together = (scores.len() / positions.len()).min(MOST_HEADS);
        let mut first = heads.start;
        while first < heads.end {
            let some = self.whole_groups(first..heads.end.min(first + together));
            first = some.end;
            let scores = &mut scores[..some.len() * positions.len()];
            self.score_shared(team, own, &some, &positions, data, scores);
            let factors = self.weigh_shared(team, own, &some, scores);
            let data = &mut data[some.start * self.head_dim..some.end * self.head_dim];
            self.add_shared(team, own, &some, &positions, (scores, &factors[..some.len()]), data);
        }
        own[0].scores = scores;
    }

    /// `heads` without those of a last group that is not whole; where none is whole, heads of one group.
    fn whole_groups(&self, heads: Range<usize>) -> Range<usize> {
        let whole = heads.end / self.group * self.group;
        let end_of_first = (heads.start / self.group + 1) * self.group;
        heads.start..if whole > heads.start { whole } else { heads.end.min(end_of_first) }
    }

    /// The dot products of `heads` with all keys: `scores` is `[heads, positions]`.
    fn score_shared(
        &self,
        team: &dyn Team,
        own: &mut [Own],
        heads: &Range<usize>,
        positions: &Range<usize>,
        queries: &[f32],
        scores: &mut [f32],
    ) {
        let (n_seen, head_dim, n_threads) = (positions.len(), self.head_dim, team.n_threads());
        let n_groups = heads.len().div_ceil(self.group);
        let together = self.group.min(heads.len());
        let parts = parts_for(n_groups, n_threads, 2 * n_threads, |_| true);
        let long = n_seen.div_ceil(parts).next_multiple_of(POSITIONS);
        let (stride, width, n_columns) = (n_seen, n_seen, heads.len());
        let piece = (long.min(own[0].stage.len() / together), together);
        let grid = Grid { data: scores, stride, first: 0, width, n_columns, piece };
        grid.share(team, own, |own, mut piece| {
            let (seen, columns) = (piece.elements(), piece.columns());
            let (first, n_heads) = (heads.start + columns.start, columns.len());
            let data = &queries[first * head_dim..];
            let queries = Queries { data, stride: n_heads * head_dim, n_heads, head_dim };
            let (keys, _) = self.kept.rows(first / self.group);
            let stage = &mut own.stage[..n_heads * seen.len()];
            let some = positions.start + seen.start..positions.start + seen.end;
            kernels::attention_scores(&queries, some, &keys, stage);
            for (head, scores) in stage.chunks_exact(seen.len()).enumerate() {
                piece.column(head).copy_from_slice(scores);
            }
        });
    }

    /// The weights of the values in place of scores; gives the factors of the sums.
    fn weigh_shared(
        &self,
        team: &dyn Team,
        own: &mut [Own],
        heads: &Range<usize>,
        scores: &mut [f32],
    ) -> [f32; MOST_HEADS] {
        let (n_seen, n_heads) = (scores.len() / heads.len(), heads.len());
        let scoring = Scoring { scale: self.scale, softcap: self.softcap, sinks: self.sinks };
        let factors = [const { AtomicU32::new(0) }; MOST_HEADS];
        let width = scores.len();
        let piece = (n_heads.div_ceil(team.n_threads()) * n_seen, 1);
        let grid = Grid { data: scores, stride: width, first: 0, width, n_columns: 1, piece };
        grid.share(team, own, |_, mut piece| {
            let some = piece.elements().start / n_seen..piece.elements().end / n_seen;
            let mut found = [0.0; MOST_HEADS];
            let found = &mut found[..some.len()];
            kernels::attention_weights(piece.column(0), &scoring, heads.start + some.start, found);
            for (factor, found) in factors[some].iter().zip(found) {
                // Read when the round is over.
                factor.store(found.to_bits(), Ordering::Relaxed);
            }
        });
        factors.map(|bits| f32::from_bits(bits.into_inner()))
    }

    /// The sums of values to `out`, `[heads, head_dim]`.
    fn add_shared(
        &self,
        team: &dyn Team,
        own: &mut [Own],
        heads: &Range<usize>,
        positions: &Range<usize>,
        (weights, factors): (&[f32], &[f32]),
        out: &mut [f32],
    ) {
        let head_dim = self.head_dim;
        let n_groups = heads.len().div_ceil(self.group);
        let n_units = if head_dim.is_multiple_of(UNIT) { head_dim / UNIT } else { 1 };
        let fit = |parts: usize| n_units.is_multiple_of(parts);
        let wide = head_dim / parts_for(n_groups, team.n_threads(), n_units, fit);
        let (stride, width, n_columns) = (head_dim, head_dim, heads.len());
        let piece = (wide, self.group.min(heads.len()));
        let grid = Grid { data: out, stride, first: 0, width, n_columns, piece };
        grid.share(team, own, |own, mut piece| {
            let (elements, columns) = (piece.elements(), piece.columns());
            let out = &mut own.stage[..columns.len() * elements.len()];
            let (_, values) = self.kept.rows((heads.start + columns.start) / self.group);
            let values = values.from_element(elements.start);
            let seen = columns.start * positions.len()..columns.end * positions.len();
            let (weights, factors) = (&weights[seen], &factors[columns]);
            kernels::attention_values(weights, factors, positions.clone(), &values, out);
            for (head, results) in out.chunks_exact(elements.len()).enumerate() {
                piece.column(head).copy_from_slice(results);
            }
        });
    }
}

/// Into how many equal parts to cut the work on each of `n_groups` so that all threads get the same or each of them two pieces:
/// the fewest of those that `fit`, `most` where there are none.
fn parts_for(n_groups: usize, n_threads: usize, most: usize, fit: impl Fn(usize) -> bool) -> usize {
    let enough = |n_pieces: usize| n_pieces.is_multiple_of(n_threads) || n_pieces >= 2 * n_threads;
    (1..=most).find(|parts| fit(*parts) && enough(n_groups * parts)).unwrap_or(most)
}

/// Multiplications, or what takes as long, below which calling the others three times takes longer than doing it.
pub(super) const ONE_TOKEN_WORTH_SHARING: usize = 3 * WORTH_SHARING;
/// Heads that are done together, at most.
const MOST_HEADS: usize = 64;
/// Positions that the kernels take together.
const POSITIONS: usize = 32;
/// Elements of a value that lie together in every format of the cache.
const UNIT: usize = 32;

#[cfg(test)]
mod tests {
    use super::super::shared::Kept;
    use super::*;
    use crate::kernels::attention_scratch;
    use crate::model::KvType;
    use crate::model::config::Shape;
    use crate::model::kv_cache::{KvCache, KvLayer};
    use crate::team::Pool;

    fn own(attention: &Attention<'_>, n_seen: usize) -> Own {
        Own {
            row: Vec::new(),
            scores: vec![f32::NAN; attention_scratch(1, attention.group, n_seen)],
            queries: vec![f32::NAN; attention.group * attention.head_dim],
            spans: Vec::with_capacity(1),
            stage: vec![f32::NAN; 8192],
        }
    }

    fn numbers(n: usize, seed: usize) -> Vec<f32> {
        (0..n).map(|i| ((i * 7919 + seed) % 1009) as f32 * 0.002 - 1.0).collect()
    }

    /// Three threads and one, for the groups from `first` on.
    fn check(attention: &Attention<'_>, first: usize) {
        let n_groups = attention.n_head / attention.group;
        let n_seen = attention.span(0).len();
        let queries = numbers(attention.n_head * attention.head_dim, 4);
        let mut alone = queries.clone();
        for group in first..n_groups {
            attention.alone(&mut own(attention, n_seen), group, 0..1, &mut alone);
        }
        let mut shared = queries;
        let mut own = [(); 3].map(|()| own(attention, n_seen));
        let pool = Pool::spawn(3);
        let heads = first * attention.group..attention.n_head;
        attention.one_token(&*pool, &mut own, heads, 0, &mut shared);
        pool.end();
        let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&shared), bits(&alone), "{attention:?}");
        assert!(!own[0].scores.is_empty(), "the leader has its scores back");
    }

    /// Heads that fit together and those that do not, alone in their group and not, of whole blocks and not.
    #[test]
    fn threads_that_share_a_token_give_the_bits_of_one() {
        for (n_head, group, head_dim) in
            [(9, 3, 64), (4, 4, 256), (1, 1, 32), (5, 1, 48), (32, 4, 128), (140, 70, 32)]
        {
            for n_seen in [1, 31, 97, 256] {
                let width = n_head / group * head_dim;
                let (keys, values) = (numbers(n_seen * width, 1), numbers(n_seen * width, 2));
                let sinks = numbers(n_head, 3);
                let kept = Kept::Text { keys: &keys, values: &values, width, head_dim };
                let sinks = (n_seen % 2 == 0).then_some(&sinks[..]);
                let softcap = (n_seen % 3 == 1).then_some(0.7);
                let scale = 0.2;
                check(&Attention { kept, n_head, group, head_dim, scale, softcap, sinks }, 0);
            }
        }
    }

    /// A window that has gone round the end of what is kept.
    #[test]
    fn threads_share_a_token_over_a_cache_of_every_format() {
        const POS: u32 = 200;
        for kv in [KvType::F32, KvType::F16, KvType::Q8_0] {
            for head_dim in [64, 128] {
                let layer = KvLayer { n_head_kv: 3, head_dim, window: Some(90) };
                let shape = Shape { n_ctx: 256, n_batch: 1, n_logits: 1 };
                let mut cache = KvCache::new(&[layer], kv, &shape).unwrap();
                for pos in 0..=POS {
                    let row = |seed: usize| numbers(3 * head_dim as usize, seed + pos as usize);
                    cache.write(0, pos, &row(11), &row(500));
                }
                for first in 0..3 {
                    let kept = Kept::Cache { kv: &cache, layer: 0, pos: POS };
                    let (n_head, group, head_dim) = (9, 3, head_dim as usize);
                    let (scale, softcap, sinks) = (0.2, None, None);
                    let attention =
                        Attention { kept, n_head, group, head_dim, scale, softcap, sinks };
                    check(&attention, first);
                }
            }
        }
    }
}
