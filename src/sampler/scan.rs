//! Sweeps over all logits, several at a time: a vocabulary can have a quarter of a million tokens.

use crate::TokenId;
use crate::kernels::math::exp;

/// Whether no logit is NaN or infinite.
pub(crate) fn all_finite(logits: &[f32]) -> bool {
    let (chunks, rest) = logits.as_chunks::<LANES>();
    let mut largest = [0; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            largest[lane] = largest[lane].max(size_bits(chunk[lane]));
        }
    }
    largest.into_iter().chain(rest.iter().map(|&x| size_bits(x))).all(|bits| bits < INFINITY)
}

/// The highest of the logits; negative infinity if there are none.
pub(crate) fn highest(logits: &[f32]) -> f32 {
    let (chunks, rest) = logits.as_chunks::<LANES>();
    let mut highest = [f32::NEG_INFINITY; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            highest[lane] = higher(highest[lane], chunk[lane]);
        }
    }
    highest.into_iter().chain(rest.iter().copied()).fold(f32::NEG_INFINITY, higher)
}

/// The sum of `e^(logit - max)`.
pub(crate) fn sum_of_exp(logits: &[f32], max: f32) -> f64 {
    let (chunks, rest) = logits.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            sums[lane] += f64::from(exp(chunk[lane] - max));
        }
    }
    let rest = rest.iter().map(|&x| f64::from(exp(x - max)));
    sums.into_iter().chain(rest).sum()
}

/// Calls `f` in order of id with every token, and its logit (the edited one where there is one), that is above what `f` gave
/// last. Begins above `above`.
pub(crate) fn each_above(
    logits: &[f32],
    edits: &[(TokenId, f32)],
    mut above: f32,
    mut f: impl FnMut(TokenId, f32) -> f32,
) {
    let mut from: TokenId = 0;
    for &(token, logit) in edits {
        above = run_above(&logits[from as usize..token as usize], from, above, &mut f);
        if logit > above {
            above = f(token, logit);
        }
        from = token + 1;
    }
    run_above(&logits[from as usize..], from, above, &mut f);
}

/// The same for logits without edits, of which the first is token `from`'s.
fn run_above(
    logits: &[f32],
    mut from: TokenId,
    mut above: f32,
    f: &mut impl FnMut(TokenId, f32) -> f32,
) -> f32 {
    for chunk in logits.chunks(CHUNK as usize) {
        if highest(chunk) > above {
            for (&logit, token) in chunk.iter().zip(from..) {
                if logit > above {
                    above = f(token, logit);
                }
            }
        }
        from += CHUNK;
    }
    above
}

/// The bits without the sign: as integers they are in the order of size, and infinity and NaN come last.
fn size_bits(x: f32) -> u32 {
    x.to_bits() & !(1 << 31)
}

pub(crate) fn higher(a: f32, b: f32) -> f32 {
    if b > a { b } else { a }
}

pub(crate) const LANES: usize = 16;
const CHUNK: TokenId = 128;
const INFINITY: u32 = 0x7f80_0000;
