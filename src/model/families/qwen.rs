//! Qwen 2 (biases on queries, keys and values) and Qwen 3 (norms on the heads of queries and keys, or experts too).

use crate::kernels::RopePairing;
use crate::model::blocks::{Attention, Head, Joint, QkNorm};
use crate::model::emitter::{Emitter, Result};
use crate::model::program::Weighting;

/// The biases are tensors that the attention block finds by itself.
pub(crate) fn qwen2(e: &mut Emitter<'_>) -> Result<()> {
    qwen(e, QkNorm::None)
}

/// Dense, or with experts as `qwen3moe`.
pub(crate) fn qwen3(e: &mut Emitter<'_>) -> Result<()> {
    qwen(e, QkNorm::PerHead)
}

fn qwen(e: &mut Emitter<'_>, qk_norm: QkNorm) -> Result<()> {
    let rope = e.file_rope(RopePairing::HalfSplit)?;
    let attention = Attention {
        joint: Joint::PRE_NORM,
        qk_norm,
        rope: Some(rope),
        window: None,
        scale: e.attention_scale(),
        softcap: None,
    };
    e.embedding(1.0)?;
    for layer in 0..e.hp.n_layer {
        e.attention(layer, &attention)?;
        e.silu_feed_forward(layer, Joint::PRE_NORM, Weighting::Normalized)?;
    }
    e.head(&Head::default())
}
