//! Running futures that might hang.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Runs `future` to its end; panics when that takes more than ten seconds.
pub(super) fn in_time<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    #[allow(clippy::disallowed_methods, reason = "a native test measures its own time")]
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        let left = deadline.saturating_duration_since(
            #[allow(clippy::disallowed_methods, reason = "a native test measures its own time")]
            Instant::now(),
        );
        assert!(!left.is_zero(), "it hangs");
        thread::park_timeout(left);
    }
}

/// Polls `future` once.
pub(super) fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
