//! Sums of products of bytes with SIMD128 alone: widened to 16 bits, multiplied and added in pairs.

use core::arch::wasm32::*;

/// Products of the bytes of one lane end up in several lanes.
pub(super) const LANE_BY_LANE: bool = false;

/// 16 activations, ready to be multiplied.
#[derive(Clone, Copy)]
pub(super) struct Bytes {
    low: v128,
    high: v128,
}

impl Bytes {
    #[inline(always)]
    pub(super) fn new(signed: v128) -> Self {
        Self { low: i16x8_extend_low_i8x16(signed), high: i16x8_extend_high_i8x16(signed) }
    }

    /// `acc` and, spread over its lanes, the products with `w` in 0..=127.
    #[inline(always)]
    pub(super) fn dot_unsigned(&self, w: v128, acc: v128) -> v128 {
        let low = i32x4_dot_i16x8(u16x8_extend_low_u8x16(w), self.low);
        let high = i32x4_dot_i16x8(u16x8_extend_high_u8x16(w), self.high);
        i32x4_add(i32x4_add(low, high), acc)
    }

    /// `acc` and, spread over its lanes, the products with signed `w`.
    #[inline(always)]
    pub(super) fn dot_signed(&self, w: v128, acc: v128) -> v128 {
        let low = i32x4_dot_i16x8(i16x8_extend_low_i8x16(w), self.low);
        let high = i32x4_dot_i16x8(i16x8_extend_high_i8x16(w), self.high);
        i32x4_add(i32x4_add(low, high), acc)
    }
}

/// What the sums of [`Bytes::dot_signed`] start from: nothing.
#[inline(always)]
pub(super) fn signed_start(_xs: &[i8]) -> i32 {
    0
}
