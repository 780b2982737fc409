//! Attention with up to three rows, a row being the query of a token and head, on every key and value that is loaded.
//!
//! One token's keys and values of F32 and F16 are used as they are stored. With more tokens, or another format, a block of
//! positions is decoded to f32 first.

use core::arch::wasm32::*;
use core::ops::Range;

use super::activation::map;
use super::kv::{Block, DECODED, KvF16, KvF32, KvFormat, over_blocks};
use super::lanes::{load_f32, store_f32};
use super::reduce::{fold, maximum};
use crate::kernels::{AttentionOut, KvRows, Queries, Scoring, math, scalar};
use crate::quant::GgmlType;

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
    let (dim, value_dim) = (q.head_dim, out.value_dim);
    let unfit = |dim: usize| !dim.is_multiple_of(16) || dim > DECODED;
    if unfit(dim) || unfit(value_dim) || q.n_heads > MAX_ROWS {
        return scalar::attention(q, spans, k, v, scoring, scores, out);
    }
    let n_tokens = scalar::attention_tile(q.n_heads);
    let mut sums = [0.0; MAX_ROWS];
    for (i, spans) in spans.chunks(n_tokens).enumerate() {
        let stride = spans.iter().map(Range::len).max().unwrap_or(0);
        let tile = Tile { first: i * n_tokens, spans, n_heads: q.n_heads, stride };
        tile.run(k, dim, &mut Scores { tile: &tile, q, scores });
        for (row, sum) in tile.rows().zip(&mut sums) {
            let sink = scoring.sinks.map(|sinks| sinks[row % q.n_heads]);
            *sum = weigh(&mut scores[tile.scores(row, tile.span(row))], scoring, sink);
            out.data[tile.place(row, out.stride, value_dim)].fill(0.0);
        }
        tile.run(v, value_dim, &mut Values { tile: &tile, weights: scores, out });
        for (row, sum) in tile.rows().zip(&sums) {
            let factor = 1.0 / sum;
            out.data[tile.place(row, out.stride, value_dim)].iter_mut().for_each(|x| *x *= factor);
        }
    }
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

    /// Does the work on all that its rows see, positions in order.
    fn run(&self, stored: &KvRows<'_>, dim: usize, work: &mut impl Work) {
        let start = self.spans.iter().map(|span| span.start).min().unwrap_or(0);
        let end = self.spans.iter().map(|span| span.end).max().unwrap_or(0);
        let direct = match stored.ty {
            GgmlType::F32 => true,
            GgmlType::F16 => self.spans.len() == 1 && self.n_heads <= TOGETHER,
            _ => false,
        };
        over_blocks(stored, dim, start..end, direct, |block, ty| {
            for rows in self.groups() {
                match ty {
                    GgmlType::F16 => self.group::<32, KvF16>(rows, block, work),
                    _ => self.group::<64, KvF32>(rows, block, work),
                }
            }
        });
    }

    /// Groups of up to three rows: heads of one token, or tokens where there is one head.
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
            work.on::<B, F, 1>([row], block, &before);
        }
        let r = rows.start;
        match rows.len() {
            1 => work.on::<B, F, 1>([r], block, &common),
            2 => work.on::<B, F, 2>([r, r + 1], block, &common),
            _ => work.on::<B, F, 3>([r, r + 1, r + 2], block, &common),
        }
        for row in rows {
            let after = within(self.span(row).start.max(common.end), self.span(row).end);
            work.on::<B, F, 1>([row], block, &after);
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

/// Dot products of queries and keys.
struct Scores<'a> {
    tile: &'a Tile<'a>,
    q: &'a Queries<'a>,
    scores: &'a mut [f32],
}

impl Scores<'_> {
    #[inline(always)]
    fn pass<const B: usize, F: KvFormat<B>, const R: usize, const EXACT: bool>(
        &mut self,
        rows: [usize; R],
        block: &Block<'_>,
        positions: &Range<usize>,
    ) -> v128 {
        let (stride, dim) = (self.q.stride, self.q.head_dim);
        let queries = rows.map(|r| &self.q.data[self.tile.place(r, stride, dim)]);
        let queries = queries.map(|q| &q.as_chunks::<16>().0[..dim / 16]);
        let to = rows.map(|r| self.tile.scores(r, positions).start);
        let mut special = u16x8_splat(0);
        for (i, key) in block.rows(positions).enumerate() {
            let mut sums = [[f32x4_splat(0.0); 4]; R];
            for (chunk, key) in key.as_chunks::<B>().0[..dim / 16].iter().enumerate() {
                let key = F::load::<EXACT>(key, &mut special);
                for r in 0..R {
                    let (q, _) = queries[r][chunk].as_chunks::<4>();
                    for j in 0..4 {
                        sums[r][j] = f32x4_add(sums[r][j], f32x4_mul(load_f32(&q[j]), key[j]));
                    }
                }
            }
            for r in 0..R {
                self.scores[to[r] + i] = fold(sums[r]);
            }
        }
        special
    }
}

