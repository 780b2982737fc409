//! Threads that work side by side: who they are ([`Team`]), and how a matrix is cut into pieces that they take ([`Grid`]).
//!
//! It knows slices and numbers of threads, nothing of models or browsers. Which thread takes which piece is left to chance, so
//! a piece's result must not depend on it.

mod grid;
mod pool;

use core::fmt::Debug;

pub use grid::{Grid, Piece};
pub use pool::Pool;

/// Threads that do a piece of work together, the caller among them.
///
/// # Safety
/// [`Team::run`] calls `work` with 0 on the calling thread, and with other numbers below [`Team::n_threads`] on other threads,
/// with each number at most once. It returns when all these calls have ended.
#[allow(unsafe_code, reason = "pieces of one slice are given out on the strength of this promise")]
pub unsafe trait Team: Debug + Send + Sync {
    /// Threads that may take part, the caller included.
    fn n_threads(&self) -> usize;

    /// Runs `work` on the caller's thread and on those of the others that come in time: it must be able to do all by itself.
    fn run(&self, work: &(dyn Fn(usize) + Sync));

    /// From the next round on, and while `busy`, somebody else needs a core: where there are no more cores than threads, one of
    /// these rests meanwhile.
    fn share_cores(&self, _busy: bool) {}
}

/// Whether this build can have more than one thread at all.
pub const THREADS: bool = cfg!(any(not(target_arch = "wasm32"), target_feature = "atomics"));
