//! What the planner is asked when a model is opened: who takes which bytes.

use super::config::OpenConfig;
use super::embed::{embedding_bytes, embedding_shape};
use crate::error::{Error, ErrorKind, Result};
use crate::gguf::Header;
use crate::model::{Model, ModelKind, Shape};
use crate::planner::{Experts, LedgerItem, Limits, Plan, Request, SessionBytes, Wishes, plan};
use crate::sampler::Sampler;
use crate::source::WeightSource;
use crate::tokenizer::{Detokenizer, Tokenizer};

/// The plan for `model` under `config`.
///
/// # Errors
/// `out_of_memory` with what it would take, `invalid_option` for a wish that no plan can grant, `invalid_model` for a
/// vocabulary that does not fit the model.
pub(super) fn plan_for(
    header: &Header,
    model: &Model,
    tokenizer: &Tokenizer,
    config: &OpenConfig,
    source: &dyn WeightSource,
) -> Result<Plan> {
    let hparams = model.hparams();
    if tokenizer.has_texts() {
        hparams.check_vocabulary(tokenizer.n_vocab())?;
    }
    if model.kind() == ModelKind::Encoder {
        check_encoder_wishes(config, hparams.n_ctx_train)?;
    }
    let fixed = [
        LedgerItem { name: "code", bytes: config.base_bytes },
        LedgerItem { name: "stacks", bytes: config.stack_bytes },
        LedgerItem { name: "vocabulary", bytes: tokenizer.memory_bytes() as u64 },
    ];
    let request = Request {
        header,
        uses: model.uses(),
        experts: hparams
            .experts
            .as_ref()
            .map(|e| Experts { n: e.n_expert, n_used: e.n_expert_used }),
        whole_texts: model.kind() == ModelKind::Encoder,
        n_ctx_train: hparams.n_ctx_train,
        fixed: &fixed,
        js_buffer_bytes: source.buffer_bytes(),
        limits: Limits {
            budget_bytes: config.budget_bytes,
            device_bytes: config.device_bytes,
            max_linear_bytes: cfg!(target_arch = "wasm32").then_some(MAX_LINEAR_BYTES),
            host_bytes: config.host_bytes,
        },
        wishes: Wishes {
            n_ctx: config.n_ctx,
            n_batch: config.n_batch,
            kv: config.kv_type(),
            all_logits: config.all_logits,
            // Without reading ahead one slot does, and more stays resident.
            prefetch: config.prefetch && (config.reads_beside || !source.reads_at_once()),
            n_slots: config.n_slots,
            slot_bytes: config.slot_bytes,
            force: config.force,
            streaming: source.rereads(),
        },
    };
    plan(&request, &|shape| price(model, tokenizer, shape, config))
}

/// An encoder has no position beyond those that it was trained for, and reads a text in one piece.
fn check_encoder_wishes(config: &OpenConfig, n_ctx_train: u32) -> Result<()> {
    let refused = |key: &'static str, message: String| {
        Err(Error::new(ErrorKind::InvalidOption, message).with("key", key))
    };
    if let Some(n) = config.n_ctx.filter(|n| *n > n_ctx_train) {
        return refused(
            "context",
            format!("option 'context' is {n}: this encoder has {n_ctx_train} positions"),
        );
    }
    if config.n_batch.is_some() {
        let why =
            "an encoder reads a text in one piece, as long as 'context' says: leave 'batch' out";
        return refused("batch", why.to_owned());
    }
    Ok(())
}

fn price(model: &Model, tokenizer: &Tokenizer, shape: &Shape, config: &OpenConfig) -> SessionBytes {
    let n_vocab = u64::from(model.hparams().n_vocab);
    let (n_ctx, history) = (u64::from(shape.n_ctx), 4 * u64::from(shape.n_ctx));
    let mut memory = model.memory(shape);
    let team_bytes = |shape| model.team_bytes(shape, config.n_threads);
    memory.scratch_bytes = memory.scratch_bytes.saturating_add(team_bytes(shape));
    // What the stop filter holds back comes on top of what the detokenizer gives; the caller's own stop strings are the caller's.
    let text = Detokenizer::memory_bytes(tokenizer) + Detokenizer::max_text_bytes(tokenizer);
    let mut session_bytes = Sampler::max_bytes(n_vocab, n_ctx) + history + text as u64;
    // An encoder's own sequence is the one for texts.
    if config.embeddings && model.kind() == ModelKind::Decoder {
        let shape = embedding_shape(shape.n_ctx, shape.n_batch);
        session_bytes += embedding_bytes(model, &shape, config.n_threads);
    }
    SessionBytes { model: memory, session_bytes }
}

/// What one linear memory can hold: 4 GiB less the page that keeps the last address below 2^32.
const MAX_LINEAR_BYTES: u64 = (1 << 32) - (1 << 16);
