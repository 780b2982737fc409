//! One frame for all matrix kernels.

use sluice::kernels::{
    self, ActFormat, Activations, Out, Q8, Weights, activation_format, matmul_scratch, scalar,
};
use sluice::quant::{GgmlType, dequantize_row};
use wasm_bindgen_test::wasm_bindgen_test;

use crate::blocks::{ALL, FILLS, Fill, blocks, minimum};
use crate::golden;
use crate::numbers::{Digest, Rng, assert_same};

/// Rounded activations of some tokens.
pub(crate) struct Rounded {
    block: usize,
    qs: Vec<i8>,
    scales: Vec<f32>,
    sums: Vec<i16>,
}

impl Rounded {
    pub(crate) fn new(x: &[f32], block: usize) -> Self {
        let (mut qs, mut scales) = (vec![0; x.len()], vec![0.0; x.len() / block]);
        let mut sums = vec![0; x.len() / 16];
        scalar::quantize_q8(x, block, &mut qs, &mut scales, &mut sums);
        Self { block, qs, scales, sums }
    }

    fn view(&self) -> Q8<'_> {
        Q8 { block: self.block, qs: &self.qs, scales: &self.scales, sums: &self.sums }
    }
}

struct Case {
    ty: GgmlType,
    n_rows: usize,
    n_tokens: usize,
    n_in: usize,
    /// Starts at `unaligned`, after as many bytes.
    bytes: Vec<u8>,
    unaligned: usize,
    x: Vec<f32>,
}

impl Case {
    fn new(ty: GgmlType, [n_rows, n_tokens, n_blocks]: [usize; 3], fill: Fill, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let n_in = n_blocks * ty.block_elements();
        let unaligned = rng.below(4);
        let mut bytes = vec![0; unaligned];
        bytes.extend(blocks(ty, n_blocks * n_rows, fill, &mut rng));
        let x = rng.activations(n_in * n_tokens);
        Self { ty, n_rows, n_tokens, n_in, bytes, unaligned, x }
    }

    fn weights(&self) -> Weights<'_> {
        let bytes = &self.bytes[self.unaligned..];
        Weights { ty: self.ty, bytes, n_rows: self.n_rows, n_in: self.n_in }
    }

    /// The active kernel's results and the definition's, `[n_tokens, n_rows]`; checked to have the same bits.
    fn run(&self, rounded: Option<&Rounded>) -> Vec<f32> {
        let what = format!(
            "{} {}x{}x{} {}",
            self.ty,
            self.n_rows,
            self.n_tokens,
            self.n_in,
            if rounded.is_some() { "fast" } else { "exact" }
        );
        let (gap, first_row) = (3, 2);
        let stride = self.n_rows + first_row + gap;
        let (w, n_tokens) = (self.weights(), self.n_tokens);
        let mut scratch = vec![f32::NAN; matmul_scratch(self.n_in)];
        let mut got = vec![7.0; n_tokens * stride];
        let mut want = got.clone();
        let activations = match rounded {
            Some(rounded) => Activations::Q8(rounded.view()),
            None => Activations::F32(&self.x),
        };
        let mut out = Out { data: &mut got, stride, first_row };
        kernels::matmul(&w, &activations, n_tokens, &mut scratch, &mut out);
        let mut out = Out { data: &mut want, stride, first_row };
        if self.n_in > 0 {
            match activations {
                Activations::F32(x) => scalar::matmul_f32(&w, x, &mut scratch, &mut out),
                Activations::Q8(x) => {
                    scalar::matmul_q8(&w, &x, n_tokens, &mut scratch, &mut out);
                }
            }
        } else {
            (0..n_tokens).for_each(|t| want[t * stride + first_row..][..self.n_rows].fill(0.0));
        }
        assert_same(&got, &want, &what);
        let rows = |t: usize| got[t * stride + first_row..][..self.n_rows].to_vec();
        (0..n_tokens).flat_map(rows).collect()
    }
}

/// Every format, every number of blocks up to 9, some rows and tokens; then 1 to 9 rows and tokens.
fn shapes() -> Vec<[usize; 3]> {
    let mut shapes: Vec<_> =
        (0..=9).map(|n_blocks| [1 + n_blocks % 5, 1 + n_blocks % 3, n_blocks]).collect();
    shapes.extend((1..=9).map(|n| [n, 1, 2]));
    shapes.extend((1..=9).map(|n| [5, n, 3]));
    shapes.extend([[9, 9, 2], [4, 17, 1], [8, 32, 2], [3, 8, 4]]);
    shapes
}

fn fast_formats() -> impl Iterator<Item = GgmlType> {
    ALL.into_iter().filter(|ty| activation_format(*ty) != ActFormat::F32)
}

