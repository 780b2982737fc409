//! Rotary embedding: from a file's description to the sine and cosine of each (position, pair).
//!
//! The table of a chunk is computed once for all layers and heads, in f64. Pair i of a head turns by
//! `pos * base^(-2i/n_rot) / factor_i`, scaled for a longer context where the file says so.

use super::hparams::{RopeHparams, RopeScaling};
use super::program::VectorId;
use crate::kernels::RopePairing;
use crate::kernels::math::{ln_f64, pow_f64, sin_cos_f64};

/// One rotary embedding of a program.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rope {
    /// Which values of a head are a pair.
    pub(crate) pairing: RopePairing,
    /// Turn of each pair from one position to the next, in radians: `[n_rot / 2]`.
    turns: Vec<f64>,
    /// Divisors of the turns that the file keeps as a tensor.
    pub(crate) factors: RopeFactors,
    /// Factor of sine and cosine.
    magnitude: f64,
}

/// Divisors of the turns, `[n_rot / 2]` each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RopeFactors {
    /// There are none.
    None,
    /// The same for every context.
    Always(VectorId),
    /// Chosen by the session's context.
    ByContext {
        /// Up to the original context.
        short: VectorId,
        /// Beyond it.
        long: VectorId,
        /// The original context.
        n_ctx_orig: u32,
    },
}

impl RopeFactors {
    /// The vector for a session of `n_ctx` positions.
    pub(crate) fn chosen(self, n_ctx: u32) -> Option<VectorId> {
        match self {
            Self::None => None,
            Self::Always(id) => Some(id),
            Self::ByContext { short, long, n_ctx_orig } => {
                Some(if n_ctx > n_ctx_orig { long } else { short })
            }
        }
    }
}

impl Rope {
    /// The embedding that the file describes.
    pub(crate) fn new(hp: &RopeHparams, pairing: RopePairing, factors: RopeFactors) -> Self {
        let turns = (0..hp.n_rot / 2).map(|pair| {
            let exponent = -2.0 * f64::from(pair) / f64::from(hp.n_rot);
            pow_f64(f64::from(hp.freq_base), exponent) * share_of_turn(hp, pair)
        });
        let stretch = match hp.scaling {
            RopeScaling::Yarn { factor, .. } if factor > 1.0 => {
                1.0 + 0.1 * ln_f64(f64::from(factor))
            }
            _ => 1.0,
        };
        let magnitude = stretch * f64::from(hp.attn_factor);
        Self { pairing, turns: turns.collect(), factors, magnitude }
    }

    /// Values of a head that are rotated.
    pub(crate) fn n_rot(&self) -> usize {
        2 * self.turns.len()
    }

    /// Sine and cosine at `pos`, `[n_rot / 2]` each.
    pub(crate) fn fill(&self, pos: u32, factors: Option<&[f32]>, cos: &mut [f32], sin: &mut [f32]) {
        for (pair, turn) in self.turns.iter().enumerate() {
            let factor = factors.map_or(1.0, |f| f64::from(f[pair]));
            let (s, c) = sin_cos_f64(f64::from(pos) * turn / factor);
            (cos[pair], sin[pair]) = narrow(c * self.magnitude, s * self.magnitude);
        }
    }

    /// Bytes of the description itself.
    pub(crate) fn bytes(&self) -> u64 {
        size_of_val(self.turns.as_slice()) as u64
    }
}

#[allow(clippy::cast_possible_truncation, reason = "f64 to f32 rounds, which is what is meant")]
fn narrow(c: f64, s: f64) -> (f32, f32) {
    (c as f32, s as f32)
}

