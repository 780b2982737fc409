//! Writes a [`Program`]: families call its blocks, the blocks call the primitives here. It keeps the list of uses, checks
//! every tensor on the way, and decides where activations are rounded and when a rounded copy can be used again.

use super::config::Precision;
use super::failure::ModelFailure;
use super::hparams::{Hparams, LAYER_NORM_EPS, RMS_EPS, RopeHparams, RopeScaling};
use super::kv_cache::KvLayer;
use super::program::{
    Buf, MAX_PARTS, Op, Part, Program, Projection, RopeId, Rows, Scope, Step, VectorId,
};
use super::rope::{Rope, RopeFactors};
use super::tensors::{Tensor, Tensors};
use super::uses::{Phase, Use};
use crate::gguf::Header;
use crate::kernels::{ActFormat, RopePairing, activation_format};
use crate::quant::GgmlType;

/// A tensor that is kept as f32.
#[derive(Debug, Clone)]
pub(crate) struct Vector {
    /// Its name, for errors about its values.
    pub(crate) name: Box<str>,
    /// Number format in the file.
    pub(crate) ty: GgmlType,
    /// Values.
    pub(crate) len: u32,
    /// Whether its values divide.
    pub(crate) divides: bool,
    /// Where in the pass it is first used, as [`Step`] counts.
    pub(crate) stage: u32,
}

/// Whether a tensor can be absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// It is used if the file has it.
    Optional,
    /// Without it the model is refused.
    Required,
}

/// What comes out of an [`Emitter`].
#[derive(Debug)]
pub(crate) struct Emitted {
    pub(crate) program: Program,
    pub(crate) uses: Vec<Use>,
    pub(crate) vectors: Vec<Vector>,
}

/// The program under construction.
#[derive(Debug)]
pub(crate) struct Emitter<'a> {
    pub(crate) hp: &'a Hparams,
    pub(crate) tensors: Tensors<'a>,
    precision: Precision,
    program: Program,
    vectors: Vec<Vector>,
    open_uses: Vec<Use>,
    pass_uses: Vec<Use>,
    phase: Phase,
    /// What the 8-bit copy holds: which buffer, by which block.
    rounded: Option<(Buf, u32)>,
    /// For which tokens the operations that follow are.
    pub(crate) scope: Scope,
}

pub(crate) type Result<T> = core::result::Result<T, ModelFailure>;

impl<'a> Emitter<'a> {
    pub(crate) fn new(hp: &'a Hparams, header: &'a Header, precision: Precision) -> Self {
        Self {
            hp,
            tensors: Tensors::new(header),
            precision,
            program: Program::default(),
            vectors: Vec::new(),
            open_uses: Vec::new(),
            pass_uses: Vec::new(),
            phase: Phase::Embed,
            rounded: None,
            scope: Scope::All,
        }
    }

    /// The program, once every tensor of the file has its place in it.
    pub(crate) fn finish(mut self) -> Result<Emitted> {
        self.tensors.check_all_asked(&self.hp.arch)?;
        let n_open = self.open_uses.len();
        for step in &mut self.program.steps {
            if let Some(use_index) = step.op.use_index_mut() {
                *use_index += u32::try_from(n_open).unwrap_or(u32::MAX);
            }
        }
        let mut uses = self.open_uses;
        uses.append(&mut self.pass_uses);
        // What is kept is priced by its length.
        uses.shrink_to_fit();
        self.vectors.shrink_to_fit();
        self.program.steps.shrink_to_fit();
        Ok(Emitted { program: self.program, uses, vectors: self.vectors })
    }

    /// Goes on to the next part of the pass.
    pub(crate) fn begin(&mut self, phase: Phase) {
        self.phase = phase;
    }

    /// The tokens that what follows attention in `layer` is for.
    pub(crate) fn scope_after_kv(&self, layer: u32) -> Scope {
        if layer + 1 == self.hp.n_layer { Scope::LastLayer } else { Scope::All }
    }

    /// Adds an operation.
    pub(crate) fn push(&mut self, op: Op) {
        self.push_for(op, self.scope);
    }

