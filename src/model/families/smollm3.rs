//! SmolLM 3: Llama, but every fourth layer has no rotary embedding.

use crate::kernels::RopePairing;
use crate::model::blocks::{Attention, Head, Joint};
use crate::model::emitter::{Emitter, Result};
use crate::model::program::Weighting;

/// SmolLM 3.
pub(crate) fn smollm3(e: &mut Emitter<'_>) -> Result<()> {
    let rope = e.file_rope(RopePairing::Interleaved)?;
    let scale = e.attention_scale();
    e.embedding(1.0)?;
    for layer in 0..e.hp.n_layer {
        let rotated = (layer + 1) % UNROTATED_PERIOD != 0;
        e.attention(layer, &Attention::plain(rotated.then_some(rope), scale))?;
        e.silu_feed_forward(layer, Joint::PRE_NORM, Weighting::Normalized)?;
    }
    e.head(&Head::default())
}

/// One layer in so many has no rotary embedding. No key says it.
const UNROTATED_PERIOD: u32 = 4;
