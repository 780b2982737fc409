//! Qwen 2 (biases on queries, keys and values) and Qwen 3 (norms on the heads of queries and keys, or experts too).

use crate::kernels::RopePairing;
use crate::model::blocks::{Attention, AttentionBiases, Head, Joint, QkNorm};
use crate::model::emitter::{Emitter, Result};
use crate::model::program::Weighting;

/// Qwen 2 without experts, 2.5 included.
pub(crate) fn qwen2(e: &mut Emitter<'_>) -> Result<()> {
    qwen(e, AttentionBiases::QueryKeyValue, QkNorm::None)
}

/// Dense, or with experts as `qwen3moe`.
pub(crate) fn qwen3(e: &mut Emitter<'_>) -> Result<()> {
    qwen(e, AttentionBiases::Optional, QkNorm::PerHead)
}

fn qwen(e: &mut Emitter<'_>, biases: AttentionBiases, qk_norm: QkNorm) -> Result<()> {
    let rope = e.file_rope(RopePairing::HalfSplit)?;
    let plain = Attention::plain(Some(rope), e.attention_scale());
    let attention = Attention { biases, qk_norm, ..plain };
    e.embedding(1.0)?;
    for layer in 0..e.hp.n_layer {
        e.attention(layer, &attention)?;
        e.silu_feed_forward(layer, Joint::PRE_NORM, Weighting::Normalized)?;
    }
    e.head(&Head::default())
}
