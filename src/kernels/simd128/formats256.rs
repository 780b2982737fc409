//! How the formats with blocks of 256 become vectors of bytes, and their scales vectors of 16-bit numbers.

use core::arch::wasm32::*;

use super::formats32::{levels, nibbles};
use super::lanes::{load_at, load_from, splat_at};

/// Scales or minima of the sub-blocks in 16 bits each: 16 in both vectors, or 8 in the first.
pub(super) type Factors = [v128; 2];

/// A format with blocks of 256 elements and `N` bytes.
pub(super) trait Format256<const N: usize> {
    /// Elements that share a scale: 16 or 32.
    const SUB: usize;
    /// Whether the numbers are signed. Else they lie in 0..=127, and the products that one lane sums in a sub-block (4 of
    /// 16, 8 of 32) stay within 16 bits.
    const SIGNED: bool;
    /// What is to be taken off every number that is not signed, as a power of two.
    const ZERO: Option<u32>;
    /// Whether the sub-blocks have minima.
    const MINIMA: bool;
    /// Four bytes with the scale of the scales: in the lower half, and that of the minima in the upper one ...
    const HEAD_AT: usize;
    /// ... or in the upper half.
    const SCALE_IN_UPPER: bool;

    /// Elements `64 part..64 part + 64`, in order.
    fn numbers(block: &[u8; N], part: usize) -> [v128; 4];
    /// The scales, and the minima where there are any.
    fn factors(block: &[u8; N]) -> [Factors; 2];
}

/// `x = d sc q - dmin m`, q of 2 bits: products of a lane up to 4*3*127.
pub(super) struct Q2K;
/// `x = d sc (q - 4)`, q of 3 bits: 4*7*127.
pub(super) struct Q3K;
/// `x = d sc q - dmin m`, q of 4 bits: 8*15*127 = 15 240.
pub(super) struct Q4K;
/// `x = d sc q - dmin m`, q of 5 bits: 8*31*127 = 31 496.
pub(super) struct Q5K;
/// `x = d sc (q - 32)`, q of 6 bits: 4*63*127 = 32 004.
pub(super) struct Q6K;
/// `x = d sc LEVELS[q]`
pub(super) struct Iq4Xs;

impl Format256<84> for Q2K {
    const SUB: usize = 16;
    const SIGNED: bool = false;
    const ZERO: Option<u32> = None;
    const MINIMA: bool = true;
    const HEAD_AT: usize = 80;
    const SCALE_IN_UPPER: bool = false;

    #[inline(always)]
    fn numbers(block: &[u8; 84], part: usize) -> [v128; 4] {
        two_bits(block, 16, part)
    }

    #[inline(always)]
    fn factors(block: &[u8; 84]) -> [Factors; 2] {
        nibbles(load_at::<0, 84>(block))
            .map(|x| [i16x8_extend_low_i8x16(x), i16x8_extend_high_i8x16(x)])
    }
}

impl Format256<110> for Q3K {
    const SUB: usize = 16;
    const SIGNED: bool = false;
    const ZERO: Option<u32> = Some(2);
    const MINIMA: bool = false;
    const HEAD_AT: usize = 106;
    const SCALE_IN_UPPER: bool = true;

    #[inline(always)]
    fn numbers(block: &[u8; 110], part: usize) -> [v128; 4] {
        let [a, b, c, d] = two_bits(block, 32, part);
        let (low, high) = (load_at::<0, 110>(block), load_at::<16, 110>(block));
        [
            v128_or(a, bit_at(low, 2 * part, 2)),
            v128_or(b, bit_at(high, 2 * part, 2)),
            v128_or(c, bit_at(low, 2 * part + 1, 2)),
            v128_or(d, bit_at(high, 2 * part + 1, 2)),
        ]
    }

