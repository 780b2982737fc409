//! Gemma 1, 2 and 3: embeddings times `sqrt(n_embd)`, GELU, a tied head; norms as stored (the file has the +1 in them).
//! Gemma 2 adds norms after the blocks, soft caps and windows on every other layer; Gemma 3 norms of queries and keys,
//! windows on five of six layers, and another RoPE base on those.

use crate::kernels::RopePairing;
use crate::model::blocks::{
    Attention, FeedForward, GateWeights, Head, Joint, QkNorm, inverse_sqrt,
};
use crate::model::emitter::{Emitter, Result};
use crate::model::hparams::{Hparams, WindowLayers};
use crate::model::program::Gating;

/// Gemma 1.
pub(crate) fn gemma(e: &mut Emitter<'_>) -> Result<()> {
    let rope = e.file_rope(RopePairing::HalfSplit)?;
    let attention = Attention::plain(Some(rope), e.attention_scale());
    layers(e, |_| attention, Head::default())
}

/// Gemma 2.
pub(crate) fn gemma2(e: &mut Emitter<'_>) -> Result<()> {
    let hp = e.hp;
    let n_window = hp.require("attention.sliding_window", hp.n_window)?;
    let windowed = hp.window_layers.clone().unwrap_or(WindowLayers::Period(2));
    let softcap = hp.require("attn_logit_softcapping", hp.attention_softcap)?;
    hp.require_one_rope_base()?;
    let final_softcap = hp.require("final_logit_softcapping", hp.final_softcap)?;
    let rope = e.file_rope(RopePairing::HalfSplit)?;
    let attention = |layer| Attention {
        joint: Joint::BOTH_NORMS,
        window: windowed.contains(layer).then_some(n_window),
        softcap: Some(softcap),
        ..Attention::plain(Some(rope), attention_scale(hp, 46))
    };
    layers(e, attention, Head { scale: None, softcap: Some(final_softcap) })
}

/// Gemma 3, text only.
pub(crate) fn gemma3(e: &mut Emitter<'_>) -> Result<()> {
    let hp = e.hp;
    let windowed = hp.window_layers.clone().unwrap_or(WindowLayers::Period(6));
    let global = e.file_rope(RopePairing::HalfSplit)?;
    let local = e.window_rope(global, RopePairing::HalfSplit, 10_000.0);
    let attention = |layer| {
        let window = hp.n_window.filter(|_| windowed.contains(layer));
        let rope = if window.is_some() { local } else { global };
        Attention {
            joint: Joint::BOTH_NORMS,
            qk_norm: QkNorm::PerHead,
            window,
            ..Attention::plain(Some(rope), attention_scale(hp, 62))
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
