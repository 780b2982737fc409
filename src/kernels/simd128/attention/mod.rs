//! Attention with up to four rows, a row being the query of a token and head, on every key and value that is loaded.
//!
//! F32 is used as it is stored. So are halves, if all of them are finite and one token with few heads sees them: keys, and
//! values where rows are short. Else a block of positions is decoded to f32 first.

mod scores;
mod values;

use core::arch::wasm32::*;
use core::ops::Range;

use super::activation::{map, softcap};
use super::kv::{Block, DECODED, KvF16, KvF32, KvFormat, over_blocks};
use super::math::exp_of_small;
use super::reduce::maximum;
use crate::kernels::{AttentionOut, KvRows, Queries, Scoring, math, scalar};
use crate::quant::GgmlType;
use scores::score;
use values::add_up;

/// Attention of one tile of tokens after the other.
pub(in crate::kernels) fn attention(
    q: &Queries<'_>,
    spans: &[Range<usize>],
    k: &KvRows<'_>,
    v: &KvRows<'_>,
    scoring: &Scoring<'_>,
    scores: &mut [f32],
    out: &mut AttentionOut<'_>,
) {
    if unfit(q.n_heads, q.head_dim) || unfit(q.n_heads, out.value_dim) {
        return scalar::attention(q, spans, k, v, scoring, scores, out);
    }
    let n_tokens = scalar::attention_tile(q.n_heads);
    let mut factors = [0.0; MAX_ROWS];
    for (i, spans) in spans.chunks(n_tokens).enumerate() {
        let stride = spans.iter().map(Range::len).max().unwrap_or(0);
        let tile = Tile { first: i * n_tokens, spans, n_heads: q.n_heads, stride };
        score(&tile, q, k, scores);
        for row in tile.rows() {
            let sink = scoring.sinks.map(|sinks| sinks[row % q.n_heads]);
            factors[row] = weigh(&mut scores[tile.scores(row, tile.span(row))], scoring, sink);
        }
        let row = |row: usize| &scores[tile.scores(row, tile.span(row))];
        invert_sums(&mut factors[..tile.rows().len()], row);
        add_up(&tile, scores, &factors, v, out);
    }
}

/// One token's dot products with some keys.
pub(in crate::kernels) fn attention_scores(
    q: &Queries<'_>,
    positions: Range<usize>,
    k: &KvRows<'_>,
    scores: &mut [f32],
) {
    if unfit(q.n_heads, q.head_dim) {
        return scalar::attention_scores(q, positions, k, scores);
    }
    let stride = positions.len();
    score(&Tile { first: 0, spans: &[positions], n_heads: q.n_heads, stride }, q, k, scores);
}

/// From dot products of one token to weights.
pub(in crate::kernels) fn attention_weights(
    scores: &mut [f32],
    scoring: &Scoring<'_>,
    factors: &mut [f32],
) {
    let n_seen = scores.len() / factors.len();
    let heads = scores.chunks_exact_mut(n_seen).zip(&mut *factors);
    for (head, (scores, factor)) in heads.enumerate() {
        *factor = weigh(scores, scoring, scoring.sinks.map(|sinks| sinks[head]));
    }
    invert_sums(factors, |head| &scores[head * n_seen..][..n_seen]);
}

/// One token's sums of values.
pub(in crate::kernels) fn attention_values(
    weights: &[f32],
    factors: &[f32],
    positions: Range<usize>,
    v: &KvRows<'_>,
    out: &mut [f32],
) {
    let (n_heads, stride) = (factors.len(), positions.len());
    let value_dim = out.len() / n_heads;
    if unfit(n_heads, value_dim) {
        return scalar::attention_values(weights, factors, positions, v, out);
    }
    let tile = Tile { first: 0, spans: &[positions], n_heads, stride };
    let mut out = AttentionOut { stride: out.len(), data: out, value_dim };
    add_up(&tile, weights, factors, v, &mut out);
}

fn unfit(n_heads: usize, dim: usize) -> bool {
    !dim.is_multiple_of(16) || dim > DECODED || n_heads > MAX_ROWS
}

/// Tokens whose scores are kept together. Row `r` is head `r % n_heads` of token `r / n_heads` of the tile.
struct Tile<'a> {
    /// Token of row 0.
    first: usize,
    spans: &'a [Range<usize>],
    n_heads: usize,
    /// Distance between the scores of rows.
    stride: usize,
}

