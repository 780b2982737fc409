//! Starting reads and learning that they have ended.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::slots::{Slots, Span};
use crate::source::{Completion, FileRange, Places, ReadRequest, WeightSource};

/// The source with the memory it fills.
#[derive(Debug)]
pub(super) struct Io {
    pub(super) source: Rc<dyn WeightSource>,
    pub(super) slots: Rc<Slots>,
    places: Rc<dyn Places>,
    inbox: Rc<Inbox>,
}

/// Reads under way, and those that have ended and wait for the loader.
#[derive(Debug)]
struct Inbox {
    ended: RefCell<VecDeque<Completion>>,
    n_in_flight: Cell<u32>,
}

impl Io {
    /// `n_windows` bounds the reads that can be under way at a time.
    pub(super) fn new(source: Rc<dyn WeightSource>, slots: Rc<Slots>, n_windows: usize) -> Self {
        let places = Rc::clone(&slots) as Rc<dyn Places>;
        let ended = RefCell::new(VecDeque::with_capacity(n_windows));
        Self { source, slots, places, inbox: Rc::new(Inbox { ended, n_in_flight: Cell::new(0) }) }
    }

    /// Starts reading `range` into `span` under the number `slot`, which has no read under way.
    pub(super) fn start(&self, slot: u32, span: Span, range: FileRange) {
        let ticket = self.slots.open(slot, span);
        let FileRange { file, offset, len } = range;
        self.inbox.n_in_flight.set(self.inbox.n_in_flight.get() + 1);
        self.source.submit(ReadRequest { ticket, file, offset, len }, &self.places);
    }

    /// The next read of ours that has ended.
    pub(super) fn next_ended(&self) -> Option<Completion> {
        self.inbox.collect(&*self.source);
        let mut ended = self.inbox.ended.borrow_mut();
        while let Some(completion) = ended.pop_front() {
            if self.slots.is_latest(completion.ticket) {
                return Some(completion);
            }
        }
        None
    }

    /// To be called once for each completion that ended a read under way.
    pub(super) fn count_ended(&self) {
        self.inbox.n_in_flight.set(self.inbox.n_in_flight.get().saturating_sub(1));
    }

    /// Reads that the source still works on, as far as the loader has heard.
    pub(super) fn n_in_flight(&self) -> u32 {
        self.inbox.n_in_flight.get()
    }

    /// See [`Wait`].
    pub(super) fn wait(&self) -> Wait {
        Wait { source: Rc::clone(&self.source), inbox: Rc::clone(&self.inbox) }
    }
}

impl Inbox {
    fn collect(&self, source: &dyn WeightSource) {
        let mut ended = self.ended.borrow_mut();
        while let Some(completion) = source.poll() {
            ended.push_back(completion);
        }
    }
}

/// A future that is ready when a read has ended that the loader has not looked at, or when none is under way. It borrows
/// nothing and owns no memory that a reader fills: dropping it is free.
#[derive(Debug)]
#[must_use = "a future does nothing unless awaited"]
pub struct Wait {
    source: Rc<dyn WeightSource>,
    inbox: Rc<Inbox>,
}

impl Future for Wait {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // With none under way whatever ends is another reader's, and not to be taken from it.
        if self.inbox.n_in_flight.get() == 0 {
            return Poll::Ready(());
        }
        // The waker goes first: a read that ends between the two lines is then in the queue or wakes us.
        self.source.wake_on_completion(context.waker());
        self.inbox.collect(&*self.source);
        if self.inbox.ended.borrow().is_empty() { Poll::Pending } else { Poll::Ready(()) }
    }
}
