//! The definition of every kernel as obvious loops, on every target. Public so that tests can compare with it.
//!
//! Arguments are checked by the functions of [`super`] of the same names.

mod activation;
mod attention;
mod block256;
mod block32;
mod kv;
mod matmul;
mod norm;
mod quantize;
mod reduce;
mod rope;

pub use activation::{clamped_silu_mul, gelu, gelu_mul, silu, silu_mul, softcap, softmax};
pub use attention::{
    attention, attention_scores, attention_tile, attention_values, attention_weights,
};
pub use kv::kv_encode;
pub use matmul::{matmul_f32, matmul_q8};
pub use norm::{layer_norm, rms_norm};
pub use quantize::quantize_q8;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(super) use quantize::{ROUND, inverse, step};
pub use reduce::{dot, sum};
pub use rope::rope;