impl Tile<'_> {
    fn rows(&self) -> Range<usize> {
        0..self.spans.len() * self.n_heads
    }

    fn span(&self, row: usize) -> &Range<usize> {
        &self.spans[row / self.n_heads]
    }

    /// Where the scores of a row are for some of the positions of its span.
    fn scores(&self, row: usize, positions: &Range<usize>) -> Range<usize> {
        let start = row * self.stride + positions.start - self.span(row).start;
        start..start + positions.len()
    }

    /// Where a row's vector of `dim` elements is, with `stride` between tokens.
    fn place(&self, row: usize, stride: usize, dim: usize) -> Range<usize> {
        let start = (self.first + row / self.n_heads) * stride + row % self.n_heads * dim;
        start..start + dim
    }

    /// Whether halves are used as they are stored: what few rows see is not worth decoding.
    fn direct(&self, stored: &KvRows<'_>) -> bool {
        let few = self.spans.len() == 1 && self.n_heads <= TOGETHER;
        stored.ty == GgmlType::F16 && stored.finite && few
    }

    /// Does the work on all that its rows see, positions in order, with elements as they are stored or decoded.
    fn run(&self, stored: &KvRows<'_>, dim: usize, direct: bool, work: &mut impl Work) {
        let start = self.spans.iter().map(|span| span.start).min().unwrap_or(0);
        let end = self.spans.iter().map(|span| span.end).max().unwrap_or(0);
        let direct = direct || stored.ty == GgmlType::F32;
        over_blocks(stored, dim, start..end, direct, |block, ty| {
            for rows in self.groups() {
                match ty {
                    GgmlType::F16 => self.group::<16, KvF16>(rows, block, work),
                    _ => self.group::<32, KvF32>(rows, block, work),
                }
            }
        });
    }

    /// Groups of up to four rows: heads of one token, or tokens where there is one head.
    fn groups(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (outer, inner) = if self.n_heads == 1 {
            (1, self.spans.len())
        } else {
            (self.spans.len(), self.n_heads)
        };
        let parts = inner.div_ceil(TOGETHER);
        let bounds = move |part: usize| part * inner / parts;
        (0..outer).flat_map(move |o| {
            (0..parts).map(move |part| o * inner + bounds(part)..o * inner + bounds(part + 1))
        })
    }

    /// The positions that all rows see are done together, those before and after them row by row.
    fn group<const B: usize, F: KvFormat<B>>(
        &self,
        rows: Range<usize>,
        block: &Block<'_>,
        work: &mut impl Work,
    ) {
        let within = |start: usize, end: usize| {
            let start = start.clamp(block.positions.start, block.positions.end);
            start..end.clamp(start, block.positions.end)
        };
        let spans = rows.clone().map(|row| self.span(row));
        let start = spans.clone().map(|span| span.start).max().unwrap_or(0);
        let end = spans.map(|span| span.end).min().unwrap_or(0);
        let common = within(start, end);
        for row in rows.clone() {
            let before = within(self.span(row).start, self.span(row).end.min(common.start));
            if !before.is_empty() {
                work.on::<B, F, 1>([row], block, &before);
            }
        }
        let r = rows.start;
        match rows.len() {
            _ if common.is_empty() => {}
            1 => work.on::<B, F, 1>([r], block, &common),
            2 => work.on::<B, F, 2>([r, r + 1], block, &common),
            3 => work.on::<B, F, 3>([r, r + 1, r + 2], block, &common),
            _ => work.on::<B, F, 4>([r, r + 1, r + 2, r + 3], block, &common),
        }
        for row in rows {
            let after = within(self.span(row).start.max(common.end), self.span(row).end);
            if !after.is_empty() {
                work.on::<B, F, 1>([row], block, &after);
            }
        }
    }
}

/// What is done with keys or values.
trait Work {
    /// For `R` rows and some positions of a block that all of them see.
    fn on<const B: usize, F: KvFormat<B>, const R: usize>(
        &mut self,
        rows: [usize; R],
        block: &Block<'_>,
        positions: &Range<usize>,
    );
}

/// From dot products to exponentials less the maximum; gives the sink's.
fn weigh(scores: &mut [f32], scoring: &Scoring<'_>, sink: Option<f32>) -> f32 {
    let scale = f32x4_splat(scoring.scale);
    map(scores, |x| f32x4_mul(x, scale), |x| x * scoring.scale);
    if let Some(cap) = scoring.softcap {
        softcap(scores, cap);
    }
    let max = maximum(scores);
    let max = sink.map_or(max, |sink| maximum(&[max, sink]));
    let vmax = f32x4_splat(max);
    map(scores, |x| exp_of_small(f32x4_sub(x, vmax)), |x| math::exp(x - max));
    sink.map_or(0.0, |sink| math::exp(sink - max))
}

/// Adds to each factor its row of weights, in order, and inverts it. Several chains of additions at a time: one waits for
/// itself.
fn invert_sums<'a>(factors: &mut [f32], row: impl Fn(usize) -> &'a [f32]) {
    for (i, sums) in factors.chunks_mut(CHAINS).enumerate() {
        let rows: [&[f32]; CHAINS] =
            core::array::from_fn(|j| if j < sums.len() { row(CHAINS * i + j) } else { &[] });
        let mut chains = [0.0; CHAINS];
        chains[..sums.len()].copy_from_slice(sums);
        let n = rows[..sums.len()].iter().map(|row| row.len()).min().unwrap_or(0);
        let together = rows.map(|row| row.get(..n).unwrap_or(&rows[0][..n]));
        for k in 0..n {
            for (chain, row) in chains.iter_mut().zip(together) {
                *chain += row[k];
            }
        }
        for (sum, (chain, row)) in sums.iter_mut().zip(chains.into_iter().zip(rows)) {
            *sum = 1.0 / row[n..].iter().fold(chain, |sum, x| sum + x);
        }
    }
}

/// Rows that share a key or value.
const TOGETHER: usize = 4;
/// Rows whose weights are added up together.
const CHAINS: usize = 4;
/// Rows of a tile.
const MAX_ROWS: usize = 128;
