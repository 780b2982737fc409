//! Two rows of weights with blocks of 256 times 4 or 16 tokens, a token a lane: prefill.
//!
//! As in [`columns32`](super::columns32), four bytes of a row meet four bytes of each token. The numbers of a block are
//! unpacked once for all tokens into memory, from where any four of them are copied to all lanes in one load. Products of a
//! sub-block are multiplied with its scale lane by lane.

use core::arch::wasm32::*;

use super::active_bytes::{Bytes, signed_start};
use super::formats256::Format256;
use super::lanes::{
    gather_from, halves_high, halves_low, load_f32, load_i8, load_i32, splat_i8x4, store_f32,
    store_i8, store_i16,
};
use crate::kernels::{Out, Q8, Weights};

/// The packed activations of `4 G` tokens.
struct Packed<'a, const G: usize> {
    /// Per block: `[64 words, G, 4 tokens]` of 4 bytes.
    xs: &'a [[[[i8; 16]; G]; 64]],
    /// Per block, as the rest: `[G, 4 tokens]`.
    scales: &'a [[[f32; 4]; G]],
    /// `[8 pairs of sub-blocks of 16, G, 4 tokens]` of two 16-bit sums.
    sums: &'a [[[[i32; 4]; G]; 8]],
    /// `[8 sub-blocks of 32, G, 4 tokens]`: what the products with signed numbers start from.
    starts: &'a [[[[i32; 4]; G]; 8]],
}

/// A block of weights ready for any number of tokens.
struct Unpacked {
    numbers: [[i8; 16]; 16],
    scales: [[i16; 8]; 2],
    minima: [[i16; 8]; 2],
}

/// All rows times tokens `first..first + 4 G`; those past the last token are copies of it and not stored.
#[inline(never)] // browsers compile hot functions whole, in memory of their size: a kernel, not all of them
pub(super) fn columns256<const N: usize, F: Format256<N>, const G: usize>(
    w: &Weights<'_>,
    x: &Q8<'_>,
    first: usize,
    n_tokens: usize,
    scratch: &mut [f32],
    out: &mut Out<'_>,
) {
    let n_blocks = w.n_in / 256;
    let packed = pack::<G>(x, first, n_tokens, n_blocks, F::SIGNED, scratch);
    let (rows, _) = w.bytes.as_chunks::<N>();
    let n_stored = (n_tokens - first).min(4 * G);
    let mut results = [[[0.0; 4]; 2]; G];
    for r in (0..w.n_rows).step_by(2) {
        // A last odd row goes together with itself.
        let pair = [r, (r + 1).min(w.n_rows - 1)];
        let blocks = pair.map(|r| &rows[r * n_blocks..][..n_blocks]);
        two_rows::<N, F, G>(blocks, &packed, &mut results);
        for t in 0..n_stored {
            for (r, results) in pair.iter().zip(&results[t / 4]) {
                out.data[(first + t) * out.stride + out.first_row + r] = results[t % 4];
            }
        }
    }
}

fn two_rows<const N: usize, F: Format256<N>, const G: usize>(
    [a, b]: [&[[u8; N]]; 2],
    x: &Packed<'_, G>,
    results: &mut [[[f32; 4]; 2]; G],
) {
    results.as_flattened_mut().fill([0.0; 4]);
    let activations = x.xs.iter().zip(x.scales).zip(x.sums.iter().zip(x.starts));
    for ((a, b), ((xs, scales), (sums, starts))) in a.iter().zip(b).zip(activations) {
        let rows = [unpack::<N, F>(a), unpack::<N, F>(b)];
        let heads = gather_from([a, b, a, b], F::HEAD_AT);
        let d = both(if F::SCALE_IN_UPPER { halves_high(heads) } else { halves_low(heads) });
        let dmin = both(halves_high(heads));
        // As many sums as there are registers for.
        for first in (0..G).step_by(2) {
            let n = (G - first).min(2);
            let mut isums = [[i32x4_splat(0); 2]; 2];
            if let Some(zero) = F::ZERO {
                let sums = products::<N, F, G>(&rows, sums, first, n, |row| &row.scales);
                isums = sums.map(|sums| sums.map(|sum| i32x4_neg(i32x4_shl(sum, zero))));
            }
            for sub in 0..256 / F::SUB {
                let mut subs = [[i32x4_splat(0); 2]; 2];
                if F::SIGNED {
                    for g in 0..n {
                        subs[g] = [load_i32(&starts[sub][first + g]); 2];
                    }
                }
                for word in sub * F::SUB / 4..(sub + 1) * F::SUB / 4 {
                    let w = [0, 1].map(|r: usize| splat_word(&rows[r].numbers, word));
                    for g in 0..n {
                        let x = Bytes::new(load_i8(&xs[word][first + g]));
                        for r in 0..2 {
                            subs[g][r] = if F::SIGNED {
                                x.dot_signed(w[r], subs[g][r])
                            } else {
                                x.dot_unsigned(w[r], subs[g][r])
                            };
                        }
                    }
                }
                for r in 0..2 {
                    let scale = i32x4_splat(i32::from(rows[r].scales.as_flattened()[sub]));
                    for g in 0..n {
                        isums[g][r] = i32x4_add(isums[g][r], i32x4_mul(subs[g][r], scale));
                    }
                }
            }
            let minima = if F::MINIMA {
                products::<N, F, G>(&rows, sums, first, n, |row| &row.minima)
            } else {
                isums
            };
            for g in 0..n {
                let scales = load_f32(&scales[first + g]);
                for r in 0..2 {
                    let result = &mut results[first + g][r];
                    let isum = f32x4_convert_i32x4(isums[g][r]);
                    let product = f32x4_mul(isum, f32x4_mul(d[r], scales));
                    let mut sum = f32x4_add(load_f32(result), product);
                    if F::MINIMA {
                        let minimum = f32x4_convert_i32x4(minima[g][r]);
                        sum = f32x4_sub(sum, f32x4_mul(minimum, f32x4_mul(dmin[r], scales)));
                    }
                    store_f32(result, sum);
                }
            }
        }
    }
}

