//! The caller's hand on a call under way: stop it, hold it, let it go on.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use wasm_bindgen::prelude::wasm_bindgen;

/// One call. JS keeps it while the call runs, and frees it afterwards.
#[wasm_bindgen]
#[derive(Debug, Default, Clone)]
pub struct Call {
    state: Rc<State>,
}

#[derive(Debug, Default)]
struct State {
    aborted: Cell<bool>,
    held: Cell<bool>,
    wakers: RefCell<Vec<Waker>>,
}

#[wasm_bindgen]
impl Call {
    /// A call that has not begun.
    #[wasm_bindgen(constructor)]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops the call at its next checkpoint.
    pub fn abort(&self) {
        self.state.aborted.set(true);
        self.wake();
    }

    /// Holds the call at its next checkpoint: the reader is behind.
    pub fn hold(&self) {
        self.state.held.set(true);
    }

    /// Lets a held call go on.
    pub fn proceed(&self) {
        self.state.held.set(false);
        self.wake();
    }
}

impl Call {
    pub(super) fn aborted(&self) -> bool {
        self.state.aborted.get()
    }

    pub(super) fn held(&self) -> bool {
        self.state.held.get()
    }

    /// Wakes `waker` when the call is stopped or goes on.
    pub(super) fn wake_on_change(&self, waker: &Waker) {
        let mut wakers = self.state.wakers.borrow_mut();
        if !wakers.iter().any(|known| known.will_wake(waker)) {
            wakers.push(waker.clone());
        }
    }

    /// Until the call is not held any more, or stopped.
    pub(super) async fn released(self) {
        poll_fn(|context| {
            if self.aborted() || !self.held() {
                return Poll::Ready(());
            }
            self.wake_on_change(context.waker());
            Poll::Pending
        })
        .await;
    }

    fn wake(&self) {
        self.state.wakers.take().into_iter().for_each(Waker::wake);
    }
}
