//! The speed of the matrix kernels on this device, by a short run on made-up weights.

use super::predict::{Kernel, KernelRates, PREFILL_COLUMNS};
use crate::kernels::{
    ActFormat, Activations, Out, Q8, Weights, activation_format, matmul, matmul_scratch,
    quantize_q8,
};
use crate::model::Precision;

/// Measures `kernel` for at most about 300 ms by the clock `now_ms`, on weights that come from memory and not from the processor's
/// cache, as those of a model do. The best of several slices counts: a browser compiles hot code better while it runs.
#[must_use]
#[allow(clippy::cast_possible_truncation, reason = "sizes are bounded by the constants below")]
pub fn measure(kernel: &Kernel, precision: Precision, now_ms: &dyn Fn() -> f64) -> KernelRates {
    let Kernel { ty, n_in } = *kernel;
    let n_in = n_in.min(MAX_ROW) as usize / ty.block_elements() * ty.block_elements();
    let n_rows = (TILE_WEIGHTS / n_in.max(1)).max(1);
    let n_tokens = PREFILL_COLUMNS as usize;
    let row_bytes = n_in / ty.block_elements() * ty.block_bytes();
    // As a scale of any width this byte repeated is a plain number, so that no special case slows the kernel down.
    let tile_bytes = n_rows * row_bytes;
    let bytes = vec![0x3c; tile_bytes * (MEMORY_BYTES / tile_bytes.max(1)).max(1)];
    let mut tiles = bytes.chunks_exact(tile_bytes.max(1)).cycle();
    let x: Vec<f32> = (0..n_tokens * n_in).map(|i| (i % 61) as f32 / 61.0 - 0.5).collect();
    let format = match precision {
        Precision::Fast => activation_format(ty),
        Precision::Exact => ActFormat::F32,
    };
    let block = format.block().max(16);
    let mut qs = vec![0; x.len()];
    let mut scales = vec![0.0; x.len() / block];
    let mut sums = vec![0; x.len() / 16];
    if format != ActFormat::F32 {
        quantize_q8(&x, block, &mut qs, &mut scales, &mut sums);
    }
    let mut scratch = vec![0.0; matmul_scratch(n_in)];
    let mut out = vec![0.0; n_tokens * n_rows];
    let mut rate = |n_tokens: usize| {
        let n = n_tokens * n_in;
        let activations = match format {
            ActFormat::F32 => Activations::F32(&x[..n]),
            _ => Activations::Q8(Q8 {
                block,
                qs: &qs[..n],
                scales: &scales[..n / block],
                sums: &sums[..n / 16],
            }),
        };
        let per_run = (n_rows * n) as f64;
        per_run
            * runs_per_second(now_ms, || {
                let bytes = tiles.next().unwrap_or_default();
                let weights = Weights { ty, bytes, n_rows, n_in };
                let mut out = Out { data: &mut out, stride: n_rows, first_row: 0 };
                matmul(&weights, &activations, n_tokens, &mut scratch, &mut out);
            })
    };
    KernelRates { decode_weights_per_second: rate(1), prefill_weights_per_second: rate(n_tokens) }
}

/// How often `run` runs in a second, by the fastest slice; it ends when slices have not become faster for a while.
fn runs_per_second(now_ms: &dyn Fn() -> f64, mut run: impl FnMut()) -> f64 {
    let started = now_ms();
    let (mut best, mut since): (f64, f64) = (0.0, started);
    loop {
        let began = now_ms();
        let mut n_runs = 0.0;
        let ended = loop {
            run();
            n_runs += 1.0;
            let now = now_ms();
            if now - began >= SLICE_MS {
                break now;
            }
        };
        let rate = n_runs * 1000.0 / (ended - began);
        if rate > best * FASTER {
            since = ended;
        }
        best = best.max(rate);
        if ended - since >= STEADY_MS || ended - started >= LONGEST_MS {
            return best;
        }
    }
}

/// Long against the steps of a browser's clock.
const SLICE_MS: f64 = 8.0;
/// A slice that is faster than the best by this much says that the code has just been compiled better.
const FASTER: f64 = 1.1;
/// How long that may take to happen again.
const STEADY_MS: f64 = 40.0;
/// Each of the two measurements ends at last.
const LONGEST_MS: f64 = 150.0;
/// Weights of a made-up tile: a run of it is short against a slice, with many columns too.
const TILE_WEIGHTS: usize = 1 << 17;
/// Tiles follow one another in as much memory: more than a processor's second cache holds.
const MEMORY_BYTES: usize = 8 << 20;
/// Longer rows are cut to this many elements, a whole number of blocks of every format.
const MAX_ROW: u64 = 1 << 14;
