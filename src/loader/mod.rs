//! From bytes in files to tiles in the order of use: resident rows that are read once, and a ring of slots through which the
//! rest streams in every pass, read ahead as far as there are slots and from the end of one pass into the next.
//!
//! It knows uses, rows and bytes: nothing of transformers or number formats. It is the only user of sources.

mod directory;
mod inbox;
mod order;
mod read_range;
mod residents;
mod ring;
mod rows;
mod slot;
mod slots;
mod stats;

use std::cell::Ref;
use std::rc::Rc;

use crate::error::{Error, ErrorKind, Result};
use crate::gguf::Header;
use crate::model::{Phase, Use};
use crate::planner::Plan;
use crate::source::{Completion, FileRange, WeightSource};

use directory::{Directory, internal};
use inbox::Io;
use order::Order;
use residents::Residents;
use ring::{Asked, Ring};
use rows::Found;
use slot::{Content, Rows, Slot, State};
use slots::{Slots, Span};

pub use inbox::Wait;
pub use read_range::{read_range, read_ranges};
pub use stats::{LoaderStats, Progress, SlotState, SlotView};

/// How the loader is to work, beside what the plan says.
#[derive(Debug, Clone, Copy)]
pub struct LoaderConfig {
    /// Reads ahead of the pass, as far as there are slots. Without it a tile is read when it is asked for.
    pub prefetch: bool,
}

impl Default for LoaderConfig {
    fn default() -> Self {
        Self { prefetch: true }
    }
}

/// Whole rows of one use, in memory until they are released.
#[derive(Debug)]
pub struct Tile {
    /// The use they belong to.
    pub use_index: usize,
    /// The first row.
    pub first_row: u32,
    /// How many.
    pub n_rows: u32,
    span: Span,
    from: From,
}

/// Where a tile lives, and the pass it was given out in.
#[derive(Debug, Clone, Copy)]
enum From {
    Resident,
    Ring { pass: u64 },
    Rows { slot: u32 },
}

/// Hands out tiles in the order of use.
#[derive(Debug)]
pub struct Loader {
    directory: Directory,
    io: Io,
    residents: Residents,
    ring: Ring,
    /// The ring's slots, then the places for embedding rows.
    slots: Box<[Slot]>,
    n_ring: usize,
    slot_bytes: usize,
    prefetch: bool,
    /// Counts passes, to know a tile of one that was abandoned.
    pass: u64,
    stamp: u64,
    stats: LoaderStats,
}

impl Loader {
    /// A loader for the streamed and resident rows of `uses`; all memory is taken here.
    ///
    /// # Errors
    /// `out_of_memory` when it cannot be had; `invalid_model` when a file is shorter than its header says; `internal` when
    /// header, uses and plan do not belong together.
    pub fn new(
        header: &Header,
        uses: &[Use],
        plan: &Plan,
        source: Rc<dyn WeightSource>,
        config: LoaderConfig,
    ) -> Result<Self> {
        check_files(header, &*source)?;
        let directory = Directory::new(header, uses, &plan.residents)?;
        let slot_bytes = usize::try_from(plan.slot_bytes)
            .map_err(|_| internal(format!("a slot of {} bytes", plan.slot_bytes)))?;
        let order = Order::new(&directory, if plan.n_slots == 0 { 0 } else { slot_bytes })?;

        let row_bytes = uses
            .iter()
            .filter(|u| u.phase == Phase::Embed && u.deferred)
            .map(|u| u.row_bytes)
            .max();
        let n_ring = plan.n_slots as usize;
        let n_rows = row_bytes.map_or(0, |_| EMBED_ROWS);
        let mut slots = Slots::default();
        for bytes in core::iter::repeat_n(plan.slot_bytes, n_ring)
            .chain(core::iter::repeat_n(u64::from(row_bytes.unwrap_or(0)), n_rows))
        {
            slots.add_region(bytes)?;
            slots.add_window();
        }
        let residents = Residents::new(&directory, &mut slots)?;

        let in_ring = |u: &Use| u.deferred && u.phase != Phase::Embed && directory.streams(u);
        let n_kept = match (uses.iter().any(in_ring), n_ring) {
            (false, _) | (_, 0..2) => 0,
            (true, 2..4) => 1,
            _ => 2,
        };
        // With a single slot, reading ahead would take it from the rows that the pass is about to name.
        let prefetch = config.prefetch && !(n_ring == 1 && uses.iter().any(in_ring));
        let io = Io::new(source, Rc::new(slots), n_ring + n_rows + residents::MAX_READS);
        Ok(Self {
            directory,
            io,
            residents,
            ring: Ring::new(order, n_ring - n_kept),
            slots: (0..n_ring + n_rows).map(|_| Slot::default()).collect(),
            n_ring,
            slot_bytes,
            prefetch,
            pass: 0,
            stamp: 0,
            stats: LoaderStats::default(),
        })
    }