    #[inline(always)]
    fn factors(block: &[u8; 110]) -> [Factors; 2] {
        // Bytes 4 to 15 of this vector are those of the scales.
        let x = load_at::<92, 110>(block);
        let [low, high] = nibbles(i32x4_shuffle::<1, 2, 1, 2>(x, x));
        let low = i32x4_shuffle::<0, 1, 4, 5>(low, high);
        // The last four bytes hold the upper two bits of scales 0-3, 4-7, 8-11 and 12-15.
        let two = u8x16_splat(0x30);
        let high = i32x4_shuffle::<3, 3, 3, 3>(x, x);
        let high = [
            v128_and(u16x8_shl(high, 4), two),
            v128_and(u16x8_shl(high, 2), two),
            v128_and(high, two),
            v128_and(u16x8_shr(high, 2), two),
        ];
        let high = i64x2_shuffle::<0, 2>(
            i32x4_shuffle::<0, 4, 0, 4>(high[0], high[1]),
            i32x4_shuffle::<0, 4, 0, 4>(high[2], high[3]),
        );
        let scales = i8x16_sub(v128_or(low, high), i8x16_splat(32));
        [[i16x8_extend_low_i8x16(scales), i16x8_extend_high_i8x16(scales)], NONE]
    }
}

impl Format256<144> for Q4K {
    const SUB: usize = 32;
    const SIGNED: bool = false;
    const ZERO: Option<u32> = None;
    const MINIMA: bool = true;
    const HEAD_AT: usize = 0;
    const SCALE_IN_UPPER: bool = false;

    #[inline(always)]
    fn numbers(block: &[u8; 144], part: usize) -> [v128; 4] {
        k4_nibbles(block, 16, part)
    }

    #[inline(always)]
    fn factors(block: &[u8; 144]) -> [Factors; 2] {
        k4_factors(load_at::<0, 144>(block))
    }
}

impl Format256<176> for Q5K {
    const SUB: usize = 32;
    const SIGNED: bool = false;
    const ZERO: Option<u32> = None;
    const MINIMA: bool = true;
    const HEAD_AT: usize = 0;
    const SCALE_IN_UPPER: bool = false;

    #[inline(always)]
    fn numbers(block: &[u8; 176], part: usize) -> [v128; 4] {
        let [a, b, c, d] = k4_nibbles(block, 48, part);
        let (low, high) = (load_at::<16, 176>(block), load_at::<32, 176>(block));
        [
            v128_or(a, bit_at(low, 2 * part, 4)),
            v128_or(b, bit_at(high, 2 * part, 4)),
            v128_or(c, bit_at(low, 2 * part + 1, 4)),
            v128_or(d, bit_at(high, 2 * part + 1, 4)),
        ]
    }

    #[inline(always)]
    fn factors(block: &[u8; 176]) -> [Factors; 2] {
        k4_factors(load_at::<0, 176>(block))
    }
}

impl Format256<210> for Q6K {
    const SUB: usize = 16;
    const SIGNED: bool = false;
    const ZERO: Option<u32> = Some(5);
    const MINIMA: bool = false;
    const HEAD_AT: usize = 206;
    const SCALE_IN_UPPER: bool = true;

    #[inline(always)]
    fn numbers(block: &[u8; 210], part: usize) -> [v128; 4] {
        let x = q6_k(block, part, 0);
        [x, q6_k(block, part, 1), q6_k(block, part, 2), q6_k(block, part, 3)]
    }

    #[inline(always)]
    fn factors(block: &[u8; 210]) -> [Factors; 2] {
        let scales = load_at::<192, 210>(block);
        [[i16x8_extend_low_i8x16(scales), i16x8_extend_high_i8x16(scales)], NONE]
    }
}

impl Format256<136> for Iq4Xs {
    const SUB: usize = 32;
    const SIGNED: bool = true;
    const ZERO: Option<u32> = None;
    const MINIMA: bool = false;
    const HEAD_AT: usize = 0;
    const SCALE_IN_UPPER: bool = false;

    #[inline(always)]
    fn numbers(block: &[u8; 136], part: usize) -> [v128; 4] {
        let [a, b] = nibbles(load_from(block, 8 + 32 * part)).map(levels);
        let [c, d] = nibbles(load_from(block, 24 + 32 * part)).map(levels);
        [a, b, c, d]
    }

