//! How the formats with blocks of 32 become vectors of bytes. All of them start with the scale, a half.

use core::arch::wasm32::*;

use super::lanes::{load_at, load_i8, splat_at};
use crate::quant::LEVELS;

/// A format with blocks of 32 elements and `N` bytes.
pub(super) trait Format32<const N: usize> {
    /// Whether the numbers are signed; else they lie in 0..=127.
    const SIGNED: bool;
    /// What is to be taken off every number that is not signed.
    const ZERO: i32;
    /// Whether an offset, a half, follows the scale.
    const OFFSET: bool;

    /// Elements 0 to 15 and 16 to 31.
    fn numbers(block: &[u8; N]) -> [v128; 2];
}

/// `x = d (q - 8)`
pub(super) struct Q4_0;
/// `x = d q + m`
pub(super) struct Q4_1;
/// `x = d (q - 16)`
pub(super) struct Q5_0;
/// `x = d q + m`
pub(super) struct Q5_1;
/// `x = d q`
pub(super) struct Q8_0;
/// `x = d LEVELS[q]`
pub(super) struct Iq4Nl;

impl Format32<18> for Q4_0 {
    const SIGNED: bool = false;
    const ZERO: i32 = 8;
    const OFFSET: bool = false;

    #[inline(always)]
    fn numbers(block: &[u8; 18]) -> [v128; 2] {
        nibbles(load_at::<2, 18>(block))
    }
}

impl Format32<20> for Q4_1 {
    const SIGNED: bool = false;
    const ZERO: i32 = 0;
    const OFFSET: bool = true;

    #[inline(always)]
    fn numbers(block: &[u8; 20]) -> [v128; 2] {
        nibbles(load_at::<4, 20>(block))
    }
}

impl Format32<22> for Q5_0 {
    const SIGNED: bool = false;
    const ZERO: i32 = 16;
    const OFFSET: bool = false;

    #[inline(always)]
    fn numbers(block: &[u8; 22]) -> [v128; 2] {
        with_fifth_bits(nibbles(load_at::<6, 22>(block)), splat_at::<2, 22>(block))
    }
}

impl Format32<24> for Q5_1 {
    const SIGNED: bool = false;
    const ZERO: i32 = 0;
    const OFFSET: bool = true;

    #[inline(always)]
    fn numbers(block: &[u8; 24]) -> [v128; 2] {
        with_fifth_bits(nibbles(load_at::<8, 24>(block)), splat_at::<4, 24>(block))
    }
}

impl Format32<34> for Q8_0 {
    const SIGNED: bool = true;
    const ZERO: i32 = 0;
    const OFFSET: bool = false;

    #[inline(always)]
    fn numbers(block: &[u8; 34]) -> [v128; 2] {
        [load_at::<2, 34>(block), load_at::<18, 34>(block)]
    }
}

impl Format32<18> for Iq4Nl {
    const SIGNED: bool = true;
    const ZERO: i32 = 0;
    const OFFSET: bool = false;

    #[inline(always)]
    fn numbers(block: &[u8; 18]) -> [v128; 2] {
        nibbles(load_at::<2, 18>(block)).map(levels)
    }
}

/// The low halves of 16 bytes, then the high halves.
#[inline(always)]
pub(super) fn nibbles(qs: v128) -> [v128; 2] {
    // Shifts of bytes do not exist on x86: one of 16 bits and a mask cost less.
    let mask = u8x16_splat(15);
    [v128_and(qs, mask), v128_and(u16x8_shr(qs, 4), mask)]
}

/// The entries of the table of IQ4_NL and IQ4_XS.
#[inline(always)]
pub(super) fn levels(q: v128) -> v128 {
    i8x16_swizzle(load_i8(&LEVELS), q)
}

/// Adds 16 to number `i` where bit `i` of the 32 bits, which all lanes hold, is set.
#[inline(always)]
fn with_fifth_bits([low, high]: [v128; 2], bits: v128) -> [v128; 2] {
    let of_lane = u64x2_splat(0x8040_2010_0804_0201);
    let fifth =
        |bytes: v128| v128_and(i8x16_eq(v128_and(bytes, of_lane), of_lane), u8x16_splat(16));
    [
        v128_or(
            low,
            fifth(i8x16_shuffle::<0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1>(bits, bits)),
        ),
        v128_or(
            high,
            fifth(i8x16_shuffle::<2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3>(bits, bits)),
        ),
    ]
}
