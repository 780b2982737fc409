//! Llama and what calls itself so: Mistral, Mixtral, SmolLM2, TinyLlama.

use crate::kernels::RopePairing;
use crate::model::blocks::{Attention, Experts, FeedForward, GateWeights, Head, Joint, QkNorm};
use crate::model::emitter::{Emitter, Result};
use crate::model::program::{Gating, Weighting};

/// Pre-norm, neighbours rotated, SiLU; experts where the file has them.
pub(crate) fn llama(e: &mut Emitter<'_>) -> Result<()> {
    let rope = e.file_rope(RopePairing::Interleaved)?;
    let attention = Attention {
        joint: Joint::PRE_NORM,
        qk_norm: QkNorm::None,
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

impl Emitter<'_> {
    /// The feed-forward block that most families share: SiLU, with experts where the file has them.
    pub(crate) fn silu_feed_forward(
        &mut self,
        layer: u32,
        joint: Joint,
        weighting: Weighting,
    ) -> Result<()> {
        let gating = Gating::Silu;
        match self.hp.experts {
            Some(hp) => self.experts(layer, hp, &Experts { joint, gating, weighting }),
            None => self
                .feed_forward(layer, &FeedForward { joint, gating, gate: GateWeights::Separate }),
        }
    }
}
