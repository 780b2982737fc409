//! Arithmetic on slices: pure functions that know no tensors, files or models.
//!
//! `scalar` is the definition of every operation and is compiled everywhere; on wasm32 with SIMD128 `simd128` takes over
//! the ones it has, with the same bits. The order of accumulation is part of the definition:
//!
//! - an f32 reduction (dot product, sum, sum of squares) has 16 partial sums, element `i` going into sum `i % 16`. They are
//!   folded in half four times: sum `i` takes sum `i + 8`, then `i + 4`, then `i + 2`, then `i + 1`;
//! - a product of quantised weights and rounded activations sums integers exactly to one i32 per block, then does
//!   `acc += (f32)isum * (d_w * d_x)` and after it the term of the minima, blocks in order, one chain per row and token.
//!   Every weight counts as it is, -128 too; a scale that is a NaN counts as an infinity;
//! - attention takes the maximum exactly, then exponentials, their sum and the values in order of position.
//!
//! Wrong lengths are bugs of the caller and panic.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "numbers change their form here on purpose, within ranges that the comments state"
)]
#![allow(clippy::too_many_lines, reason = "a kernel is one piece")]
#![allow(clippy::doc_markdown, reason = "the names of formats are words here, not items")]

mod attention;
pub mod math;
mod operands;
pub mod scalar;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod simd128;

pub use attention::{
    attention, attention_scores, attention_scratch, attention_values, attention_weights,
};
pub use operands::{
    ActFormat, Activations, AttentionOut, KvRows, Out, Q8, Queries, RopePairing, Scoring, Weights,
    activation_format,
};

#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
use scalar as active;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
use simd128 as active;

use crate::quant::GgmlType;

/// Elements of scratch that [`matmul`] needs for rows of `n_in` elements, for any number of tokens.
#[must_use]
pub const fn matmul_scratch(n_in: usize) -> usize {
    6 * n_in
}

/// `out = weights * x` for `n_tokens` columns. F32 activations are the definition of `exact`: a row is decoded into
/// `scratch` ([`matmul_scratch`] elements) and multiplied in f32. Q8 activations are `fast`.
pub fn matmul(
    w: &Weights<'_>,
    x: &Activations<'_>,
    n_tokens: usize,
    scratch: &mut [f32],
    out: &mut Out<'_>,
) {
    assert_eq!(w.n_in % w.ty.block_elements(), 0, "{}: rows of whole blocks", w.ty);
    assert_eq!(w.bytes.len(), w.n_rows * w.row_bytes(), "weights: {} rows of {}", w.n_rows, w.ty);
    assert!(scratch.len() >= matmul_scratch(w.n_in), "scratch for rows of {}", w.n_in);
    if w.n_rows == 0 || n_tokens == 0 {
        return;
    }
    assert!(out.first_row + w.n_rows <= out.stride || n_tokens == 1, "rows of tokens overlap");
    let end = (n_tokens - 1) * out.stride + out.first_row + w.n_rows;
    assert!(out.data.len() >= end, "room for {n_tokens} tokens and {} rows", w.n_rows);
    if w.n_in == 0 {
        let tokens = out.data.chunks_mut(out.stride.max(end)).take(n_tokens);
        tokens.for_each(|data| data[out.first_row..][..w.n_rows].fill(0.0));
        return;
    }
    match x {
        Activations::F32(x) => {
            assert_eq!(x.len(), n_tokens * w.n_in, "f32 activations");
            active::matmul_f32(w, x, scratch, out);
        }
        Activations::Q8(x) => {
            let format = activation_format(w.ty);
            assert!(format != ActFormat::F32, "{} takes f32 activations", w.ty);
            assert_eq!(x.block, format.block(), "block of the activations for {}", w.ty);
            assert_eq!(x.qs.len(), n_tokens * w.n_in, "int8 activations");
            assert_eq!(x.scales.len(), n_tokens * w.n_in / x.block, "scales of the activations");
            assert_eq!(x.sums.len(), n_tokens * w.n_in / 16, "sums of the activations");
            active::matmul_q8(w, x, n_tokens, scratch, out);
        }
    }
}

/// Rounds one row of activations to signed bytes: `d = max|x| / 127` per `block` values (32 or 256), `q = x / d` to the
/// nearest, ties to even, and the sums of 16 neighbours of `q`. A NaN or an infinity makes `d` one too. A block whose
/// `d` is no normal number is all zero.
pub fn quantize_q8(x: &[f32], block: usize, qs: &mut [i8], scales: &mut [f32], sums: &mut [i16]) {
    assert!(block == 32 || block == 256, "a block of 32 or 256");
    assert_eq!(x.len() % block, 0, "whole blocks");
    assert_eq!(qs.len(), x.len(), "room for the bytes");
    assert_eq!(scales.len(), x.len() / block, "room for the scales");
    assert_eq!(sums.len(), x.len() / 16, "room for the sums");
    active::quantize_q8(x, block, qs, scales, sums);
}

/// The dot product of two vectors of equal length.
#[must_use]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len(), "vectors of equal length");
    active::dot(a, b)
}

