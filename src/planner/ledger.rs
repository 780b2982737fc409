//! The ledger: what every item of a plan costs, and the sum in whole pages.

use super::plan::LedgerItem;
use super::request::{Request, SessionBytes};
use super::weights::{EMBED_ROWS, Weights};

/// A page of linear memory.
pub const PAGE_BYTES: u64 = 64 << 10;

/// What an allocation of weights costs beside its bytes, which are rounded up to 64: alignment and the allocator's own.
pub const REGION_BYTES: u64 = 128;

/// The ring of a plan; no slots when everything is resident.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ring {
    pub(super) n_slots: u32,
    pub(super) slot_bytes: u64,
}

impl Ring {
    pub(super) const NONE: Self = Self { n_slots: 0, slot_bytes: 0 };

    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.n_slots).saturating_mul(region(self.slot_bytes))
    }
}

/// What an allocation of `bytes` weight bytes takes.
pub(super) fn region(bytes: u64) -> u64 {
    bytes.next_multiple_of(64) + REGION_BYTES
}

/// What can be said of a plan's memory before its residents are chosen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Costs {
    pub(super) session: SessionBytes,
    pub(super) ring: Ring,
    loader: u64,
    embedding_rows: u64,
    fixed: u64,
}

impl Costs {
    pub(super) fn new(
        request: &Request<'_>,
        weights: &Weights,
        session: SessionBytes,
        ring: Ring,
    ) -> Self {
        let fixed = request.fixed.iter().fold(0_u64, |sum, item| sum.saturating_add(item.bytes));
        let embedding_rows =
            if weights.embed_row > 0 { EMBED_ROWS as u64 * region(weights.embed_row) } else { 0 };
        Self { session, ring, loader: loader_bytes(weights, ring), embedding_rows, fixed }
    }

    /// Linear memory without residents, not rounded to pages.
    pub(super) fn bytes(&self) -> u64 {
        let SessionBytes { model, session_bytes } = self.session;
        let items = [
            model.vectors_bytes,
            model.kv_bytes,
            model.scratch_bytes,
            model.logits_bytes,
            session_bytes,
            self.loader,
            self.embedding_rows,
            self.ring.bytes(),
        ];
        items.iter().fold(self.fixed, |sum, bytes| sum.saturating_add(*bytes))
    }

    /// All items, with `residents` bytes of resident runs.
    pub(super) fn ledger(&self, request: &Request<'_>, residents: u64) -> Vec<LedgerItem> {
        let SessionBytes { model, session_bytes } = self.session;
        let used = self.bytes().saturating_add(residents);
        let js_buffers = pages(request.js_buffer_bytes);
        let left = request.limits.budget().saturating_sub(pages(used).saturating_add(js_buffers));
        let host = pages(request.limits.host_bytes).min(left / PAGE_BYTES * PAGE_BYTES);
        let own = [
            ("vectors", model.vectors_bytes),
            ("kv", model.kv_bytes),
            ("scratch", model.scratch_bytes),
            ("logits", model.logits_bytes),
            ("session", session_bytes),
            ("loader", self.loader),
            ("embeddingRows", self.embedding_rows),
            ("ring", self.ring.bytes()),
            ("residents", residents),
            ("pageRounding", pages(used) - used),
            ("jsBuffers", js_buffers),
            ("host", host),
        ];
        let own = own.into_iter().map(|(name, bytes)| LedgerItem { name, bytes });
        request.fixed.iter().cloned().chain(own).collect()
    }
}

/// `bytes` in whole pages.
pub(super) fn pages(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(PAGE_BYTES).unwrap_or(u64::MAX / PAGE_BYTES * PAGE_BYTES)
}

/// What the loader keeps beside weights: its directory, the order of reading, and the states of runs. Most models stay below the
/// allowance, so that the floor does not depend on depth.
fn loader_bytes(weights: &Weights, ring: Ring) -> u64 {
    let pieces = if ring.n_slots == 0 { 0 } else { weights.n_pieces(ring.slot_bytes) };
    let kept = weights.n_tensors * TENSOR_BYTES
        + weights.n_uses * USE_BYTES
        + pieces.saturating_mul(PIECE_BYTES);
    kept.max(LOADER_ALLOWANCE)
}

// A little more than the loader takes for each: `tests/native/planner/measured.rs` counts.
const TENSOR_BYTES: u64 = 160;
const USE_BYTES: u64 = 192;
const PIECE_BYTES: u64 = 112;

const LOADER_ALLOWANCE: u64 = 1 << 20;
