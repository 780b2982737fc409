//! LLMW, the toy format of tests, version 1: little-endian, a preamble (magic, version, two counts), metadata, tensor
//! directory, then tensors on 64-byte boundaries at absolute offsets.
//!
//! An entry of metadata is a key, a byte of type (0: i64, 1: f64, else a string) and the value. An entry of the
//! directory is a name, ggml's type number, the dimensions with the outermost first, offset and size. Lengths take 32
//! bits. There are no arrays, so no vocabulary.

mod keys;
mod read;
mod write;

pub(super) use read::parse;
pub(super) use write::head;

/// Tensors start on multiples of this.
pub(super) const ALIGNMENT: u64 = 64;

const VERSION: u32 = 1;
