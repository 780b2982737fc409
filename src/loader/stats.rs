//! What the loader counts, and what it shows of its slots for pictures.

/// Counts since the loader was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoaderStats {
    /// Bytes that reads have brought, residents and single rows included.
    pub bytes_read: u64,
    /// Streamed tiles that were there when they were first asked for.
    pub prefetch_hits: u64,
    /// Streamed tiles that were not.
    pub prefetch_misses: u64,
    /// Rows or runs of rows that were read because a pass named them.
    pub deferred_reads: u64,
    /// Bytes of residents that are there.
    pub resident_bytes: u64,
    /// Reads under way now.
    pub reads_in_flight: u32,
}

/// How far the reading of residents is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Bytes that are there.
    pub loaded_bytes: u64,
    /// Bytes of all residents.
    pub total_bytes: u64,
    /// The layer that is read next; `None` before and behind the layers.
    pub layer: Option<u32>,
}

/// One slot at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotView {
    /// What it is doing.
    pub state: SlotState,
    /// The use whose rows it holds or waits for; of a read with several, the first.
    pub use_index: Option<u32>,
    /// The first of those rows.
    pub first_row: u32,
    /// How many rows of that use.
    pub n_rows: u32,
    /// Bytes of the whole read.
    pub bytes: u64,
}

/// What a slot is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotState {
    /// Nothing.
    Free,
    /// A read is filling it.
    Reading,
    /// Its bytes are there.
    Ready,
    /// Its read failed.
    Failed,
    /// It waits for the end of a read that nobody wants any more.
    Draining,
}
