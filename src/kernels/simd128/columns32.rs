//! Four rows of weights with blocks of 32 times 4 or 16 tokens, a token a lane: prefill.
//!
//! The activations are repacked first: four bytes of each of four tokens make a vector. Four bytes of a row, copied to all
//! lanes, then meet one vector of activations per four tokens, and a lane sums the products of its token: the exact sums
//! of a block need no additions across lanes. A block is unpacked once for all tokens, into memory, from where one load
//! copies any four numbers to all lanes: four rows by eight tokens are eight products for six loads. Only for builds whose
//! byte products stay in their lane.

use core::arch::wasm32::*;

use super::active_bytes::{Bytes, signed_start};
use super::formats32::Format32;
use super::lanes::{
    gather_from, halves_high, halves_low, load_f32, load_i8, load_i32, splat_i8x4, splats,
    store_f32, store_i8,
};
use crate::kernels::{Out, Q8, Weights};

/// The packed activations of `4 G` tokens; `V` is `8 G`.
struct Packed<'a, const G: usize, const V: usize> {
    /// Per block: `[8 words, G, 4 tokens]` of 4 bytes.
    xs: &'a [[[i8; 16]; V]],
    /// Per block, as the rest: `[G, 4 tokens]`.
    scales: &'a [[[f32; 4]; G]],
    /// What the integer sums start from.
    starts: &'a [[[i32; 4]; G]],
    /// Factors of the offsets of the weights.
    offset_factors: &'a [[[f32; 4]; G]],
}

/// All rows times tokens `first..first + 4 G`; those past the last token are copies of it and not stored.
#[inline(never)] // browsers compile hot functions whole, in memory of their size: a kernel, not all of them
pub(super) fn columns32<const N: usize, F: Format32<N>, const G: usize, const V: usize>(
    w: &Weights<'_>,
    x: &Q8<'_>,
    first: usize,
    n_tokens: usize,
    scratch: &mut [f32],
    out: &mut Out<'_>,
) {
    const { assert!(V == 8 * G, "eight words a block") };
    let n_blocks = w.n_in / 32;
    let packed = pack::<N, F, G, V>(x, first, n_tokens, n_blocks, scratch);
    let (rows, _) = w.bytes.as_chunks::<N>();
    let n_stored = (n_tokens - first).min(4 * G);
    let mut results = [[[0.0; 4]; 4]; G];
    for r in (0..w.n_rows).step_by(4) {
        // The last row stands in for those that a last group lacks.
        let group: [usize; 4] = core::array::from_fn(|i| (r + i).min(w.n_rows - 1));
        let blocks = group.map(|r| &rows[r * n_blocks..][..n_blocks]);
        four_rows::<N, F, G, V>(blocks, &packed, &mut results);
        for t in 0..n_stored {
            for (r, results) in group.iter().zip(&results[t / 4]) {
                out.data[(first + t) * out.stride + out.first_row + r] = results[t % 4];
            }
        }
    }
}

#[inline(always)]
fn four_rows<const N: usize, F: Format32<N>, const G: usize, const V: usize>(
    [a, b, c, d]: [&[[u8; N]]; 4],
    x: &Packed<'_, G, V>,
    results: &mut [[[f32; 4]; 4]; G],
) {
    results.as_flattened_mut().fill([0.0; 4]);
    let rows = a.iter().zip(b).zip(c.iter().zip(d));
    let factors = x.scales.iter().zip(x.starts.iter().zip(x.offset_factors));
    for (((a, b), (c, d)), (xs, (scales, (starts, offset_factors)))) in
        rows.zip(x.xs.iter().zip(factors))
    {
        let blocks = [a, b, c, d];
        let mut numbers = [[[0; 16]; 2]; 4];
        for (numbers, block) in numbers.iter_mut().zip(blocks) {
            let [low, high] = F::numbers(block);
            store_i8(&mut numbers[0], low);
            store_i8(&mut numbers[1], high);
        }
        let heads = gather_from(blocks, 0);
        let d = splats(halves_low(heads));
        let m = splats(halves_high(heads));
        // As many sums as there are registers for.
        for first in (0..G).step_by(2) {
            let n = (G - first).min(2);
            let mut isums = [[i32x4_splat(0); 4]; 2];
            if F::SIGNED || F::ZERO != 0 {
                for g in 0..n {
                    isums[g] = [load_i32(&starts[first + g]); 4];
                }
            }
            for word in 0..8 {
                let w: [v128; 4] = core::array::from_fn(|r| {
                    splat_i8x4(&bytemuck::cast_slice::<_, [i8; 4]>(&numbers[r])[word])
                });
                for g in 0..n {
                    let x = Bytes::new(load_i8(&xs[word * G + first + g]));
                    for r in 0..4 {
                        isums[g][r] = if F::SIGNED {
                            x.dot_signed(w[r], isums[g][r])
                        } else {
                            x.dot_unsigned(w[r], isums[g][r])
                        };
                    }
                }
            }
            for g in 0..n {
                let scales = load_f32(&scales[first + g]);
                let factors = load_f32(&offset_factors[first + g]);
                for r in 0..4 {
                    let isum = f32x4_convert_i32x4(isums[g][r]);
                    let result = &mut results[first + g][r];
                    let mut sum =
                        f32x4_add(load_f32(result), f32x4_mul(isum, f32x4_mul(d[r], scales)));
                    if F::OFFSET {
                        sum = f32x4_add(sum, f32x4_mul(m[r], factors));
                    }
                    store_f32(result, sum);
                }
            }
        }
    }
}

fn pack<'a, const N: usize, F: Format32<N>, const G: usize, const V: usize>(
    x: &Q8<'_>,
    first: usize,
    n_tokens: usize,
    n_blocks: usize,
    scratch: &'a mut [f32],
) -> Packed<'a, G, V> {
    let (words, scratch) = scratch.split_at_mut(n_blocks * 32 * G);
    let (scales, scratch) = scratch.split_at_mut(n_blocks * 4 * G);
    let (starts, offset_factors) = scratch.split_at_mut(n_blocks * 4 * G);
    let words: &mut [[u8; 4]] = bytemuck::cast_slice_mut(words);
    let starts: &mut [i32] = bytemuck::cast_slice_mut(starts);
    for lane in 0..4 * G {
        let token = (first + lane).min(n_tokens - 1);
        let (g, lane) = (lane / 4, lane % 4);
        for block in 0..n_blocks {
            let at = token * n_blocks + block;
            let qs = &x.qs.as_chunks::<32>().0[at];
            for (word, bytes) in qs.as_chunks::<4>().0.iter().enumerate() {
                words[((block * 8 + word) * G + g) * 4 + lane] = bytes.map(i8::cast_unsigned);
            }
            let sums = x.sums.as_chunks::<2>().0[at];
            let sum = i32::from(sums[0]) + i32::from(sums[1]);
            let to = (block * G + g) * 4 + lane;
            scales[to] = x.scales[at];
            starts[to] = if F::SIGNED { signed_start(qs) } else { -F::ZERO * sum };
            offset_factors[to] = sum as f32 * x.scales[at];
        }
    }
    Packed {
        xs: bytemuck::cast_slice::<_, i8>(words).as_chunks::<16>().0.as_chunks::<V>().0,
        scales: scales.as_chunks::<4>().0.as_chunks::<G>().0,
        starts: starts.as_chunks::<4>().0.as_chunks::<G>().0,
        offset_factors: offset_factors.as_chunks::<4>().0.as_chunks::<G>().0,
    }
}