#[inline(always)]
fn unpack<const N: usize, F: Format256<N>>(block: &[u8; N]) -> Unpacked {
    let mut to = Unpacked { numbers: [[0; 16]; 16], scales: [[0; 8]; 2], minima: [[0; 8]; 2] };
    let mut part = |part: usize, numbers: [v128; 4]| {
        for (i, numbers) in numbers.into_iter().enumerate() {
            store_i8(&mut to.numbers[4 * part + i], numbers);
        }
    };
    part(0, F::numbers(block, 0));
    part(1, F::numbers(block, 1));
    part(2, F::numbers(block, 2));
    part(3, F::numbers(block, 3));
    let [scales, minima] = F::factors(block);
    for i in 0..2 {
        store_i16(&mut to.scales[i], scales[i]);
        store_i16(&mut to.minima[i], minima[i]);
    }
    to
}

/// The sums over sub-blocks of scales or minima times sums of activations, of up to two times four tokens from `first` on,
/// for both rows.
#[inline(always)]
fn products<const N: usize, F: Format256<N>, const G: usize>(
    rows: &[Unpacked; 2],
    sums: &[[[i32; 4]; G]; 8],
    first: usize,
    n: usize,
    factors: impl Fn(&Unpacked) -> &[[i16; 8]; 2],
) -> [[v128; 2]; 2] {
    let mut products = [[i32x4_splat(0); 2]; 2];
    for pair in 0..8 {
        for r in 0..2 {
            let factors = factors(&rows[r]).as_flattened();
            // A factor of 32 elements stands for two sums of 16.
            let [low, high] = if F::SUB == 16 {
                [factors[2 * pair], factors[2 * pair + 1]]
            } else {
                [factors[pair]; 2]
            };
            let both = i32::from(low) & 0xffff | i32::from(high) << 16;
            for g in 0..n {
                let product = i32x4_dot_i16x8(i32x4_splat(both), load_i32(&sums[pair][first + g]));
                products[g][r] = i32x4_add(products[g][r], product);
            }
        }
    }
    products
}

/// Lanes 0 and 1, each in all lanes.
#[inline(always)]
fn both(x: v128) -> [v128; 2] {
    [i32x4_shuffle::<0, 0, 0, 0>(x, x), i32x4_shuffle::<1, 1, 1, 1>(x, x)]
}

/// Numbers `4 word..4 word + 4` in all lanes.
#[inline(always)]
fn splat_word(numbers: &[[i8; 16]; 16], word: usize) -> v128 {
    splat_i8x4(&bytemuck::cast_slice::<_, [i8; 4]>(numbers)[word])
}

fn pack<'a, const G: usize>(
    x: &Q8<'_>,
    first: usize,
    n_tokens: usize,
    n_blocks: usize,
    signed: bool,
    scratch: &'a mut [f32],
) -> Packed<'a, G> {
    let (words, scratch) = scratch.split_at_mut(n_blocks * 256 * G);
    let (scales, scratch) = scratch.split_at_mut(n_blocks * 4 * G);
    let (sums, starts) = scratch.split_at_mut(n_blocks * 32 * G);
    let words: &mut [[u8; 4]] = bytemuck::cast_slice_mut(words);
    let sums: &mut [i32] = bytemuck::cast_slice_mut(sums);
    let starts: &mut [i32] = bytemuck::cast_slice_mut(&mut starts[..n_blocks * 32 * G]);
    for lane in 0..4 * G {
        let token = (first + lane).min(n_tokens - 1);
        for block in 0..n_blocks {
            let at = token * n_blocks + block;
            let place = |i: usize| (i * G + lane / 4) * 4 + lane % 4;
            let qs = &x.qs.as_chunks::<256>().0[at];
            for (i, bytes) in qs.as_chunks::<4>().0.iter().enumerate() {
                words[place(64 * block + i)] = bytes.map(i8::cast_unsigned);
            }
            scales[place(block)] = x.scales[at];
            let pairs = x.sums.as_chunks::<16>().0[at];
            for (i, [low, high]) in pairs.as_chunks::<2>().0.iter().enumerate() {
                sums[place(8 * block + i)] = i32::from(*low) & 0xffff | i32::from(*high) << 16;
            }
            for (i, qs) in qs.as_chunks::<32>().0.iter().enumerate() {
                starts[place(8 * block + i)] = if signed { signed_start(qs) } else { 0 };
            }
        }
    }
    Packed {
        xs: bytemuck::cast_slice::<_, i8>(words)
            .as_chunks::<16>()
            .0
            .as_chunks::<G>()
            .0
            .as_chunks::<64>()
            .0,
        scales: scales.as_chunks::<4>().0.as_chunks::<G>().0,
        sums: sums.as_chunks::<4>().0.as_chunks::<G>().0.as_chunks::<8>().0,
        starts: starts.as_chunks::<4>().0.as_chunks::<G>().0.as_chunks::<8>().0,
    }
}