impl Work for Scores<'_> {
    fn on<const B: usize, F: KvFormat<B>, const R: usize>(
        &mut self,
        rows: [usize; R],
        block: &Block<'_>,
        positions: &Range<usize>,
    ) {
        if F::met(self.pass::<B, F, R, false>(rows, block, positions)) {
            self.pass::<B, F, R, true>(rows, block, positions);
        }
    }
}

/// Sums of values by their weights.
struct Values<'a, 'b> {
    tile: &'a Tile<'a>,
    weights: &'a [f32],
    out: &'a mut AttentionOut<'b>,
}

impl Work for Values<'_, '_> {
    fn on<const B: usize, F: KvFormat<B>, const R: usize>(
        &mut self,
        rows: [usize; R],
        block: &Block<'_>,
        positions: &Range<usize>,
    ) {
        let (stride, dim) = (self.out.stride, self.out.value_dim);
        let weights = rows.map(|r| &self.weights[self.tile.scores(r, positions)]);
        let places = rows.map(|r| self.tile.place(r, stride, dim).start);
        for chunk in 0..dim / 16 {
            let at = |r: usize| places[r] + 16 * chunk..places[r] + 16 * (chunk + 1);
            let mut sums = [[f32x4_splat(0.0); 4]; R];
            for r in 0..R {
                let (from, _) = self.out.data[at(r)].as_chunks::<4>();
                for j in 0..4 {
                    sums[r][j] = load_f32(&from[j]);
                }
            }
            let values = block.rows(positions);
            let (mut added, special) = add_chunk::<B, F, R, false>(sums, values, chunk, weights);
            if F::met(special) {
                let values = block.rows(positions);
                (added, _) = add_chunk::<B, F, R, true>(sums, values, chunk, weights);
            }
            for r in 0..R {
                let (to, _) = self.out.data[at(r)].as_chunks_mut::<4>();
                for j in 0..4 {
                    store_f32(&mut to[j], added[r][j]);
                }
            }
        }
    }
}

#[inline(always)]
fn add_chunk<'a, const B: usize, F: KvFormat<B>, const R: usize, const EXACT: bool>(
    mut sums: [[v128; 4]; R],
    values: impl Iterator<Item = &'a [u8]>,
    chunk: usize,
    weights: [&[f32]; R],
) -> ([[v128; 4]; R], v128) {
    let mut special = u16x8_splat(0);
    for (i, value) in values.enumerate() {
        let value = F::load::<EXACT>(&value.as_chunks::<B>().0[chunk], &mut special);
        for r in 0..R {
            let weight = f32x4_splat(weights[r][i]);
            for j in 0..4 {
                sums[r][j] = f32x4_add(sums[r][j], f32x4_mul(weight, value[j]));
            }
        }
    }
    (sums, special)
}

/// From dot products to exponentials less the maximum; their sum, in order, the sink's first.
fn weigh(scores: &mut [f32], scoring: &Scoring<'_>, sink: Option<f32>) -> f32 {
    let scale = f32x4_splat(scoring.scale);
    map(scores, |x| f32x4_mul(x, scale), |x| x * scoring.scale);
    if let Some(cap) = scoring.softcap {
        super::activation::softcap(scores, cap);
    }
    let max = maximum(scores);
    let max = sink.map_or(max, |sink| maximum(&[max, sink]));
    let vmax = f32x4_splat(max);
    map(scores, |x| super::math::exp(f32x4_sub(x, vmax)), |x| math::exp(x - max));
    let sink = sink.map_or(0.0, |sink| math::exp(sink - max));
    scores.iter().fold(sink, |sum, x| sum + x)
}

/// Rows that share a key or value: their 12 partial sums and its 4 vectors fill the registers.
const TOGETHER: usize = 3;
/// Rows of a tile.
const MAX_ROWS: usize = 128;
