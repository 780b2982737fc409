//! Reads that have ended and not been collected yet: what every source puts behind `poll` and `wake_on_completion`.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::task::Waker;

use super::Completion;

/// A queue of completions and who to wake when it grows.
#[derive(Debug, Default)]
pub(crate) struct EndedReads {
    queue: RefCell<VecDeque<Completion>>,
    waker: RefCell<Option<Waker>>,
}

impl EndedReads {
    /// Adds a read that has ended and wakes whoever waits.
    pub(crate) fn push(&self, completion: Completion) {
        self.queue.borrow_mut().push_back(completion);
        let waker = self.waker.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The oldest one.
    pub(crate) fn pop(&self) -> Option<Completion> {
        self.queue.borrow_mut().pop_front()
    }

    /// Remembers whom to wake; the last caller wins.
    pub(crate) fn wake_on_push(&self, waker: &Waker) {
        let mut slot = self.waker.borrow_mut();
        match &mut *slot {
            Some(old) => old.clone_from(waker),
            None => *slot = Some(waker.clone()),
        }
    }
}