    /// Adds an operation for these tokens.
    pub(crate) fn push_for(&mut self, op: Op, scope: Scope) {
        match op {
            Op::Round { input, block, .. } => self.rounded = Some((input, block)),
            // It rounds the tokens of one expert after the other.
            Op::ExpertIn { .. } => self.rounded = None,
            _ => {}
        }
        let stage = self.stage();
        let rounded = self.rounded;
        let forget = |buf: Buf| rounded.is_some_and(|(input, _)| input.memory() == buf.memory());
        if op.outputs().into_iter().flatten().any(|(buf, _)| forget(buf)) {
            self.rounded = None;
        }
        for (buf, width) in op.outputs().into_iter().flatten() {
            let kept = &mut self.program.widths[buf.memory()];
            *kept = (*kept).max(width);
        }
        self.program.needs.see(&op);
        self.program.steps.push(Step { op, stage, scope });
    }

    fn stage(&self) -> u32 {
        match self.phase {
            Phase::Open | Phase::Embed => 0,
            Phase::Layer(layer) => layer + 1,
            Phase::Head => self.hp.n_layer + 1,
        }
    }

    /// A tensor that is read once and kept as f32.
    pub(crate) fn vector(&mut self, name: &str, shape: &[u32]) -> Result<VectorId> {
        let tensor = self.tensors.require(name, shape)?;
        Ok(self.keep(name, &tensor))
    }

    /// The first row of a tensor of rows, read once and kept as f32.
    pub(crate) fn first_row(&mut self, name: &str, shape: &[u32]) -> Result<VectorId> {
        let tensor = self.tensors.require(name, shape)?;
        Ok(self.keep(name, &Tensor { n_rows: 1, ..tensor }))
    }

    fn keep(&mut self, name: &str, tensor: &Tensor) -> VectorId {
        self.open_uses.push(Use {
            tensor: tensor.index,
            first_row: 0,
            n_rows: tensor.n_rows,
            row_bytes: tensor.row_bytes,
            phase: Phase::Open,
            deferred: false,
        });
        let len = tensor.n_in.saturating_mul(tensor.n_rows);
        let stage = self.stage();
        self.vectors.push(Vector { name: name.into(), ty: tensor.ty, len, divides: false, stage });
        VectorId(index_of_last(&self.vectors))
    }

    /// The rotary embedding that the file describes, factors in tensors included.
    pub(crate) fn file_rope(&mut self, pairing: RopePairing) -> Result<RopeId> {
        let hp = &self.hp.rope;
        let shape = [hp.n_rot / 2];
        let (short, long) = ("rope_factors_short.weight", "rope_factors_long.weight");
        let factors = if self.tensors.has(short) || self.tensors.has(long) {
            RopeFactors::ByContext {
                short: self.divisors(short, &shape)?,
                long: self.divisors(long, &shape)?,
                n_ctx_orig: hp.n_ctx_orig,
            }
        } else if self.tensors.has("rope_freqs.weight") {
            RopeFactors::Always(self.divisors("rope_freqs.weight", &shape)?)
        } else {
            RopeFactors::None
        };
        Ok(self.rope(hp, pairing, factors))
    }

    /// The rotary embedding of windowed layers: they see no further than they were trained, so their positions are not
    /// scaled, and their base is the file's own for them or `freq_base`. Without a window it is `global`.
    pub(crate) fn window_rope(
        &mut self,
        global: RopeId,
        pairing: RopePairing,
        freq_base: f32,
    ) -> RopeId {
        let hp = &self.hp.rope;
        if self.hp.n_window.is_none() {
            return global;
        }
        let freq_base = hp.freq_base_window.unwrap_or(freq_base);
        let unscaled =
            RopeHparams { freq_base, scaling: RopeScaling::None, attn_factor: 1.0, ..hp.clone() };
        self.rope(&unscaled, pairing, RopeFactors::None)
    }

    fn rope(&mut self, hp: &RopeHparams, pairing: RopePairing, factors: RopeFactors) -> RopeId {
        self.program.ropes.push(Rope::new(hp, pairing, factors));
        let rope = RopeId(index_of_last(&self.program.ropes));
        self.push(Op::RopeTable { rope });
        rope
    }

    fn divisors(&mut self, name: &str, shape: &[u32]) -> Result<VectorId> {
        let id = self.vector(name, shape)?;
        self.vectors[id.0 as usize].divides = true;
        Ok(id)
    }

    /// Adds a layer of the KV cache; they are numbered as they are added.
    pub(crate) fn add_kv(&mut self, layer: KvLayer) {
        self.program.kv.push(layer);
    }

    /// Adds a use of all rows of a tensor.
    pub(crate) fn add_use(&mut self, tensor: &Tensor, deferred: bool) -> u32 {
        self.pass_uses.push(Use {
            tensor: tensor.index,
            first_row: 0,
            n_rows: tensor.n_rows,
            row_bytes: tensor.row_bytes,
            phase: self.phase,
            deferred,
        });
        index_of_last(&self.pass_uses)
    }

