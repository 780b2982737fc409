//! Activations rounded to signed bytes, 16 at a time.

use core::arch::wasm32::*;

use super::lanes::{load_f32, store_i8};
use crate::kernels::scalar::{ROUND, inverse, step};

/// `d = max|x| / 127`, `q = round(x * (1 / d))`, ties to even.
pub(in crate::kernels) fn quantize_q8(
    x: &[f32],
    block: usize,
    qs: &mut [i8],
    scales: &mut [f32],
    sums: &mut [i16],
) {
    let (x, _) = x.as_chunks::<16>();
    let (qs, _) = qs.as_chunks_mut::<16>();
    let in_block = block / 16;
    let blocks = x.chunks_exact(in_block).zip(qs.chunks_exact_mut(in_block));
    for ((x, qs), (d, sums)) in blocks.zip(scales.iter_mut().zip(sums.chunks_exact_mut(in_block))) {
        *d = step(largest(x));
        let factor = f32x4_splat(inverse(*d));
        for ((x, qs), sum) in x.iter().zip(qs).zip(sums) {
            let (x, _) = x.as_chunks::<4>();
            let [a, b, c, d] = [0, 1, 2, 3].map(|i| rounded(load_f32(&x[i]), factor));
            let q = i8x16_narrow_i16x8(i16x8_narrow_i32x4(a, b), i16x8_narrow_i32x4(c, d));
            store_i8(qs, q);
            *sum = sum16(q);
        }
    }
}

/// The integers nearest to `x * factor`; 0 where that is a NaN.
#[inline(always)]
fn rounded(x: v128, factor: v128) -> v128 {
    let round = f32x4_splat(ROUND);
    let shifted = f32x4_add(f32x4_mul(x, factor), round);
    v128_and(i32x4_sub(shifted, round), f32x4_eq(shifted, shifted))
}

#[inline(always)]
fn sum16(q: v128) -> i16 {
    let x = i32x4_extadd_pairwise_i16x8(i16x8_extadd_pairwise_i8x16(q));
    let x = i32x4_add(x, i32x4_shuffle::<2, 3, 0, 1>(x, x));
    (i32x4_extract_lane::<0>(x) + i32x4_extract_lane::<1>(x)) as i16
}

/// The largest magnitude, compared as integers.
#[inline(always)]
fn largest(x: &[[f32; 16]]) -> f32 {
    let mut max = u32x4_splat(0);
    for x in x.as_flattened().as_chunks::<4>().0 {
        max = u32x4_max(max, v128_and(load_f32(x), u32x4_splat(0x7fff_ffff)));
    }
    let max = u32x4_max(max, i32x4_shuffle::<2, 3, 0, 1>(max, max));
    f32::from_bits(u32x4_extract_lane::<0>(max).max(u32x4_extract_lane::<1>(max)))
}
