//! What the planner is told: the model's uses, fixed costs, a way to price a session, limits, and the caller's wishes.

use super::plan::LedgerItem;
use crate::error::{Error, ErrorKind, Result};
use crate::gguf::Header;
use crate::model::{KvType, ModelMemory, Use};

/// Everything a plan depends on, but for the price of a session.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The tensor directory: where the rows of the uses lie.
    pub header: &'a Header,
    /// What a pass takes, in order.
    pub uses: &'a [Use],
    /// The experts of a layer, if it has any.
    pub experts: Option<Experts>,
    /// A pass takes a whole text, as long as the context may be: there are no chunks.
    pub whole_texts: bool,
    /// Positions that the model was trained for; 0 if the file does not say.
    pub n_ctx_train: u32,
    /// Linear memory that is taken whatever is planned: code and static data, stacks, vocabulary, header.
    pub fixed: &'a [LedgerItem],
    /// Bytes of JS buffers beside the linear memory.
    pub js_buffer_bytes: u64,
    /// What there is.
    pub limits: Limits,
    /// What the caller asks for.
    pub wishes: Wishes,
}

/// How many experts a layer has and how many of them a token goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Experts {
    /// Of the layer.
    pub n: u32,
    /// Of a token.
    pub n_used: u32,
}

/// The memory that there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// What the caller allows in all; `None`: a quarter of the device's memory.
    pub budget_bytes: Option<u64>,
    /// Memory of the device; `None`: it does not say, and 4 GiB are assumed.
    pub device_bytes: Option<u64>,
    /// What one linear memory can hold; `None`: no limit.
    pub max_linear_bytes: Option<u64>,
    /// What the host takes beside linear memory and buffers, an estimate: as much of the budget is not used for residents
    /// of a model that streams, nor for further slots; nothing else gives way to it.
    pub host_bytes: u64,
}

/// What the caller asks for. What is asked for explicitly is granted or refused, never changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wishes {
    /// Positions of the context; `None`: what the model was trained for, at most 4096, and less if memory is short.
    pub n_ctx: Option<u32>,
    /// Columns of a prefill chunk; `None`: as many as are useful and affordable.
    pub n_batch: Option<u32>,
    /// How keys and values are kept. The budget never changes it.
    pub kv: KvType,
    /// Whether a pass gives the logits of all its tokens, not only of the last.
    pub all_logits: bool,
    /// Whether reading goes ahead of computing; without it one slot is enough.
    pub prefetch: bool,
    /// Slots of the ring, if weights stream.
    pub n_slots: Option<u32>,
    /// Bytes of a slot, if weights stream; at least the longest row.
    pub slot_bytes: Option<u64>,
    /// Whether weights may be read again in each pass. If not, all must be resident.
    pub streaming: bool,
    /// Gives the smallest plan where none fits the budget.
    pub force: bool,
}

impl Default for Wishes {
    fn default() -> Self {
        Self {
            n_ctx: None,
            n_batch: None,
            kv: KvType::F16,
            all_logits: false,
            prefetch: true,
            n_slots: None,
            slot_bytes: None,
            streaming: true,
            force: false,
        }
    }
}

/// What a session takes. No item is smaller for a larger session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionBytes {
    /// What the model says.
    pub model: ModelMemory,
    /// Sampler, history of tokens, text on its way out.
    pub session_bytes: u64,
}

impl Limits {
    /// The budget that counts.
    #[must_use]
    pub fn budget(&self) -> u64 {
        self.budget_bytes.unwrap_or_else(|| self.device_bytes.unwrap_or(ASSUMED_DEVICE_BYTES) / 4)
    }
}

impl Wishes {
    /// Refuses what no plan can grant.
    pub(super) fn validate(&self, longest_row: u64) -> Result<()> {
        at_least_one("context", self.n_ctx)?;
        at_least_one("batch", self.n_batch)?;
        at_least_one("slots", self.n_slots)?;
        match self.slot_bytes {
            Some(bytes) if bytes < longest_row || bytes > MAX_SLOT_BYTES => {
                let message = format!(
                    "`slotBytes` is {bytes}; it must be at least {longest_row}, the longest row of the model, and at most {MAX_SLOT_BYTES}"
                );
                Err(Error::new(ErrorKind::InvalidOption, message).with("key", "slotBytes"))
            }
            _ => Ok(()),
        }
    }
}

fn at_least_one(key: &'static str, n: Option<u32>) -> Result<()> {
    if n == Some(0) {
        let message = format!("`{key}` is 0; it must be at least 1");
        return Err(Error::new(ErrorKind::InvalidOption, message).with("key", key));
    }
    Ok(())
}

const ASSUMED_DEVICE_BYTES: u64 = 4 << 30;
/// Sizes of slots and of places in them are 32 bits everywhere.
const MAX_SLOT_BYTES: u64 = 1 << 30;
