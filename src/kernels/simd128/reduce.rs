//! f32 reductions: the 16 partial sums are four vectors.

use core::arch::wasm32::*;

use super::lanes::{load_f32, store_f32};

/// Dot product.
pub(in crate::kernels) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    let mut sums = [f32x4_splat(0.0); 4];
    for (a, b) in a.iter().zip(b) {
        let ((a, _), (b, _)) = (a.as_chunks::<4>(), b.as_chunks::<4>());
        for i in 0..4 {
            sums[i] = f32x4_add(sums[i], f32x4_mul(load_f32(&a[i]), load_f32(&b[i])));
        }
    }
    if a_rest.is_empty() {
        return fold(sums);
    }
    with_rest(sums, a_rest.iter().zip(b_rest).map(|(a, b)| a * b))
}

/// Sum.
pub(in crate::kernels) fn sum(x: &[f32]) -> f32 {
    let (chunks, rest) = x.as_chunks::<16>();
    let mut sums = [f32x4_splat(0.0); 4];
    for x in chunks {
        let (x, _) = x.as_chunks::<4>();
        for i in 0..4 {
            sums[i] = f32x4_add(sums[i], load_f32(&x[i]));
        }
    }
    with_rest(sums, rest.iter().copied())
}

/// The largest element, as [`scalar`](crate::kernels::scalar) finds it, or a NaN if there is one.
///
/// Compared as integers: a float comparison with a choice is what a compiler may turn into the relaxed maximum of wasm.
pub(in crate::kernels) fn maximum(x: &[f32]) -> f32 {
    let (vectors, rest) = x.as_chunks::<4>();
    let none = f32::NEG_INFINITY.to_bits().cast_signed();
    let ordered = |x: v128| v128_xor(x, u32x4_shr(i32x4_shr(x, 31), 1));
    let max = vectors
        .iter()
        .fold(ordered(i32x4_splat(none)), |max, x| i32x4_max(max, ordered(load_f32(x))));
    let mut lanes = [0.0; 4];
    store_f32(&mut lanes, ordered(max));
    let key = |x: f32| {
        let bits = x.to_bits().cast_signed();
        bits ^ ((bits >> 31) & i32::MAX)
    };
    lanes
        .iter()
        .chain(rest)
        .fold(f32::NEG_INFINITY, |max, x| if key(*x) > key(max) { *x } else { max })
}

/// The fixed tree.
#[inline(always)]
pub(super) fn fold([a, b, c, d]: [v128; 4]) -> f32 {
    let x = f32x4_add(f32x4_add(a, c), f32x4_add(b, d));
    let x = f32x4_add(x, i32x4_shuffle::<2, 3, 0, 1>(x, x));
    f32x4_extract_lane::<0>(x) + f32x4_extract_lane::<1>(x)
}

/// The rest of the tree for four vectors whose partial sums are down to four: the sums of lanes 0 and 2 and of 1 and 3,
/// added up.
#[inline(always)]
pub(super) fn fold_four([a, b, c, d]: [v128; 4]) -> v128 {
    let halve =
        |a, b| f32x4_add(i32x4_shuffle::<0, 1, 4, 5>(a, b), i32x4_shuffle::<2, 3, 6, 7>(a, b));
    let (ab, cd) = (halve(a, b), halve(c, d));
    f32x4_add(i32x4_shuffle::<0, 2, 4, 6>(ab, cd), i32x4_shuffle::<1, 3, 5, 7>(ab, cd))
}

/// The tree after the products of fewer than 16 elements have been added.
fn with_rest(sums: [v128; 4], rest: impl Iterator<Item = f32>) -> f32 {
    let mut lanes = [[0.0; 4]; 4];
    for (lanes, sums) in lanes.iter_mut().zip(sums) {
        store_f32(lanes, sums);
    }
    lanes.as_flattened_mut().iter_mut().zip(rest).for_each(|(sum, x)| *sum += x);
    fold(lanes.map(|lanes| load_f32(&lanes)))
}
