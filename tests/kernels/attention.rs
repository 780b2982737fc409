//! Attention against its definition and against f64.

use core::ops::Range;

use sluice::kernels::{
    self, AttentionOut, KvRows, Queries, Scoring, attention_scores, attention_scratch,
    attention_values, attention_weights, kv_encode, scalar,
};
use sluice::quant::{GgmlType, dequantize_row};
use wasm_bindgen_test::wasm_bindgen_test;

use crate::golden;
use crate::numbers::{Digest, ROUNDING, Rng, assert_same};

struct Case {
    ty: GgmlType,
    n_heads: usize,
    head_dim: usize,
    value_dim: usize,
    capacity: usize,
    spans: Vec<Range<usize>>,
    softcap: Option<f32>,
    sinks: Option<Vec<f32>>,
    q: Vec<f32>,
    keys: Vec<u8>,
    values: Vec<u8>,
    /// Bytes before and after a row, which are another head's.
    pad: usize,
    /// What is said of keys and values.
    finite: bool,
}

impl Case {
    fn new(
        ty: GgmlType,
        [n_heads, head_dim, value_dim]: [usize; 3],
        spans: Vec<Range<usize>>,
        seed: u64,
    ) -> Self {
        let mut rng = Rng::new(seed);
        let capacity = spans.iter().map(Range::len).max().unwrap_or(1) + rng.below(3);
        // Heads that lie by themselves, as in the cache, and heads among others.
        let pad = if value_dim.is_multiple_of(64) { 0 } else { ty.block_bytes() };
        let mut stored = |dim: usize| {
            let row: Vec<f32> = rng.activations(capacity * dim);
            let row_bytes = ty.row_bytes(dim as u64).unwrap() as usize + 2 * pad;
            let mut bytes = vec![0xff; capacity * row_bytes];
            for (x, bytes) in row.chunks(dim).zip(bytes.chunks_mut(row_bytes)) {
                kv_encode(ty, x, &mut bytes[pad..row_bytes - pad]);
            }
            bytes
        };
        let (keys, values) = (stored(head_dim), stored(value_dim));
        let q = rng.activations(spans.len() * (n_heads * head_dim + 5));
        let (softcap, sinks) = match seed % 4 {
            1 => (Some(20.0), None),
            2 => (None, Some((0..n_heads).map(|_| rng.activation()).collect())),
            _ => (None, None),
        };
        Self {
            ty,
            n_heads,
            head_dim,
            value_dim,
            capacity,
            spans,
            softcap,
            sinks,
            q,
            keys,
            values,
            pad,
            finite: true,
        }
    }

