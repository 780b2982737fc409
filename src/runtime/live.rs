//! What can be seen of a run while it goes on: figures that move during a pass, and pictures of the ring.

use serde::Serialize;

use super::Engine;
use super::host::Host;
use crate::loader::{SlotState, SlotView};

/// What a host wants to see now. It asks between two steps, so an answer that costs is given rarely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wants {
    /// The figures.
    pub stats: bool,
    /// A picture of the ring.
    pub snapshot: bool,
}

/// One moment of a pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// Whether the prompt is being read.
    pub prefill: bool,
    /// 0 for the embedding, then the layers from 1 on, then the output head.
    pub stage: u32,
    /// The tensor whose rows were computed with last, as an index into the layout.
    pub tensor: Option<u32>,
    /// The first of those rows.
    pub first_row: u32,
    /// How many.
    pub n_rows: u32,
    /// The ring.
    pub slots: Vec<SlotPicture>,
    /// Reads under way, those of rows that are kept included.
    pub reads_in_flight: u32,
}

/// One slot of the ring at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SlotPicture {
    /// `free`, `reading`, `ready`, `failed`, or `draining`: its read goes on and nobody wants it.
    pub state: &'static str,
    /// The tensor whose rows it holds or waits for; of a read with several, the first.
    pub tensor: Option<u32>,
    /// The first of those rows.
    pub first_row: u32,
    /// How many rows of that tensor.
    pub n_rows: u32,
    /// Bytes of the whole read.
    pub bytes: u64,
}

/// The prompt that is being read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prefill {
    /// When the call began.
    pub(super) started_ms: f64,
    /// Tokens of the prompt that are in the KV cache: reused ones, and those of the chunks that are done.
    pub(super) done: u32,
    /// Tokens of the chunk under way.
    pub(super) chunk: u32,
}

/// The rows that were computed with last.
#[derive(Debug, Clone, Copy)]
pub(super) struct Computed {
    pub(super) tensor: u32,
    pub(super) first_row: u32,
    pub(super) n_rows: u32,
}

impl Engine {
    /// Shows the host what it wants to see of the pass under way, which is at `stage`.
    pub(super) fn show(&mut self, stage: usize, host: &dyn Host, now_ms: f64) {
        let stage = u32::try_from(stage).unwrap_or(u32::MAX);
        let wants = host.wants(now_ms);
        if wants.stats {
            self.see_pass(stage, host);
            host.stats(&self.stats);
        }
        if wants.snapshot {
            host.snapshot(&self.snapshot(stage));
        }
    }

    /// Brings the figures up to date in the middle of a pass.
    fn see_pass(&mut self, stage: u32, host: &dyn Host) {
        self.see_loader();
        self.stats.see_memory(host.memory_bytes());
        let Some(prefill) = self.prefill else { return };
        let n_stages = self.model.hparams().n_layer + 2;
        let share = u64::from(prefill.chunk) * u64::from(stage) / u64::from(n_stages);
        self.stats.prompt_tokens = prefill.done + u32::try_from(share).unwrap_or(prefill.chunk);
        self.stats.prefill_ms = host.now_ms() - prefill.started_ms;
        self.stats.update_rates();
    }

    fn snapshot(&self, stage: u32) -> Snapshot {
        let computed = self.computed;
        Snapshot {
            prefill: self.prefill.is_some(),
            stage,
            tensor: computed.map(|c| c.tensor),
            first_row: computed.map_or(0, |c| c.first_row),
            n_rows: computed.map_or(0, |c| c.n_rows),
            slots: self.loader.slots().map(|slot| self.picture(&slot)).collect(),
            reads_in_flight: self.loader.stats().reads_in_flight,
        }
    }

    fn picture(&self, slot: &SlotView) -> SlotPicture {
        let state = match slot.state {
            SlotState::Free => "free",
            SlotState::Reading => "reading",
            SlotState::Ready => "ready",
            SlotState::Failed => "failed",
            SlotState::Draining => "draining",
        };
        let uses = self.model.uses();
        let tensor = slot.use_index.and_then(|index| uses.get(index as usize)).map(|u| u.tensor);
        let SlotView { first_row, n_rows, bytes, .. } = *slot;
        SlotPicture { state, tensor, first_row, n_rows, bytes }
    }
}
