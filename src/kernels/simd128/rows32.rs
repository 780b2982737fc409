//! Four rows of weights with blocks of 32 times one token, a row a lane: decode.
//!
//! Per block and row the products of bytes are summed into four lanes; one transposed addition of the four vectors gives
//! the exact sums of the four rows, and the f32 chain goes on in the same lanes.

use core::arch::wasm32::*;

use super::active_bytes::{Bytes, signed_start};
use super::formats32::Format32;
use super::lanes::{gather_from, halves_high, halves_low, load_first, load_i8, sums_i32};
use crate::kernels::{Out, Q8, Weights};

/// All rows times token `token`. `scratch` takes two words per block.
#[inline(never)] // browsers compile hot functions whole, in memory of their size: a kernel, not all of them
pub(super) fn rows32<const N: usize, F: Format32<N>>(
    w: &Weights<'_>,
    x: &Q8<'_>,
    token: usize,
    scratch: &mut [f32],
    out: &mut Out<'_>,
) {
    let n_blocks = w.n_in / 32;
    let xs = &x.qs[token * w.n_in..][..w.n_in].as_chunks::<32>().0[..n_blocks];
    let scales = &x.scales[token * n_blocks..][..n_blocks];
    let sums = &x.sums.as_chunks::<2>().0[token * n_blocks..][..n_blocks];
    let (starts, scratch) = scratch.split_at_mut(n_blocks);
    let starts: &mut [i32] = bytemuck::cast_slice_mut(starts);
    let offset_factors = &mut scratch[..n_blocks];
    for i in 0..n_blocks {
        let sum = i32::from(sums[i][0]) + i32::from(sums[i][1]);
        starts[i] = if F::SIGNED { signed_start(&xs[i]) } else { -F::ZERO * sum };
        offset_factors[i] = sum as f32 * scales[i];
    }
    let out = &mut out.data[token * out.stride + out.first_row..][..w.n_rows];
    let rows = w.bytes.as_chunks::<N>().0;
    // A row from each quarter: four long streams, which a processor reads ahead of as it does not of four short rows side by side.
    let quarter = w.n_rows.div_ceil(4);
    for i in 0..quarter {
        // The last row stands in for those that the last quarters lack.
        let at = [0, 1, 2, 3].map(|j| (j * quarter + i).min(w.n_rows - 1));
        let rows = at.map(|at| &rows[at * n_blocks..][..n_blocks]);
        let acc = four_rows::<N, F>(rows, xs, scales, starts, offset_factors);
        out[at[0]] = f32x4_extract_lane::<0>(acc);
        out[at[1]] = f32x4_extract_lane::<1>(acc);
        out[at[2]] = f32x4_extract_lane::<2>(acc);
        out[at[3]] = f32x4_extract_lane::<3>(acc);
    }
}

#[inline(always)]
fn four_rows<const N: usize, F: Format32<N>>(
    rows: [&[[u8; N]]; 4],
    xs: &[[i8; 32]],
    scales: &[f32],
    starts: &[i32],
    offset_factors: &[f32],
) -> v128 {
    let mut acc = f32x4_splat(0.0);
    let [a, b, c, d] = rows;
    let weights = a.iter().zip(b).zip(c.iter().zip(d));
    let activations = xs.iter().zip(scales).zip(starts.iter().zip(offset_factors));
    for (((a, b), (c, d)), ((x, scale), (start, offset_factor))) in weights.zip(activations) {
        let (x, _) = x.as_chunks::<16>();
        let x = [Bytes::new(load_i8(&x[0])), Bytes::new(load_i8(&x[1]))];
        let start = load_first(start);
        let product = |block: &[u8; N]| {
            let [low, high] = F::numbers(block);
            if F::SIGNED {
                x[1].dot_signed(high, x[0].dot_signed(low, start))
            } else {
                x[1].dot_unsigned(high, x[0].dot_unsigned(low, start))
            }
        };
        let isum = sums_i32(product(a), product(b), product(c), product(d));
        let heads = gather_from([a, b, c, d], 0);
        let factor = f32x4_mul(halves_low(heads), f32x4_splat(*scale));
        acc = f32x4_add(acc, f32x4_mul(f32x4_convert_i32x4(isum), factor));
        if F::OFFSET {
            let offset = f32x4_mul(halves_high(heads), f32x4_splat(*offset_factor));
            acc = f32x4_add(acc, offset);
        }
    }
    acc
}