    /// Starts a pass, which takes all uses in order; without `head`, those of the output head are left out (a chunk of the
    /// prompt whose logits nobody wants). A pass that was not finished is abandoned.
    pub fn begin_pass(&mut self, head: bool) {
        self.settle();
        if !self.ring.pass_is_over() {
            self.abandon_pass();
        }
        self.pass += 1;
        self.ring.begin(head);
        self.read_ahead();
    }

    /// Ends a pass early, after an abort or an error. Reads under way are cancelled, and their slots are used again when they
    /// have ended. What was not yet asked for fails silently and is read again.
    pub fn abandon_pass(&mut self) {
        self.settle();
        self.pass += 1;
        let Self { slots, io, n_ring, .. } = self;
        let close = |slot| io.slots.close(slot);
        let (ring, embed) = slots.split_at_mut(*n_ring);
        self.ring.abandon(ring, close);
        rows::abandon(ring, 0, close);
        rows::abandon(embed, u32::try_from(*n_ring).unwrap_or(u32::MAX), close);
        self.residents.abandon();
        self.io.source.cancel_all();
        self.settle();
    }

    /// The tile that starts at row `first_row` of a use and holds at most `n_rows` rows; `None` while it is being read: await
    /// [`Loader::wait`] and ask again. Asking again for a tile that was not released gives the same rows.
    ///
    /// # Errors
    /// What its read failed with, naming tensor and range, once: asking again reads again. `internal` for rows that are not
    /// ahead in this pass.
    pub fn tile(&mut self, use_index: usize, first_row: u32, n_rows: u32) -> Result<Option<Tile>> {
        self.settle();
        let asked = self.directory.uses.get(use_index).copied().filter(|u| {
            let end = u64::from(first_row) + u64::from(n_rows);
            n_rows > 0
                && first_row >= u.first_row
                && end <= u64::from(u.first_row) + u64::from(u.n_rows)
        });
        let Some(u) = asked else {
            return Err(internal(format!(
                "{n_rows} rows from row {first_row} on are not of use {use_index}"
            )));
        };
        let run = self.directory.run_of(u.tensor).map(|i| (i, self.directory.runs[i]));
        let wanted = Wanted { use_index, u, first_row, n_rows };
        let tile = match run {
            Some((i, run))
                if first_row >= run.first_row && first_row - run.first_row < run.n_rows =>
            {
                self.resident_tile(i, wanted)
            }
            Some((_, run)) if first_row < run.first_row => self
                .streamed_tile(Wanted { n_rows: n_rows.min(run.first_row - first_row), ..wanted }),
            _ => self.streamed_tile(wanted),
        };
        self.read_ahead();
        tile
    }

    /// Says which single rows of an embedding table will be asked for, in that order: as many as there are places for are
    /// read meanwhile. May be repeated with the rows that are left.
    pub fn expect_rows(&mut self, use_index: usize, expected: &[u32]) {
        self.settle();
        let Some(u) = self.directory.uses.get(use_index).copied() else { return };
        if !u.deferred || u.phase != Phase::Embed {
            return;
        }
        for row in expected {
            let run = self.directory.run_of(u.tensor);
            let resident = run.is_some_and(|i| {
                let run = self.directory.runs[i];
                let inside = row.checked_sub(run.first_row).is_some_and(|at| at < run.n_rows);
                inside && self.residents.rows_from(i, *row, 1).is_some()
            });
            let outside = *row < u.first_row || *row - u.first_row >= u.n_rows;
            if outside || resident || rows::holds(u.tensor, *row, &self.slots[self.n_ring..]) {
                continue;
            }
            let rows = Rows {
                use_index: index_u32(use_index),
                tensor: u.tensor,
                first_row: *row,
                n_rows: 1,
            };
            if !self.start_rows(rows, &u, false) {
                break;
            }
        }
    }

