//! Picks the kernel of a weight format and how many tokens it takes together.

use super::active_bytes::LANE_BY_LANE;
use super::columns32::columns32;
use super::columns256::columns256;
use super::formats32::{Format32, Iq4Nl, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0};
use super::formats256::{Format256, Iq4Xs, Q2K, Q3K, Q4K, Q5K, Q6K};
use super::rows32::rows32;
use super::rows256::rows256;
use crate::kernels::{Out, Q8, Weights};
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
        GgmlType::Q5_0 => blocks32::<22, Q5_0>(w, x, n_tokens, scratch, out),
        GgmlType::Q5_1 => blocks32::<24, Q5_1>(w, x, n_tokens, scratch, out),
        GgmlType::IQ4_NL => blocks32::<18, Iq4Nl>(w, x, n_tokens, scratch, out),
        GgmlType::Q8_0 => blocks32::<34, Q8_0>(w, x, n_tokens, scratch, out),
        GgmlType::Q2_K => blocks256::<84, Q2K>(w, x, n_tokens, scratch, out),
        GgmlType::Q3_K => blocks256::<110, Q3K>(w, x, n_tokens, scratch, out),
        GgmlType::Q4_K => blocks256::<144, Q4K>(w, x, n_tokens, scratch, out),
        GgmlType::Q5_K => blocks256::<176, Q5K>(w, x, n_tokens, scratch, out),
        GgmlType::Q6_K => blocks256::<210, Q6K>(w, x, n_tokens, scratch, out),
        GgmlType::IQ4_XS => blocks256::<136, Iq4Xs>(w, x, n_tokens, scratch, out),
        _ => unreachable!("{} takes f32 activations", w.ty),
    }
}

fn blocks32<const N: usize, F: Format32<N>>(
    w: &Weights<'_>,
    x: &Q8<'_>,
    n_tokens: usize,
    scratch: &mut [f32],
    out: &mut Out<'_>,
) {
    for (token, together) in groups(n_tokens) {
        match together {
            16 => columns32::<N, F, 4, 32>(w, x, token, n_tokens, scratch, out),
            4 => columns32::<N, F, 1, 8>(w, x, token, n_tokens, scratch, out),
            _ => rows32::<N, F>(w, x, token, scratch, out),
        }
    }
}

fn blocks256<const N: usize, F: Format256<N>>(
    w: &Weights<'_>,
    x: &Q8<'_>,
    n_tokens: usize,
    scratch: &mut [f32],
    out: &mut Out<'_>,
) {
    for (token, together) in groups(n_tokens) {
        match together {
            16 => columns256::<N, F, 4>(w, x, token, n_tokens, scratch, out),
            4 => columns256::<N, F, 1>(w, x, token, n_tokens, scratch, out),
            _ => rows256::<N, F>(w, x, token, scratch, out),
        }
    }
}

/// First tokens of groups, and how many tokens the kernel of a group has room for.
fn groups(n_tokens: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut next = 0;
    core::iter::from_fn(move || {
        let token = next;
        let together = match n_tokens - token {
            0 => return None,
            2..=8 if LANE_BY_LANE => 4,
            9.. if LANE_BY_LANE => 16,
            _ => 1,
        };
        next = n_tokens.min(token + together);
        Some((token, together))
    })
}
