//! The attention block: projections, norms and rotation of queries and keys, the cache, attention, output projection.

use super::Joint;
use crate::model::emitter::{Emitter, Presence, Result};
use crate::model::kv_cache::KvLayer;
use crate::model::program::{Buf, Op, Part, RopeId, Scope, ScoringRule, Seen};
use crate::model::uses::Phase;

/// What differs between attention blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Attention {
    /// How the block is joined to the residual stream.
    pub(crate) joint: Joint,
    /// Which projections must have a bias.
    pub(crate) biases: AttentionBiases,
    /// Norms of queries and keys.
    pub(crate) qk_norm: QkNorm,
    /// The rotary embedding; `None`: this layer has none.
    pub(crate) rope: Option<RopeId>,
    /// Sliding window.
    pub(crate) window: Option<u32>,
    /// Factor of the scores.
    pub(crate) scale: f32,
    /// Soft cap of the scores.
    pub(crate) softcap: Option<f32>,
    /// Whether each head has a score without a value (`attn_sinks`).
    pub(crate) has_sinks: bool,
}

impl Attention {
    /// Llama's: pre-norm, and nothing but a rotary embedding. Other families name what they add.
    pub(crate) const fn plain(rope: Option<RopeId>, scale: f32) -> Self {
        Self {
            joint: Joint::PRE_NORM,
            biases: AttentionBiases::Optional,
            qk_norm: QkNorm::None,
            rope,
            window: None,
            scale,
            softcap: None,
            has_sinks: false,
        }
    }
}

/// Which projections must have a bias. One that the file has is used in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttentionBiases {
    /// None of them.
    Optional,
    /// Queries, keys and values.
    QueryKeyValue,
    /// The output projection too.
    All,
}

/// Norms of queries and keys, before they are rotated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QkNorm {
    /// There are none.
    None,
    /// Each head by itself.
    PerHead,
    /// All heads of a token together.
    AllHeads,
}