/// The sum of the elements.
#[must_use]
pub fn sum(x: &[f32]) -> f32 {
    active::sum(x)
}

/// The sum of the squares of the elements.
#[must_use]
pub fn sum_of_squares(x: &[f32]) -> f32 {
    active::dot(x, x)
}

/// `out = x / sqrt(mean(x^2) + eps) * weight`.
pub fn rms_norm(x: &[f32], weight: Option<&[f32]>, eps: f32, out: &mut [f32]) {
    assert_eq!(x.len(), out.len(), "room for the result");
    out.copy_from_slice(x);
    rms_norm_assign(out, weight, eps);
}

/// [`rms_norm`] in place.
pub fn rms_norm_assign(x: &mut [f32], weight: Option<&[f32]>, eps: f32) {
    assert!(weight.is_none_or(|w| w.len() == x.len()), "a weight per element");
    active::rms_norm(x, weight, eps);
}

/// `out = (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps) * weight + bias`.
pub fn layer_norm(
    x: &[f32],
    weight: Option<&[f32]>,
    bias: Option<&[f32]>,
    eps: f32,
    out: &mut [f32],
) {
    assert_eq!(x.len(), out.len(), "room for the result");
    out.copy_from_slice(x);
    layer_norm_assign(out, weight, bias, eps);
}

/// [`layer_norm`] in place.
pub fn layer_norm_assign(x: &mut [f32], weight: Option<&[f32]>, bias: Option<&[f32]>, eps: f32) {
    assert!(weight.is_none_or(|w| w.len() == x.len()), "a weight per element");
    assert!(bias.is_none_or(|b| b.len() == x.len()), "a bias per element");
    active::layer_norm(x, weight, bias, eps);
}

/// `x += y`.
pub fn add_assign(x: &mut [f32], y: &[f32]) {
    assert_eq!(x.len(), y.len(), "vectors of equal length");
    x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
}

/// `x += y * factor`.
pub fn add_scaled(x: &mut [f32], y: &[f32], factor: f32) {
    assert_eq!(x.len(), y.len(), "vectors of equal length");
    x.iter_mut().zip(y).for_each(|(x, y)| *x += y * factor);
}

/// `x *= y`.
pub fn mul_assign(x: &mut [f32], y: &[f32]) {
    assert_eq!(x.len(), y.len(), "vectors of equal length");
    x.iter_mut().zip(y).for_each(|(x, y)| *x *= y);
}

/// `x *= factor`.
pub fn scale(x: &mut [f32], factor: f32) {
    x.iter_mut().for_each(|x| *x *= factor);
}

/// `x = cap * tanh(x / cap)`.
pub fn softcap(x: &mut [f32], cap: f32) {
    active::softcap(x, cap);
}

/// `x = silu(x)`.
pub fn silu(x: &mut [f32]) {
    active::silu(x);
}

/// `x = gelu(x)`, the tanh form.
pub fn gelu(x: &mut [f32]) {
    active::gelu(x);
}

/// `gate = silu(gate) * up`.
pub fn silu_mul(gate: &mut [f32], up: &[f32]) {
    assert_eq!(gate.len(), up.len(), "vectors of equal length");
    active::silu_mul(gate, up);
}

/// `gate = gelu(gate) * up`, the tanh form.
pub fn gelu_mul(gate: &mut [f32], up: &[f32]) {
    assert_eq!(gate.len(), up.len(), "vectors of equal length");
    active::gelu_mul(gate, up);
}

/// `gate = g * sigmoid(1.702 g) * (u + 1)`, where `g` is `gate` up to 7 and `u` is `up` between -7 and 7.
pub fn clamped_silu_mul(gate: &mut [f32], up: &[f32]) {
    assert_eq!(gate.len(), up.len(), "vectors of equal length");
    scalar::clamped_silu_mul(gate, up);
}

/// `x = e^(x - max) / sum`, the sum over 16 partial sums. Attention has its own order.
pub fn softmax(x: &mut [f32]) {
    active::softmax(x);
}

/// Turns the `n_rot = x.len()` elements of one head: pair `i` by the angle whose cosine and sine are `cos[i]`, `sin[i]`
/// (`n_rot / 2` of each).
pub fn rope(x: &mut [f32], cos: &[f32], sin: &[f32], pairing: RopePairing) {
    assert_eq!(x.len() % 2, 0, "pairs");
    assert_eq!((cos.len(), sin.len()), (x.len() / 2, x.len() / 2), "an angle per pair");
    active::rope(x, cos, sin, pairing);
}

/// Stores K or V elements as F32, F16 (ties to even) or `Q8_0` (`d = max|x| / 127` rounded to a half, then `x / d` to the
/// nearest). `dst` has exactly the stored size of `src`.
pub fn kv_encode(ty: GgmlType, src: &[f32], dst: &mut [u8]) {
    assert_eq!(ty.row_bytes(src.len() as u64), Some(dst.len() as u64), "{ty}: stored size");
    active::kv_encode(ty, src, dst);
}
