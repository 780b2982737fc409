//! A mixture of experts: a router names the experts of each token, their rows of the three-dimensional tensors are uses
//! that the pass names when it gets there, and what they give is weighted and summed in the order of the experts.

use super::Joint;
use crate::model::emitter::{Emitter, Presence, Result};
use crate::model::failure::ModelFailure;
use crate::model::hparams::ExpertHparams;
use crate::model::program::{Buf, Gating, Op, Part, Projection, Rows, VectorId, Weighting};

/// What differs between mixtures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Experts {
    /// How the block is joined to the residual stream.
    pub(crate) joint: Joint,
    /// Name of the norm before the block.
    pub(crate) norm: &'static str,
    /// The function of the gate.
    pub(crate) gating: Gating,
    /// How the chosen experts are weighted.
    pub(crate) weighting: Weighting,
    /// Whether the router and the experts have biases.
    pub(crate) biases: ExpertBiases,
}

/// Whether the router and the experts have biases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpertBiases {
    /// None has.
    None,
    /// All have.
    All,
}

impl Emitter<'_> {
    /// The mixture of `layer`.
    pub(crate) fn experts(&mut self, layer: u32, hp: ExpertHparams, block: &Experts) -> Result<()> {
        let ExpertHparams { n_expert, n_expert_used: n_used, n_ff_expert } = hp;
        let n_embd = self.hp.n_embd;
        let name = |what: &str| format!("blk.{layer}.{what}");
        self.refuse_single_experts(layer)?;
        let input = self.enter_feed_forward(layer, block.joint, block.norm)?;
        let router = [Part { output: Buf::Router, n_rows: n_expert }];
        self.matmul(&name("ffn_gate_inp.weight"), input, n_embd, &router)?;
        if block.biases == ExpertBiases::All {
            self.bias(&name("ffn_gate_inp.bias"), Buf::Router, n_expert, Presence::Required)?;
        }
        self.push(Op::Route { n_expert, n_used, weighting: block.weighting });

        let mut both = [("ffn_gate_exps", Buf::Gate), ("ffn_up_exps", Buf::Up)];
        both.sort_by_key(|(what, _)| self.tensors.place(&name(&format!("{what}.weight"))));
        for (what, output) in both {
            let weight = name(&format!("{what}.weight"));
            let tensor = self.tensors.require(&weight, &[n_embd, n_ff_expert, n_expert])?;
            let projection = Projection {
                use_index: self.add_use(&tensor, true),
                ty: tensor.ty,
                n_in: n_embd,
                n_rows: tensor.n_rows,
                input,
                block: self.block_for(&tensor),
                bias: self.expert_bias(&name(what), n_ff_expert, n_expert, block.biases)?,
            };
            self.push(Op::ExpertIn { projection, output, n_expert, n_used });
        }
        let rows = Rows::Pairs { n_used };
        self.push(Op::Combine { gating: block.gating, rows, width: n_ff_expert });

        let shape = [n_ff_expert, n_embd, n_expert];
        let tensor = self.tensors.require(&name("ffn_down_exps.weight"), &shape)?;
        let rounded_by = self.round_for(&tensor, Buf::Gate, rows);
        let projection = Projection {
            use_index: self.add_use(&tensor, true),
            ty: tensor.ty,
            n_in: n_ff_expert,
            n_rows: tensor.n_rows,
            input: Buf::Gate,
            block: rounded_by,
            bias: self.expert_bias(&name("ffn_down_exps"), n_embd, n_expert, block.biases)?,
        };
        self.push(Op::Clear { buf: Buf::Hidden, width: n_embd });
        self.push(Op::ExpertOut { projection, output: Buf::Hidden, n_expert });
        self.leave_feed_forward(layer, block.joint)
    }

    fn expert_bias(
        &mut self,
        name: &str,
        width: u32,
        n_expert: u32,
        biases: ExpertBiases,
    ) -> Result<Option<VectorId>> {
        match biases {
            ExpertBiases::None => Ok(None),
            ExpertBiases::All => self.vector(&format!("{name}.bias"), &[width, n_expert]).map(Some),
        }
    }

    /// Files of before the three-dimensional tensors have one tensor for each expert.
    fn refuse_single_experts(&self, layer: u32) -> Result<()> {
        let name = format!("blk.{layer}.ffn_gate.0.weight");
        if self.tensors.has(&name) {
            let arch = self.hp.arch.clone();
            return Err(ModelFailure::UnknownTensor { name, arch });
        }
        Ok(())
    }
}
