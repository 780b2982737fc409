//! What the engine asks of whoever runs it: the time, a turn of the event loop, and whether to stop.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use std::sync::Arc;

use super::Stats;
use super::live::{Snapshot, Wants};
use crate::error::Error;
use crate::team::Team;

/// Whoever runs the engine: a browser worker, or the native command.
pub trait Host {
    /// Milliseconds of a monotonic clock.
    fn now_ms(&self) -> f64;

    /// Called between steps, each at most about 20 ms long, with the time, which the step has read for itself.
    fn checkpoint(&self, _now_ms: f64) -> Checkpoint {
        if self.aborted() { Checkpoint::Stop } else { Checkpoint::Go }
    }

    /// Whether the caller has asked to stop.
    fn aborted(&self) -> bool {
        false
    }

    /// Asks for `waker` to be woken when the caller asks to stop, so that an abort is seen while a read is awaited.
    fn wake_on_abort(&self, _waker: &Waker) {}

    /// Threads that compute beside the calling one; `None`: it computes alone.
    fn team(&self) -> Option<Arc<dyn Team>> {
        None
    }

    /// Bytes of memory in use right now: linear memory, or the process natively; 0 where it cannot be known.
    fn memory_bytes(&self) -> u64 {
        0
    }

    /// Takes what is missing of `linear_bytes`, at an open's end: whatever is allocated later comes out of it, and memory never grows.
    fn take_memory(&self, _linear_bytes: u64) {}

    /// How far reading weights has come, while opening and during a pass.
    fn progress(&self, _progress: &Progress) {}

    /// What the host wants to see of the run now; asked after each step.
    fn wants(&self, _now_ms: f64) -> Wants {
        Wants::default()
    }

    /// The figures it wanted.
    fn stats(&self, _stats: &Stats) {}

    /// The picture it wanted.
    fn snapshot(&self, _snapshot: &Snapshot) {}
}

/// What the host says between two steps.
pub enum Checkpoint {
    /// Go on.
    Go,
    /// Stop here; nothing is lost but the pass under way.
    Stop,
    /// Go on when this future is done: a turn of the event loop, or credit for more tokens.
    Wait(Pin<Box<dyn Future<Output = ()>>>),
}

impl core::fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Go => "Go",
            Self::Stop => "Stop",
            Self::Wait(_) => "Wait",
        })
    }
}

/// How far reading weights has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub stage: Stage,
    /// Bytes that are done.
    pub loaded_bytes: u64,
    /// Bytes there are to do.
    pub total_bytes: u64,
    /// The layer that is next; `None` before and behind the layers.
    pub layer: Option<u32>,
    /// Layers of the model.
    pub n_layer: u32,
}

/// What progress is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Weights that will be kept are read.
    Load,
    /// A pass goes through all weights.
    Pass,
}

impl Stage {
    /// Its name in JS.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Pass => "pass",
        }
    }
}

/// Why an asynchronous call ended early. A cancellation is not an error.
#[derive(Debug, Clone)]
pub enum Halted {
    /// The host said stop.
    Aborted,
    /// It failed.
    Failed(Error),
}

/// The result of an asynchronous call.
pub type Outcome<T> = Result<T, Halted>;

impl From<Error> for Halted {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Passes a checkpoint at the time `now_ms`; says whether it took time.
pub(crate) async fn checkpoint(host: &dyn Host, now_ms: f64) -> Outcome<bool> {
    match host.checkpoint(now_ms) {
        Checkpoint::Go => Ok(false),
        Checkpoint::Stop => Err(Halted::Aborted),
        Checkpoint::Wait(turn) => {
            turn.await;
            if host.aborted() { Err(Halted::Aborted) } else { Ok(true) }
        }
    }
}

/// Awaits `future`, unless the host says stop before it is done.
pub(crate) async fn or_abort<F: Future>(future: F, host: &dyn Host) -> Outcome<F::Output> {
    let mut future = core::pin::pin!(future);
    core::future::poll_fn(|context: &mut Context<'_>| {
        if host.aborted() {
            return Poll::Ready(Err(Halted::Aborted));
        }
        host.wake_on_abort(context.waker());
        future.as_mut().poll(context).map(Ok)
    })
    .await
}
