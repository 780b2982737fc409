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

/// `g * sigmoid(1.702 g) * (u + 1)` with both clamped; a NaN passes.
pub fn clamped_silu_mul(gate: &mut [f32], up: &[f32]) {
    for (gate, up) in gate.iter_mut().zip(up) {
        let g = if *gate > CLAMP { CLAMP } else { *gate };
        let u = if *up > CLAMP { CLAMP } else { *up };
        let u = if u < -CLAMP { -CLAMP } else { u };
        *gate = g * math::sigmoid(STEEPNESS * g) * (u + 1.0);
    }
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

/// Bound of the clamped gate, and how much steeper than a plain sigmoid it opens.
const CLAMP: f32 = 7.0;
const STEEPNESS: f32 = 1.702;
