//! A value that one caller has at a time, in the order they asked. An exported `async fn(&mut self)` would hold its borrow
//! over awaits and break the second caller; here the second one waits.

use std::cell::{Cell, RefCell, RefMut};
use std::future::poll_fn;
use std::ops::{Deref, DerefMut};
use std::task::{Poll, Waker};

/// A value behind a queue.
#[derive(Debug)]
pub(super) struct Queue<T> {
    value: RefCell<T>,
    next_ticket: Cell<u64>,
    serving: Cell<u64>,
    waiting: RefCell<Vec<Waker>>,
}

/// The value, until this is dropped.
#[derive(Debug)]
pub(super) struct Turn<'a, T> {
    queue: &'a Queue<T>,
    value: RefMut<'a, T>,
}

impl<T> Queue<T> {
    pub(super) fn new(value: T) -> Self {
        Self {
            value: RefCell::new(value),
            next_ticket: Cell::new(0),
            serving: Cell::new(0),
            waiting: RefCell::default(),
        }
    }

    /// Waits for this caller's turn. The future must be driven to its end, or the queue stands still.
    pub(super) async fn turn(&self) -> Turn<'_, T> {
        let ticket = self.next_ticket.replace(self.next_ticket.get() + 1);
        poll_fn(|context| {
            if self.serving.get() == ticket {
                return Poll::Ready(());
            }
            self.waiting.borrow_mut().push(context.waker().clone());
            Poll::Pending
        })
        .await;
        Turn { queue: self, value: self.value.borrow_mut() }
    }
}

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        self.queue.serving.set(self.queue.serving.get() + 1);
        self.queue.waiting.take().into_iter().for_each(Waker::wake);
    }
}

impl<T> Deref for Turn<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Turn<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}
