//! Rows of weights, keys or values decoded to f32.

use core::arch::wasm32::*;

use super::lanes::{load_at, store_f32};
use crate::quant::{GgmlType, dequantize_row};

/// Decodes whole blocks, with the bits of [`dequantize_row`].
pub(super) fn decode(ty: GgmlType, bytes: &[u8], row: &mut [f32]) {
    match ty {
        GgmlType::F32 => bytemuck::cast_slice_mut(row).copy_from_slice(bytes),
        GgmlType::F16 => {
            let (vectors, rest) = row.as_chunks_mut::<8>();
            let (bytes, bytes_rest) = bytes.as_chunks::<16>();
            for (x, bytes) in vectors.iter_mut().zip(bytes) {
                let (x, _) = x.as_chunks_mut::<4>();
                let [low, high] = halves(load_at::<0, 16>(bytes));
                store_f32(&mut x[0], low);
                store_f32(&mut x[1], high);
            }
            dequantize_row(ty, bytes_rest, rest);
        }
        _ => dequantize_row(ty, bytes, row),
    }
}

/// The f32 of eight halves, infinities and NaNs included.
#[inline(always)]
pub(super) fn halves(x: v128) -> [v128; 2] {
    let highest = u16x8_splat(0x7c00);
    let special = v128_and(i16x8_eq(v128_and(x, highest), highest), u16x8_splat(0x7f80));
    let none = u16x8_splat(0);
    let [low, high] = finite_halves(x);
    [
        v128_or(low, i16x8_shuffle::<0, 8, 1, 9, 2, 10, 3, 11>(none, special)),
        v128_or(high, i16x8_shuffle::<4, 12, 5, 13, 6, 14, 7, 15>(none, special)),
    ]
}

/// The f32 of eight finite halves.
#[inline(always)]
pub(super) fn finite_halves(x: v128) -> [v128; 2] {
    placed_halves(x).map(|placed| f32x4_mul(placed, f32x4_splat(HALVES_UP)))
}

/// The f32 of eight finite halves, divided by [`HALVES_UP`]: their fields moved to where f32 has them.
#[inline(always)]
pub(super) fn placed_halves(x: v128) -> [v128; 2] {
    // The shift leaves copies of the sign above the exponent, which has four bits in the upper 16.
    let upper = v128_and(i16x8_shr(x, 3), u16x8_splat(0x8fff));
    let lower = i16x8_shl(x, 13);
    [
        i16x8_shuffle::<0, 8, 1, 9, 2, 10, 3, 11>(lower, upper),
        i16x8_shuffle::<4, 12, 5, 13, 6, 14, 7, 15>(lower, upper),
    ]
}

/// The same of four halves that were extended to 32 bits.
#[inline(always)]
pub(super) fn placed_half_words(x: v128) -> v128 {
    v128_and(i32x4_shl(x, 13), u32x4_splat(0x8fff_e000))
}

/// 2^112: what the bias of the exponents differs by. Subnormal halves come out right too.
pub(super) const HALVES_UP: f32 = f32::from_bits(0x7780_0000);
