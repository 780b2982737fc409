//! Granite: Llama with a factor on the embeddings, on what each block gives, on the scores, and a divisor of the logits.

use crate::kernels::RopePairing;
use crate::model::blocks::{Attention, Head, Joint};
use crate::model::emitter::{Emitter, Result};
use crate::model::program::Weighting;

/// Granite without experts.
pub(crate) fn granite(e: &mut Emitter<'_>) -> Result<()> {
    let hp = e.hp;
    let logit_divisor = hp.require("logit_scale", hp.logit_scale)?;
    // The file says "finetuned" when it means "has a rotary embedding".
    let rotated = hp.rope.finetuned.unwrap_or(true);
    let rope = if rotated { Some(e.file_rope(RopePairing::Interleaved)?) } else { None };
    let joint = Joint { scale: hp.residual_scale.unwrap_or(1.0), ..Joint::PRE_NORM };
    let attention = Attention { joint, ..Attention::plain(rope, e.attention_scale()) };
    e.embedding(hp.embedding_scale.unwrap_or(1.0))?;
    for layer in 0..hp.n_layer {
        e.attention(layer, &attention)?;
        e.silu_feed_forward(layer, joint, Weighting::Normalized)?;
    }
    e.head(&Head { scale: Some(1.0 / logit_divisor), softcap: None })
}
