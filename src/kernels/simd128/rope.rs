//! Rotary position embedding of one head, four pairs at a time.

use core::arch::wasm32::*;

use super::lanes::{load_f32, store_f32};
use crate::kernels::{RopePairing, scalar};

/// Pair `(a, b)` becomes `(a cos - b sin, a sin + b cos)`.
pub(in crate::kernels) fn rope(x: &mut [f32], cos: &[f32], sin: &[f32], pairing: RopePairing) {
    let n = cos.len() / 4 * 4;
    let angles = cos.as_chunks::<4>().0.iter().zip(sin.as_chunks::<4>().0);
    let angles = angles.map(|(cos, sin)| (load_f32(cos), load_f32(sin)));
    match pairing {
        RopePairing::Interleaved => {
            for (pairs, (cos, sin)) in x.as_chunks_mut::<8>().0.iter_mut().zip(angles) {
                let (pairs, _) = pairs.as_chunks_mut::<4>();
                let (x, y) = (load_f32(&pairs[0]), load_f32(&pairs[1]));
                let a = i32x4_shuffle::<0, 2, 4, 6>(x, y);
                let b = i32x4_shuffle::<1, 3, 5, 7>(x, y);
                let (a, b) = turn(a, b, cos, sin);
                store_f32(&mut pairs[0], i32x4_shuffle::<0, 4, 1, 5>(a, b));
                store_f32(&mut pairs[1], i32x4_shuffle::<2, 6, 3, 7>(a, b));
            }
            scalar::rope(&mut x[2 * n..], &cos[n..], &sin[n..], pairing);
        }
        RopePairing::HalfSplit => {
            let (low, high) = x.split_at_mut(cos.len());
            let (low, low_rest) = low.as_chunks_mut::<4>();
            let (high, high_rest) = high.as_chunks_mut::<4>();
            for ((low, high), (cos, sin)) in low.iter_mut().zip(high).zip(angles) {
                let (a, b) = turn(load_f32(low), load_f32(high), cos, sin);
                store_f32(low, a);
                store_f32(high, b);
            }
            let rest = low_rest.iter_mut().zip(high_rest).zip(cos[n..].iter().zip(&sin[n..]));
            for ((a, b), (cos, sin)) in rest {
                (*a, *b) = (*a * cos - *b * sin, *a * sin + *b * cos);
            }
        }
    }
}

#[inline(always)]
fn turn(a: v128, b: v128, cos: v128, sin: v128) -> (v128, v128) {
    (
        f32x4_sub(f32x4_mul(a, cos), f32x4_mul(b, sin)),
        f32x4_add(f32x4_mul(a, sin), f32x4_mul(b, cos)),
    )
}