    /// The tile's bytes. They are to be let go before the next await: while they are held, nothing can be read into their
    /// memory.
    #[must_use]
    pub fn bytes(&self, tile: &Tile) -> Ref<'_, [u8]> {
        self.io.slots.bytes(tile.span)
    }

    /// Gives back a tile whose rows have all been used; its slot is filled again at once.
    pub fn release(&mut self, tile: Tile) {
        let end = tile.first_row + tile.n_rows;
        match tile.from {
            From::Resident => return,
            From::Ring { pass } if pass == self.pass => {
                let Self { slots, io, n_ring, .. } = self;
                let close = |slot| io.slots.close(slot);
                self.ring.used(index_u32(tile.use_index), end, &mut slots[..*n_ring], close);
            }
            From::Ring { .. } => return,
            From::Rows { slot } => rows::used(&mut self.slots[slot as usize], end),
        }
        self.read_ahead();
    }

    /// A future that is ready when a read has ended, or at once when none is under way.
    pub fn wait(&self) -> Wait {
        self.io.wait()
    }

    /// Reads on at the residents; true when all are there. Between calls await [`Loader::wait`].
    ///
    /// # Errors
    /// What a read failed with, once: calling again reads again.
    pub fn poll_residents(&mut self) -> Result<bool> {
        self.settle();
        if let Some(e) = self.residents.take_error(None) {
            return Err(e);
        }
        self.read_residents();
        self.settle();
        Ok(self.residents.all_ready())
    }

    /// How far the reading of residents is.
    #[must_use]
    pub fn resident_progress(&self) -> Progress {
        let (loaded_bytes, total_bytes) = self.residents.progress();
        Progress { loaded_bytes, total_bytes, layer: self.residents.layer() }
    }

    /// Counts since the loader was made.
    #[must_use]
    pub fn stats(&self) -> LoaderStats {
        let resident_bytes = self.residents.progress().0;
        LoaderStats { resident_bytes, reads_in_flight: self.io.n_in_flight(), ..self.stats }
    }

    /// The ring's slots, as they are now.
    pub fn slots(&self) -> impl Iterator<Item = SlotView> {
        self.slots[..self.n_ring].iter().map(|slot| self.view(slot))
    }
}

/// Rows that a caller asked for, of one kind: all resident or none.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    use_index: usize,
    u: Use,
    first_row: u32,
    n_rows: u32,
}

impl Loader {
    fn resident_tile(&mut self, run: usize, wanted: Wanted) -> Result<Option<Tile>> {
        let Wanted { use_index, u, first_row, n_rows } = wanted;
        let tile =
            |(n_rows, span)| Tile { use_index, first_row, n_rows, span, from: From::Resident };
        if let Some(found) = self.residents.rows_from(run, first_row, n_rows) {
            return Ok(Some(tile(found)));
        }
        if u.deferred && u.phase == Phase::Embed {
            // One row now is better than waiting for a piece of the table.
            return self.named_rows(Wanted { n_rows: 1, ..wanted });
        }
        let chunk = self.residents.chunk_of(run, first_row);
        if let Some(e) = self.residents.take_error(Some(chunk)) {
            return Err(e);
        }
        self.start_chunk(Some(chunk));
        self.settle();
        if let Some(e) = self.residents.take_error(Some(chunk)) {
            return Err(e);
        }
        Ok(self.residents.rows_from(run, first_row, n_rows).map(tile))
    }

