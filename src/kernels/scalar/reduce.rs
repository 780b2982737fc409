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
    for (i, (a, b)) in a_rest.iter().zip(b_rest).enumerate() {
        sums[i] += a * b;
    }
    fold(sums)
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
    for (sum, x) in sums.iter_mut().zip(rest) {
        *sum += x;
    }
    fold(sums)
}

/// The fixed tree: the upper half is added to the lower, four times.
#[inline]
pub(super) fn fold(mut sums: [f32; 16]) -> f32 {
    let mut half = 8;
    while half > 0 {
        for i in 0..half {
            sums[i] += sums[i + half];
        }
        half /= 2;
    }
    sums[0]
}
