//! Elementary functions of our own: the same bits on every target, because they use +, -, *, / and integers only.
//!
//! No standard library transcendental and no fused multiply-add: both differ between platforms. The f32 functions are
//! good to about one unit in the last place; they know nothing of models.

mod double;
mod erf;
mod single;

pub use double::{exp_f64, ln_f64, pow_f64, sin_cos_f64};
pub use erf::erf_f64;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(super) use single::{
    EXP_MAX, EXP_MIN, EXP_POLY, GELU_CUBIC, GELU_LINEAR, LN_2_HIGH, LN_2_LOW, LOG2_E, ROUND,
    TANH_POLY, TANH_SMALL,
};
pub use single::{exp, gelu, gelu_erf, sigmoid, silu, softplus, tanh};

/// Natural logarithm; NaN below 0, negative infinity at 0.
#[must_use]
pub fn ln(x: f32) -> f32 {
    ln_f64(f64::from(x)) as f32
}

/// `x` to the power `y`, for `x >= 0`.
#[must_use]
pub fn pow(x: f32, y: f32) -> f32 {
    pow_f64(f64::from(x), f64::from(y)) as f32
}

/// Sine of an angle in radians, up to 2^29 in magnitude.
#[must_use]
pub fn sin(x: f32) -> f32 {
    sin_cos_f64(f64::from(x)).0 as f32
}

/// Cosine of an angle in radians, up to 2^29 in magnitude.
#[must_use]
pub fn cos(x: f32) -> f32 {
    sin_cos_f64(f64::from(x)).1 as f32
}

/// The error function.
#[must_use]
pub fn erf(x: f32) -> f32 {
    erf_f64(f64::from(x)) as f32
}

#[cfg(test)]
mod tests;
