//! Speed of the kernels, natively and in wasm: bytes of weights and multiplications per second, beside a plain read of the
//! same bytes. `scripts/bench-kernels.mjs` builds and runs it; arguments name the lines to run.
#![allow(missing_docs, reason = "a program")]
#![allow(clippy::cast_possible_truncation, reason = "sizes of a benchmark are small")]
#![allow(clippy::cast_precision_loss, reason = "figures are printed with three digits")]

use sluice::kernels::{self, Activations, Out, Q8, Weights};
use sluice::quant::GgmlType;

#[path = "kernels/host.rs"]
mod host;

use host::{filter, now_ms, print};

/// Formats with integer kernels, and the plain ones.
const TYPES: &[GgmlType] = &[
    GgmlType::Q4_0,
    GgmlType::Q4_1,
    GgmlType::Q8_0,
    GgmlType::Q5_0,
    GgmlType::Q5_1,
    GgmlType::IQ4_NL,
    GgmlType::Q4_K,
    GgmlType::Q6_K,
    GgmlType::Q5_K,
    GgmlType::Q3_K,
    GgmlType::Q2_K,
    GgmlType::IQ4_XS,
    GgmlType::F16,
    GgmlType::BF16,
    GgmlType::F32,
];
const N_IN: usize = 1536;
/// Bytes of weights that stay in cache, and that do not.
const SMALL: usize = 1 << 18;
const LARGE: usize = 96 << 20;

fn main() {
    let bytes = random_bytes(LARGE);
    plain_read(&bytes);
    for ty in TYPES {
        for n_tokens in [1, 4, 32] {
            if n_tokens == 1 {
                matmul(*ty, &bytes, LARGE, n_tokens);
            }
            matmul(*ty, &bytes, SMALL, n_tokens);
        }
    }
}

fn plain_read(bytes: &[u8]) {
    for size in [SMALL, LARGE] {
        let name = format!("read {} KB", size >> 10);
        let words: &[u64] = bytemuck::cast_slice(&bytes[..size]);
        report(&name, size, 0, || {
            let sum = words.as_chunks::<8>().0.iter().fold([0_u64; 8], |mut sum, words| {
                for i in 0..8 {
                    sum[i] ^= words[i];
                }
                sum
            });
            core::hint::black_box(sum);
        });
    }
}

fn matmul(ty: GgmlType, bytes: &[u8], size: usize, n_tokens: usize) {
    let name = format!("{ty} x{n_tokens} {} KB", size >> 10);
    if !filter(&name) {
        return;
    }
    let row_bytes = N_IN / ty.block_elements() * ty.block_bytes();
    let n_rows = size / row_bytes;
    let mut bytes = bytes[..n_rows * row_bytes].to_vec();
    tame_scales(ty, &mut bytes);
    let w = Weights { ty, bytes: &bytes, n_rows, n_in: N_IN };
    let x: Vec<f32> = (0..N_IN * n_tokens).map(|i| ((i * 37 % 101) as f32 - 50.0) * 0.02).collect();
    let block = kernels::activation_format(ty).block().max(32);
    let mut qs = vec![0_i8; x.len()];
    let mut scales = vec![0.0; x.len() / block];
    let mut sums = vec![0_i16; x.len() / 16];
    for (t, x) in x.chunks_exact(N_IN).enumerate() {
        kernels::quantize_q8(
            x,
            block,
            &mut qs[t * N_IN..][..N_IN],
            &mut scales[t * N_IN / block..][..N_IN / block],
            &mut sums[t * N_IN / 16..][..N_IN / 16],
        );
    }
    let activations = if kernels::activation_format(ty) == kernels::ActFormat::F32 {
        Activations::F32(&x)
    } else {
        Activations::Q8(Q8 { block, qs: &qs, scales: &scales, sums: &sums })
    };
    let mut scratch = vec![0.0; 4 * N_IN];
    let mut data = vec![0.0; n_rows * n_tokens];
    report(&name, w.bytes.len(), n_rows * N_IN * n_tokens, || {
        let mut out = Out { data: &mut data, stride: n_rows, first_row: 0 };
        kernels::matmul(&w, &activations, n_tokens, &mut scratch, &mut out);
    });
}

/// Random scales would be NaN here and there; a small number everywhere is what files have.
fn tame_scales(ty: GgmlType, bytes: &mut [u8]) {
    let places: &[usize] = match ty {
        GgmlType::Q4_1 | GgmlType::Q5_1 | GgmlType::Q4_K | GgmlType::Q5_K => &[0, 2],
        GgmlType::Q2_K => &[80, 82],
        GgmlType::Q3_K => &[108],
        GgmlType::Q6_K => &[208],
        GgmlType::F32 | GgmlType::F16 | GgmlType::BF16 => {
            bytes.iter_mut().for_each(|b| *b &= 0x3b);
            return;
        }
        _ => &[0],
    };
    for block in bytes.chunks_exact_mut(ty.block_bytes()) {
        for place in places {
            block[*place..][..2].copy_from_slice(&0x2123_u16.to_le_bytes());
        }
    }
}

/// The best of several runs, as GB/s of weights and thousand million multiplications a second.
fn report(name: &str, bytes: usize, products: usize, mut run: impl FnMut()) {
    if !filter(name) {
        return;
    }
    let (mut best, mut spent, mut runs) = (f64::INFINITY, 0.0, 0);
    while spent < 400.0 || runs < 20 {
        let start = now_ms();
        let mut elapsed = 0.0;
        let mut turns = 0.0;
        // Clocks of browsers are coarse: a run lasts at least 1 ms.
        while elapsed < 1.0 {
            run();
            turns += 1.0;
            elapsed = now_ms() - start;
        }
        best = f64::min(best, elapsed / turns);
        spent += elapsed;
        runs += 1;
    }
    let (read, multiplied) = (bytes as f64 / best / 1e6, products as f64 / best / 1e6);
    print(&format!("{name:20} {read:7.2} GB/s {multiplied:7.2} GMAC/s"));
}

fn random_bytes(n: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = vec![0; n];
    for chunk in bytes.chunks_exact_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        chunk.copy_from_slice(&state.to_le_bytes());
    }
    bytes
}
