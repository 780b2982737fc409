//! The gated feed-forward network: `down(f(gate(x)) * up(x))`.

use super::{ExpertBiases, Experts, Joint};
use crate::model::emitter::{Emitter, Presence, Result};
use crate::model::program::{Buf, Gating, Op, Part, Rows, Weighting};

/// What differs between feed-forward networks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FeedForward {
    /// How the block is joined to the residual stream.
    pub(crate) joint: Joint,
    /// The function of the gate.
    pub(crate) gating: Gating,
    /// Where the gate's weights are.
    pub(crate) gate: GateWeights,
}

/// Where the gate's weights are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GateWeights {
    /// In `ffn_gate`.
    Separate,
    /// In the first half of `ffn_up`.
    FusedWithUp,
}

impl Emitter<'_> {
    /// The feed-forward block of `layer`.
    pub(crate) fn feed_forward(&mut self, layer: u32, ffn: &FeedForward) -> Result<()> {
        let (n_embd, n_ff) = (self.hp.n_embd, self.hp.n_ff);
        let name = |what: &str| format!("blk.{layer}.{what}");
        let input = self.enter_feed_forward(layer, ffn.joint, FFN_NORM)?;
        self.gate_and_up(layer, input, ffn.gate)?;
        self.push(Op::Combine { gating: ffn.gating, rows: Rows::Tokens, width: n_ff });
        let parts = [Part { output: Buf::Hidden, n_rows: n_embd }];
        self.matmul(&name("ffn_down.weight"), Buf::Gate, n_ff, &parts)?;
        self.bias(&name("ffn_down.bias"), Buf::Hidden, n_embd, Presence::Optional)?;
        self.leave_feed_forward(layer, ffn.joint)
    }

    /// The feed-forward block that most families share: SiLU, with experts where the file has them.
    pub(crate) fn silu_feed_forward(
        &mut self,
        layer: u32,
        joint: Joint,
        weighting: Weighting,
    ) -> Result<()> {
        let gating = Gating::Silu;
        let Some(hp) = self.hp.experts else {
            return self
                .feed_forward(layer, &FeedForward { joint, gating, gate: GateWeights::Separate });
        };
        let (norm, biases) = (FFN_NORM, ExpertBiases::None);
        self.experts(layer, hp, &Experts { joint, norm, gating, weighting, biases })
    }

    /// The norm before the block, under the name that the architecture has for it; gives the buffer that the block works on.
    pub(super) fn enter_feed_forward(
        &mut self,
        layer: u32,
        joint: Joint,
        norm: &str,
    ) -> Result<Buf> {
        self.scope = self.scope_after_kv(layer);
        if !joint.norm_before {
            return Ok(Buf::Residual);
        }
        let norm = format!("blk.{layer}.{norm}.weight");
        self.rms_norm(&norm, Buf::Residual, Buf::Hidden, self.hp.n_embd)?;
        Ok(Buf::Hidden)
    }

    /// The norm after the block, and back into the residual stream.
    pub(super) fn leave_feed_forward(&mut self, layer: u32, joint: Joint) -> Result<()> {
        let n_embd = self.hp.n_embd;
        if joint.norm_after {
            let norm = format!("blk.{layer}.post_ffw_norm.weight");
            self.rms_norm(&norm, Buf::Hidden, Buf::Hidden, n_embd)?;
        }
        self.push(Op::AddResidual { width: n_embd, scale: joint.scale });
        Ok(())
    }

    /// Both projections: one fused tensor under the name of `ffn_up`, or two in the order of the file.
    pub(crate) fn gate_and_up(
        &mut self,
        layer: u32,
        input: Buf,
        weights: GateWeights,
    ) -> Result<()> {
        let (n_embd, n_ff) = (self.hp.n_embd, self.hp.n_ff);
        let name = |what: &str| format!("blk.{layer}.{what}");
        let (gate, up) =
            (Part { output: Buf::Gate, n_rows: n_ff }, Part { output: Buf::Up, n_rows: n_ff });
        if weights == GateWeights::FusedWithUp {
            return self.matmul(&name("ffn_up.weight"), input, n_embd, &[gate, up]);
        }
        let mut each = [("ffn_gate", gate), ("ffn_up", up)];
        each.sort_by_key(|(what, _)| self.tensors.place(&name(&format!("{what}.weight"))));
        for (what, part) in each {
            self.matmul(&name(&format!("{what}.weight")), input, n_embd, &[part])?;
            self.bias(&name(&format!("{what}.bias")), part.output, n_ff, Presence::Optional)?;
        }
        Ok(())
    }
}

/// The usual name of the norm before the block.
const FFN_NORM: &str = "ffn_norm";
