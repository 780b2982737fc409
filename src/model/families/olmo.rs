//! OLMo 2 and 3 (norms after the blocks only, queries and keys normalised over all heads together; windows on three of
//! four layers where the file names one) and OLMoE (the same norms of queries and keys, but pre-norm and with experts).

use crate::kernels::RopePairing;
use crate::model::blocks::{Attention, Head, Joint, QkNorm};
use crate::model::emitter::{Emitter, Result};
use crate::model::hparams::WindowLayers;
use crate::model::program::Weighting;

/// OLMo 2, and OLMo 3 under the same name.
pub(crate) fn olmo2(e: &mut Emitter<'_>) -> Result<()> {
    let hp = e.hp;
    let windowed = hp.window_layers.clone().unwrap_or(WindowLayers::Period(4));
    let global = e.file_rope(RopePairing::HalfSplit)?;
    let local = e.window_rope(global, RopePairing::HalfSplit, hp.rope.freq_base);
    let plain = Attention {
        joint: Joint::POST_NORM,
        qk_norm: QkNorm::AllHeads,
        ..Attention::plain(Some(global), e.attention_scale())
    };
    e.embedding(1.0)?;
    for layer in 0..hp.n_layer {
        let window = hp.n_window.filter(|_| windowed.contains(layer));
        let rope = if window.is_some() { local } else { global };
        e.attention(layer, &Attention { rope: Some(rope), window, ..plain })?;
        e.silu_feed_forward(layer, Joint::POST_NORM, Weighting::Normalized)?;
    }
    e.head(&Head::default())
}

/// The probabilities of the chosen experts are used as they are.
pub(crate) fn olmoe(e: &mut Emitter<'_>) -> Result<()> {
    let rope = e.file_rope(RopePairing::HalfSplit)?;
    let plain = Attention::plain(Some(rope), e.attention_scale());
    let attention = Attention { qk_norm: QkNorm::AllHeads, ..plain };
    e.embedding(1.0)?;
    for layer in 0..e.hp.n_layer {
        e.attention(layer, &attention)?;
        e.silu_feed_forward(layer, Joint::PRE_NORM, Weighting::Probability)?;
    }
    e.head(&Head::default())
}
