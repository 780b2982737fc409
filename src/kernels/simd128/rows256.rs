//! Four rows of weights with blocks of 256 times one token, a row a lane: decode.
//!
//! The products of a sub-block are summed into four lanes of 32 bits that fit 16: two sub-blocks are packed into one vector
//! and multiplied with their scales in one instruction. One transposed addition per block gives the exact sums of the rows.

use core::arch::wasm32::*;

use super::active_bytes::{Bytes, signed_start};
use super::formats256::{Factors, Format256};
use super::lanes::{gather_from, halves_high, halves_low, load_i8, load_i16, sums_i32};
use crate::kernels::{Out, Q8, Weights};

/// Rounded activations of a block.
struct XBlock<'a> {
    qs: &'a [[i8; 16]; 16],
    d: f32,
    /// Sums of the sub-blocks, as [`Factors`].
    sums: Factors,
    /// What the products with signed numbers start from, per 32 elements.
    starts: v128,
}

/// All rows times token `token`. `scratch` takes four words per block.
#[inline(never)] // browsers compile hot functions whole, in memory of their size: a kernel, not all of them
pub(super) fn rows256<const N: usize, F: Format256<N>>(
    w: &Weights<'_>,
    x: &Q8<'_>,
    token: usize,
    scratch: &mut [f32],
    out: &mut Out<'_>,
) {
    let n_blocks = w.n_in / 256;
    let blocks = token * n_blocks..(token + 1) * n_blocks;
    let xs = &x.qs.as_chunks::<16>().0.as_chunks::<16>().0[blocks.clone()];
    let sums = &x.sums.as_chunks::<8>().0.as_chunks::<2>().0[blocks.clone()];
    let scales = &x.scales[blocks];
    let starts: &mut [i16] = bytemuck::cast_slice_mut(&mut scratch[..4 * n_blocks]);
    let (starts, _) = starts.as_chunks_mut::<8>();
    if F::SIGNED {
        for (xs, starts) in xs.iter().zip(starts.iter_mut()) {
            for (x, start) in xs.as_chunks::<2>().0.iter().zip(starts) {
                *start = signed_start(x.as_flattened()) as i16;
            }
        }
    }
    let out = &mut out.data[token * out.stride + out.first_row..][..w.n_rows];
    let rows = w.bytes.as_chunks::<N>().0;
    // A row from each quarter: four long streams, which a processor reads ahead of as it does not of four short rows side by side.
    let quarter = w.n_rows.div_ceil(4);
    for i in 0..quarter {
        // The last row stands in for those that the last quarters lack.
        let at = [0, 1, 2, 3].map(|j| (j * quarter + i).min(w.n_rows - 1));
        let [a, b, c, d] = at.map(|at| &rows[at * n_blocks..][..n_blocks]);
        let weights = a.iter().zip(b).zip(c.iter().zip(d));
        let activations = xs.iter().zip(scales).zip(sums.iter().zip(starts.iter()));
        let mut acc = f32x4_splat(0.0);
        for (((a, b), (c, d)), ((qs, scale), (sums, starts))) in weights.zip(activations) {
            let sums = [load_i16(&sums[0]), load_i16(&sums[1])];
            let sums = if F::SUB == 16 { sums } else { pairs(sums) };
            let x = XBlock { qs, d: *scale, sums, starts: load_i16(starts) };
            acc = four_blocks::<N, F>([a, b, c, d], &x, acc);
        }
        out[at[0]] = f32x4_extract_lane::<0>(acc);
        out[at[1]] = f32x4_extract_lane::<1>(acc);
        out[at[2]] = f32x4_extract_lane::<2>(acc);
        out[at[3]] = f32x4_extract_lane::<3>(acc);
    }
}

#[inline(always)]
fn four_blocks<const N: usize, F: Format256<N>>(
    blocks: [&[u8; N]; 4],
    x: &XBlock<'_>,
    acc: v128,
) -> v128 {
    let [a, b, c, d] = blocks;
    let factors = [F::factors(a), F::factors(b), F::factors(c), F::factors(d)];
    let mut sums = [i32x4_splat(0); 4];
    for r in 0..4 {
        let [scales, _] = factors[r];
        if F::SIGNED {
            sums[r] = i32x4_dot_i16x8(scales[0], x.starts);
        } else if let Some(zero) = F::ZERO {
            sums[r] = i32x4_neg(i32x4_shl(products::<N, F>(scales, x.sums), zero));
        }
    }
    // One after the other, so that the shuffles of each are constants.
    add_part::<N, F>(blocks, x, &factors, 0, &mut sums);
    add_part::<N, F>(blocks, x, &factors, 1, &mut sums);
    add_part::<N, F>(blocks, x, &factors, 2, &mut sums);
    add_part::<N, F>(blocks, x, &factors, 3, &mut sums);
    let isum = sums_i32(sums[0], sums[1], sums[2], sums[3]);
    let heads = gather_from(blocks, F::HEAD_AT);
    let scale = if F::SCALE_IN_UPPER { halves_high(heads) } else { halves_low(heads) };
    let d = f32x4_splat(x.d);
    let acc = f32x4_add(acc, f32x4_mul(f32x4_convert_i32x4(isum), f32x4_mul(scale, d)));
    if !F::MINIMA {
        return acc;
    }
    let minima = sums_i32(
        products::<N, F>(factors[0][1], x.sums),
        products::<N, F>(factors[1][1], x.sums),
        products::<N, F>(factors[2][1], x.sums),
        products::<N, F>(factors[3][1], x.sums),
    );
    let minimum = f32x4_convert_i32x4(minima);
    f32x4_sub(acc, f32x4_mul(minimum, f32x4_mul(halves_high(heads), d)))
}

