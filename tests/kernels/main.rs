//! The frames of the kernels: every kernel against its definition and against f64, natively and in wasm.
//!
//! The same tests run natively (where the definition is what runs) and in wasm, scalar, SIMD128 and relaxed. Digests of the
//! outputs are checked in, so that all of them have the same bits; `UPDATE_GOLDEN=1` natively writes them anew.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "random numbers become other random numbers"
)]
#![allow(clippy::unwrap_used, reason = "a test may fail that way")]
#![allow(
    clippy::disallowed_methods,
    reason = "the standard library's functions are what results are compared with"
)]

mod attention;
mod blocks;
mod golden;
#[cfg(target_arch = "wasm32")]
mod host;
mod matmul;
mod numbers;
mod quantize;
mod vectors;

#[cfg(target_arch = "wasm32")]
wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_browser);