    fn queries(&self) -> Queries<'_> {
        let stride = self.n_heads * self.head_dim + 5;
        Queries { data: &self.q, stride, n_heads: self.n_heads, head_dim: self.head_dim }
    }

    fn rows<'a>(&self, bytes: &'a [u8]) -> KvRows<'a> {
        let row_bytes = bytes.len() / self.capacity;
        KvRows {
            ty: self.ty,
            bytes,
            row_bytes,
            head_offset: self.pad,
            capacity: self.capacity,
            finite: self.finite,
        }
    }

    /// `[n_tokens, n_heads, value_dim]`, checked to have the bits of the definition.
    fn run(&self) -> Vec<f32> {
        let (got, scale) = self.agree();
        self.check_close(&got, scale);
        got
    }

    /// The results, which have the bits of the definition, and the scale that was used.
    fn agree(&self) -> (Vec<f32>, f32) {
        let (k, v, value_dim) = (self.rows(&self.keys), self.rows(&self.values), self.value_dim);
        let scale = 1.0 / (self.head_dim as f32).sqrt();
        let scoring = Scoring { scale, softcap: self.softcap, sinks: self.sinks.as_deref() };
        let longest = self.spans.iter().map(Range::len).max().unwrap();
        let mut scores = vec![f32::NAN; attention_scratch(self.spans.len(), self.n_heads, longest)];
        let stride = self.n_heads * value_dim;
        let mut got = vec![f32::NAN; self.spans.len() * stride];
        let mut want = got.clone();
        let mut out = AttentionOut { data: &mut got, stride, value_dim };
        kernels::attention(&self.queries(), &self.spans, &k, &v, &scoring, &mut scores, &mut out);
        let mut out = AttentionOut { data: &mut want, stride, value_dim };
        scalar::attention(&self.queries(), &self.spans, &k, &v, &scoring, &mut scores, &mut out);
        let (n_tokens, n_heads, dim) = (self.spans.len(), self.n_heads, self.head_dim);
        assert_same(
            &got,
            &want,
            &format!("{} {n_tokens} tokens, {n_heads} heads of {dim}", self.ty),
        );
        (got, scale)
    }

    /// Parts of the attention of one token, each done piece by piece: the bits of the whole.
    fn agree_in_parts(&self) {
        let (want, scale) = self.agree();
        let (k, v, span) = (self.rows(&self.keys), self.rows(&self.values), &self.spans[0]);
        let scoring = Scoring { scale, softcap: self.softcap, sinks: self.sinks.as_deref() };
        let n = span.len();
        let mut scores = vec![f32::NAN; self.n_heads * n];
        for (from, to) in [(0, n / 3), (n / 3, n)].into_iter().filter(|(from, to)| from < to) {
            let mut some = vec![f32::NAN; self.n_heads * (to - from)];
            let positions = span.start + from..span.start + to;
            attention_scores(&self.queries(), positions, &k, &mut some);
            for (head, some) in some.chunks(to - from).enumerate() {
                scores[head * n + from..head * n + to].copy_from_slice(some);
            }
        }
        let mut factors = vec![f32::NAN; self.n_heads];
        let first = self.n_heads / 2;
        for heads in [0..first, first..self.n_heads].into_iter().filter(|heads| !heads.is_empty()) {
            let some = &mut scores[heads.start * n..heads.end * n];
            attention_weights(some, &scoring, heads.start, &mut factors[heads]);
        }
        let mut got = vec![f32::NAN; want.len()];
        let half = self.value_dim / 2 / 32 * 32;
        for elements in [0..half, half..self.value_dim].into_iter().filter(|e| !e.is_empty()) {
            let mut some = vec![f32::NAN; self.n_heads * elements.len()];
            let v = v.from_element(elements.start);
            attention_values(&scores, &factors, span.clone(), &v, &mut some);
            for (head, some) in some.chunks(elements.len()).enumerate() {
                let start = head * self.value_dim;
                got[start + elements.start..start + elements.end].copy_from_slice(some);
            }
        }
        assert_same(&got, &want, &format!("{} in parts", self.ty));
    }

    fn check_close(&self, got: &[f32], scale: f32) {
        let decode = |bytes: &[u8], dim: usize, pos: usize| -> Vec<f64> {
            let row = &bytes[pos % self.capacity * (bytes.len() / self.capacity) + self.pad..];
            let mut out = vec![0.0; dim];
            dequantize_row(
                self.ty,
                &row[..self.ty.row_bytes(dim as u64).unwrap() as usize],
                &mut out,
            );
            out.into_iter().map(f64::from).collect()
        };
        for (t, span) in self.spans.iter().enumerate() {
            for h in 0..self.n_heads {
                let q = &self.q[t * self.queries().stride + h * self.head_dim..][..self.head_dim];
                let mut of_score = 0.0_f64;
                let scores: Vec<f64> = span
                    .clone()
                    .map(|pos| {
                        let k = decode(&self.keys, self.head_dim, pos);
                        let products = q.iter().zip(k).map(|(q, k)| f64::from(*q) * k);
                        let sizes = products.clone().map(f64::abs).sum::<f64>() * f64::from(scale);
                        let s = products.sum::<f64>() * f64::from(scale);
                        let cap = self.softcap.map_or(0.0, f64::from);
                        // A sum of n products is good to n roundings of their sizes; scaling is two more, tanh and its factors six.
                        of_score = of_score
                            .max(ROUNDING * ((self.head_dim + 2) as f64 * sizes + 6.0 * cap));
                        if cap > 0.0 { cap * (s / cap).tanh() } else { s }
                    })
                    .collect();
                let sink = self.sinks.as_ref().map_or(0.0, |sinks| f64::from(sinks[h]).exp());
                let sum = scores.iter().map(|s| s.exp()).sum::<f64>() + sink;
                let largest = scores.iter().copied().fold(f64::MIN, f64::max);
                let range = scores.iter().map(|s| largest - s).fold(0.0, f64::max);
                // Of one weight: two scores, their difference, exp. Of its share: that twice, a sum and a division; then a sum again.
                let of_weight = 2.0 * of_score + ROUNDING * (range + 2.0);
                let of_share = 2.0 * of_weight + ROUNDING * (2 * scores.len() + 4) as f64;
                for d in 0..self.value_dim {
                    let (mut want, mut sizes) = (0.0, 0.0);
                    for (s, pos) in scores.iter().zip(span.clone()) {
                        let part = s.exp() / sum * decode(&self.values, self.value_dim, pos)[d];
                        (want, sizes) = (want + part, sizes + part.abs());
                    }
                    let got = f64::from(got[(t * self.n_heads + h) * self.value_dim + d]);
                    let most = sizes * of_share;
                    assert!(
                        (got - want).abs() <= most,
                        "token {t} head {h}: {got}, in f64 {want}, more than {most} apart"
                    );
                }
            }
        }
    }
}

/// A causal block of tokens that ends before `end`, windowed if a window is given.
fn causal(n_tokens: usize, end: usize, window: Option<usize>) -> Vec<Range<usize>> {
    (end - n_tokens + 1..=end).map(|end| end - window.unwrap_or(end).min(end)..end).collect()
}

