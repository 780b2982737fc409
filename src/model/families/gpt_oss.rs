//! gpt-oss: experts and attention with biases everywhere, a sink for each head, windows on every other layer.

use crate::kernels::RopePairing;
use crate::model::blocks::{Attention, AttentionBiases, ExpertBiases, Experts, Head, Joint};
use crate::model::emitter::{Emitter, Result};
use crate::model::hparams::WindowLayers;
use crate::model::program::{Gating, Weighting};

/// The norm before the experts goes by the name of one after attention.
pub(crate) fn gpt_oss(e: &mut Emitter<'_>) -> Result<()> {
    let hp = e.hp;
    let n_window = hp.require("attention.sliding_window", hp.n_window)?;
    let windowed = hp.window_layers.clone().unwrap_or(WindowLayers::Period(2));
    hp.require_one_rope_base()?;
    let experts = hp.require("expert_count", hp.experts)?;
    let block = Experts {
        joint: Joint::PRE_NORM,
        norm: "post_attention_norm",
        gating: Gating::ClampedSilu,
        weighting: Weighting::SoftmaxOfChosen,
        biases: ExpertBiases::All,
    };
    let rope = e.file_rope(RopePairing::HalfSplit)?;
    let plain = Attention {
        biases: AttentionBiases::All,
        has_sinks: true,
        ..Attention::plain(Some(rope), e.attention_scale())
    };
    e.embedding(1.0)?;
    for layer in 0..hp.n_layer {
        let window = windowed.contains(layer).then_some(n_window);
        e.attention(layer, &Attention { window, ..plain })?;
        e.experts(layer, experts, &block)?;
    }
    e.head(&Head::default())
}
