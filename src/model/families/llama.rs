//! Llama and what calls itself so: Mistral, Mixtral, SmolLM2, TinyLlama.

use crate::kernels::RopePairing;
use crate::model::blocks::{Attention, Head, Joint};
use crate::model::emitter::{Emitter, Result};
use crate::model::program::Weighting;

/// Pre-norm, neighbours rotated, SiLU; experts where the file has them.
pub(crate) fn llama(e: &mut Emitter<'_>) -> Result<()> {
    let rope = e.file_rope(RopePairing::Interleaved)?;
    let attention = Attention::plain(Some(rope), e.attention_scale());
    e.embedding(1.0)?;
    for layer in 0..e.hp.n_layer {
        e.attention(layer, &attention)?;
        e.silu_feed_forward(layer, Joint::PRE_NORM, Weighting::Normalized)?;
    }
    e.head(&Head::default())
}
