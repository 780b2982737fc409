//! The f32 functions that run over whole vectors: their SIMD forms repeat these steps lane by lane.

use super::{erf_f64, ln_f64};

/// e to the power `x`. Subnormal results are right; above 88.73 infinity, NaN stays NaN.
#[inline]
#[must_use]
pub fn exp(x: f32) -> f32 {
    // x = n ln 2 + r with |r| <= ln 2 / 2. The integer n stands in the low bits of `shifted`.
    let shifted = x * LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    let [c0, c1, c2, c3, c4] = EXP_POLY;
    let poly = (((c4 * r + c3) * r + c2) * r + c1) * r + c0;
    let y = (r * r * poly + r) + 1.0;
    // 2^n in two factors: n reaches from -150 to 128, beyond what one exponent field holds.
    let n = shifted.to_bits().wrapping_sub(ROUND.to_bits()) as i32;
    let half = n >> 1;
    let y = (y * power_of_two(half)) * power_of_two(n.wrapping_sub(half));
    // Chosen at the end and not clamped before: a compiler may turn `if x > MAX { MAX } else { x }` into the relaxed
    // minimum of wasm, which treats NaN as the processor likes.
    let y = if x > EXP_MAX { f32::INFINITY } else { y };
    if x < EXP_MIN { 0.0 } else { y }
}

/// Hyperbolic tangent.
#[inline]
#[must_use]
pub fn tanh(x: f32) -> f32 {
    let t = x * x;
    let [c0, c1, c2, c3, c4] = TANH_POLY;
    let poly = (((c4 * t + c3) * t + c2) * t + c1) * t + c0;
    let small = (t * poly) * x + x;
    let magnitude = f32::from_bits(x.to_bits() & 0x7fff_ffff);
    let large = 1.0 - 2.0 / (exp(magnitude + magnitude) + 1.0);
    let large = f32::from_bits(large.to_bits() | (x.to_bits() & 0x8000_0000));
    if magnitude < TANH_SMALL { small } else { large }
}

/// `1 / (1 + e^-x)`.
#[inline]
#[must_use]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// `x * sigmoid(x)`.
#[inline]
#[must_use]
pub fn silu(x: f32) -> f32 {
    x / (1.0 + exp(-x))
}

/// The tanh form of GELU, `x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`, as `x / (1 + e^-2u)`: the same function
/// without the cancellation.
#[inline]
#[must_use]
pub fn gelu(x: f32) -> f32 {
    x / (1.0 + exp(x * (GELU_LINEAR + GELU_CUBIC * (x * x))))
}

/// GELU by its definition, `x/2 (1 + erf(x / sqrt 2))`.
#[must_use]
pub fn gelu_erf(x: f32) -> f32 {
    let x = f64::from(x);
    (0.5 * x * (1.0 + erf_f64(x * core::f64::consts::FRAC_1_SQRT_2))) as f32
}

/// `ln(1 + e^x)`.
#[must_use]
pub fn softplus(x: f32) -> f32 {
    // Above 20 the difference to x is below half a unit in the last place.
    if x > 20.0 { x } else { ln_f64(1.0 + super::exp_f64(f64::from(x))) as f32 }
}

/// 2^n for n from -126 to 127.
#[inline]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// Beyond these the result is infinity or zero.
pub(in crate::kernels) const EXP_MAX: f32 = 89.0;
pub(in crate::kernels) const EXP_MIN: f32 = -104.0;
/// 1.5 * 2^23: adding it rounds to an integer, ties to even, which then stands in the low bits.
pub(in crate::kernels) const ROUND: f32 = 12_582_912.0;
pub(in crate::kernels) const LOG2_E: f32 = core::f32::consts::LOG2_E;
/// 355/512: 9 bits, so that its product with n is exact.
pub(in crate::kernels) const LN_2_HIGH: f32 = 355.0 / 512.0;
pub(in crate::kernels) const LN_2_LOW: f32 = -0.000_212_194_44;
/// `(e^r - 1 - r) / r^2` by a Chebyshev fit on |r| <= ln 2 / 2; error times r^2 below 8e-9.
pub(in crate::kernels) const EXP_POLY: [f32; 5] =
    [0.5, 0.166_665_77, 0.041_666_556, 0.008_363_203, 0.001_392_621_4];
/// `(tanh(x)/x - 1) / x^2` as a polynomial in x^2, by a Chebyshev fit on |x| <= 0.625; relative error below 2e-8.
pub(in crate::kernels) const TANH_POLY: [f32; 5] =
    [-0.333_333_3, 0.133_327_7, -0.053_850_91, 0.020_997_18, -0.006_096_714];
pub(in crate::kernels) const TANH_SMALL: f32 = 0.625;
/// `-2 sqrt(2/pi)` and `-2 sqrt(2/pi) * 0.044715`.
pub(in crate::kernels) const GELU_LINEAR: f32 = -1.595_769;
pub(in crate::kernels) const GELU_CUBIC: f32 = -0.071_354_814;
