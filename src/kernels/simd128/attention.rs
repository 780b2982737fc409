//! Attention with up to three rows, a row being the query of a token and head, on every key and value that is loaded.
//!
//! One token's keys and values of F32 and F16 are used as they are stored. With more tokens, or another format, a block of
//! positions is decoded to f32 first.

use core::arch::wasm32::*;
use core::ops::Range;

use super::activation::map;
use super::decode::HALVES_UP;
use super::kv::{Block, DECODED, KvF16, KvF32, KvFormat, MAX_POSITIONS, over_blocks};
use super::lanes::{load_f32, store_f32};
use super::reduce::{fold, fold_four, maximum};
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
    let mut room = [[0.0; 16]; TOGETHER * QUICK_DIM / 16];
    for (i, spans) in spans.chunks(n_tokens).enumerate() {
        let stride = spans.iter().map(Range::len).max().unwrap_or(0);
        let tile = Tile { first: i * n_tokens, spans, n_heads: q.n_heads, stride };
        let heads = &q.data[tile.first * q.stride..][..q.n_heads * dim];
        let scaled = if tile.direct(k.ty) { scale_up(heads, &mut room) } else { None };
        tile.run(k, dim, &mut Scores { tile: &tile, q, scaled, scores });
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

    /// Whether keys and values of this format are used as they are stored.
    fn direct(&self, ty: GgmlType) -> bool {
        match ty {
            GgmlType::F32 => true,
            GgmlType::F16 => self.spans.len() == 1 && self.n_heads <= TOGETHER,
            _ => false,
        }
    }

    /// Does the work on all that its rows see, positions in order.
    fn run(&self, stored: &KvRows<'_>, dim: usize, work: &mut impl Work) {
        let start = self.spans.iter().map(|span| span.start).min().unwrap_or(0);
        let end = self.spans.iter().map(|span| span.end).max().unwrap_or(0);
        over_blocks(stored, dim, start..end, self.direct(stored.ty), |block, ty| {
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
    /// What [`scale_up`] gave for the heads of one token.
    scaled: Option<&'a [[f32; 16]]>,
    scores: &'a mut [f32],
}

impl Work for Scores<'_> {
    fn on<const B: usize, F: KvFormat<B>, const R: usize>(
        &mut self,
        rows: [usize; R],
        block: &Block<'_>,
        positions: &Range<usize>,
    ) {
        let (stride, dim) = (self.q.stride, self.q.head_dim);
        let queries = rows.map(|r| &self.q.data[self.tile.place(r, stride, dim)]);
        let queries = queries.map(|q| &q.as_chunks::<16>().0[..dim / 16]);
        let first = rows.map(|r| self.tile.scores(r, positions).start);
        let mut done = 0;
        if let Some(scaled) = self.scaled.filter(|_| F::UP != 1.0) {
            let queries = rows.map(|r| &scaled[r * (dim / 16)..][..dim / 16]);
            let fours = positions.start..positions.start + positions.len() / 4 * 4;
            let special = dots_of_four::<B, F, R>(queries, block, &fours, first, self.scores);
            done = if F::met(special) { 0 } else { fours.len() };
        }
        let rest = positions.start + done..positions.end;
        dots::<B, F, R>(queries, block, &rest, first.map(|at| at + done), self.scores);
    }
}

/// Queries times [`HALVES_UP`], as halves want them; nothing if a number gets too large for an f32 or there is no room.
fn scale_up<'a>(queries: &[f32], scaled: &'a mut [[f32; 16]]) -> Option<&'a [[f32; 16]]> {
    let scaled = scaled.get_mut(..queries.len() / 16)?;
    let to = scaled.as_flattened_mut().as_chunks_mut::<4>().0;
    let mut largest = u32x4_splat(0);
    for (to, from) in to.iter_mut().zip(queries.as_chunks::<4>().0) {
        let x = f32x4_mul(load_f32(from), f32x4_splat(HALVES_UP));
        largest = u32x4_max(largest, i32x4_shl(x, 1));
        store_f32(to, x);
    }
    let infinite = v128_any_true(u32x4_ge(largest, u32x4_splat(0xff00_0000)));
    (!infinite).then_some(scaled)
}

