//! What the planner is asked when a model is opened: who takes which bytes.

use super::config::OpenConfig;
use crate::error::Result;
use crate::gguf::Header;
use crate::model::{Model, Shape};
use crate::planner::{Experts, LedgerItem, Limits, Plan, Request, SessionBytes, Wishes, plan};
use crate::sampler::Sampler;
use crate::source::WeightSource;
use crate::tokenizer::Tokenizer;

/// The plan for `model` under `config`.
///
/// # Errors
/// `out_of_memory` with what it would take, `invalid_option` for a wish that no plan can grant.
pub(super) fn plan_for(
    header: &Header,
    model: &Model,
    tokenizer: &Tokenizer,
    config: &OpenConfig,
    source: &dyn WeightSource,
) -> Result<Plan> {
    let hparams = model.hparams();
    let fixed = [
        LedgerItem { name: "code", bytes: config.base_bytes },
        LedgerItem { name: "vocabulary", bytes: tokenizer.memory_bytes() as u64 },
    ];
    let request = Request {
        header,
        uses: model.uses(),
        experts: hparams
            .experts
            .as_ref()
            .map(|e| Experts { n: e.n_expert, n_used: e.n_expert_used }),
        n_ctx_train: hparams.n_ctx_train,
        fixed: &fixed,
        js_buffer_bytes: source.buffer_bytes(),
        limits: Limits {
            budget_bytes: config.budget_bytes,
            device_bytes: config.device_bytes,
            max_linear_bytes: cfg!(target_arch = "wasm32").then_some(MAX_LINEAR_BYTES),
        },
        wishes: Wishes {
            n_ctx: config.n_ctx,
            n_batch: config.n_batch,
            kv: config.kv_type(),
            all_logits: config.all_logits,
            // Without reading ahead one slot does, and more stays resident.
            prefetch: config.prefetch && !source.reads_at_once(),
            n_slots: config.n_slots,
            slot_bytes: config.slot_bytes,
            force: config.force,
            streaming: source.rereads(),
        },
    };
    plan(&request, &|shape| price(model, shape))
}

fn price(model: &Model, shape: &Shape) -> SessionBytes {
    let n_vocab = u64::from(model.hparams().n_vocab);
    let (n_ctx, history) = (u64::from(shape.n_ctx), 4 * u64::from(shape.n_ctx));
    SessionBytes {
        model: model.memory(shape),
        session_bytes: Sampler::max_bytes(n_vocab, n_ctx) + history,
    }
}

/// What one linear memory can hold: 4 GiB less the page that keeps the last address below 2^32.
const MAX_LINEAR_BYTES: u64 = (1 << 32) - (1 << 16);