#[wasm_bindgen_test(unsupported = test)]
pub(crate) fn attention_follows_the_definition() {
    for ty in [GgmlType::F32, GgmlType::F16, GgmlType::Q8_0] {
        let mut digest = Digest::new();
        let mut seed = 30;
        let mut run = |dims: [usize; 3], spans: Vec<Range<usize>>| {
            seed += 1;
            digest.floats(&Case::new(ty, dims, spans, seed).run());
        };
        for n_heads in 1..=5 {
            run([n_heads, 64, 64], causal(1, 10 + n_heads, None));
            run([n_heads, 32, 64], causal(7, 9, None));
        }
        for positions in 1..=18 {
            run([3, 64, 64], causal(1, positions, None));
        }
        for n_tokens in [2, 4, 9, 17] {
            run([2, 96, 32], causal(n_tokens, n_tokens + 3, None));
            run([1, 64, 64], causal(n_tokens, 40, Some(11)));
        }
        // Every token sees everything, as in an encoder.
        run([2, 64, 64], vec![0..13; 13]);
        run([17, 64, 64], causal(2, 6, None));
        if ty != GgmlType::Q8_0 {
            for dim in [1, 3, 7, 16, 17, 20, 33, 80, 100] {
                run([2, dim, dim], causal(3, 11, None));
                run([3, dim, dim + 1], causal(1, 9, None));
            }
        }
        golden::check(&format!("attention {ty}"), &digest);
    }
}

#[wasm_bindgen_test(unsupported = test)]
pub(crate) fn the_parts_of_one_token_make_the_whole() {
    let mut seed = 200;
    for ty in [GgmlType::F32, GgmlType::F16, GgmlType::Q8_0] {
        for n_heads in 1..=9 {
            for (head_dim, value_dim) in [(32, 32), (64, 64), (128, 96), (256, 256)] {
                for window in [None, Some(37), Some(64)] {
                    seed += 1;
                    let spans = causal(1, 75, window);
                    Case::new(ty, [n_heads, head_dim, value_dim], spans, seed).agree_in_parts();
                }
            }
        }
    }
}

#[wasm_bindgen_test(unsupported = test)]
pub(crate) fn a_value_that_is_no_number_shows_in_every_token_that_sees_it() {
    for ty in [GgmlType::F32, GgmlType::F16, GgmlType::Q8_0] {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for (in_keys, n_tokens) in [(true, 1), (true, 4), (false, 1), (false, 4)] {
                let mut case = Case::new(ty, [2, 32, 32], causal(n_tokens, 8, None), 80);
                let row_bytes = case.keys.len() / case.capacity;
                let at = 6 * row_bytes + case.pad..7 * row_bytes - case.pad;
                let mut row = vec![0.25; 32];
                row[9] = bad;
                case.finite = false;
                let bytes = if in_keys { &mut case.keys } else { &mut case.values };
                kv_encode(ty, &row, &mut bytes[at]);
                let (k, v) = (case.rows(&case.keys), case.rows(&case.values));
                let scoring = Scoring { scale: 0.2, softcap: None, sinks: None };
                let mut scores = vec![0.0; attention_scratch(4, 2, 8)];
                let (mut got, mut want) = (vec![0.0; 256], vec![0.0; 256]);
                let mut out = AttentionOut { data: &mut got, stride: 64, value_dim: 32 };
                kernels::attention(
                    &case.queries(),
                    &case.spans,
                    &k,
                    &v,
                    &scoring,
                    &mut scores,
                    &mut out,
                );
                let mut out = AttentionOut { data: &mut want, stride: 64, value_dim: 32 };
                scalar::attention(
                    &case.queries(),
                    &case.spans,
                    &k,
                    &v,
                    &scoring,
                    &mut scores,
                    &mut out,
                );
                assert_same(&got, &want, "with a number that is none");
                // Position 6 is seen by the last two tokens.
                for (t, out) in got.chunks(64).take(n_tokens).enumerate() {
                    let shows = out.iter().any(|x| !x.is_finite());
                    // A key of minus infinity may mean no weight at all.
                    assert!(
                        shows == (t + 2 >= n_tokens) || in_keys && bad.is_infinite(),
                        "{ty} token {t}"
                    );
                }
            }
        }
    }
}

#[wasm_bindgen_test(unsupported = test)]
pub(crate) fn queries_of_any_size_follow_the_definition() {
    for ty in [GgmlType::F32, GgmlType::F16, GgmlType::Q8_0] {
        for size in [1e-40, 65_504.0, 65_536.0, -1e30, f32::INFINITY, f32::NAN] {
            let seen = 0..9;
            let mut case = Case::new(ty, [3, 32, 32], vec![seen], 80);
            case.q[7] = size;
            case.agree();
        }
    }
}