    fn streamed_tile(&mut self, wanted: Wanted) -> Result<Option<Tile>> {
        if wanted.u.deferred {
            return self.named_rows(wanted);
        }
        let Wanted { use_index, first_row, n_rows, u } = wanted;
        let row = (index_u32(use_index), first_row);
        let mut may_start = true;
        loop {
            let Self { slots, io, n_ring, .. } = self;
            let close = |slot| io.slots.close(slot);
            let (asked, first_time) = self.ring.ask(row, &mut slots[..*n_ring], close)?;
            if first_time && matches!(asked, Asked::Ready(..)) {
                self.stats.prefetch_hits += 1;
            } else if first_time {
                self.stats.prefetch_misses += 1;
            }
            match asked {
                Asked::Ready(slot, piece) => {
                    let skip = first_row - piece.first_row;
                    let n_rows = n_rows.min(piece.n_rows - skip);
                    let row_bytes = u.row_bytes as usize;
                    let start = piece.at as usize + skip as usize * row_bytes;
                    let span = Span { region: slot, start, len: n_rows as usize * row_bytes };
                    return Ok(Some(Tile {
                        use_index,
                        first_row,
                        n_rows,
                        span,
                        from: From::Ring { pass: self.pass },
                    }));
                }
                Asked::NotStarted if may_start => {
                    self.start_next(true);
                    self.settle();
                    may_start = false;
                }
                _ => return Ok(None),
            }
        }
    }

    fn named_rows(&mut self, wanted: Wanted) -> Result<Option<Tile>> {
        let Wanted { use_index, u, first_row, n_rows } = wanted;
        let place_bytes =
            if u.phase == Phase::Embed { u.row_bytes as usize } else { self.slot_bytes };
        let at_a_time = |n_rows| order::rows_at_a_time(n_rows, u.row_bytes, place_bytes);
        let wanted_end = first_row + n_rows;
        let n_rows = at_a_time(n_rows)
            .ok_or_else(|| order::row_too_long(&self.directory, &u, place_bytes))?;
        let rows = Rows { use_index: index_u32(use_index), tensor: u.tensor, first_row, n_rows };
        let mut may_start = true;
        loop {
            let (first_slot, places) = self.places_of(&u);
            match rows::find(u.tensor, first_row, places)? {
                Found::Ready(i, held) => {
                    let held_end = held.first_row + held.n_rows;
                    if held_end < wanted_end && !rows::holds(u.tensor, held_end, places) {
                        let n_rows = at_a_time(wanted_end - held_end).unwrap_or(1);
                        self.start_rows(Rows { first_row: held_end, n_rows, ..rows }, &u, false);
                    }
                    let n_rows = held_end.min(wanted_end) - first_row;
                    let row_bytes = u.row_bytes as usize;
                    let start = (first_row - held.first_row) as usize * row_bytes;
                    let slot = first_slot + i;
                    let span = Span { region: slot, start, len: n_rows as usize * row_bytes };
                    return Ok(Some(Tile {
                        use_index,
                        first_row,
                        n_rows,
                        span,
                        from: From::Rows { slot },
                    }));
                }
                Found::Absent if may_start => {
                    self.start_rows(rows, &u, true);
                    self.settle();
                    may_start = false;
                }
                _ => return Ok(None),
            }
        }
    }

    /// The slots that may hold rows of a deferred use, and the first one's number.
    fn places_of(&mut self, u: &Use) -> (u32, &mut [Slot]) {
        let (ring, embed) = self.slots.split_at_mut(self.n_ring);
        if u.phase == Phase::Embed { (index_u32(self.n_ring), embed) } else { (0, ring) }
    }

    fn read_ahead(&mut self) {
        if self.prefetch {
            while self.start_next(false) {}
        }
        self.read_residents();
        self.settle();
    }

    fn read_residents(&mut self) {
        for _ in 0..residents::MAX_READS {
            if !self.start_chunk(None) {
                break;
            }
        }
    }

    /// Starts the next read of the order, if it may start.
    fn start_next(&mut self, demanded: bool) -> bool {
        self.stamp += 1;
        let slots = &mut self.slots[..self.n_ring];
        let Some((slot, read)) = self.ring.next_start(slots, demanded, self.stamp) else {
            return false;
        };
        let range = self.ring.order.reads[read as usize].range();
        self.io.start(slot, Span { region: slot, start: 0, len: range.len }, range);
        if self.prefetch
            && let Some(coming) = self.ring.coming(HINTED_AHEAD).last()
        {
            let range = self.ring.order.reads[coming as usize].range();
            self.io.source.will_need(range.file, range.offset, range.len as u64);
        }
        true
    }