/// Adds the products of elements `64 part..64 part + 64` with their scales.
#[inline(always)]
fn add_part<const N: usize, F: Format256<N>>(
    blocks: [&[u8; N]; 4],
    x: &XBlock<'_>,
    factors: &[[Factors; 2]; 4],
    part: usize,
    sums: &mut [v128; 4],
) {
    let load = |i: usize| Bytes::new(load_i8(&x.qs[4 * part + i]));
    let x = [load(0), load(1), load(2), load(3)];
    // Written out: a loop over rows may stay a loop with the sums in memory, a closure may stay a call.
    sums[0] = part_of_row::<N, F>(blocks[0], &x, factors[0][0], part, sums[0]);
    sums[1] = part_of_row::<N, F>(blocks[1], &x, factors[1][0], part, sums[1]);
    sums[2] = part_of_row::<N, F>(blocks[2], &x, factors[2][0], part, sums[2]);
    sums[3] = part_of_row::<N, F>(blocks[3], &x, factors[3][0], part, sums[3]);
}

#[inline(always)]
fn part_of_row<const N: usize, F: Format256<N>>(
    block: &[u8; N],
    x: &[Bytes; 4],
    scales: Factors,
    part: usize,
    sum: v128,
) -> v128 {
    let none = i32x4_splat(0);
    let [a, b, c, d] = F::numbers(block, part);
    if F::SIGNED {
        let both = pair(scales, part);
        let first = x[1].dot_signed(b, x[0].dot_signed(a, none));
        let second = x[3].dot_signed(d, x[2].dot_signed(c, none));
        let first = i32x4_mul(first, i32x4_extend_low_i16x8(both));
        let second = i32x4_mul(second, i32x4_extend_high_i16x8(both));
        return i32x4_add(sum, i32x4_add(first, second));
    }
    if F::SUB == 32 {
        let first = x[1].dot_unsigned(b, x[0].dot_unsigned(a, none));
        let second = x[3].dot_unsigned(d, x[2].dot_unsigned(c, none));
        return i32x4_add(sum, scaled(first, second, pair(scales, part)));
    }
    let [a, b] = [x[0].dot_unsigned(a, none), x[1].dot_unsigned(b, none)];
    let [c, d] = [x[2].dot_unsigned(c, none), x[3].dot_unsigned(d, none)];
    let sum = i32x4_add(sum, scaled(a, b, pair(scales, 2 * part)));
    i32x4_add(sum, scaled(c, d, pair(scales, 2 * part + 1)))
}

/// Two vectors of sums, each multiplied with its half of `factors` and added up.
#[inline(always)]
fn scaled(first: v128, second: v128, factors: v128) -> v128 {
    i32x4_dot_i16x8(i16x8_narrow_i32x4(first, second), factors)
}

/// Products of scales or minima with sums of sub-blocks, spread over four lanes.
#[inline(always)]
fn products<const N: usize, F: Format256<N>>(factors: Factors, sums: Factors) -> v128 {
    let first = i32x4_dot_i16x8(factors[0], sums[0]);
    if F::SUB == 32 { first } else { i32x4_add(first, i32x4_dot_i16x8(factors[1], sums[1])) }
}

/// Factor `2i` in the four lower lanes of 16 bits, factor `2i + 1` in the upper ones.
#[inline(always)]
fn pair(factors: Factors, i: usize) -> v128 {
    let x = factors[i / 4];
    match i % 4 {
        0 => i16x8_shuffle::<0, 0, 0, 0, 1, 1, 1, 1>(x, x),
        1 => i16x8_shuffle::<2, 2, 2, 2, 3, 3, 3, 3>(x, x),
        2 => i16x8_shuffle::<4, 4, 4, 4, 5, 5, 5, 5>(x, x),
        _ => i16x8_shuffle::<6, 6, 6, 6, 7, 7, 7, 7>(x, x),
    }
}

/// The sums of 16 elements each, added in pairs: at most 4064 in magnitude.
#[inline(always)]
fn pairs([a, b]: Factors) -> Factors {
    let sums = i16x8_narrow_i32x4(i32x4_extadd_pairwise_i16x8(a), i32x4_extadd_pairwise_i16x8(b));
    [sums, sums]
}
