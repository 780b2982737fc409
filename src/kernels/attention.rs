//! Attention, whole and in parts: what it is given is checked here.

use core::ops::Range;

use super::{AttentionOut, KvRows, Queries, Scoring, active, scalar};

/// Elements of scores that [`attention`] needs for `n_tokens` tokens and `n_heads` heads when no token sees more than
/// `longest` positions.
#[must_use]
pub const fn attention_scratch(n_tokens: usize, n_heads: usize, longest: usize) -> usize {
    let tokens = scalar::attention_tile(n_heads);
    longest * n_heads * if n_tokens < tokens { n_tokens } else { tokens }
}

/// Attention of some tokens for the heads that share one KV head. Token `t` sees the positions `spans[t]`; all of them are
/// stored in `k` and `v`. For every token and head on its own: scores, their maximum exactly, exponentials and values in
/// order of position, one chain for the sum (a sink comes first), and at the end a multiplication by `1 / sum`.
pub fn attention(
    q: &Queries<'_>,
    spans: &[Range<usize>],
    k: &KvRows<'_>,
    v: &KvRows<'_>,
    scoring: &Scoring<'_>,
    scores: &mut [f32],
    out: &mut AttentionOut<'_>,
) {
    let Some(last) = spans.len().checked_sub(1) else { return };
    let longest = spans.iter().map(Range::len).max().unwrap_or(0);
    assert!(spans.iter().all(|s| s.start < s.end), "every token sees a position");
    assert!(longest <= k.capacity && longest <= v.capacity, "the positions are stored");
    let group = q.n_heads * q.head_dim;
    assert!(q.data.len() >= last * q.stride + group, "queries of {} tokens", spans.len());
    let group = q.n_heads * out.value_dim;
    assert!(out.data.len() >= last * out.stride + group, "room for {} tokens", spans.len());
    assert!(scoring.sinks.is_none_or(|s| s.len() == q.n_heads), "a sink per head");
    let scratch = attention_scratch(spans.len(), q.n_heads, longest);
    assert!(scores.len() >= scratch, "scores: {} of {scratch}", scores.len());
    check_rows(k, q.head_dim);
    check_rows(v, out.value_dim);
    active::attention(q, spans, k, v, scoring, scores, out);
}

/// The first part of [`attention`] for one token: dot products of its queries with the keys at `positions`, to `scores`,
/// `[n_heads, positions.len()]`. Parts of what a token sees can be done apart, and so can heads.
pub fn attention_scores(
    q: &Queries<'_>,
    positions: Range<usize>,
    k: &KvRows<'_>,
    scores: &mut [f32],
) {
    assert!(!positions.is_empty() && positions.len() <= k.capacity, "the positions are stored");
    assert_eq!(scores.len(), q.n_heads * positions.len(), "a score for each head and position");
    assert!(q.data.len() >= q.n_heads * q.head_dim, "queries of one token");
    check_rows(k, q.head_dim);
    active::attention_scores(q, positions, k, scores);
}

/// The second part: makes weights of the dot products of adjacent heads, from `first_head` on, with all keys that their token
/// sees: `scores` is `[n_heads, n_seen]`. To `factors` goes what each head's sum of values is to be multiplied by.
pub fn attention_weights(
    scores: &mut [f32],
    scoring: &Scoring<'_>,
    first_head: usize,
    factors: &mut [f32],
) {
    assert!(!factors.is_empty() && scores.len() >= factors.len(), "scores of each head");
    let n_seen = scores.len() / factors.len();
    assert_eq!(scores.len(), n_seen * factors.len(), "as many scores for each head");
    let sinks = scoring.sinks.map(|sinks| &sinks[first_head..][..factors.len()]);
    active::attention_weights(scores, &Scoring { sinks, ..*scoring }, factors);
}

/// The third part: the values at `positions`, all that the token sees, by `weights`, `[n_heads, positions.len()]`, each
/// head's sum multiplied by its factor. `out` is `[n_heads, value_dim]`; elements of values can be done apart, and so can heads.
pub fn attention_values(
    weights: &[f32],
    factors: &[f32],
    positions: Range<usize>,
    v: &KvRows<'_>,
    out: &mut [f32],
) {
    assert!(!positions.is_empty() && positions.len() <= v.capacity, "the positions are stored");
    assert!(!factors.is_empty() && out.len() >= factors.len(), "elements of each head");
    assert_eq!(
        weights.len(),
        factors.len() * positions.len(),
        "a weight for each head and position"
    );
    assert!(out.len().is_multiple_of(factors.len()), "as many elements for each head");
    check_rows(v, out.len() / factors.len());
    active::attention_values(weights, factors, positions, v, out);
}

fn check_rows(rows: &KvRows<'_>, dim: usize) {
    let stored = rows.ty.row_bytes(dim as u64);
    let end = stored.map(|n| (rows.capacity - 1) * rows.row_bytes + rows.head_offset + n as usize);
    assert!(end.is_some_and(|end| end <= rows.bytes.len()), "{}: rows of {dim}", rows.ty);
}
