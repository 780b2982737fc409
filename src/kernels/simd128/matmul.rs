//! Picks the kernel of a weight format; the formats without one keep the scalar kernel.

use super::active_bytes::LANE_BY_LANE;
use super::columns32::columns32;
use super::formats32::{Format32, Q4_0, Q4_1, Q8_0};
use super::rows32::rows32;
use crate::kernels::{Out, Q8, Weights, scalar};
use crate::quant::GgmlType;

/// Products with rounded activations.
pub(in crate::kernels) fn matmul_q8(
    w: &Weights<'_>,
    x: &Q8<'_>,
    n_tokens: usize,
    scratch: &mut [f32],
    out: &mut Out<'_>,
) {
    match w.ty {
        GgmlType::Q4_0 => blocks32::<18, Q4_0>(w, x, n_tokens, scratch, out),
        GgmlType::Q4_1 => blocks32::<20, Q4_1>(w, x, n_tokens, scratch, out),
        GgmlType::Q8_0 => blocks32::<34, Q8_0>(w, x, n_tokens, scratch, out),
        _ => scalar::matmul_q8(w, x, n_tokens, scratch, out),
    }
}

fn blocks32<const N: usize, F: Format32<N>>(
    w: &Weights<'_>,
    x: &Q8<'_>,
    n_tokens: usize,
    scratch: &mut [f32],
    out: &mut Out<'_>,
) {
    let mut token = 0;
    while token < n_tokens {
        let together = match n_tokens - token {
            2..=4 if LANE_BY_LANE => 4,
            5.. if LANE_BY_LANE => 8,
            _ => 1,
        };
        match together {
            8 => columns32::<N, F, 2, 16>(w, x, token, n_tokens, scratch, out),
            4 => columns32::<N, F, 1, 8>(w, x, token, n_tokens, scratch, out),
            _ => rows32::<N, F>(w, x, token, scratch, out),
        }
        token += together;
    }
}
