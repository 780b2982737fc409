//! Two rows of weights with blocks of 32 times 4 or 8 tokens, a token a lane: prefill.
//!
//! The activations are repacked first: four bytes of each of four tokens make a vector. Four bytes of a row, copied to all
//! lanes, then meet one vector of activations per four tokens, and a lane sums the products of its token: the exact sums
//! of a block need no additions across lanes. Only for builds whose byte products stay in their lane.

use core::arch::wasm32::*;

use super::active_bytes::{Bytes, signed_start};
use super::formats32::Format32;
use super::lanes::{gather_from, halves_high, halves_low, load_f32, load_i8, load_i32, store_f32};
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
    let mut results = [[[0.0; 4]; G]; 2];
    for r in (0..w.n_rows).step_by(2) {
        // A last odd row goes together with itself.
        let pair = [r, (r + 1).min(w.n_rows - 1)];
        two_rows::<N, F, G, V>(
            pair.map(|r| &rows[r * n_blocks..][..n_blocks]),
            &packed,
            &mut results,
        );
        for (r, results) in pair.iter().zip(&results) {
            for (t, result) in results.as_flattened().iter().take(n_stored).enumerate() {
                out.data[(first + t) * out.stride + out.first_row + r] = *result;
            }
        }
    }
}

#[inline(always)]
fn two_rows<const N: usize, F: Format32<N>, const G: usize, const V: usize>(
    [a, b]: [&[[u8; N]]; 2],
    x: &Packed<'_, G, V>,
    results: &mut [[[f32; 4]; G]; 2],
) {
    let mut acc = [[f32x4_splat(0.0); G]; 2];
    let factors = x.scales.iter().zip(x.starts.iter().zip(x.offset_factors));
    for ((a, b), (xs, (scales, (starts, offset_factors)))) in
        a.iter().zip(b).zip(x.xs.iter().zip(factors))
    {
        let [a_numbers, b_numbers] = [F::numbers(a), F::numbers(b)];
        let mut isums = [[i32x4_splat(0); G]; 2];
        if F::SIGNED || F::ZERO != 0 {
            let starts: [v128; G] = core::array::from_fn(|g| load_i32(&starts[g]));
            isums = [starts, starts];
        }
        for half in 0..2 {
            for word in 0..4 {
                let [wa, wb] =
                    [splat_word(a_numbers[half], word), splat_word(b_numbers[half], word)];
                for g in 0..G {
                    let x = Bytes::new(load_i8(&xs[(4 * half + word) * G + g]));
                    if F::SIGNED {
                        isums[0][g] = x.dot_signed(wa, isums[0][g]);
                        isums[1][g] = x.dot_signed(wb, isums[1][g]);
                    } else {
                        isums[0][g] = x.dot_unsigned(wa, isums[0][g]);
                        isums[1][g] = x.dot_unsigned(wb, isums[1][g]);
                    }
                }
            }
        }
        let heads = gather_from([a, b, a, b], 0);
        let d = halves_low(heads);
        let d = [i32x4_shuffle::<0, 0, 0, 0>(d, d), i32x4_shuffle::<1, 1, 1, 1>(d, d)];
        for g in 0..G {
            let scales = load_f32(&scales[g]);
            for r in 0..2 {
                let product = f32x4_mul(f32x4_convert_i32x4(isums[r][g]), f32x4_mul(d[r], scales));
                acc[r][g] = f32x4_add(acc[r][g], product);
            }
        }
        if F::OFFSET {
            let m = halves_high(heads);
            let m = [i32x4_shuffle::<0, 0, 0, 0>(m, m), i32x4_shuffle::<1, 1, 1, 1>(m, m)];
            for g in 0..G {
                let factors = load_f32(&offset_factors[g]);
                for r in 0..2 {
                    acc[r][g] = f32x4_add(acc[r][g], f32x4_mul(m[r], factors));
                }
            }
        }
    }
    for (results, acc) in results.as_flattened_mut().iter_mut().zip(acc.as_flattened()) {
        store_f32(results, *acc);
    }
}

/// Word `i` in all lanes.
#[inline(always)]
fn splat_word(x: v128, i: usize) -> v128 {
    match i {
        0 => i32x4_shuffle::<0, 0, 0, 0>(x, x),
        1 => i32x4_shuffle::<1, 1, 1, 1>(x, x),
        2 => i32x4_shuffle::<2, 2, 2, 2>(x, x),
        _ => i32x4_shuffle::<3, 3, 3, 3>(x, x),
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
