//! How the formats with blocks of 32 become vectors of bytes. All of them start with the scale, a half.

use core::arch::wasm32::*;

use super::lanes::load_at;

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
/// `x = d q`
pub(super) struct Q8_0;

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

impl Format32<34> for Q8_0 {
    const SIGNED: bool = true;
    const ZERO: i32 = 0;
    const OFFSET: bool = false;

    #[inline(always)]
    fn numbers(block: &[u8; 34]) -> [v128; 2] {
        [load_at::<2, 34>(block), load_at::<18, 34>(block)]
    }
}

#[inline(always)]
fn nibbles(qs: v128) -> [v128; 2] {
    [v128_and(qs, u8x16_splat(15)), u8x16_shr(qs, 4)]
}
