//! Sluice: large language models in a browser tab, in the memory you choose.
//!
//! A GGUF file of any size is read by position, and its weights flow through a small fixed ring of slots in linear
//! memory while the forward pass consumes them. Read `docs/architecture.md` first; then, for one token from top to
//! bottom: [`runtime`], one layer: [`model`], the inner loop: [`kernels`].

pub mod error;
pub mod quant;

pub mod gguf;
pub mod kernels;
pub mod team;
pub mod tokenizer;

pub mod model;
pub mod planner;
pub mod source;

pub mod loader;
pub mod sampler;

pub mod runtime;

/// A token's number in its vocabulary.
pub type TokenId = u32;

#[cfg(target_arch = "wasm32")]
pub mod bindings;