    fn start_rows(&mut self, rows: Rows, u: &Use, demanded: bool) -> bool {
        self.stamp += 1;
        let stamp = self.stamp;
        let (first_slot, places) = self.places_of(u);
        let Some(i) = rows::book(rows, places, demanded, stamp) else { return false };
        let range = self.directory.range(rows.tensor, rows.first_row, rows.n_rows, u.row_bytes);
        let slot = first_slot + i;
        self.io.start(slot, Span { region: slot, start: 0, len: range.len }, range);
        self.stats.deferred_reads += 1;
        true
    }

    fn start_chunk(&mut self, chunk: Option<u32>) -> bool {
        let Some(residents::Start { window, span, rows }) = self.residents.start(chunk) else {
            return false;
        };
        let range = self.directory.range(rows.tensor, rows.first_row, rows.n_rows, rows.row_bytes);
        self.io.start(window, span, range);
        true
    }

    /// Takes note of the reads that have ended.
    fn settle(&mut self) {
        while let Some(Completion { ticket, result }) = self.io.next_ended() {
            let ended = match self.slots.get_mut(ticket.slot as usize) {
                Some(slot) => {
                    let (tensor, range) =
                        content_range(&self.directory, &self.ring.order, slot.content);
                    let len = if result.is_ok() { range.len as u64 } else { 0 };
                    let ended =
                        slot.end(result.map_err(|e| self.directory.describe(&e, tensor, range)));
                    self.stats.bytes_read += if ended { len } else { 0 };
                    ended
                }
                None => self.residents.end(ticket.slot, |start| {
                    let rows = start.rows;
                    let range = self.directory.range(
                        rows.tensor,
                        rows.first_row,
                        rows.n_rows,
                        rows.row_bytes,
                    );
                    self.stats.bytes_read += if result.is_ok() { range.len as u64 } else { 0 };
                    result.map_err(|e| self.directory.describe(&e, rows.tensor, range))
                }),
            };
            if ended {
                self.io.count_ended();
            }
        }
    }

    fn view(&self, slot: &Slot) -> SlotView {
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
        let bytes = content_range(&self.directory, &self.ring.order, slot.content).1.len as u64;
        SlotView { state, use_index: Some(use_index), first_row, n_rows, bytes }
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        // The memory lives on with the readers that may still write to it.
        self.io.source.cancel_all();
    }
}

/// The tensor that a slot's read is named after, and its bytes.
fn content_range(directory: &Directory, order: &Order, content: Content) -> (u32, FileRange) {
    match content {
        Content::Nothing => (0, FileRange { file: 0, offset: 0, len: 0 }),
        Content::Read(read) => {
            let read = &order.reads[read as usize];
            let piece = &order.pieces[read.first_piece as usize];
            (directory.uses[piece.use_index as usize].tensor, read.range())
        }
        Content::Rows(Rows { use_index, tensor, first_row, n_rows }) => {
            let row_bytes = directory.uses[use_index as usize].row_bytes;
            (tensor, directory.range(tensor, first_row, n_rows, row_bytes))
        }
    }
}

fn check_files(header: &Header, source: &dyn WeightSource) -> Result<()> {
    for (file, part) in (0u32..).zip(&header.files) {
        if file >= source.n_files() {
            let message = format!(
                "the model has {} files, {} were given",
                header.files.len(),
                source.n_files()
            );
            return Err(Error::new(ErrorKind::InvalidModel, message));
        }
        let Some(bytes) = source.file_bytes(file).filter(|b| *b < part.min_bytes) else { continue };
        let needed = part.min_bytes;
        let message =
            format!("file {file} is cut off: it has {bytes} bytes, its tensors need {needed}");
        return Err(Error::new(ErrorKind::InvalidModel, message)
            .with("file", u64::from(file))
            .with("bytes", bytes));
    }
    Ok(())
}

fn index_u32(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// Embedding rows that can be in memory or under way at a time; the planner prices them.
pub const EMBED_ROWS: usize = 8;

/// How many reads before its own start a source is told of a read.
const HINTED_AHEAD: u32 = 2;
