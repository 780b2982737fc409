//! Encoders: BERT (learned positions, biases, GELU) and Nomic's (rotary embedding, a gate with SiLU). Each token sees all others
//! of its text, and the norms come after the blocks, on the residual stream itself.

use crate::kernels::RopePairing;
use crate::model::blocks::{Attention, AttentionBiases, GateWeights, Joint};
use crate::model::emitter::{Emitter, Presence, Result};
use crate::model::program::{Buf, Gating, Op, Part, RopeId, Rows, ScoringRule, Seen};
use crate::model::uses::Phase;

/// BERT, and what was trained from it: `MiniLM`, BGE, E5, GTE.
pub(crate) fn bert(e: &mut Emitter<'_>) -> Result<()> {
    text_embedding(e, true)?;
    let (n_embd, n_ff) = (e.hp.n_embd, e.hp.n_ff);
    layers(e, None, AttentionBiases::All, |e, layer| {
        let name = |what: &str| format!("blk.{layer}.{what}");
        let up = [Part { output: Buf::Gate, n_rows: n_ff }];
        e.matmul(&name("ffn_up.weight"), Buf::Residual, n_embd, &up)?;
        e.bias(&name("ffn_up.bias"), Buf::Gate, n_ff, Presence::Required)?;
        e.push(Op::Gelu { width: n_ff });
        down(e, layer, Presence::Required)
    })
}

/// Nomic's BERT without experts.
pub(crate) fn nomic_bert(e: &mut Emitter<'_>) -> Result<()> {
    let rope = e.file_rope(RopePairing::HalfSplit)?;
    text_embedding(e, false)?;
    let n_ff = e.hp.n_ff;
    layers(e, Some(rope), AttentionBiases::Optional, |e, layer| {
        e.gate_and_up(layer, Buf::Residual, GateWeights::Separate)?;
        e.push(Op::Combine { gating: Gating::Silu, rows: Rows::Tokens, width: n_ff });
        down(e, layer, Presence::Optional)
    })
}

/// Rows by token, the first kind of token's for all of them, and rows by position where positions are learned.
fn text_embedding(e: &mut Emitter<'_>, has_positions: bool) -> Result<()> {
    let (n_embd, n_types) = (e.hp.n_embd, e.hp.n_token_types);
    e.embedding(1.0)?;
    if n_types > 0 {
        let vector = e.first_row("token_types.weight", &[n_embd, n_types])?;
        e.push(Op::Bias { buf: Buf::Residual, vector, at: 0, width: n_embd });
    }
    if has_positions {
        let table = e.tensors.require("position_embd.weight", &[n_embd, e.hp.n_ctx_train])?;
        let use_index = e.add_use(&table, false);
        let n_rows = table.n_rows;
        e.push(Op::AddRows { use_index, ty: table.ty, width: n_embd, n_rows });
    }
    e.layer_norm("token_embd_norm", Buf::Residual, Buf::Residual)
}

/// All layers; the last one's norm leaves its result where a head would read it.
fn layers(
    e: &mut Emitter<'_>,
    rope: Option<RopeId>,
    biases: AttentionBiases,
    feed_forward: impl Fn(&mut Emitter<'_>, u32) -> Result<()>,
) -> Result<()> {
    let hp = e.hp;
    let (n_embd, n_head, n_head_kv, head_dim) = (hp.n_embd, hp.n_head, hp.n_head_kv, hp.head_dim);
    let scale = e.attention_scale();
    let rotation = Attention { joint: Joint::POST_NORM, biases, ..Attention::plain(rope, scale) };
    let presence = if rotation.biases == AttentionBiases::All {
        Presence::Required
    } else {
        Presence::Optional
    };
    for layer in 0..hp.n_layer {
        let name = |what: &str| format!("blk.{layer}.{what}");
        e.begin(Phase::Layer(layer));
        e.query_key_value(layer, Buf::Residual, biases)?;
        e.norm_and_rotate(layer, Buf::Query, n_head, &rotation)?;
        e.norm_and_rotate(layer, Buf::Key, n_head_kv, &rotation)?;
        let scoring = ScoringRule { scale, softcap: None, sinks: None };
        e.push(Op::Attend { seen: Seen::Text, n_head, n_head_kv, head_dim, scoring });
        let parts = [Part { output: Buf::Hidden, n_rows: n_embd }];
        e.matmul(&name("attn_output.weight"), Buf::Query, n_head * head_dim, &parts)?;
        e.bias(&name("attn_output.bias"), Buf::Hidden, n_embd, presence)?;
        e.push(Op::AddResidual { width: n_embd, scale: 1.0 });
        e.layer_norm(&name("attn_output_norm"), Buf::Residual, Buf::Residual)?;
        feed_forward(e, layer)?;
        e.push(Op::AddResidual { width: n_embd, scale: 1.0 });
        let output = if layer + 1 == hp.n_layer { Buf::Hidden } else { Buf::Residual };
        e.layer_norm(&name("layer_output_norm"), Buf::Residual, output)?;
    }
    Ok(())
}

fn down(e: &mut Emitter<'_>, layer: u32, presence: Presence) -> Result<()> {
    let (n_embd, n_ff) = (e.hp.n_embd, e.hp.n_ff);
    let parts = [Part { output: Buf::Hidden, n_rows: n_embd }];
    e.matmul(&format!("blk.{layer}.ffn_down.weight"), Buf::Gate, n_ff, &parts)?;
    e.bias(&format!("blk.{layer}.ffn_down.bias"), Buf::Hidden, n_embd, presence)
}
