//! Products with f32 activations: a row is decoded once for all tokens.

use super::decode::decode;
use super::reduce::dot;
use crate::kernels::{Out, Weights};

/// Every row is decoded into `scratch` and multiplied with all tokens.
pub(in crate::kernels) fn matmul_f32(
    w: &Weights<'_>,
    x: &[f32],
    scratch: &mut [f32],
    out: &mut Out<'_>,
) {
    let row = &mut scratch[..w.n_in];
    for (r, bytes) in w.rows().enumerate() {
        decode(w.ty, bytes, row);
        let out = out.data[out.first_row + r..].iter_mut().step_by(out.stride.max(1));
        for (x, out) in x.chunks_exact(w.n_in).zip(out) {
            *out = dot(row, x);
        }
    }
}
