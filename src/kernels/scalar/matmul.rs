//! Matrix products: `exact` on decoded rows, `fast` on integers.

use super::super::{Out, Q8, Weights};
use super::block32::{Iq4Nl, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0};
use super::block256::{Iq4Xs, Q2K, Q3K, Q4K, Q5K, Q6K};
use super::dot;
use crate::quant::{GgmlType, dequantize_row};

/// Every row is decoded once for all tokens.
pub fn matmul_f32(w: &Weights<'_>, x: &[f32], scratch: &mut [f32], out: &mut Out<'_>) {
    let row = &mut scratch[..w.n_in];
    for (r, bytes) in w.rows().enumerate() {
        dequantize_row(w.ty, bytes, row);
        let out = out.data[out.first_row + r..].iter_mut().step_by(out.stride.max(1));
        for (x, out) in x.chunks_exact(w.n_in).zip(out) {
            *out = dot(row, x);
        }
    }
}

/// Every block is unpacked once for all tokens; a result grows in its place, block by block.
pub fn matmul_q8(
    w: &Weights<'_>,
    x: &Q8<'_>,
    n_tokens: usize,
    _scratch: &mut [f32],
    out: &mut Out<'_>,
) {
    match w.ty {
        GgmlType::Q4_0 => rows::<32, Q4_0>(w, x, n_tokens, out),
        GgmlType::Q4_1 => rows::<32, Q4_1>(w, x, n_tokens, out),
        GgmlType::Q5_0 => rows::<32, Q5_0>(w, x, n_tokens, out),
        GgmlType::Q5_1 => rows::<32, Q5_1>(w, x, n_tokens, out),
        GgmlType::Q8_0 => rows::<32, Q8_0>(w, x, n_tokens, out),
        GgmlType::IQ4_NL => rows::<32, Iq4Nl>(w, x, n_tokens, out),
        GgmlType::Q2_K => rows::<256, Q2K>(w, x, n_tokens, out),
        GgmlType::Q3_K => rows::<256, Q3K>(w, x, n_tokens, out),
        GgmlType::Q4_K => rows::<256, Q4K>(w, x, n_tokens, out),
        GgmlType::Q5_K => rows::<256, Q5K>(w, x, n_tokens, out),
        GgmlType::Q6_K => rows::<256, Q6K>(w, x, n_tokens, out),
        GgmlType::IQ4_XS => rows::<256, Iq4Xs>(w, x, n_tokens, out),
        _ => unreachable!("{} takes f32 activations", w.ty),
    }
}

/// Rounded activations that belong to one block of weights.
pub(super) struct XBlock<'a, const N: usize> {
    pub(super) qs: &'a [i8; N],
    pub(super) d: f32,
    pub(super) sums: &'a [i16],
}

/// A block of `N` weights as its integer kernel sees it.
pub(super) trait FastBlock<const N: usize>: Sized {
    /// The block as stored.
    type Stored: bytemuck::AnyBitPattern;
    /// Numbers as integers, scales as f32.
    fn unpack(stored: &Self::Stored) -> Self;
    /// `acc` and the terms of this block, in the order of the definition.
    fn add(&self, acc: f32, x: &XBlock<'_, N>) -> f32;
}

fn rows<const N: usize, B: FastBlock<N>>(
    w: &Weights<'_>,
    x: &Q8<'_>,
    n_tokens: usize,
    out: &mut Out<'_>,
) {
    let n_blocks = w.n_in / N;
    for (r, bytes) in w.rows().enumerate() {
        let place = |token: usize| token * out.stride + out.first_row + r;
        for token in 0..n_tokens {
            out.data[place(token)] = 0.0;
        }
        for (i, stored) in bytemuck::cast_slice::<u8, B::Stored>(bytes).iter().enumerate() {
            let block = B::unpack(stored);
            for token in 0..n_tokens {
                let at = token * n_blocks + i;
                let x = XBlock {
                    qs: &x.qs.as_chunks::<N>().0[at],
                    d: x.scales[at],
                    sums: &x.sums[at * (N / 16)..][..N / 16],
                };
                let acc = &mut out.data[place(token)];
                *acc = block.add(*acc, &x);
            }
        }
    }
}

/// The sum of the products of 16 bytes: at most 16 * 128 * 127 in magnitude.
#[inline]
pub(super) fn dot16(q: &[i8; 16], x: &[i8; 16]) -> i32 {
    let mut sum = 0;
    for i in 0..16 {
        sum += i32::from(q[i]) * i32::from(x[i]);
    }
    sum
}
