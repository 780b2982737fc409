//! Mirostat 2: keeps the surprise of the chosen tokens near a target by a limit that follows it.

use super::candidates::Candidates;
use super::rng::Rng;
use crate::kernels::math::ln_f64;

/// The target and the limit that follows, both in bits.
#[derive(Debug)]
pub(crate) struct MirostatState {
    tau: f64,
    eta: f64,
    pub(crate) limit: f64,
}

impl MirostatState {
    /// Starts with twice the target as the limit.
    pub(crate) fn new(tau: f32, eta: f32) -> Self {
        let (tau, eta) = (f64::from(tau), f64::from(eta));
        Self { tau, eta, limit: 2.0 * tau }
    }

    /// Drops candidates whose surprise is above the limit (the likeliest stays), draws one, and moves the limit by how far
    /// its surprise among those left is from the target. Gives its place.
    pub(crate) fn draw(&mut self, c: &mut Candidates, rng: &mut Rng) -> usize {
        let least = c.weights().log_sum() - self.limit * core::f64::consts::LN_2;
        c.keep_from(least.min(f64::from(c.max_logit())));
        let i = c.draw(rng);
        let weights = c.weights();
        let p = weights.of(&c.as_slice()[i]) as f64 / weights.total as f64;
        let surprise = -ln_f64(p) * core::f64::consts::LOG2_E;
        self.limit -= self.eta * (surprise - self.tau);
        i
    }
}
