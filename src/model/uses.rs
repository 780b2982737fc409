//! The list of uses: which rows of which tensors a forward pass takes, in which order. It is stated once, by the model,
//! and is all that the planner and the loader ever learn of a transformer.

/// One use of a run of rows of one tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    /// Index into [`crate::gguf::Header::tensors`].
    pub tensor: u32,
    /// First row of the tensor that this use takes.
    pub first_row: u32,
    /// Rows of this use (of a deferred one: rows that may be asked for).
    pub n_rows: u32,
    /// Bytes of one row as it is stored.
    pub row_bytes: u32,
    /// When in the pass.
    pub phase: Phase,
    /// The pass names the rows when it gets there: embedding rows by token, experts by the router.
    pub deferred: bool,
}

/// When a use happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Once, when the model is opened: norms, biases, RoPE factors. Kept as f32 by the model.
    Open,
    /// At the start of each pass: embedding rows.
    Embed,
    /// In layer n of each pass.
    Layer(u32),
    /// At the end of each pass: the output head.
    Head,
}

impl Use {
    /// Stored bytes of all rows of this use.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::from(self.n_rows) * u64::from(self.row_bytes)
    }
}
