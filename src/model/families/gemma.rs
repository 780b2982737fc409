//! Gemma 1, 2 and 3: embeddings times `sqrt(n_embd)`, GELU, a tied head; norms as stored (the file has the +1 in them).
//! Gemma 2 adds norms after the blocks, soft caps and windows on every other layer; Gemma 3 norms of queries and keys,
//! windows on five of six layers, and another RoPE base on those.

use crate::kernels::RopePairing;
use crate::model::blocks::{
    Attention, FeedForward, GateWeights, Head, Joint, QkNorm, inverse_sqrt,
};
use crate::model::emitter::{Emitter, Result};
use crate::model::hparams::{Hparams, RopeHparams, RopeScaling, WindowLayers};
use crate::model::program::Gating;
use crate::model::rope::RopeFactors;

/// Gemma 1.
pub(crate) fn gemma(e: &mut Emitter<'_>) -> Result<()> {
    let rope = e.file_rope(RopePairing::HalfSplit)?;
    let attention = Attention {
        joint: Joint::PRE_NORM,
        qk_norm: QkNorm::None,
        rope: Some(rope),
        window: None,
        scale: e.attention_scale(),
        softcap: None,
    };
    layers(e, |_| attention, Head::default())
}

/// Gemma 2.
pub(crate) fn gemma2(e: &mut Emitter<'_>) -> Result<()> {
    let hp = e.hp;
    let n_window = hp.require("attention.sliding_window", hp.n_window)?;
    let windowed = hp.window_layers.clone().unwrap_or(WindowLayers::Period(2));
    let softcap = hp.require("attn_logit_softcapping", hp.attention_softcap)?;
    let final_softcap = hp.require("final_logit_softcapping", hp.final_softcap)?;
    let rope = e.file_rope(RopePairing::HalfSplit)?;
    let attention = |layer| Attention {
        joint: Joint::BOTH_NORMS,
        qk_norm: QkNorm::None,
        rope: Some(rope),
        window: windowed.contains(layer).then_some(n_window),
        scale: attention_scale(hp, 46),
        softcap: Some(softcap),
    };
    layers(e, attention, Head { scale: None, softcap: Some(final_softcap) })
}

/// Gemma 3, text only.
pub(crate) fn gemma3(e: &mut Emitter<'_>) -> Result<()> {
    let hp = e.hp;
    let windowed = hp.window_layers.clone().unwrap_or(WindowLayers::Period(6));
    let global = e.file_rope(RopePairing::HalfSplit)?;
    let local = match hp.n_window {
        Some(_) => e.rope(&local_rope(&hp.rope), RopePairing::HalfSplit, RopeFactors::None),
        None => global,
    };
    let attention = |layer| {
        let window = hp.n_window.filter(|_| windowed.contains(layer));
        Attention {
            joint: Joint::BOTH_NORMS,
            qk_norm: QkNorm::PerHead,
            rope: Some(if window.is_some() { local } else { global }),
            window,
            scale: attention_scale(hp, 62),
            softcap: None,
        }
    };
    layers(e, attention, Head { scale: None, softcap: hp.final_softcap })
}

fn layers(e: &mut Emitter<'_>, attention: impl Fn(u32) -> Attention, head: Head) -> Result<()> {
    #[allow(clippy::cast_precision_loss, reason = "a width is far below 2^24")]
    e.embedding((e.hp.n_embd as f32).sqrt())?;
    for layer in 0..e.hp.n_layer {
        let attention = attention(layer);
        e.attention(layer, &attention)?;
        let gate = GateWeights::Separate;
        e.feed_forward(layer, &FeedForward { joint: attention.joint, gating: Gating::Gelu, gate })?;
    }
    e.head(&head)
}

/// The 27B models, which are known by their depth, scale by the width that a head would have if heads filled the
/// residual stream. The file does not say it.
fn attention_scale(hp: &Hparams, n_layer_of_27b: u32) -> f32 {
    let width = if hp.n_layer == n_layer_of_27b { hp.n_embd / hp.n_head } else { hp.head_dim };
    hp.attention_scale.unwrap_or_else(|| inverse_sqrt(width))
}

/// Windowed layers rotate by a base of their own and never further than they were trained.
fn local_rope(hp: &RopeHparams) -> RopeHparams {
    let freq_base = hp.freq_base_window.unwrap_or(10_000.0);
    RopeHparams { freq_base, scaling: RopeScaling::None, attn_factor: 1.0, ..hp.clone() }
}
