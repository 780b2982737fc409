//! Starting reads, taking note of their ends, and how far reading goes ahead of the pass.

use super::directory::Directory;
use super::order::Order;
use super::residency::{grow, read_into};
use super::residents::{self, MAX_READS};
use super::slot::{Content, Rows, Slot, State};
use super::slots::Span;
use super::{Loader, SlotState, SlotView, rows};
use crate::model::Use;
use crate::planner::ResidentRun;
use crate::source::{Completion, FileRange};

/// What a read brings.
#[derive(Debug, Clone, Copy)]
struct Load {
    /// The tensor whose rows it brings, or the first of several.
    tensor: u32,
    range: FileRange,
    /// The place of the rows as they are handed out.
    span: Span,
}

impl Loader {
    /// Reads ahead of the pass as far as there are slots, and on at the residents.
    pub(super) fn read_ahead(&mut self) {
        if self.prefetch {
            while self.start_next(false) {}
        }
        self.read_residents();
        self.settle();
    }

    /// Starts the next reads of residents: one at a time where the pass waits for the read.
    pub(super) fn read_residents(&mut self) {
        let n = if self.at_once { 1 } else { MAX_READS };
        for _ in 0..n {
            if !self.start_chunk(None) {
                break;
            }
        }
    }

    /// Starts the next read of the order, if it may start.
    pub(super) fn start_next(&mut self, demanded: bool) -> bool {
        self.stamp += 1;
        let slots = &mut self.slots[..self.n_ring];
        let Some((slot, read)) = self.ring.next_start(slots, demanded, self.stamp) else {
            return false;
        };
        self.start(slot, load_of(&self.directory, &self.ring.order, slot, Content::Read(read)));
        if let Some(coming) = self.ring.coming(HINTED_AHEAD).last() {
            self.hint(self.ring.order.reads[coming as usize].range());
        }
        true
    }

    /// Starts reading rows that the pass named, if there is a slot for them.
    pub(super) fn start_rows(&mut self, rows: Rows, u: &Use, demanded: bool) -> bool {
        self.stamp += 1;
        let stamp = self.stamp;
        let (first_slot, places) = self.places_of(u);
        let Some(i) = rows::book(rows, places, demanded, stamp) else { return false };
        let slot = first_slot + i;
        self.start(slot, load_of(&self.directory, &self.ring.order, slot, Content::Rows(rows)));
        self.stats.deferred_reads += 1;
        true
    }

    /// Starts reading a chunk of residents, by default the next one, if a read may start.
    pub(super) fn start_chunk(&mut self, chunk: Option<u32>) -> bool {
        let Some(residents::Start { window, span, rows }) = self.residents.start(chunk) else {
            return false;
        };
        self.start(window, load_of_rows(&self.directory, &rows, span));
        if let Some(rows) = self.residents.coming() {
            self.hint(self.directory.range(rows.tensor, rows.first_row, rows.n_rows));
        }
        true
    }

    fn start(&self, slot: u32, load: Load) {
        self.io.start(slot, read_into(load.span, load.range.len), load.range);
    }

    fn hint(&self, range: FileRange) {
        if self.hints {
            self.io.source.will_need(range.file, range.offset, range.len as u64);
        }
    }

    /// Takes note of the reads that have ended.
    pub(super) fn settle(&mut self) {
        while let Some(Completion { ticket, result }) = self.io.next_ended() {
            let Self { directory, io, ring, residents, slots, row, stats, .. } = self;
            let arrive = |load: Load| {
                let Load { tensor, range, span } = load;
                let result = result.and_then(|()| grow(&io.slots, span, directory, tensor, row));
                stats.bytes_read += if result.is_ok() { range.len as u64 } else { 0 };
                result.map_err(|e| directory.describe(&e, tensor, range))
            };
            let ended = match slots.get_mut(ticket.slot as usize) {
                Some(slot) => slot
                    .end(|content| arrive(load_of(directory, &ring.order, ticket.slot, content))),
                None => residents.end(ticket.slot, |chunk| {
                    arrive(load_of_rows(directory, &chunk.rows, chunk.span))
                }),
            };
            if ended {
                io.count_ended();
            }
        }
    }

    /// A slot as it is now.
    pub(super) fn view(&self, slot: &Slot) -> SlotView {
        let state = match slot.state {
            State::Free => SlotState::Free,
            State::Reading => SlotState::Reading,
            State::Ready => SlotState::Ready,
            State::Failed(_) => SlotState::Failed,
            State::Draining => SlotState::Draining,
        };
        let (use_index, first_row, n_rows) = match slot.content {
            Content::Nothing => {
                return SlotView { state, use_index: None, first_row: 0, n_rows: 0, bytes: 0 };
            }
            Content::Rows(rows) => (rows.use_index, rows.first_row, rows.n_rows),
            Content::Read(read) => {
                let order = &self.ring.order;
                let piece = order.pieces[order.reads[read as usize].first_piece as usize];
                (piece.use_index, piece.first_row, piece.n_rows)
            }
        };
        let bytes = load_of(&self.directory, &self.ring.order, 0, slot.content).range.len as u64;
        SlotView { state, use_index: Some(use_index), first_row, n_rows, bytes }
    }
}

/// What the read of a slot's content brings into region `region`.
fn load_of(directory: &Directory, order: &Order, region: u32, content: Content) -> Load {
    let place = |len| Span { region, start: 0, len };
    match content {
        Content::Nothing => {
            Load { tensor: 0, range: FileRange { file: 0, offset: 0, len: 0 }, span: place(0) }
        }
        Content::Read(read) => {
            let read = &order.reads[read as usize];
            let piece = &order.pieces[read.first_piece as usize];
            let tensor = directory.uses[piece.use_index as usize].tensor;
            let range = read.range();
            // Only rows that grow are longer than what is read, and those are alone in their read.
            let len = match directory.dequantised(tensor) {
                Some(_) => piece.n_rows as usize * directory.row_bytes(tensor) as usize,
                None => range.len,
            };
            Load { tensor, range, span: place(len) }
        }
        Content::Rows(Rows { tensor, first_row, n_rows, .. }) => {
            let row_bytes = directory.row_bytes(tensor);
            let span = place(n_rows as usize * row_bytes as usize);
            load_of_rows(directory, &ResidentRun { tensor, first_row, n_rows, row_bytes }, span)
        }
    }
}

/// What a read of these rows brings into `span`.
fn load_of_rows(directory: &Directory, rows: &ResidentRun, span: Span) -> Load {
    let range = directory.range(rows.tensor, rows.first_row, rows.n_rows);
    Load { tensor: rows.tensor, range, span }
}

/// How many reads before its own start a source is told of a read.
const HINTED_AHEAD: u32 = 2;
