//! Where a model's bytes come from. Reading is asynchronous, completion style: a request names a place by slot and
//! generation, the bytes go to the place that the slots give out for it, and a completion names both again.
//! A source knows files, offsets and lengths; it knows nothing of tensors, tiles or layers.

mod ended;
mod faulty;
mod memory;

#[cfg(not(target_arch = "wasm32"))]
pub mod native;
#[cfg(target_arch = "wasm32")]
pub mod web;

use std::rc::Rc;
use std::task::Waker;

use crate::error::{Error, ErrorKind, Result};

pub use faulty::{Delivery, Fault, FaultySource};
pub use memory::MemorySource;

/// A place of memory that the loader owns. A slot is given to another read only when its read has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket {
    /// Which slot.
    pub slot: u32,
    /// Which use of that slot; bytes for another generation are dropped.
    pub generation: u32,
}

/// One read of adjacent bytes into a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadRequest {
    /// Where the bytes go, from the place's first byte on.
    pub ticket: Ticket,
    /// Which file of the model.
    pub file: u32,
    /// First byte in that file.
    pub offset: u64,
    /// How many bytes; never zero.
    pub len: usize,
}

/// Bytes of one file of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileRange {
    /// Which file.
    pub file: u32,
    /// First byte in that file.
    pub offset: u64,
    /// How many bytes.
    pub len: usize,
}

/// The end of one read: all bytes are in place, or none can be trusted.
#[derive(Debug, Clone)]
pub struct Completion {
    /// The request's ticket.
    pub ticket: Ticket,
    /// Whether the bytes are there.
    pub result: Result<()>,
}

/// Gives a reader the memory behind a ticket, for as long as one synchronous copy or read takes.
pub trait Places: core::fmt::Debug {
    /// Calls `write` on bytes `at .. at + len` of the ticket's place and returns true; returns false, without calling it,
    /// when the slot has moved on to another generation or the range does not fit the place.
    fn fill(&self, ticket: Ticket, at: usize, len: usize, write: &mut dyn FnMut(&mut [u8]))
    -> bool;

    /// The address of the first `len` bytes of the ticket's place, for a reader on another thread, which may write there until
    /// it has said that the read has ended. `None` when the slot has moved on, the place is smaller or its bytes are lent out.
    fn lend(&self, _ticket: Ticket, _len: usize) -> Option<usize> {
        None
    }
}

/// Positional reads of the files of one model.
pub trait WeightSource: core::fmt::Debug {
    /// Files of the model, at least one.
    fn n_files(&self) -> u32;

    /// Bytes of file `file` where the source can know it without reading (an HTTP server may not say).
    fn file_bytes(&self, file: u32) -> Option<u64>;

    /// Whether reads end before `submit` returns, as a rule: one whose bytes are not there yet may still end later. Reading
    /// ahead of use then gains nothing: bytes that are read just before they are computed on are still in the processor's
    /// cache.
    fn reads_at_once(&self) -> bool {
        false
    }

    /// Whether bytes may still be on their way over a network. Opening then does not wait for what will be kept: the first
    /// pass takes it as it comes.
    fn is_arriving(&self) -> bool {
        false
    }

    /// What a pass reads, in the order of use; said once, before the first weights are read. A source that downloads does so
    /// in this order.
    fn will_use(&self, _ranges: &[FileRange]) {}

    /// Starts a read; its end comes out of [`WeightSource::poll`], be it well, failed or cancelled, exactly once.
    /// A synchronous source has read before this returns.
    fn submit(&self, request: ReadRequest, places: &Rc<dyn Places>);

    /// The next read that has ended, in any order.
    fn poll(&self) -> Option<Completion>;

    /// Whether reading the same bytes again costs no network: only then may weights stream in every pass.
    fn rereads(&self) -> bool {
        true
    }

    /// May wait for the end of a read, for less than a step of a pass: where another thread reads, that is sooner than a turn
    /// of the event loop.
    fn block(&self) {}

    /// Asks for `waker` to be woken when a read ends after this call. A synchronous source may ignore it.
    fn wake_on_completion(&self, waker: &Waker);

    /// Ends all reads under way as soon as possible (abort, close); they still complete, with an error.
    fn cancel_all(&self);

    /// Bytes of the file that will soon be read, for sources that can read ahead.
    fn will_need(&self, _file: u32, _offset: u64, _len: u64) {}

    /// Bytes that the source itself holds outside the places (JS buffers included), at most, for the ledger.
    fn buffer_bytes(&self) -> u64 {
        0
    }
}

/// Checks that a read lies within the source's file; its start as a memory offset.
///
/// # Errors
/// `source_failed` naming file, offset and length of a read past the end.
pub(crate) fn check_range(source: &dyn WeightSource, request: &ReadRequest) -> Result<usize> {
    let size = source.file_bytes(request.file).ok_or_else(|| {
        let message = format!("file {} of a model of {} files", request.file, source.n_files());
        read_failed(request, &message)
    })?;
    match request.offset.checked_add(request.len as u64) {
        Some(end) if end <= size => Ok(usize::try_from(request.offset).unwrap_or(usize::MAX)),
        _ => Err(read_failed(request, &format!("the file has only {size} bytes"))),
    }
}

/// The error of a read whose place had moved on: nobody waits for it any more.
pub(crate) fn dropped(request: &ReadRequest) -> Error {
    read_failed(request, "the read was dropped before it ended")
}

/// `source_failed` with the range that could not be read and why.
pub(crate) fn read_failed(request: &ReadRequest, why: &str) -> Error {
    let ReadRequest { file, offset, len, .. } = *request;
    let message = format!("cannot read {len} bytes at offset {offset} of file {file}: {why}");
    Error::new(ErrorKind::SourceFailed, message)
        .with("file", u64::from(file))
        .with("offset", offset)
        .with("length", len as u64)
}
