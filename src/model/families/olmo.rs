//! OLMo 2 and 3 (norms after the blocks only, queries and keys normalised over all heads together; windows on three of
//! four layers where the file names one) and OLMoE (the same norms of queries and keys, but pre-norm and with experts).

use crate::kernels::RopePairing;
use crate::model::blocks::{Attention, Head, Joint, QkNorm};
use crate::model::emitter::{Emitter, Result};
use crate::model::hparams::{RopeHparams, RopeScaling, WindowLayers};
use crate::model::program::Weighting;
use crate::model::rope::RopeFactors;

/// OLMo 2, and OLMo 3 under the same name.
pub(crate) fn olmo2(e: &mut Emitter<'_>) -> Result<()> {
    let hp = e.hp;
    let windowed = hp.window_layers.clone().unwrap_or(WindowLayers::Period(4));
    let global = e.file_rope(RopePairing::HalfSplit)?;
    let local = match hp.n_window {
        Some(_) => e.rope(&local_rope(&hp.rope), RopePairing::HalfSplit, RopeFactors::None),
        None => global,
    };
    let scale = e.attention_scale();
    e.embedding(1.0)?;
    for layer in 0..hp.n_layer {
        let window = hp.n_window.filter(|_| windowed.contains(layer));
        let attention = Attention {
            joint: Joint::POST_NORM,
            qk_norm: QkNorm::AllHeads,
            rope: Some(if window.is_some() { local } else { global }),
            window,
            scale,
            softcap: None,
        };
        e.attention(layer, &attention)?;
        e.silu_feed_forward(layer, Joint::POST_NORM, Weighting::Normalized)?;
    }
    e.head(&Head::default())
}

/// The probabilities of the chosen experts are used as they are.
pub(crate) fn olmoe(e: &mut Emitter<'_>) -> Result<()> {
    let rope = e.file_rope(RopePairing::HalfSplit)?;
    let attention = Attention {
        joint: Joint::PRE_NORM,
        qk_norm: QkNorm::AllHeads,
        rope: Some(rope),
        window: None,
        scale: e.attention_scale(),
        softcap: None,
    };
    e.embedding(1.0)?;
    for layer in 0..e.hp.n_layer {
        e.attention(layer, &attention)?;
        e.silu_feed_forward(layer, Joint::PRE_NORM, Weighting::Probability)?;
    }
    e.head(&Head::default())
}

/// Windowed layers see no further than they were trained: their positions are not scaled.
fn local_rope(hp: &RopeHparams) -> RopeHparams {
    let freq_base = hp.freq_base_window.unwrap_or(hp.freq_base);
    RopeHparams { freq_base, scaling: RopeScaling::None, attn_factor: 1.0, ..hp.clone() }
}
