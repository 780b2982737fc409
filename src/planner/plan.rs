//! The planner's decision and its ledger.

use crate::model::KvType;

/// What an engine may take and what it keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Positions of the context.
    pub n_ctx: u32,
    /// Columns of one prefill chunk.
    pub n_batch: u32,
    /// Rows of logits that one pass can give: 1, or `n_batch`.
    pub n_logits: u32,
    /// How keys and values are kept.
    pub kv: KvType,
    /// Slots of the ring; 0 when nothing streams after the first pass.
    pub n_slots: u32,
    /// Bytes of one slot.
    pub slot_bytes: u64,
    /// Rows that are read once and kept, at most one run per tensor, in the order of use.
    pub residents: Vec<ResidentRun>,
    /// Where the bytes go, item by item.
    pub ledger: Vec<LedgerItem>,
    /// Sum of the ledger; a multiple of the 64 KiB page.
    pub total_bytes: u64,
    /// The part of the total that is linear memory, without JS buffers and what the host takes, a multiple of the page: what a memory is declared with.
    pub linear_bytes: u64,
    /// The smallest budget that runs this model with what the caller insisted on; a multiple of the page.
    pub floor_bytes: u64,
    /// The budget it was made for.
    pub budget_bytes: u64,
    /// It does not fit the budget and is the smallest there is, because the caller insisted.
    pub forced: bool,
    /// Weight bytes that each decoded token reads again, one embedding row included unless the table is resident; of
    /// experts, as many as a token goes through.
    pub streamed_bytes_per_token: u64,
    /// Weight bytes in residents.
    pub resident_bytes: u64,
    /// Weight bytes of all uses of a pass, an embedding table of its own excluded.
    pub weight_bytes: u64,
}

/// Rows of one tensor that stay in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResidentRun {
    /// Index into the tensor directory.
    pub tensor: u32,
    /// First row.
    pub first_row: u32,
    /// How many rows.
    pub n_rows: u32,
    /// Stored bytes of one row.
    pub row_bytes: u32,
}

/// One line of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerItem {
    /// Stable camelCase name. The planner's own: `vectors`, `kv`, `scratch`, `logits`, `session`, `loader`, `embeddingRows`,
    /// `ring`, `residents`, `pageRounding`, `jsBuffers`, `host`; before them what the caller fixed: `code`, `vocabulary`.
    pub name: &'static str,
    /// Its bytes.
    pub bytes: u64,
}

impl ResidentRun {
    /// Stored bytes of the run.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::from(self.n_rows) * u64::from(self.row_bytes)
    }
}

impl Plan {
    /// Bytes of the ledger's item `name`; 0 if there is none.
    #[must_use]
    pub fn ledger_bytes(&self, name: &str) -> u64 {
        self.ledger.iter().filter(|item| item.name == name).map(|item| item.bytes).sum()
    }
}
