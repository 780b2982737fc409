//! f32 reductions over 16 partial sums, folded in half four times.

/// Dot product.
#[must_use]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; 16];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    for (a, b) in a.iter().zip(b) {
        for i in 0..16 {
            sums[i] += a[i] * b[i];
        }
    }
    fold_products(&sums, a_rest, b_rest)
}

/// Sum.
#[must_use]
pub fn sum(x: &[f32]) -> f32 {
    let mut sums = [0.0; 16];
    let (chunks, rest) = x.as_chunks::<16>();
    for x in chunks {
        for i in 0..16 {
            sums[i] += x[i];
        }
    }
    fold_products(&sums, rest, &[1.0; 15][..rest.len()])
}

/// Adds the products of the last, fewer than 16, elements to their sums and folds these: the upper half is added to the
/// lower, four times.
///
/// Never inlined: what the compiler sees of it decides how it spreads the sums over registers in the loops above, and
/// handing them over in memory makes that four vectors in order.
#[inline(never)]
pub(super) fn fold_products(sums: &[f32; 16], a: &[f32], b: &[f32]) -> f32 {
    let mut sums = *sums;
    for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
        *sum += a * b;
    }
    let sums: [f32; 8] = core::array::from_fn(|i| sums[i] + sums[i + 8]);
    let sums: [f32; 4] = core::array::from_fn(|i| sums[i] + sums[i + 4]);
    (sums[0] + sums[2]) + (sums[1] + sums[3])
}
