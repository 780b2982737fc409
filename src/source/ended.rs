//! Reads that have ended and not been collected yet: what every source puts behind `poll` and `wake_on_completion`.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::task::Waker;

use super::Completion;

/// A queue of completions and who to wake when it grows.
#[derive(Debug, Default)]
pub(crate) struct EndedReads {
    queue: RefCell<VecDeque<Completion>>,
    wakers: RefCell<Vec<Waker>>,
}

impl EndedReads {
    /// Adds a read that has ended and wakes whoever waits.
    pub(crate) fn push(&self, completion: Completion) {
        self.queue.borrow_mut().push_back(completion);
        // One by one, because a waker may ask to be woken again.
        while let Some(waker) = self.pop_waker() {
            waker.wake();
        }
    }

    /// The oldest one.
    pub(crate) fn pop(&self) -> Option<Completion> {
        self.queue.borrow_mut().pop_front()
    }

    /// Remembers whom to wake.
    pub(crate) fn wake_on_push(&self, waker: &Waker) {
        let mut wakers = self.wakers.borrow_mut();
        if !wakers.iter().any(|known| known.will_wake(waker)) {
            wakers.push(waker.clone());
        }
    }

    fn pop_waker(&self) -> Option<Waker> {
        self.wakers.borrow_mut().pop()
    }
}
