//! What each slot is doing: the states that a read goes through, whoever asked for it.

use crate::error::Error;

/// One slot of the ring or one place for embedding rows. Its number is also its region's and its tickets'.
#[derive(Debug, Default)]
pub(super) struct Slot {
    pub(super) state: State,
    pub(super) content: Content,
    /// Its bytes have been used and may be replaced.
    pub(super) spent: bool,
    /// When it was last filled, to replace the oldest first.
    pub(super) stamp: u64,
}

/// How far the slot's read is.
#[derive(Debug, Default)]
pub(super) enum State {
    /// Nothing in it.
    #[default]
    Free,
    /// Its read is under way.
    Reading,
    /// Its bytes are there.
    Ready,
    /// Its read failed; whoever asks for the bytes learns it.
    Failed(Error),
    /// Its read is under way and nobody wants it: the slot is free when the read has ended.
    Draining,
}

/// What the slot holds or waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Content {
    /// Nothing.
    #[default]
    Nothing,
    /// A read of the order.
    Read(u32),
    /// Rows that a pass named.
    Rows(Rows),
}

/// A run of rows that a pass named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rows {
    pub(super) use_index: u32,
    pub(super) tensor: u32,
    pub(super) first_row: u32,
    pub(super) n_rows: u32,
}

impl Content {
    /// Whether it is a run of named rows with this one among them.
    pub(super) fn has(self, tensor: u32, row: u32) -> bool {
        matches!(self, Self::Rows(r) if r.tensor == tensor && (r.first_row..r.first_row + r.n_rows).contains(&row))
    }
}

impl Slot {
    /// Books the slot for a read that is about to start.
    pub(super) fn book(&mut self, content: Content, stamp: u64) {
        *self = Self { state: State::Reading, content, spent: false, stamp };
    }

    /// The slot's read has ended, how `arrive` says of what it brought; false if none was under way.
    pub(super) fn end(&mut self, arrive: impl FnOnce(Content) -> Result<(), Error>) -> bool {
        match self.state {
            State::Reading => {
                self.state = match arrive(self.content) {
                    Ok(()) => State::Ready,
                    Err(e) => State::Failed(e),
                }
            }
            State::Draining => *self = Self::default(),
            State::Free | State::Ready | State::Failed(_) => return false,
        }
        true
    }

    /// Gives the slot up: at once, or when its read has ended. Returns true in the second case.
    pub(super) fn give_up(&mut self) -> bool {
        if matches!(self.state, State::Reading | State::Draining) {
            *self = Self { state: State::Draining, ..Self::default() };
            return true;
        }
        *self = Self::default();
        false
    }

    /// The error of its read, told once; the slot is free then.
    pub(super) fn take_error(&mut self) -> Option<Error> {
        if !matches!(self.state, State::Failed(_)) {
            return None;
        }
        match core::mem::take(self).state {
            State::Failed(e) => Some(e),
            _ => None,
        }
    }

    fn rows_may_go(&self, unused_too: bool) -> bool {
        let ended = matches!(self.state, State::Ready | State::Failed(_));
        ended && matches!(self.content, Content::Rows(_)) && (self.spent || unused_too)
    }
}

/// A slot for another read: a free one, else the one whose rows have been used the longest ago, else (`unused_too`) the
/// oldest rows that nobody asked for after all.
pub(super) fn pick(slots: &[Slot], unused_too: bool) -> Option<usize> {
    let free = slots.iter().position(|s| matches!(s.state, State::Free));
    let oldest = |unused_too: bool| {
        let may_go = |(_, s): &(usize, &Slot)| s.rows_may_go(unused_too);
        slots.iter().enumerate().filter(may_go).min_by_key(|(_, s)| s.stamp).map(|(i, _)| i)
    };
    free.or_else(|| oldest(false)).or_else(|| if unused_too { oldest(true) } else { None })
}