    #[inline(always)]
    fn factors(block: &[u8; 136]) -> [Factors; 2] {
        let (high, low) = (splat_at::<0, 136>(block), splat_at::<4, 136>(block));
        // Lane s: byte s/2, of which the even lanes move their half up to where the odd ones have it.
        let low =
            i8x16_shuffle::<0, 16, 0, 16, 1, 17, 1, 17, 2, 18, 2, 18, 3, 19, 3, 19>(low, NONE[0]);
        let low = i16x8_mul(low, i16x8(16, 1, 16, 1, 16, 1, 16, 1));
        let low = u16x8_shr(v128_and(low, u16x8_splat(0xf0)), 4);
        // Lane s: bits 2s and 2s + 1 of the upper 16 bits, moved to the top of the lane.
        let high = i16x8_shuffle::<1, 1, 1, 1, 1, 1, 1, 1>(high, high);
        let to_top = i16x8(1 << 14, 1 << 12, 1 << 10, 1 << 8, 1 << 6, 1 << 4, 1 << 2, 1);
        let high = u16x8_shl(u16x8_shr(i16x8_mul(high, to_top), 14), 4);
        [[i16x8_sub(v128_or(low, high), i16x8_splat(32)), NONE[0]], NONE]
    }
}

const NONE: Factors = [u64x2(0, 0); 2];

/// Per 128 elements 32 bytes from `at` on; bits `2k` of byte `l` are element `32k + l`.
#[inline(always)]
fn two_bits<const N: usize>(block: &[u8; N], at: usize, part: usize) -> [v128; 4] {
    let at = at + 32 * (part / 2);
    let (x, y) = (load_from(block, at), load_from(block, at + 16));
    let shift = 4 * (part as u32 % 2);
    [two_at(x, shift), two_at(y, shift), two_at(x, shift + 2), two_at(y, shift + 2)]
}

/// Bits `shift` and `shift + 1` of every byte.
#[inline(always)]
fn two_at(x: v128, shift: u32) -> v128 {
    v128_and(u16x8_shr(x, shift), u8x16_splat(3))
}

/// Per 64 elements 32 bytes from `at` on: the low halves, then the high halves.
#[inline(always)]
fn k4_nibbles<const N: usize>(block: &[u8; N], at: usize, part: usize) -> [v128; 4] {
    let [a, c] = nibbles(load_from(block, at + 32 * part));
    let [b, d] = nibbles(load_from(block, at + 32 * part + 16));
    [a, b, c, d]
}

/// Elements `64 part + 16 i..` of Q6_K. Per 128 elements there are 64 bytes of low halves, those of the first 64 elements
/// below those of the others, and 32 bytes of upper bits, two for each 32 elements.
#[inline(always)]
fn q6_k(block: &[u8; 210], part: usize, i: usize) -> v128 {
    let low = load_from(block, 64 * (part / 2) + 16 * i);
    let low = nibbles(low)[part % 2];
    let high = load_from(block, 128 + 32 * (part / 2) + 16 * (i % 2));
    let high = match 2 * (part % 2) + i / 2 {
        0 => u16x8_shl(high, 4),
        1 => u16x8_shl(high, 2),
        2 => high,
        _ => u16x8_shr(high, 2),
    };
    v128_or(low, v128_and(high, u8x16_splat(0x30)))
}

/// Bit `bit` of every byte, moved to place `to`.
#[inline(always)]
fn bit_at(x: v128, bit: usize, to: usize) -> v128 {
    let moved =
        if bit < to { u16x8_shl(x, (to - bit) as u32) } else { u16x8_shr(x, (bit - to) as u32) };
    v128_and(moved, u8x16_splat(1 << to))
}

/// Scales and minima of Q4_K and Q5_K, which stand in the last 12 of these 16 bytes: the lower 6 bits of the first eight
/// are scales 0-3 and minima 0-3, the last four have the lower halves of scales and minima 4-7, whose upper two bits are
/// those that the first eight have left.
#[inline(always)]
fn k4_factors(head: v128) -> [Factors; 2] {
    let six = v128_and(head, u8x16_splat(0x3f));
    let two = v128_and(u16x8_shr(head, 2), u8x16_splat(0x30));
    let [low, high] = nibbles(head);
    // Word 1: scales 4-7, word 2: minima 4-7.
    let others = v128_or(i32x4_shuffle::<3, 3, 7, 7>(low, high), two);
    let all = i32x4_shuffle::<1, 5, 2, 6>(six, others);
    [[u16x8_extend_low_u8x16(all), NONE[0]], [u16x8_extend_high_u8x16(all), NONE[0]]]
}