/// How much of its turn a pair keeps when the context is extended.
fn share_of_turn(hp: &RopeHparams, pair: u32) -> f64 {
    match hp.scaling {
        RopeScaling::None => 1.0,
        RopeScaling::Linear { factor } => 1.0 / f64::from(factor),
        RopeScaling::Yarn { factor, beta_fast, beta_slow } => {
            let scaled = 1.0 / f64::from(factor);
            let last = f64::from(hp.n_rot) - 1.0;
            let low = pair_that_turns(hp, beta_fast).floor().max(0.0);
            let high = pair_that_turns(hp, beta_slow).ceil().min(last);
            let ramp = (f64::from(pair) - low) / (high - low).max(0.001);
            let kept = 1.0 - ramp.clamp(0.0, 1.0);
            scaled * (1.0 - kept) + kept
        }
    }
}

/// The (fractional) pair that makes `rotations` full turns over the original context.
fn pair_that_turns(hp: &RopeHparams, rotations: f32) -> f64 {
    let positions_per_turn =
        f64::from(hp.n_ctx_orig) / (f64::from(rotations) * core::f64::consts::TAU);
    f64::from(hp.n_rot) * ln_f64(positions_per_turn) / (2.0 * ln_f64(f64::from(hp.freq_base)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hp(scaling: RopeScaling) -> RopeHparams {
        RopeHparams {
            n_rot: 8,
            freq_base: 10_000.0,
            freq_base_window: None,
            scaling,
            attn_factor: 1.0,
            n_ctx_orig: 64,
            finetuned: None,
        }
    }

    fn angles(rope: &Rope, pos: u32, factors: Option<&[f32]>) -> [(f32, f32); 4] {
        let (mut cos, mut sin) = ([0.0; 4], [0.0; 4]);
        rope.fill(pos, factors, &mut cos, &mut sin);
        core::array::from_fn(|i| (cos[i], sin[i]))
    }

    fn close(got: [(f32, f32); 4], magnitude: f64, angles: [f64; 4]) {
        for ((cos, sin), angle) in got.into_iter().zip(angles) {
            let (s, c) = sin_cos_f64(angle);
            let far =
                (f64::from(cos) - c * magnitude).abs() + (f64::from(sin) - s * magnitude).abs();
            assert!(far < 1e-6, "{cos} {sin} for an angle of {angle}");
        }
    }

    #[test]
    fn a_pair_turns_by_its_frequency() {
        let rope = Rope::new(&hp(RopeScaling::None), RopePairing::HalfSplit, RopeFactors::None);
        close(angles(&rope, 7, None), 1.0, [7.0, 0.7, 0.07, 0.007]);
        close(angles(&rope, 0, None), 1.0, [0.0; 4]);
        close(angles(&rope, 7, Some(&[1.0, 2.0, 1.0, 4.0])), 1.0, [7.0, 0.35, 0.07, 0.00175]);
    }

    #[test]
    fn linear_scaling_divides_positions() {
        let linear = hp(RopeScaling::Linear { factor: 4.0 });
        let rope = Rope::new(&linear, RopePairing::HalfSplit, RopeFactors::None);
        close(angles(&rope, 8, None), 1.0, [2.0, 0.2, 0.02, 0.002]);
    }

    #[test]
    fn yarn_leaves_fast_pairs_and_scales_slow_ones() {
        let yarn = hp(RopeScaling::Yarn { factor: 4.0, beta_fast: 32.0, beta_slow: 1.0 });
        let rope = Rope::new(&yarn, RopePairing::HalfSplit, RopeFactors::None);
        // Over 64 positions the first pair turns 10 times, the second once: the ramp ends at pair 2.
        let half = 0.5 + 0.5 / 4.0;
        close(angles(&rope, 8, None), 1.0 + 0.1 * ln_f64(4.0), [8.0, 0.8 * half, 0.02, 0.002]);
    }

    #[test]
    fn factors_follow_the_context() {
        let (short, long) = (VectorId(1), VectorId(2));
        let factors = RopeFactors::ByContext { short, long, n_ctx_orig: 4096 };
        assert_eq!((factors.chosen(4096), factors.chosen(4097)), (Some(short), Some(long)));
    }
}
