//! Rotary position embedding of one head.

use super::super::RopePairing;

/// Pair `(a, b)` becomes `(a cos - b sin, a sin + b cos)`.
pub fn rope(x: &mut [f32], cos: &[f32], sin: &[f32], pairing: RopePairing) {
    match pairing {
        RopePairing::Interleaved => {
            for (pair, (c, s)) in x.as_chunks_mut::<2>().0.iter_mut().zip(cos.iter().zip(sin)) {
                *pair = turn(*pair, *c, *s);
            }
        }
        RopePairing::HalfSplit => {
            let (low, high) = x.split_at_mut(cos.len());
            for ((a, b), (c, s)) in low.iter_mut().zip(high).zip(cos.iter().zip(sin)) {
                [*a, *b] = turn([*a, *b], *c, *s);
            }
        }
    }
}

#[inline]
fn turn([a, b]: [f32; 2], cos: f32, sin: f32) -> [f32; 2] {
    [a * cos - b * sin, a * sin + b * cos]
}
