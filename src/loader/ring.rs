//! The ring: which reads of the order are in slots, which piece comes next, and how far ahead reading goes.

use std::collections::VecDeque;
use std::ops::Range;

use super::directory::internal;
use super::order::{Order, Piece};
use super::slot::{Content, Slot, State, pick};
use crate::error::Result;

/// Where the pass and the reading ahead of it are.
#[derive(Debug)]
pub(super) struct Ring {
    pub(super) order: Order,
    /// Slots with a read of the order, in the order of use. The first one's may be partly used.
    queue: VecDeque<u32>,
    /// Reads that may be in slots at a time.
    limit: usize,
    /// The piece that the pass takes next; the end of the pass when it is over.
    piece: u32,
    /// The read that `piece` belongs to.
    read: u32,
    /// Whether this pass takes the output head.
    head: bool,
    /// The read to start next, and whether it is for the next pass already.
    next_read: u32,
    next_pass: bool,
    /// Whether the present piece has been asked for.
    asked: bool,
}

/// What came of asking for a piece.
#[derive(Debug)]
pub(super) enum Asked {
    /// It is in this slot.
    Ready(u32, Piece),
    /// It is being read.
    Reading,
    /// Its read has yet to start.
    NotStarted,
}

impl Ring {
    pub(super) fn new(order: Order, limit: usize) -> Self {
        let (piece, read) = (order.n_pieces(true), order.n_reads(true));
        let queue = VecDeque::with_capacity(limit);
        // As after a pass that is over: what is read first is for the next one.
        Self {
            order,
            queue,
            limit,
            piece,
            read,
            head: true,
            next_read: 0,
            next_pass: true,
            asked: false,
        }
    }

    /// Whether all pieces of the pass have been used.
    pub(super) fn pass_is_over(&self) -> bool {
        self.piece == self.order.n_pieces(self.head)
    }

    /// The first piece of a pass comes next; what has been read for it already stays. What failed meanwhile may work by
    /// now, and is read again without a word.
    pub(super) fn begin(&mut self, head: bool, slots: &mut [Slot], close: impl FnMut(u32)) {
        debug_assert!(
            self.pass_is_over() && self.next_pass,
            "a pass begins after the last one is over"
        );
        if self.queue.iter().any(|slot| matches!(slots[*slot as usize].state, State::Failed(_))) {
            self.abandon(slots, close);
        }
        (self.piece, self.read, self.asked) = (0, 0, false);
        self.head = head;
        self.next_pass = false;
        self.wrap();
    }

    /// Forgets the pass under way and what has been read for it.
    pub(super) fn abandon(&mut self, slots: &mut [Slot], mut close: impl FnMut(u32)) {
        while let Some(slot) = self.queue.pop_front() {
            if slots[slot as usize].give_up() {
                close(slot);
            }
        }
        (self.piece, self.read) = (self.order.n_pieces(self.head), self.order.n_reads(self.head));
        (self.next_read, self.next_pass, self.asked) = (0, true, false);
    }

    /// Asks for the piece that holds `row` of a use; pieces that the pass left out are given up. Says too whether this piece
    /// is asked for the first time.
    pub(super) fn ask(
        &mut self,
        (use_index, row): (u32, u32),
        slots: &mut [Slot],
        mut close: impl FnMut(u32),
    ) -> Result<(Asked, bool)> {
        let ahead = self.piece as usize..self.order.n_pieces(self.head) as usize;
        let holds = |p: &Piece| {
            p.use_index == use_index && (p.first_row..p.first_row + p.n_rows).contains(&row)
        };
        let skipped = self.order.pieces[ahead].iter().position(holds);
        let Some(skipped) = skipped else {
            let message = format!("row {row} of use {use_index} is not ahead in this pass");
            return Err(internal(message));
        };
        for _ in 0..skipped {
            self.advance(slots, &mut close);
        }
        let first_time = !core::mem::replace(&mut self.asked, true);
        let Some(&slot) = self.queue.front() else { return Ok((Asked::NotStarted, first_time)) };
        if let Some(e) = slots[slot as usize].take_error() {
            self.restart();
            for slot in self.queue.drain(..).skip(1) {
                if slots[slot as usize].give_up() {
                    close(slot);
                }
            }
            return Err(e);
        }
        let asked = match slots[slot as usize].state {
            State::Ready => Asked::Ready(slot, self.order.pieces[self.piece as usize]),
            _ => Asked::Reading,
        };
        Ok((asked, first_time))
    }

    /// Rows up to `end` of the present piece have been used.
    pub(super) fn used(
        &mut self,
        use_index: u32,
        end: u32,
        slots: &mut [Slot],
        close: impl FnMut(u32),
    ) {
        let Some(piece) = self.order.pieces.get(self.piece as usize) else { return };
        if piece.use_index == use_index && piece.first_row + piece.n_rows == end {
            self.advance(slots, close);
        }
    }

    /// The read to start next and the slot for it, if reading may go further ahead. `demanded`: the pass waits for it.
    pub(super) fn next_start(
        &mut self,
        slots: &mut [Slot],
        demanded: bool,
        stamp: u64,
    ) -> Option<(u32, u32)> {
        let blocked = self.next_read >= self.order.n_reads(self.head && !self.next_pass);
        let failed = |slot: &u32| matches!(slots[*slot as usize].state, State::Failed(_));
        if blocked || self.queue.len() >= self.limit || self.queue.iter().any(failed) {
            return None;
        }
        let slot = pick(slots, demanded)?;
        let read = self.next_read;
        slots[slot].book(Content::Read(read), stamp);
        let slot = u32::try_from(slot).ok()?;
        self.queue.push_back(slot);
        self.next_read += 1;
        self.wrap();
        Some((slot, read))
    }

    /// Reads that will start after those in slots, at most `n`: what a source may read ahead.
    pub(super) fn coming(&self, n: u32) -> Range<u32> {
        let end = self.order.n_reads(self.head && !self.next_pass);
        self.next_read.min(end)..self.next_read.saturating_add(n).min(end)
    }

    fn advance(&mut self, slots: &mut [Slot], mut close: impl FnMut(u32)) {
        self.piece += 1;
        self.asked = false;
        if self.piece < self.order.end_of_read(self.read) {
            return;
        }
        self.read += 1;
        match self.queue.pop_front() {
            Some(slot) => {
                if slots[slot as usize].give_up() {
                    close(slot);
                }
            }
            // It was left out before its read had started.
            None => {
                self.next_read += 1;
                self.wrap();
            }
        }
    }

    /// Reading starts again at the present piece's read.
    fn restart(&mut self) {
        (self.next_read, self.next_pass, self.asked) = (self.read, false, false);
    }

    fn wrap(&mut self) {
        if !self.next_pass && self.next_read >= self.order.n_reads(self.head) {
            (self.next_read, self.next_pass) = (0, true);
        }
    }
}