#[wasm_bindgen_test(unsupported = test)]
pub(crate) fn fast_products_follow_the_definition_in_every_shape() {
    for ty in fast_formats() {
        let mut digest = Digest::new();
        for (i, shape) in shapes().into_iter().enumerate() {
            let case = Case::new(ty, shape, Fill::Random, i as u64 + 1);
            digest.floats(&case.run(Some(&Rounded::new(&case.x, activation_format(ty).block()))));
        }
        golden::check(&format!("fast {ty} shapes"), &digest);
    }
}

#[wasm_bindgen_test(unsupported = test)]
pub(crate) fn fast_products_follow_the_definition_at_the_extremes() {
    for ty in fast_formats() {
        let block = activation_format(ty).block();
        let mut digest = Digest::new();
        for (i, fill) in FILLS.into_iter().enumerate() {
            for n_tokens in [1, 4] {
                let mut case = Case::new(ty, [6, n_tokens, 3], fill, 100 + i as u64);
                digest.floats(&case.run(Some(&Rounded::new(&case.x, block))));
                for extreme in [127.0, -127.0, 0.0, 1e-39, 3e38, f32::INFINITY, f32::NAN] {
                    case.x.fill(extreme);
                    digest.floats(&case.run(Some(&Rounded::new(&case.x, block))));
                }
            }
        }
        golden::check(&format!("fast {ty} extremes"), &digest);
    }
}

#[wasm_bindgen_test(unsupported = test)]
pub(crate) fn exact_products_follow_the_definition() {
    for ty in ALL {
        let mut digest = Digest::new();
        for (i, shape) in shapes().into_iter().enumerate() {
            digest.floats(&Case::new(ty, shape, Fill::Random, 200 + i as u64).run(None));
        }
        for (i, fill) in FILLS.into_iter().enumerate() {
            digest.floats(&Case::new(ty, [6, 2, 3], fill, 300 + i as u64).run(None));
        }
        golden::check(&format!("exact {ty}"), &digest);
    }
}

#[wasm_bindgen_test(unsupported = test)]
pub(crate) fn products_are_close_to_those_in_f64() {
    for ty in ALL {
        for (i, shape) in shapes().into_iter().enumerate() {
            let case = Case::new(ty, shape, Fill::Random, 400 + i as u64);
            check_close(&case, &case.run(None), &case.x);
            let format = activation_format(ty);
            if format != ActFormat::F32 {
                let rounded = Rounded::new(&case.x, format.block());
                let x: Vec<f32> = (0..case.x.len())
                    .map(|i| f32::from(rounded.qs[i]) * rounded.scales[i / format.block()])
                    .collect();
                check_close(&case, &case.run(Some(&rounded)), &x);
            }
        }
    }
}

/// Within `n eps sum |w x|` of the sum in f64; where a format has minima, `|w|` is the sum of the magnitudes of both terms.
fn check_close(case: &Case, got: &[f32], x: &[f32]) {
    let w = case.weights();
    let decoded = decode(w.ty, w.bytes, case.n_rows * case.n_in);
    let mut magnitudes: Vec<f32> = decoded.iter().map(|w| w.abs()).collect();
    if let Some(place) = minimum(w.ty) {
        let without = |place: usize| {
            let mut bytes = w.bytes.to_vec();
            bytes.chunks_exact_mut(w.ty.block_bytes()).for_each(|b| b[place..][..2].fill(0));
            decode(w.ty, &bytes, decoded.len())
        };
        let (scaled, minima) = (without(place), without(place - 2));
        magnitudes = scaled.iter().zip(&minima).map(|(a, b)| a.abs() + b.abs()).collect();
    }
    for token in 0..case.n_tokens {
        let x = &x[token * case.n_in..][..case.n_in];
        for row in 0..case.n_rows {
            let of_row = |all: &[f32]| all[row * case.n_in..][..case.n_in].to_vec();
            let dot = |w: &[f32]| -> f64 {
                w.iter().zip(x).map(|(w, x)| f64::from(*w) * f64::from(*x)).sum()
            };
            let abs_dot: f64 = of_row(&magnitudes)
                .iter()
                .zip(x)
                .map(|(w, x)| (f64::from(*w) * f64::from(*x)).abs())
                .sum();
            let (got, want) = (f64::from(got[token * case.n_rows + row]), dot(&of_row(&decoded)));
            let bound = case.n_in as f64 * f64::from(f32::EPSILON) * abs_dot;
            assert!(
                (got - want).abs() <= bound,
                "{} row {row} token {token}: {got} is further than {bound:e} from {want}",
                w.ty
            );
        }
    }
}

fn decode(ty: GgmlType, bytes: &[u8], n: usize) -> Vec<f32> {
    let mut out = vec![0.0; n];
    dequantize_row(ty, bytes, &mut out);
    out
}
