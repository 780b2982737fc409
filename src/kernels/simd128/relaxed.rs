//! Sums of products of bytes with the relaxed instruction, which is exact while its second operand lies in 0..=127 and
//! the sum of two products fits 16 bits: 2 * 127 * 128 = 32 512 does.

use core::arch::wasm32::*;

/// A lane sums the products of its own four bytes.
pub(super) const LANE_BY_LANE: bool = true;

/// 16 activations in -127..=127, ready to be multiplied.
#[derive(Clone, Copy)]
pub(super) struct Bytes {
    signed: v128,
    magnitude: v128,
    /// -1 where an activation is negative.
    negative: v128,
}

impl Bytes {
    #[inline(always)]
    pub(super) fn new(signed: v128) -> Self {
        let negative = i8x16_shr(signed, 7);
        Self { signed, magnitude: i8x16_abs(signed), negative }
    }

    /// `acc` and, spread over its lanes, the products with `w` in 0..=127.
    #[inline(always)]
    pub(super) fn dot_unsigned(&self, w: v128, acc: v128) -> v128 {
        dot(self.signed, w, acc)
    }

    /// `acc` and, spread over its lanes, the products with signed `w`, less [`signed_start`] of these activations.
    ///
    /// `w x = -w |x|` for negative x, and `-w = !w + 1`: the ones are what is left to be added.
    #[inline(always)]
    pub(super) fn dot_signed(&self, w: v128, acc: v128) -> v128 {
        dot(v128_xor(w, self.negative), self.magnitude, acc)
    }
}

/// The instruction; test builds check what it asks of its second operand.
#[inline(always)]
fn dot(signed: v128, unsigned: v128, acc: v128) -> v128 {
    debug_assert_eq!(i8x16_bitmask(unsigned), 0, "numbers in 0..=127");
    i32x4_relaxed_dot_i8x16_i7x16_add(signed, unsigned, acc)
}

/// What the sums of [`Bytes::dot_signed`] start from: the magnitudes of the negative activations.
#[inline(always)]
pub(super) fn signed_start(xs: &[i8]) -> i32 {
    xs.iter().map(|x| -i32::from((*x).min(0))).sum()
}
