//! The elementary functions of [`math`](crate::kernels::math), step by step the same, on four lanes.

use core::arch::wasm32::*;

use crate::kernels::math::{
    EXP_MAX, EXP_MIN, EXP_POLY, GELU_CUBIC, GELU_LINEAR, LN_2_HIGH, LN_2_LOW, LOG2_E, ROUND,
    TANH_POLY, TANH_SMALL,
};

/// e to the power `x`.
#[inline(always)]
pub(super) fn exp(x: v128) -> v128 {
    let too_large = f32x4_gt(x, f32x4_splat(EXP_MAX));
    v128_bitselect(f32x4_splat(f32::INFINITY), exp_of_small(x), too_large)
}

/// e to the power `x`, where that is no more than an f32 holds.
#[inline(always)]
pub(super) fn exp_of_small(x: v128) -> v128 {
    let round = f32x4_splat(ROUND);
    let shifted = f32x4_add(f32x4_mul(x, f32x4_splat(LOG2_E)), round);
    let n = f32x4_sub(shifted, round);
    let r = f32x4_sub(x, f32x4_mul(n, f32x4_splat(LN_2_HIGH)));
    let r = f32x4_sub(r, f32x4_mul(n, f32x4_splat(LN_2_LOW)));
    let square = f32x4_mul(f32x4_mul(r, r), horner(EXP_POLY, r));
    let y = f32x4_add(f32x4_add(square, r), f32x4_splat(1.0));
    let n = i32x4_sub(shifted, round);
    let half = i32x4_shr(n, 1);
    let y = f32x4_mul(f32x4_mul(y, power_of_two(half)), power_of_two(i32x4_sub(n, half)));
    v128_andnot(y, f32x4_lt(x, f32x4_splat(EXP_MIN)))
}

/// Hyperbolic tangent.
#[inline(always)]
pub(super) fn tanh(x: v128) -> v128 {
    let t = f32x4_mul(x, x);
    let small = f32x4_add(f32x4_mul(f32x4_mul(t, horner(TANH_POLY, t)), x), x);
    let magnitude = f32x4_abs(x);
    let one = f32x4_splat(1.0);
    let e = f32x4_add(exp(f32x4_add(magnitude, magnitude)), one);
    let large = f32x4_sub(one, f32x4_div(f32x4_splat(2.0), e));
    let large = v128_or(large, v128_and(x, u32x4_splat(0x8000_0000)));
    v128_bitselect(small, large, f32x4_lt(magnitude, f32x4_splat(TANH_SMALL)))
}

/// `x / (1 + e^-x)`
#[inline(always)]
pub(super) fn silu(x: v128) -> v128 {
    f32x4_div(x, f32x4_add(f32x4_splat(1.0), exp(f32x4_neg(x))))
}

/// GELU in its tanh form.
#[inline(always)]
pub(super) fn gelu(x: v128) -> v128 {
    let cubic = f32x4_mul(f32x4_splat(GELU_CUBIC), f32x4_mul(x, x));
    let u = f32x4_mul(x, f32x4_add(f32x4_splat(GELU_LINEAR), cubic));
    f32x4_div(x, f32x4_add(f32x4_splat(1.0), exp(u)))
}

#[inline(always)]
fn horner([c0, c1, c2, c3, c4]: [f32; 5], x: v128) -> v128 {
    let y = f32x4_add(f32x4_mul(f32x4_splat(c4), x), f32x4_splat(c3));
    let y = f32x4_add(f32x4_mul(y, x), f32x4_splat(c2));
    let y = f32x4_add(f32x4_mul(y, x), f32x4_splat(c1));
    f32x4_add(f32x4_mul(y, x), f32x4_splat(c0))
}

/// 2^n for n from -126 to 127.
#[inline(always)]
fn power_of_two(n: v128) -> v128 {
    i32x4_shl(i32x4_add(n, i32x4_splat(127)), 23)
}
