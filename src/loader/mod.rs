//! From bytes in files to tiles in the order of use: resident rows that are read once, and a ring of slots through which the
//! rest streams in every pass, read ahead as far as there are slots and from the end of one pass into the next.
//!
//! It knows uses, rows and bytes, nothing of transformers; of number formats only how a row becomes f32, where the model was
//! built for that. It is the only user of sources.

mod directory;
mod inbox;
mod order;
mod read_range;
mod reading;
mod residency;
mod residents;
mod ring;
mod rows;
mod slot;
mod slots;
mod stats;
mod tiles;

use std::cell::Ref;
use std::rc::Rc;

use crate::TokenId;
use crate::error::{Error, ErrorKind, Result};
use crate::gguf::Header;
use crate::model::{Phase, Use};
use crate::planner::{EMBED_ROWS, Plan};
use crate::source::WeightSource;

use directory::{Directory, internal};
use inbox::Io;
use order::Order;
use residents::Residents;
use ring::Ring;
use slot::Slot;
use slots::{Slots, Span};

pub use inbox::Wait;
pub use read_range::{read_range, read_ranges};
pub use residency::dequantized_directory;
pub use stats::{LoaderStats, Progress, SlotState, SlotView};

/// How the loader is to work, beside what the plan says.
#[derive(Debug, Clone, Copy)]
pub struct LoaderConfig {
    /// Reads ahead of the pass, as far as there are slots. Without it, and of a source that reads at once, a tile is read when
    /// it is asked for.
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
    use_index: usize,
    first_row: u32,
    n_rows: u32,
    span: Span,
    from: From,
}

impl Tile {
    /// The use they belong to.
    #[must_use]
    pub fn use_index(&self) -> usize {
        self.use_index
    }

    /// The first row.
    #[must_use]
    pub fn first_row(&self) -> u32 {
        self.first_row
    }

    /// How many rows.
    #[must_use]
    pub fn n_rows(&self) -> u32 {
        self.n_rows
    }
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
    /// Reads of the order start before they are asked for.
    prefetch: bool,
    /// The source is told what comes next.
    hints: bool,
    /// A read has ended when it has started.
    at_once: bool,
    /// Counts passes, to know a tile of one that was abandoned.
    pass: u64,
    /// Counts reads, to tell which slot was filled first.
    stamp: u64,
    /// Embedding rows of this pass; `expected_at` is where the use `expected_use` is among them.
    expected: Vec<TokenId>,
    expected_at: usize,
    expected_use: usize,
    /// A stored row that is being dequantised, where rows are handed out as f32.
    row: Box<[u8]>,
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
        let row = vec![0; directory.longest_dequantised()].into();
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
        let at_once = source.reads_at_once();
        let hints = config.prefetch;
        let prefetch = config.prefetch && !at_once && !(n_ring == 1 && uses.iter().any(in_ring));
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
            hints,
            at_once,
            pass: 0,
            stamp: 0,
            expected: Vec::with_capacity(plan.n_batch as usize),
            expected_at: 0,
            expected_use: 0,
            row,
            stats: LoaderStats::default(),
        })
    }

    /// Starts a pass, which takes all uses in order; without `head`, those of the output head are left out (a chunk of the
    /// prompt whose logits nobody wants). `tokens` are the embedding rows that it will ask for, one by one in this order, so
    /// that they are read together. A pass that was not finished is abandoned.
    pub fn begin_pass(&mut self, head: bool, tokens: &[TokenId]) {
        self.settle();
        if !self.ring.pass_is_over() {
            self.abandon_pass();
        }
        self.pass += 1;
        self.expected.clear();
        let room = self.expected.capacity();
        self.expected.extend_from_slice(&tokens[..tokens.len().min(room)]);
        self.expected_at = 0;
        let Self { slots, io, n_ring, .. } = self;
        self.ring.begin(head, &mut slots[..*n_ring], |slot| io.slots.close(slot));
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
        let tile = self.find(use_index, first_row, n_rows);
        self.read_ahead();
        tile
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
        if !self.at_once {
            self.read_ahead();
        }
    }

    /// A future that is ready when a read has ended, or at once when none is under way.
    pub fn wait(&self) -> Wait {
        self.io.wait()
    }

    /// Waits for a read that is about to end, where that is quicker than [`Loader::wait`]; returns soon in any case.
    pub fn block(&self) {
        self.io.source.block();
    }

    /// Whether another thread is at a read now.
    pub fn is_reading(&mut self) -> bool {
        self.settle();
        self.io.n_in_flight() > 0
    }

    /// A future that is ready when a read has ended; `None` when none is under way, so that others may read from the source.
    pub fn reads_under_way(&mut self) -> Option<Wait> {
        self.is_reading().then(|| self.io.wait())
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

impl Drop for Loader {
    fn drop(&mut self) {
        // The memory lives on with the readers that may still write to it.
        self.io.source.cancel_all();
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
            .with("needed_bytes", needed)
            .with("available_bytes", bytes));
    }
    Ok(())
}

fn index_u32(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
