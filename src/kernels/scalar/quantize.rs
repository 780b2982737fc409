//! Activations rounded to signed bytes.

/// `d = max|x| / 127`, `q = round(x * (1 / d))`, ties to even.
pub fn quantize_q8(x: &[f32], block: usize, qs: &mut [i8], scales: &mut [f32], sums: &mut [i16]) {
    let blocks = x.chunks_exact(block).zip(qs.chunks_exact_mut(block));
    for ((x, qs), d) in blocks.zip(scales) {
        *d = step(largest(x));
        round_to(x, inverse(*d), qs);
    }
    for (sum, qs) in sums.iter_mut().zip(qs.as_chunks::<16>().0) {
        *sum = qs.iter().map(|q| i16::from(*q)).sum();
    }
}

/// The largest magnitude, compared as integers: infinity is above all numbers and NaN above infinity.
pub(super) fn largest(x: &[f32]) -> f32 {
    f32::from_bits(x.iter().map(|x| x.to_bits() & 0x7fff_ffff).fold(0, u32::max))
}

/// The size of one step. Below the smallest normal number it is 0: its inverse would overflow.
pub(in super::super) fn step(largest: f32) -> f32 {
    let d = largest / 127.0;
    if d < f32::MIN_POSITIVE { 0.0 } else { d }
}

/// `1 / d`, or 0 for a block of zeros.
pub(in super::super) fn inverse(d: f32) -> f32 {
    if d == 0.0 { 0.0 } else { 1.0 / d }
}

/// `x * factor` to the nearest integer, ties to even; |x * factor| is below 128, or x or factor is no number (gives 0).
pub(super) fn round_to(x: &[f32], factor: f32, qs: &mut [i8]) {
    for (q, x) in qs.iter_mut().zip(x) {
        // Adding 1.5 * 2^23 leaves the rounded integer in the low bits.
        let shifted = x * factor + ROUND;
        *q = if shifted.is_nan() { 0 } else { shifted.to_bits() as i8 };
    }
}

/// 1.5 * 2^23.
pub(in super::super) const ROUND: f32 = 12_582_912.0;
