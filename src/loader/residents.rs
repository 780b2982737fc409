//! Rows that are read once and kept. Each run has memory of its own and is read in chunks, in the order of use, so that the
//! first pass can take a run while the rest of it is still coming.

use super::directory::Directory;
use super::slots::{Slots, Span};
use crate::error::{Error, Result};
use crate::model::Phase;
use crate::planner::ResidentRun;

/// All resident runs and how far their reading is.
#[derive(Debug)]
pub(super) struct Residents {
    runs: Box<[Run]>,
    /// In the order of reading.
    chunks: Box<[Chunk]>,
    /// The window number of the first read; the others follow.
    pub(super) first_window: u32,
    windows: [Option<u32>; MAX_READS],
    /// Chunks before this one have been read or are being read.
    next: u32,
    /// A read that failed and whose rows nobody has asked for yet.
    failed: Option<(u32, Error)>,
    pub(super) loaded_bytes: u64,
    total_bytes: u64,
    /// Reads that fail from now on were cancelled: they are made again, without a word.
    cancelled: [bool; MAX_READS],
}

#[derive(Debug)]
struct Run {
    run: ResidentRun,
    region: u32,
    rows_per_chunk: u32,
    first_chunk: u32,
    layer: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Chunk {
    run: u32,
    state: ChunkState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChunkState {
    Unread,
    Reading,
    Ready,
}

/// A chunk to read: its window, its place and its rows.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) window: u32,
    pub(super) span: Span,
    pub(super) rows: ResidentRun,
}

impl Residents {
    /// # Errors
    /// `out_of_memory` when the memory cannot be had.
    pub(super) fn new(directory: &Directory, slots: &mut Slots) -> Result<Self> {
        let mut runs: Vec<Run> = Vec::with_capacity(directory.runs.len());
        for run in &directory.runs {
            let region = slots.add_region(u64::from(run.n_rows) * u64::from(run.row_bytes))?;
            let rows = u32::try_from(CHUNK_BYTES / u64::from(run.row_bytes)).unwrap_or(u32::MAX);
            let rows_per_chunk = rows.clamp(1, run.n_rows);
            let layer = layer_of(directory, run.tensor);
            runs.push(Run { run: *run, region, rows_per_chunk, first_chunk: 0, layer });
        }
        let mut chunks = Vec::new();
        for i in reading_order(directory) {
            let run = &mut runs[i];
            run.first_chunk = u32::try_from(chunks.len()).unwrap_or(u32::MAX);
            let n_chunks = run.run.n_rows.div_ceil(run.rows_per_chunk);
            let run = u32::try_from(i).unwrap_or(u32::MAX);
            chunks.extend((0..n_chunks).map(|_| Chunk { run, state: ChunkState::Unread }));
        }
        let first_window = slots.add_window();
        for _ in 1..MAX_READS {
            slots.add_window();
        }
        let total_bytes =
            directory.runs.iter().map(|r| u64::from(r.n_rows) * u64::from(r.row_bytes)).sum();
        Ok(Self {
            runs: runs.into(),
            chunks: chunks.into(),
            first_window,
            windows: [None; MAX_READS],
            next: 0,
            failed: None,
            loaded_bytes: 0,
            total_bytes,
            cancelled: [false; MAX_READS],
        })
    }

    /// Rows of run `run` that are there from `row` on, and where; `None` if `row` itself is not.
    pub(super) fn rows_from(&self, run: usize, row: u32, n_rows: u32) -> Option<(u32, Span)> {
        let Run { run, region, rows_per_chunk, first_chunk, .. } = &self.runs[run];
        let at = row - run.first_row;
        let wanted = (at + n_rows).min(run.n_rows);
        let mut end = at;
        while end < wanted
            && self.chunks[(first_chunk + end / rows_per_chunk) as usize].state == ChunkState::Ready
        {
            end = ((end / rows_per_chunk + 1) * rows_per_chunk).min(wanted);
        }
        let n = end - at;
        let bytes_per_row = run.row_bytes as usize;
        let span = Span {
            region: *region,
            start: at as usize * bytes_per_row,
            len: n as usize * bytes_per_row,
        };
        (n > 0).then_some((n, span))
    }

    /// The chunk that holds `row` of run `run`.
    pub(super) fn chunk_of(&self, run: usize, row: u32) -> u32 {
        let run = &self.runs[run];
        run.first_chunk + (row - run.run.first_row) / run.rows_per_chunk
    }

    /// The error of this chunk's read, once.
    pub(super) fn take_error(&mut self, chunk: Option<u32>) -> Option<Error> {
        if chunk.is_none() || self.failed.as_ref().map(|f| f.0) == chunk {
            return self.failed.take().map(|f| f.1);
        }
        None
    }

