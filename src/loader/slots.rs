//! The loader's memory: regions, and the windows of them that reads under way may fill. Everything else in the loader is
//! bookkeeping; what is shared with readers is here.
//!
//! A region is lent mutably only inside [`Places::fill`], and a window is opened again only after its read has ended, so a
//! reader that comes late finds its generation closed and writes nothing.

use std::cell::{Cell, Ref, RefCell};

use bytemuck::{Pod, Zeroable};

use crate::error::{Error, ErrorKind, Result};
use crate::source::{Places, Ticket};

/// All memory that readers may fill.
#[derive(Debug, Default)]
pub(super) struct Slots {
    regions: Vec<Region>,
    windows: Vec<Cell<Window>>,
}

/// Bytes `start .. start + len` of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Span {
    pub(super) region: u32,
    pub(super) start: usize,
    pub(super) len: usize,
}

/// What one ticket may fill.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    span: Span,
    generation: u32,
    open: bool,
}

#[derive(Debug)]
struct Region {
    lines: RefCell<Box<[Line]>>,
    len: usize,
}

/// A cache line: rows start aligned for every vector load.
#[derive(Clone, Copy, Pod, Zeroable, Debug)]
#[repr(C, align(64))]
struct Line([u8; 64]);

impl Slots {
    /// Adds a region of `len` bytes.
    ///
    /// # Errors
    /// `out_of_memory` when the memory cannot be had.
    pub(super) fn add_region(&mut self, len: u64) -> Result<u32> {
        let refused = || {
            let message =
                format!("no memory for {len} bytes of weights, although the plan counts on it");
            Error::new(ErrorKind::OutOfMemory, message).with("needed_bytes", len)
        };
        let len = usize::try_from(len).map_err(|_| refused())?;
        let lines =
            bytemuck::try_zeroed_slice_box::<Line>(len.div_ceil(64)).map_err(|()| refused())?;
        self.regions.push(Region { lines: RefCell::new(lines), len });
        Ok(u32::try_from(self.regions.len() - 1).unwrap_or(u32::MAX))
    }

    /// Adds a window for reads; its number is the ticket's slot.
    pub(super) fn add_window(&mut self) -> u32 {
        self.windows.push(Cell::default());
        u32::try_from(self.windows.len() - 1).unwrap_or(u32::MAX)
    }

    /// Lets a new generation of `slot` fill `span`. The last read of the slot must have ended.
    pub(super) fn open(&self, slot: u32, span: Span) -> Ticket {
        let window = &self.windows[slot as usize];
        let generation = window.get().generation.wrapping_add(1);
        window.set(Window { span, generation, open: true });
        Ticket { slot, generation }
    }

    /// Keeps the read under way in `slot` from writing any more.
    pub(super) fn close(&self, slot: u32) {
        let window = &self.windows[slot as usize];
        window.set(Window { open: false, ..window.get() });
    }

    /// Whether `ticket` is the last one given out for its slot.
    pub(super) fn is_latest(&self, ticket: Ticket) -> bool {
        self.windows
            .get(ticket.slot as usize)
            .is_some_and(|w| w.get().generation == ticket.generation)
    }

    /// Calls `change` on the bytes of `span`, which no reader may fill any more.
    ///
    /// # Errors
    /// `misuse` when the bytes are lent out: their user held them over an await.
    pub(super) fn change(&self, span: Span, change: impl FnOnce(&mut [u8])) -> Result<()> {
        let region = &self.regions[span.region as usize];
        let Ok(mut lines) = region.lines.try_borrow_mut() else {
            let message = "the bytes of a tile were held while reads went on";
            return Err(Error::new(ErrorKind::Misuse, message));
        };
        change(&mut bytemuck::cast_slice_mut(&mut lines)[span.start..span.start + span.len]);
        Ok(())
    }

    /// The bytes of `span`. While they are held, nothing may be read into the same region.
    pub(super) fn bytes(&self, span: Span) -> Ref<'_, [u8]> {
        let lines = self.regions[span.region as usize].lines.borrow();
        Ref::map(lines, |l| &bytemuck::cast_slice(l)[span.start..span.start + span.len])
    }
}

impl Slots {
    /// Where `len` bytes from `at` on lie that the reader of `ticket` may fill: the region and the first byte in it.
    fn place(&self, ticket: Ticket, at: usize, len: usize) -> Option<(&Region, usize)> {
        let window = self.windows.get(ticket.slot as usize)?.get();
        if !window.open || window.generation != ticket.generation {
            return None;
        }
        let Span { region, start, len: room } = window.span;
        at.checked_add(len).filter(|end| *end <= room)?;
        let region = &self.regions[region as usize];
        (start + at + len <= region.len).then_some((region, start + at))
    }
}

impl Places for Slots {
    fn fill(
        &self,
        ticket: Ticket,
        at: usize,
        len: usize,
        write: &mut dyn FnMut(&mut [u8]),
    ) -> bool {
        let Some((region, start)) = self.place(ticket, at, len) else { return false };
        // A region that is lent out is being computed on: refusing ends the read with an error, writing would be a race.
        let Ok(mut lines) = region.lines.try_borrow_mut() else { return false };
        write(&mut bytemuck::cast_slice_mut(&mut lines)[start..start + len]);
        true
    }

    fn lend(&self, ticket: Ticket, len: usize) -> Option<usize> {
        let (region, start) = self.place(ticket, 0, len)?;
        let mut lines = region.lines.try_borrow_mut().ok()?;
        Some(lines.as_mut_ptr().addr() + start)
    }
}