    /// `parts = weights(name) * input`: the rows of the tensor go to the parts one after the other.
    pub(crate) fn matmul(
        &mut self,
        name: &str,
        input: Buf,
        n_in: u32,
        parts: &[Part],
    ) -> Result<()> {
        self.matmul_for(name, input, n_in, parts, self.scope)
    }

    /// The same for these tokens. A rounded copy is made for those of the block, because it may be used again.
    pub(crate) fn matmul_for(
        &mut self,
        name: &str,
        input: Buf,
        n_in: u32,
        parts: &[Part],
        scope: Scope,
    ) -> Result<()> {
        let n_rows = parts.iter().try_fold(0u32, |n, part| n.checked_add(part.n_rows));
        let tensor = self.tensors.require(name, &[n_in, n_rows.unwrap_or(u32::MAX)])?;
        let block = self.round_for(&tensor, input, Rows::Tokens);
        let use_index = self.add_use(&tensor, false);
        let projection = Projection {
            use_index,
            ty: tensor.ty,
            n_in,
            n_rows: tensor.n_rows,
            input,
            block,
            bias: None,
        };
        let mut padded = [Part { output: input, n_rows: 0 }; MAX_PARTS];
        padded[..parts.len()].copy_from_slice(parts);
        let n_parts = u32::try_from(parts.len()).unwrap_or(0);
        self.push_for(Op::MatMul { projection, parts: padded, n_parts }, scope);
        Ok(())
    }

    /// The block that the weights of `tensor` want their activations rounded by, after an operation that does it if it
    /// is not done yet.
    pub(crate) fn round_for(&mut self, tensor: &Tensor, input: Buf, rows: Rows) -> Option<u32> {
        let block = self.block_for(tensor)?;
        if self.rounded != Some((input, block)) {
            self.push(Op::Round { input, rows, width: tensor.n_in, block });
        }
        Some(block)
    }

    /// The block that activations are rounded by for the weights of `tensor`; `None` where they stay f32.
    pub(crate) fn block_for(&self, tensor: &Tensor) -> Option<u32> {
        match (self.precision, activation_format(tensor.ty)) {
            (Precision::Exact, _) | (_, ActFormat::F32) => None,
            (Precision::Fast, ActFormat::Q8Block32) => Some(32),
            (Precision::Fast, ActFormat::Q8Block256) => Some(256),
        }
    }

    /// Adds the vector `name` to each row of `buf`, if the file has it or must have it.
    pub(crate) fn bias(
        &mut self,
        name: &str,
        buf: Buf,
        width: u32,
        presence: Presence,
    ) -> Result<()> {
        if presence == Presence::Required || self.tensors.has(name) {
            let vector = self.vector(name, &[width])?;
            self.push(Op::Bias { buf, vector, at: 0, width });
        }
        Ok(())
    }

    /// RMS norm of whole rows.
    pub(crate) fn rms_norm(
        &mut self,
        name: &str,
        input: Buf,
        output: Buf,
        width: u32,
    ) -> Result<()> {
        let weight = self.vector(name, &[width])?;
        let eps = self.rms_eps()?;
        self.push(Op::RmsNorm { input, output, weight, width, groups: 1, eps });
        Ok(())
    }

    /// Epsilon of the RMS norms, which a model that has any must name.
    pub(crate) fn rms_eps(&self) -> Result<f32> {
        self.hp.require(RMS_EPS, self.hp.rms_eps)
    }

    /// Layer norm of whole rows: `name.weight` and `name.bias`.
    pub(crate) fn layer_norm(&mut self, name: &str, input: Buf, output: Buf) -> Result<()> {
        let (width, eps) =
            (self.hp.n_embd, self.hp.require(LAYER_NORM_EPS, self.hp.layer_norm_eps)?);
        let weight = self.vector(&format!("{name}.weight"), &[width])?;
        let bias = self.vector(&format!("{name}.bias"), &[width])?;
        self.push(Op::LayerNorm { input, output, weight, bias, width, eps });
        Ok(())
    }
}

fn index_of_last<T>(items: &[T]) -> u32 {
    // Each item has a tensor of its own or stands for a layer: there are fewer than 2^32.
    u32::try_from(items.len().saturating_sub(1)).unwrap_or(u32::MAX)
}
