//! Nonlinear functions over vectors, in place.

use super::super::math;
use super::sum;

/// `silu(x)`.
pub fn silu(x: &mut [f32]) {
    x.iter_mut().for_each(|x| *x = math::silu(*x));
}

/// The tanh form of GELU.
pub fn gelu(x: &mut [f32]) {
    x.iter_mut().for_each(|x| *x = math::gelu(*x));
}

/// `silu(gate) * up`.
pub fn silu_mul(gate: &mut [f32], up: &[f32]) {
    gate.iter_mut().zip(up).for_each(|(gate, up)| *gate = math::silu(*gate) * up);
}

/// `gelu(gate) * up`.
pub fn gelu_mul(gate: &mut [f32], up: &[f32]) {
    gate.iter_mut().zip(up).for_each(|(gate, up)| *gate = math::gelu(*gate) * up);
}

/// `cap * tanh(x / cap)`.
pub fn softcap(x: &mut [f32], cap: f32) {
    x.iter_mut().for_each(|x| *x = cap * math::tanh(*x / cap));
}

/// `e^(x - max) / sum`.
pub fn softmax(x: &mut [f32]) {
    let max = maximum(x);
    x.iter_mut().for_each(|x| *x = math::exp(*x - max));
    let factor = 1.0 / sum(x);
    x.iter_mut().for_each(|x| *x *= factor);
}

/// The largest element: exact, so its order does not matter. Comparisons with a NaN are false, so a NaN never is it.
pub(super) fn maximum(x: &[f32]) -> f32 {
    x.iter().fold(f32::NEG_INFINITY, |max, x| if *x > max { *x } else { max })
}
