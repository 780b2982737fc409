//! SmolLM 3: Llama, but every fourth layer has no rotary embedding.

use crate::kernels::RopePairing;
use crate::model::blocks::{Attention, Head, Joint, QkNorm};
use crate::model::emitter::{Emitter, Result};
use crate::model::program::Weighting;

pub(crate) fn smollm3(e: &mut Emitter<'_>) -> Result<()> {
    let rope = e.file_rope(RopePairing::Interleaved)?;
    let scale = e.attention_scale();
    e.embedding(1.0)?;
    for layer in 0..e.hp.n_layer {
        let attention = Attention {
            joint: Joint::PRE_NORM,
            qk_norm: QkNorm::None,
            rope: ((layer + 1) % UNROTATED_PERIOD != 0).then_some(rope),
            window: None,
            scale,
            softcap: None,
        };
        e.attention(layer, &attention)?;
        e.silu_feed_forward(layer, Joint::PRE_NORM, Weighting::Normalized)?;
    }
    e.head(&Head::default())
}

/// One layer in so many has no rotary embedding. No key says it.
const UNROTATED_PERIOD: u32 = 4;
