//! The kernels for wasm32 with SIMD128: the bits of [`scalar`](super::scalar), several lanes at a time.
//!
//! Lanes of integer kernels hold rows or tokens, never parts of a row in f32. The sums of products of bytes use the
//! relaxed instruction where the build has it.

mod lanes;
#[cfg(not(target_feature = "relaxed-simd"))]
mod plain;
#[cfg(target_feature = "relaxed-simd")]
mod relaxed;

#[cfg(not(target_feature = "relaxed-simd"))]
use plain as active_bytes;
#[cfg(target_feature = "relaxed-simd")]
use relaxed as active_bytes;

mod columns32;
mod formats32;
mod matmul;
mod rows32;

pub(super) use super::scalar::{
    attention, dot, gelu, gelu_mul, kv_encode, layer_norm, matmul_f32, quantize_q8, rms_norm, rope,
    silu, silu_mul, softcap, softmax, sum,
};
pub(super) use matmul::matmul_q8;
