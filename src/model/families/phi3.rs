//! Phi 3 and 4: fused projections, and RoPE factors by the length of the context.

use crate::kernels::RopePairing;
use crate::model::blocks::{Attention, FeedForward, GateWeights, Head, Joint};
use crate::model::emitter::{Emitter, Result};
use crate::model::program::Gating;

/// The sliding window that some files name is not used, as in llama.cpp: their keys do not say which layers have it.
pub(crate) fn phi3(e: &mut Emitter<'_>) -> Result<()> {
    let rope = e.file_rope(RopePairing::HalfSplit)?;
    let attention = Attention::plain(Some(rope), e.attention_scale());
    let ffn = FeedForward {
        joint: Joint::PRE_NORM,
        gating: Gating::Silu,
        gate: GateWeights::FusedWithUp,
    };
    e.embedding(1.0)?;
    for layer in 0..e.hp.n_layer {
        e.attention(layer, &attention)?;
        e.feed_forward(layer, &ffn)?;
    }
    e.head(&Head::default())
}
