//! What a model is: hyper-parameters, tensor roles, the list of uses, and the maths of one pass on slices.
//!
//! [`Model::new`] reads a header and has the architecture's family write a program: a flat list of small operations over
//! named buffers. [`State`] runs it step by step. A reader's path: `families/llama.rs` → `blocks/` → `program.rs` →
//! `state/`. It knows no files and no residency: weights come in as tiles, from wherever.

mod config;
mod failure;
mod keys;
mod kv_type;
mod uses;

mod hparams;
mod tensors;

mod blocks;
mod emitter;
mod families;
mod program;

mod kv_cache;
mod rope;
mod state;

pub use config::{
    LogitsWanted, ModelConfig, ModelKind, ModelMemory, Pooling, Precision, Shape, StepBounds,
};
pub use hparams::{ExpertHparams, Hparams, RopeHparams, RopeScaling, WindowLayers};
pub use kv_type::KvType;
pub use state::{Fed, Need, State};
pub use uses::{Phase, Use};

use crate::error::{Error, ErrorKind, Result};
use crate::gguf::Header;
use crate::quant::dequantize_row;
use emitter::{Emitter, Vector};
use failure::ModelFailure;
use kv_cache::KvCache;
use program::{Program, Step};

/// A model, checked and compiled; its weights are elsewhere.
#[derive(Debug)]
pub struct Model {
    hparams: Hparams,
    kind: ModelKind,
    config: ModelConfig,
    program: Program,
    uses: Vec<Use>,
    /// What the tensors of the open phase are, in the order of their uses, which come first.
    kept: Vec<Vector>,
    /// Their values; empty until they are given.
    vectors: Vec<Vec<f32>>,
    /// Not all vectors are needed when a pass begins: each comes before the pass is at its stage.
    vectors_follow: bool,
}

impl Model {
    /// Reads the facts of a header, checks every tensor that the architecture needs, and compiles the pass.
    ///
    /// # Errors
    /// `unsupported_model` for an architecture, a tensor or a value that this engine does not compute, `invalid_model` for
    /// keys and tensors that are missing, of the wrong type or shape, or contradict each other, `invalid_option` for a KV
    /// format that does not fit the heads. Each names the key or tensor.
    pub fn new(header: &Header, config: &ModelConfig) -> Result<Self> {
        let kind = families::kind(hparams::architecture(&header.metadata)?)?;
        let hparams = Hparams::read(header)?;
        let head_dim = hparams.head_dim;
        if kv_cache::format_of(config.kv).row_bytes(u64::from(head_dim)).is_none() {
            return Err(ModelFailure::KvBlocks { head_dim }.into());
        }
        let mut emitter = Emitter::new(&hparams, header, config.precision);
        families::emit(&hparams.arch, &mut emitter)?;
        let emitted = emitter.finish()?;
        let vectors = emitted.vectors.iter().map(|_| Vec::new()).collect();
        Ok(Self {
            kind,
            config: *config,
            program: emitted.program,
            uses: emitted.uses,
            kept: emitted.vectors,
            vectors,
            vectors_follow: false,
            hparams,
        })
    }

    /// The architectures that this engine computes, as GGUF names them.
    pub fn architectures() -> impl Iterator<Item = &'static str> {
        families::names()
    }

    /// The facts of the file.
    #[must_use]
    pub fn hparams(&self) -> &Hparams {
        &self.hparams
    }

    /// What it is for.
    #[must_use]
    pub fn kind(&self) -> ModelKind {
        self.kind
    }

    /// How the model is computed.
    #[must_use]
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The list of uses: those of the open phase, then those of a pass in order.
    #[must_use]
    pub fn uses(&self) -> &[Use] {
        &self.uses
    }

    /// What a session of `shape` takes. [`State::new`] allocates exactly the scratch, the logits and the cache.
    #[must_use]
    pub fn memory(&self, shape: &Shape) -> ModelMemory {
        let sizes = state::Sizes::new(&self.program, shape);
        ModelMemory {
            scratch_bytes: sizes.scratch_bytes(),
            logits_bytes: sizes.logits_bytes(),
            kv_bytes: KvCache::price(&self.program.kv, self.config.kv, shape),
            vectors_bytes: self.own_bytes(),
        }
    }

    /// Bytes that a session takes beside [`Model::memory`] when `n_threads` share its steps; 0 for one.
    #[must_use]
    pub fn team_bytes(&self, shape: &Shape, n_threads: u32) -> u64 {
        state::Sizes::new(&self.program, shape).team_bytes(n_threads)
    }

    /// Gives the bytes of a use of the open phase, decoded and kept as f32.
    ///
    /// # Errors
    /// `misuse` for another use or another size, `invalid_model` for a value that is not finite (or 0 where it divides),
    /// `out_of_memory`.
    pub fn set_vector(&mut self, use_index: usize, bytes: &[u8]) -> Result<()> {
        let (Some(kept), Some(of_use)) = (self.kept.get(use_index), self.uses.get(use_index))
        else {
            let message = format!("use {use_index} is not of the open phase");
            return Err(Error::new(ErrorKind::Misuse, message));
        };
        if of_use.bytes() != bytes.len() as u64 {
            let message = format!(
                "tensor {}: {} bytes instead of {}",
                kept.name,
                bytes.len(),
                of_use.bytes()
            );
            return Err(Error::new(ErrorKind::Misuse, message));
        }
        let mut values = state::filled(u64::from(kept.len))?;
        dequantize_row(kept.ty, bytes, &mut values);
        kept.check(&values)?;
        self.vectors[use_index] = values;
        Ok(())
    }

    /// Lets passes begin before all vectors were given. Whoever runs them gives each before its [`Model::vector_stage`].
    pub fn let_vectors_follow(&mut self) {
        self.vectors_follow = true;
    }

    /// Where in a pass a use of the open phase is first needed, as [`State::layer`] counts; its bytes must be given before
    /// the pass is there.
    #[must_use]
    pub fn vector_stage(&self, use_index: usize) -> usize {
        self.kept.get(use_index).map_or(0, |kept| kept.stage as usize)
    }

    /// The first use of the open phase that is needed up to `stage` and was not given yet.
    pub(crate) fn unset_vector(&self, stage: u32) -> Option<usize> {
        self.kept
            .iter()
            .zip(&self.vectors)
            .position(|(kept, values)| kept.stage <= stage && values.len() != kept.len as usize)
    }

    /// Bytes that the model itself holds once all vectors are given.
    fn own_bytes(&self) -> u64 {
        let vectors = self.kept.iter().map(|v| 4 * u64::from(v.len) + v.name.len() as u64);
        let lists = size_of::<Step>() * self.program.steps.len()
            + size_of::<Use>() * self.uses.len()
            + (size_of::<Vector>() + size_of::<Vec<f32>>()) * self.kept.len();
        let ropes: u64 = self.program.ropes.iter().map(rope::Rope::bytes).sum();
        vectors.fold(lists as u64 + ropes, u64::saturating_add)
    }
}

impl Vector {
    fn check(&self, values: &[f32]) -> core::result::Result<(), ModelFailure> {
        let bad = |x: &f32| !x.is_finite() || (self.divides && *x == 0.0);
        let Some(index) = values.iter().position(bad) else { return Ok(()) };
        let why = if values[index] == 0.0 { "it divides" } else { "a value must be finite" };
        let name = self.name.to_string();
        Err(ModelFailure::TensorValue { name, index, found: values[index], why })
    }
}
