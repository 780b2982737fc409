//! The kernels for wasm32 with SIMD128: the bits of [`scalar`](super::scalar), several lanes at a time.
//!
//! Lanes of integer kernels hold rows or tokens, never parts of a row in f32. The sums of products of bytes use the
//! relaxed instruction where the build has it. Nothing here chooses between floats by comparing them (`if a < b { a }`,
//! pmin, pmax): in builds with relaxed SIMD a compiler may make the relaxed minimum of it, whose bits are the processor's.

mod lanes;
mod math;
#[cfg(not(target_feature = "relaxed-simd"))]
mod plain;
#[cfg(target_feature = "relaxed-simd")]
mod relaxed;

#[cfg(not(target_feature = "relaxed-simd"))]
use plain as active_bytes;
#[cfg(target_feature = "relaxed-simd")]
use relaxed as active_bytes;

mod activation;
mod attention;
mod columns256;
mod columns32;
mod decode;
mod formats256;
mod formats32;
mod kv;
mod matmul;
mod matmul_f32;
mod norm;
mod quantize;
mod reduce;
mod rope;
mod rows256;
mod rows32;

pub(super) use super::scalar::kv_encode;
pub(super) use activation::{gelu, gelu_mul, silu, silu_mul, softcap, softmax};
pub(super) use attention::{attention, attention_scores, attention_values, attention_weights};
pub(super) use matmul::matmul_q8;
pub(super) use matmul_f32::matmul_f32;
pub(super) use norm::{layer_norm, rms_norm};
pub(super) use quantize::quantize_q8;
pub(super) use reduce::{dot, sum};
pub(super) use rope::rope;
