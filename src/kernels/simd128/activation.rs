//! Nonlinear functions over vectors, in place; what is left of a vector of four goes through the scalar function.

use core::arch::wasm32::*;

use super::lanes::{load_f32, store_f32};
use super::reduce::{maximum, sum};
use crate::kernels::math;

/// `silu(x)`
pub(in crate::kernels) fn silu(x: &mut [f32]) {
    map(x, super::math::silu, math::silu);
}

/// The tanh form of GELU.
pub(in crate::kernels) fn gelu(x: &mut [f32]) {
    map(x, super::math::gelu, math::gelu);
}

/// `silu(gate) * up`
pub(in crate::kernels) fn silu_mul(gate: &mut [f32], up: &[f32]) {
    gated(gate, up, super::math::silu, math::silu);
}

/// `gelu(gate) * up`
pub(in crate::kernels) fn gelu_mul(gate: &mut [f32], up: &[f32]) {
    gated(gate, up, super::math::gelu, math::gelu);
}

/// `cap * tanh(x / cap)`
pub(in crate::kernels) fn softcap(x: &mut [f32], cap: f32) {
    let vcap = f32x4_splat(cap);
    let capped = |x| f32x4_mul(vcap, super::math::tanh(f32x4_div(x, vcap)));
    map(x, capped, |x| cap * math::tanh(x / cap));
}

/// `e^(x - max) / sum`
pub(in crate::kernels) fn softmax(x: &mut [f32]) {
    let max = maximum(x);
    let vmax = f32x4_splat(max);
    map(x, |x| super::math::exp(f32x4_sub(x, vmax)), |x| math::exp(x - max));
    let factor = 1.0 / sum(x);
    x.iter_mut().for_each(|x| *x *= factor);
}

#[inline(always)]
pub(super) fn map(x: &mut [f32], four: impl Fn(v128) -> v128, one: impl Fn(f32) -> f32) {
    let (vectors, rest) = x.as_chunks_mut::<4>();
    vectors.iter_mut().for_each(|x| store_f32(x, four(load_f32(x))));
    rest.iter_mut().for_each(|x| *x = one(*x));
}

#[inline(always)]
fn gated(gate: &mut [f32], up: &[f32], four: impl Fn(v128) -> v128, one: impl Fn(f32) -> f32) {
    let ((gate, rest), (up, up_rest)) = (gate.as_chunks_mut::<4>(), up.as_chunks::<4>());
    for (gate, up) in gate.iter_mut().zip(up) {
        store_f32(gate, f32x4_mul(four(load_f32(gate)), load_f32(up)));
    }
    for (gate, up) in rest.iter_mut().zip(up_rest) {
        *gate = one(*gate) * up;
    }
}