    /// Books the read of `chunk` (by default of the next one in order), if a read may start.
    pub(super) fn start(&mut self, chunk: Option<u32>) -> Option<Start> {
        if self.failed.is_some() && chunk.is_none() {
            return None;
        }
        let free = self.windows.iter().position(Option::is_none)?;
        let chunk = match chunk {
            Some(chunk) => chunk,
            None => {
                let unread = |c: &Chunk| c.state == ChunkState::Unread;
                let ahead = self.chunks[self.next as usize..].iter().position(unread);
                self.next = ahead
                    .map_or(self.n_chunks(), |n| self.next + u32::try_from(n).unwrap_or(u32::MAX));
                self.next
            }
        };
        let entry = self.chunks.get_mut(chunk as usize)?;
        if entry.state != ChunkState::Unread {
            return None;
        }
        entry.state = ChunkState::Reading;
        self.windows[free] = Some(chunk);
        self.cancelled[free] = false;
        let window = self.first_window + u32::try_from(free).unwrap_or(u32::MAX);
        Some(self.describe(window, chunk))
    }

    /// The rows of the chunk that is read next.
    pub(super) fn coming(&self) -> Option<ResidentRun> {
        let n = self.next as usize;
        let ahead = self.chunks[n..].iter().position(|c| c.state == ChunkState::Unread)?;
        Some(self.describe(0, u32::try_from(n + ahead).ok()?).rows)
    }

    /// The read in a window has ended; gives back its chunk's rows and place, for messages and conversion.
    pub(super) fn end(&mut self, window: u32, result: impl FnOnce(&Start) -> Result<()>) -> bool {
        let i = (window - self.first_window) as usize;
        let Some(chunk) = self.windows.get_mut(i).and_then(Option::take) else { return false };
        let start = self.describe(window, chunk);
        let result = result(&start);
        let state = &mut self.chunks[chunk as usize].state;
        match result {
            Ok(()) => {
                *state = ChunkState::Ready;
                self.loaded_bytes += u64::from(start.rows.n_rows) * u64::from(start.rows.row_bytes);
            }
            Err(e) => {
                *state = ChunkState::Unread;
                self.next = self.next.min(chunk);
                // The newest error stands; the chunk of an older one is read again when its rows are asked for.
                if !self.cancelled[i] {
                    self.failed = Some((chunk, e));
                }
            }
        }
        true
    }

    /// Reads under way were cancelled, and an error that nobody asked for is forgotten: all of it is read again later.
    pub(super) fn abandon(&mut self) {
        self.failed = None;
        self.cancelled = [true; MAX_READS];
    }

    /// Whether every row is there.
    pub(super) fn all_ready(&self) -> bool {
        self.loaded_bytes == self.total_bytes
    }

    /// Bytes that are there, and bytes of all runs.
    pub(super) fn progress(&self) -> (u64, u64) {
        (self.loaded_bytes, self.total_bytes)
    }

    /// The layer whose rows are read next; `None` before and behind the layers.
    pub(super) fn layer(&self) -> Option<u32> {
        self.chunks.get(self.next as usize).and_then(|c| self.runs[c.run as usize].layer)
    }

    fn describe(&self, window: u32, chunk: u32) -> Start {
        let Run { run, region, rows_per_chunk, first_chunk, .. } =
            &self.runs[self.chunks[chunk as usize].run as usize];
        let at = (chunk - first_chunk) * rows_per_chunk;
        let n_rows = (*rows_per_chunk).min(run.n_rows - at);
        let row_bytes = run.row_bytes as usize;
        let span = Span {
            region: *region,
            start: at as usize * row_bytes,
            len: n_rows as usize * row_bytes,
        };
        Start { window, span, rows: ResidentRun { first_row: run.first_row + at, n_rows, ..*run } }
    }

    fn n_chunks(&self) -> u32 {
        u32::try_from(self.chunks.len()).unwrap_or(u32::MAX)
    }
}

/// Runs in the order in which a pass needs them whole. Tables of which it takes single rows come last: the rows are read
/// singly until then.
fn reading_order(directory: &Directory) -> Vec<usize> {
    let first_use = |run: &ResidentRun| {
        let whole =
            |u: &crate::model::Use| u.tensor == run.tensor && u.phase != Phase::Open && !u.deferred;
        directory.uses.iter().position(whole).unwrap_or(usize::MAX)
    };
    let mut order: Vec<usize> = (0..directory.runs.len()).collect();
    order.sort_by_cached_key(|i| first_use(&directory.runs[*i]));
    order
}

fn layer_of(directory: &Directory, tensor: u32) -> Option<u32> {
    directory.uses.iter().filter(|u| u.tensor == tensor).find_map(|u| match u.phase {
        Phase::Layer(layer) => Some(layer),
        _ => None,
    })
}

/// Bytes of one read: above 1 MiB a source is as fast as it gets, and one read should not hold up a step for long.
const CHUNK_BYTES: u64 = 2 << 20;

/// Reads of residents that are under way at a time.
pub(super) const MAX_READS: usize = 4;
