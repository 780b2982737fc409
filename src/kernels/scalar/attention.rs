//! Attention of one token and head at a time.

use core::ops::Range;

use super::super::math;
use super::super::{AttentionOut, KvRows, Queries, Scoring};
use super::activation::maximum;
use super::reduce::fold_products;
use crate::quant::{GgmlType, f16_to_f32};

/// Tokens that share the scratch of the scores, for a group of `n_heads` heads.
#[must_use]
pub const fn attention_tile(n_heads: usize) -> usize {
    if n_heads >= ROWS { 1 } else { ROWS / n_heads }
}

/// Attention of the tokens one after the other.
pub fn attention(
    q: &Queries<'_>,
    spans: &[Range<usize>],
    k: &KvRows<'_>,
    v: &KvRows<'_>,
    scoring: &Scoring<'_>,
    scores: &mut [f32],
    out: &mut AttentionOut<'_>,
) {
    for (token, span) in spans.iter().enumerate() {
        for head in 0..q.n_heads {
            let query = &q.data[token * q.stride + head * q.head_dim..][..q.head_dim];
            let scores = &mut scores[..span.len()];
            score_any(query, span, k, scores);
            let sum = weigh(scores, scoring, scoring.sinks.map(|sinks| sinks[head]));
            let out = &mut out.data[token * out.stride + head * out.value_dim..][..out.value_dim];
            accumulate_any(scores, 1.0 / sum, span, v, out);
        }
    }
}

/// One token's dot products with some keys.
pub fn attention_scores(
    q: &Queries<'_>,
    positions: Range<usize>,
    k: &KvRows<'_>,
    scores: &mut [f32],
) {
    let queries = q.data.chunks_exact(q.head_dim);
    for (query, scores) in queries.zip(scores.chunks_exact_mut(positions.len())) {
        score_any(query, &positions, k, scores);
    }
}

/// From dot products of one token to weights.
pub fn attention_weights(scores: &mut [f32], scoring: &Scoring<'_>, factors: &mut [f32]) {
    let n_seen = scores.len() / factors.len();
    for (head, (scores, factor)) in scores.chunks_exact_mut(n_seen).zip(factors).enumerate() {
        *factor = 1.0 / weigh(scores, scoring, scoring.sinks.map(|sinks| sinks[head]));
    }
}

/// One token's sums of values.
pub fn attention_values(
    weights: &[f32],
    factors: &[f32],
    positions: Range<usize>,
    v: &KvRows<'_>,
    out: &mut [f32],
) {
    let dim = out.len() / factors.len();
    let heads = weights.chunks_exact(positions.len()).zip(factors);
    for ((weights, factor), out) in heads.zip(out.chunks_exact_mut(dim)) {
        accumulate_any(weights, *factor, &positions, v, out);
    }
}

/// From dot products to exponentials less the maximum; their sum, in order, the sink's first.
fn weigh(scores: &mut [f32], scoring: &Scoring<'_>, sink: Option<f32>) -> f32 {
    for score in scores.iter_mut() {
        *score *= scoring.scale;
        if let Some(cap) = scoring.softcap {
            *score = cap * math::tanh(*score / cap);
        }
    }
    let max = maximum(scores);
    let max = sink.map_or(max, |sink| if sink > max { sink } else { max });
    let mut sum = sink.map_or(0.0, |sink| math::exp(sink - max));
    for score in scores {
        *score = math::exp(*score - max);
        sum += *score;
    }
    sum
}

fn score_any(query: &[f32], span: &Range<usize>, k: &KvRows<'_>, scores: &mut [f32]) {
    match k.ty {
        GgmlType::F32 => score::<KvF32>(query, span, k, scores),
        GgmlType::F16 => score::<KvF16>(query, span, k, scores),
        _ => score::<KvQ8>(query, span, k, scores),
    }
}

fn accumulate_any(
    weights: &[f32],
    factor: f32,
    span: &Range<usize>,
    v: &KvRows<'_>,
    out: &mut [f32],
) {
    out.fill(0.0);
    match v.ty {
        GgmlType::F32 => accumulate::<KvF32>(weights, span, v, out),
        GgmlType::F16 => accumulate::<KvF16>(weights, span, v, out),
        _ => accumulate::<KvQ8>(weights, span, v, out),
    }
    out.iter_mut().for_each(|x| *x *= factor);
}

fn score<F: KvFormat>(query: &[f32], span: &Range<usize>, k: &KvRows<'_>, scores: &mut [f32]) {
    let (query, rest) = query.as_chunks::<16>();
    for (pos, score) in span.clone().zip(scores) {
        let row = k.at(pos);
        let mut sums = [0.0; 16];
        for (chunk, q) in query.iter().enumerate() {
            let key = F::decode(row, chunk, 16);
            for i in 0..16 {
                sums[i] += q[i] * key[i];
            }
        }
        let key = if rest.is_empty() { [0.0; 16] } else { F::decode(row, query.len(), rest.len()) };
        *score = fold_products(&sums, rest, &key[..rest.len()]);
    }
}

fn accumulate<F: KvFormat>(weights: &[f32], span: &Range<usize>, v: &KvRows<'_>, out: &mut [f32]) {
    let (out, rest) = out.as_chunks_mut::<16>();
    for (pos, weight) in span.clone().zip(weights) {
        let row = v.at(pos);
        for (chunk, out) in out.iter_mut().enumerate() {
            let value = F::decode(row, chunk, 16);
            for i in 0..16 {
                out[i] += weight * value[i];
            }
        }
        if !rest.is_empty() {
            let value = F::decode(row, out.len(), rest.len());
            for (out, value) in rest.iter_mut().zip(&value) {
                *out += weight * value;
            }
        }
    }
}

/// A format of stored K or V rows.
trait KvFormat {
    /// Elements `16 chunk..16 chunk + n` of a row, the first `n` of the result.
    fn decode(row: &[u8], chunk: usize, n: usize) -> [f32; 16];
}

struct KvF32;
struct KvF16;
struct KvQ8;

impl KvFormat for KvF32 {
    #[inline(always)]
    fn decode(row: &[u8], chunk: usize, n: usize) -> [f32; 16] {
        let mut out = [0.0; 16];
        let bytes = &row[64 * chunk..][..4 * n];
        out.iter_mut().zip(bytes.as_chunks::<4>().0).for_each(|(x, b)| *x = f32::from_le_bytes(*b));
        out
    }
}

impl KvFormat for KvF16 {
    #[inline(always)]
    fn decode(row: &[u8], chunk: usize, n: usize) -> [f32; 16] {
        let mut out = [0.0; 16];
        let halves = &row[32 * chunk..][..2 * n];
        for (x, bits) in out.iter_mut().zip(halves.as_chunks::<2>().0) {
            *x = f16_to_f32(u16::from_le_bytes(*bits));
        }
        out
    }
}

impl KvFormat for KvQ8 {
    #[inline(always)]
    fn decode(row: &[u8], chunk: usize, n: usize) -> [f32; 16] {
        let mut out = [0.0; 16];
        let block = &row[34 * (chunk / 2)..][..34];
        let d = f16_to_f32(u16::from_le_bytes([block[0], block[1]]));
        for (x, q) in out.iter_mut().zip(&block[2 + 16 * (chunk % 2)..][..n]) {
            *x = f32::from(q.cast_signed()) * d;
        }
        out
    }
}

/// Rows of scores, a token and head each, that are worth keeping while a key or value is decoded.
const ROWS: usize = 16;