/// Four positions at a time, a multiple of which `positions` are. What it returns tells whether the results count.
#[inline(always)]
fn dots_of_four<const B: usize, F: KvFormat<B>, const R: usize>(
    queries: [&[[f32; 16]]; R],
    block: &Block<'_>,
    positions: &Range<usize>,
    first: [usize; R],
    scores: &mut [f32],
) -> v128 {
    let mut special = u16x8_splat(0);
    let n = queries[0].len();
    let mut keys = block.rows(positions).map(|key| &key.as_chunks::<B>().0[..n]);
    let mut at = 0;
    while let Some(a) = keys.next() {
        let (Some(b), Some(c), Some(d)) = (keys.next(), keys.next(), keys.next()) else { break };
        let keys = [a, b, c, d];
        keys.iter().for_each(|key| key.iter().for_each(|bytes| F::watch(bytes, &mut special)));
        // The partial sums 0 to 3 of all, then 8 to 11, which are added to them, and so on: as the tree has it.
        let mut sums = quarter::<B, F, R, 0>(queries, keys);
        add_all(&mut sums, &quarter::<B, F, R, 2>(queries, keys));
        let mut others = quarter::<B, F, R, 1>(queries, keys);
        add_all(&mut others, &quarter::<B, F, R, 3>(queries, keys));
        add_all(&mut sums, &others);
        for r in 0..R {
            if let Some((to, _)) = scores[first[r] + at..].split_first_chunk_mut::<4>() {
                store_f32(to, fold_four(sums[r]));
            }
        }
        at += 4;
    }
    special
}

/// Partial sums `4 J..4 J + 4` of four keys with every query.
#[inline(always)]
fn quarter<const B: usize, F: KvFormat<B>, const R: usize, const J: usize>(
    queries: [&[[f32; 16]]; R],
    keys: [&[[u8; B]]; 4],
) -> [[v128; 4]; R] {
    let mut sums = [[f32x4_splat(0.0); 4]; R];
    for chunk in 0..queries[0].len() {
        let q = queries.map(|q| load_f32(&q[chunk].as_chunks::<4>().0[J]));
        for p in 0..4 {
            let key = F::quick_four(&keys[p][chunk], J);
            for r in 0..R {
                sums[r][p] = f32x4_add(sums[r][p], f32x4_mul(q[r], key));
            }
        }
    }
    sums
}

#[inline(always)]
fn add_all<const R: usize>(sums: &mut [[v128; 4]; R], others: &[[v128; 4]; R]) {
    for r in 0..R {
        for p in 0..4 {
            sums[r][p] = f32x4_add(sums[r][p], others[r][p]);
        }
    }
}

/// One position at a time, whatever is stored.
#[inline(always)]
fn dots<const B: usize, F: KvFormat<B>, const R: usize>(
    queries: [&[[f32; 16]]; R],
    block: &Block<'_>,
    positions: &Range<usize>,
    first: [usize; R],
    scores: &mut [f32],
) {
    for (i, key) in block.rows(positions).enumerate() {
        let mut sums = [[f32x4_splat(0.0); 4]; R];
        for (chunk, key) in key.as_chunks::<B>().0[..queries[0].len()].iter().enumerate() {
            let key = F::exact(key);
            for r in 0..R {
                let (q, _) = queries[r][chunk].as_chunks::<4>();
                for j in 0..4 {
                    sums[r][j] = f32x4_add(sums[r][j], f32x4_mul(load_f32(&q[j]), key[j]));
                }
            }
        }
        for r in 0..R {
            scores[first[r] + i] = fold(sums[r]);
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
        // A weight is at most 1, so that nothing gets too large.
        let mut scaled = [[0.0; MAX_POSITIONS]; R];
        let mut quick = weights;
        if F::UP != 1.0 {
            for (to, from) in scaled.iter_mut().zip(weights) {
                to.iter_mut().zip(from).for_each(|(to, from)| *to = from * F::UP);
            }
            quick = core::array::from_fn(|r| &scaled[r][..positions.len()]);
        }
        for chunk in 0..dim / 16 {
            let at = |r: usize| places[r] + 16 * chunk..places[r] + 16 * (chunk + 1);
            let mut sums = [[f32x4_splat(0.0); 4]; R];
            for r in 0..R {
                let (from, _) = self.out.data[at(r)].as_chunks::<4>();
                for j in 0..4 {
                    sums[r][j] = load_f32(&from[j]);
                }
            }
            let values = || block.rows(positions).map(|value| &value.as_chunks::<B>().0[chunk]);
            let mut special = u16x8_splat(0);
            let mut added = add_values(sums, values(), quick, |value| {
                F::watch(value, &mut special);
                F::quick(value)
            });
            if F::met(special) {
                added = add_values(sums, values(), weights, F::exact);
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
fn add_values<'a, const B: usize, const R: usize>(
    mut sums: [[v128; 4]; R],
    values: impl Iterator<Item = &'a [u8; B]>,
    weights: [&[f32]; R],
    mut read: impl FnMut(&[u8; B]) -> [v128; 4],
) -> [[v128; 4]; R] {
    for (i, value) in values.enumerate() {
        let value = read(value);
        for r in 0..R {
            let weight = f32x4_splat(weights[r][i]);
            for j in 0..4 {
                sums[r][j] = f32x4_add(sums[r][j], f32x4_mul(weight, value[j]));
            }
        }
    }
    sums
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
/// Longest query that is scaled.
const QUICK_DIM: usize = 256;
/// Rows of a tile.
const MAX_ROWS: usize = 128;
