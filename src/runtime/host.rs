//! What the engine asks of whoever runs it: the time, a turn of the event loop, and whether to stop.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use crate::error::Error;

/// Whoever runs the engine: a browser worker, or the native command.
pub trait Host {
    /// Milliseconds of a monotonic clock.
    fn now_ms(&self) -> f64;

    /// Called between steps, each at most about 20 ms long.
    fn checkpoint(&self) -> Checkpoint {
        if self.aborted() { Checkpoint::Stop } else { Checkpoint::Go }
    }

    /// Whether the caller has asked to stop.
    fn aborted(&self) -> bool {
        false
    }

    /// Asks for `waker` to be woken when the caller asks to stop, so that an abort is seen while a read is awaited.
    fn wake_on_abort(&self, _waker: &Waker) {}

    /// Bytes of memory in use right now: linear memory, or the process natively; 0 where it cannot be known.
    fn memory_bytes(&self) -> u64 {
        0
    }

    /// Progress of opening.
    fn opening(&self, _progress: &OpenProgress) {}
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

/// How far opening has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenProgress {
    /// Weight bytes that are in memory.
    pub loaded_bytes: u64,
    /// Weight bytes that will be kept in memory.
    pub total_bytes: u64,
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

/// Passes a checkpoint.
pub(crate) async fn checkpoint(host: &dyn Host) -> Outcome<()> {
    match host.checkpoint() {
        Checkpoint::Go => Ok(()),
        Checkpoint::Stop => Err(Halted::Aborted),
        Checkpoint::Wait(turn) => {
            turn.await;
            if host.aborted() { Err(Halted::Aborted) } else { Ok(()) }
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
