//! How many threads are worth having on this device, by short runs of a real kernel.

use crate::kernels::{Activations, Out, Q8, Weights, matmul, matmul_scratch, quantize_q8};
use crate::quant::GgmlType;
use crate::team::{Grid, Pool};

/// Has `pool` do products as decode has them with one thread, two, and so on, by the clock `now_ms`, and use from now on as many as are
/// worth having; gives their number. More than that are slower, or so little faster that they are left to others.
pub fn choose_threads(pool: &Pool, now_ms: &dyn Fn() -> f64) -> usize {
    let row_bytes = N_IN / TYPE.block_elements() * TYPE.block_bytes();
    // As a scale this byte repeated is a plain number, so that no special case slows the kernel down.
    let bytes = vec![0x3c; N_ROWS * row_bytes];
    let x: Vec<f32> = (0..61).cycle().take(N_IN).map(|i: u8| f32::from(i) / 61.0 - 0.5).collect();
    let (mut qs, mut scales, mut sums) = (vec![0; N_IN], vec![0.0; N_IN / 32], vec![0; N_IN / 16]);
    quantize_q8(&x, 32, &mut qs, &mut scales, &mut sums);
    let x = Activations::Q8(Q8 { block: 32, qs: &qs, scales: &scales, sums: &sums });
    let mut own = vec![vec![0.0; matmul_scratch(N_IN)]; pool.capacity()];
    let mut out = vec![0.0; N_ROWS];
    let mut rate = |n_threads: usize| {
        pool.use_threads(n_threads);
        let piece = (N_ROWS.div_ceil(3 * n_threads).next_multiple_of(16), 1);
        runs_per_second(now_ms, || {
            let data = &mut out;
            let grid = Grid { data, stride: N_ROWS, first: 0, width: N_ROWS, n_columns: 1, piece };
            grid.share(pool, &mut own, |scratch, mut piece| {
                let rows = piece.elements();
                let bytes = &bytes[rows.start * row_bytes..rows.end * row_bytes];
                let weights = Weights { ty: TYPE, bytes, n_rows: rows.len(), n_in: N_IN };
                let mut out = Out { data: piece.column(0), stride: rows.len(), first_row: 0 };
                matmul(&weights, &x, 1, scratch, &mut out);
            });
        })
    };
    rate(pool.capacity()); // wakes everybody, and has the browser compile the kernel well
    let rates: Vec<f64> = (1..=pool.capacity()).map(rate).collect();
    let best = rates.iter().copied().fold(0.0, f64::max);
    let chosen = 1 + rates.iter().position(|rate| *rate >= NEARLY * best).unwrap_or(0);
    pool.use_threads(chosen);
    chosen
}

/// How often `run` runs in a second, by the fastest slice.
fn runs_per_second(now_ms: &dyn Fn() -> f64, mut run: impl FnMut()) -> f64 {
    let slice = |_| {
        let (began, mut n_runs) = (now_ms(), 0.0);
        loop {
            run();
            n_runs += 1.0;
            let took = now_ms() - began;
            if took >= SLICE_MS {
                break n_runs * 1000.0 / took;
            }
        }
    };
    (0..N_SLICES).map(slice).fold(0.0, f64::max)
}

const TYPE: GgmlType = GgmlType::Q4_0;
const N_IN: usize = 1024;
const N_ROWS: usize = 640;
/// Long against the steps of a browser's clock.
const SLICE_MS: f64 = 8.0;
const N_SLICES: u32 = 4;
/// The share of the best speed that fewer threads must reach to be chosen.
const NEARLY: f64 = 0.92;