impl Emitter<'_> {
    /// Factor of the attention scores: the file's, or `1/sqrt(head_dim)`.
    pub(crate) fn attention_scale(&self) -> f32 {
        self.hp.attention_scale.unwrap_or_else(|| inverse_sqrt(self.hp.head_dim))
    }

    /// The attention block of `layer`.
    pub(crate) fn attention(&mut self, layer: u32, a: &Attention) -> Result<()> {
        let hp = self.hp;
        let (n_embd, n_head, n_head_kv, head_dim) =
            (hp.n_embd, hp.n_head, hp.n_head_kv, hp.head_dim);
        let name = |what: &str| format!("blk.{layer}.{what}");
        self.begin(Phase::Layer(layer));
        // Of the last layer only the wanted tokens go on, but every token leaves its key and value.
        self.scope = Scope::All;
        let input = if a.joint.norm_before {
            self.rms_norm(&name("attn_norm.weight"), Buf::Residual, Buf::Hidden, n_embd)?;
            Buf::Hidden
        } else {
            Buf::Residual
        };
        self.query_key_value(layer, input, a.biases)?;
        self.norm_and_rotate(layer, Buf::Query, n_head, a)?;
        self.norm_and_rotate(layer, Buf::Key, n_head_kv, a)?;
        self.add_kv(KvLayer { n_head_kv, head_dim, window: a.window });
        self.push(Op::KvWrite { layer });
        self.scope = self.scope_after_kv(layer);
        let sinks = if a.has_sinks {
            Some(self.vector(&name("attn_sinks.weight"), &[n_head])?)
        } else {
            None
        };
        let scoring = ScoringRule { scale: a.scale, softcap: a.softcap, sinks };
        self.push(Op::Attend { seen: Seen::Past(layer), n_head, n_head_kv, head_dim, scoring });
        let parts = [Part { output: Buf::Hidden, n_rows: n_embd }];
        self.matmul(&name("attn_output.weight"), Buf::Query, n_head * head_dim, &parts)?;
        let presence = presence(a.biases == AttentionBiases::All);
        self.bias(&name("attn_output.bias"), Buf::Hidden, n_embd, presence)?;
        if a.joint.norm_after {
            let post = name("post_attention_norm.weight");
            self.rms_norm(&post, Buf::Hidden, Buf::Hidden, n_embd)?;
        }
        self.push(Op::AddResidual { width: n_embd, scale: a.joint.scale });
        Ok(())
    }

    /// The three projections: one fused tensor, or three in the order of the file.
    pub(crate) fn query_key_value(
        &mut self,
        layer: u32,
        input: Buf,
        biases: AttentionBiases,
    ) -> Result<()> {
        let hp = self.hp;
        let (q, kv) = (hp.n_head * hp.head_dim, hp.n_head_kv * hp.head_dim);
        let name = |what: &str| format!("blk.{layer}.{what}");
        let parts = [
            Part { output: Buf::Query, n_rows: q },
            Part { output: Buf::Key, n_rows: kv },
            Part { output: Buf::Value, n_rows: kv },
        ];
        if self.tensors.has(&name("attn_qkv.weight")) {
            self.matmul(&name("attn_qkv.weight"), input, hp.n_embd, &parts)?;
            if self.tensors.has(&name("attn_qkv.bias")) {
                let vector = self.vector(&name("attn_qkv.bias"), &[q + 2 * kv])?;
                for (part, at) in parts.iter().zip([0, q, q + kv]) {
                    self.push(Op::Bias { buf: part.output, vector, at, width: part.n_rows });
                }
            }
            return Ok(());
        }
        let mut each = [("attn_q", parts[0]), ("attn_k", parts[1]), ("attn_v", parts[2])];
        each.sort_by_key(|(what, _)| self.tensors.place(&name(&format!("{what}.weight"))));
        for (what, part) in each {
            let scope = self.scope_of(layer, part.output);
            let weight = name(&format!("{what}.weight"));
            self.matmul_for(&weight, input, hp.n_embd, &[part], scope)?;
            let presence = presence(biases != AttentionBiases::Optional);
            self.bias(&name(&format!("{what}.bias")), part.output, part.n_rows, presence)?;
        }
        Ok(())
    }

    /// The tokens whose queries, keys or values are needed.
    fn scope_of(&self, layer: u32, buf: Buf) -> Scope {
        if buf == Buf::Query { self.scope_after_kv(layer) } else { Scope::All }
    }

    pub(crate) fn norm_and_rotate(
        &mut self,
        layer: u32,
        buf: Buf,
        n_head: u32,
        a: &Attention,
    ) -> Result<()> {
        let head_dim = self.hp.head_dim;
        let scope = self.scope_of(layer, buf);
        let (width, groups) = match a.qk_norm {
            QkNorm::None => (0, 0),
            QkNorm::PerHead => (head_dim, n_head),
            QkNorm::AllHeads => (n_head * head_dim, 1),
        };
        if groups > 0 {
            let what = if buf == Buf::Query { "attn_q_norm" } else { "attn_k_norm" };
            let weight = self.vector(&format!("blk.{layer}.{what}.weight"), &[width])?;
            let eps = self.rms_eps()?;
            self.push_for(
                Op::RmsNorm { input: buf, output: buf, weight, width, groups, eps },
                scope,
            );
        }
        if let Some(rope) = a.rope {
            self.push_for(Op::Rotate { buf, rope, n_head, head_dim }, scope);
        }
        Ok(())
    }
}

const fn presence(required: bool) -> Presence {
    if required { Presence::Required } else { Presence::Optional }
}

/// `1/sqrt(n)`.
#[allow(clippy::cast_precision_loss, reason = "a width is far below 2^24")]
pub(crate) fn inverse_sqrt(n: u32) -> f32 {
    1.0 / (n as f32).sqrt()
}
