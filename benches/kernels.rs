//! Speed of the kernels, natively and in wasm: bytes of weights per second and their share of a plain read of the same bytes,
//! multiplications per second and their share of what the build can do at most. `scripts/bench-kernels.mjs` builds and runs it;
//! arguments name the lines to run.
#![allow(missing_docs, reason = "a program")]
#![allow(clippy::cast_possible_truncation, reason = "sizes of a benchmark are small")]
#![allow(clippy::cast_precision_loss, reason = "figures are printed with three digits")]

use std::fmt::Write as _;

use sluice::kernels::{
    self, ActFormat, Activations, AttentionOut, KvRows, Out, Q8, Queries, RopePairing, Scoring,
    Weights,
};
use sluice::quant::GgmlType;

#[path = "kernels/ceilings.rs"]
mod ceilings;
#[path = "kernels/host.rs"]
mod host;
#[path = "kernels/peak.rs"]
mod peak;

use ceilings::{Ceilings, Products};
use host::{fastest_ms, filter, print};

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
    let mut ceilings = Ceilings::new(&bytes);
    let ceilings = &mut ceilings;
    ceilings.show();
    for ty in TYPES {
        for n_tokens in [1, 4, 32] {
            matmul(ceilings, *ty, &bytes[..SMALL], N_IN, n_tokens, false);
        }
        for n_in in [512, 4096, 14_336] {
            matmul(ceilings, *ty, &bytes[..SMALL], n_in, 1, false);
        }
        for n_in in [512, N_IN, 4096, 14_336] {
            matmul(ceilings, *ty, &bytes, n_in, 1, false);
        }
        for n_tokens in [1, 32] {
            matmul(ceilings, *ty, &bytes[..SMALL], N_IN, n_tokens, true);
        }
    }
    for shape in SHAPES {
        for ty in [GgmlType::F16, GgmlType::F32, GgmlType::Q8_0] {
            for n_tokens in [1, 16] {
                attention(ceilings, shape, ty, n_tokens, 1);
            }
        }
        attention(ceilings, shape, GgmlType::F16, 1, 256);
    }
    vectors(ceilings);
}

/// Positions that a query sees.
const POSITIONS: usize = 550;
/// Key-value heads, how many heads share each, and their size.
type Heads = [usize; 3];
/// SmolLM2 and Gemma 3 270M.
const SHAPES: [Heads; 2] = [[3, 3, 64], [1, 4, 256]];

/// One token or several behind 550 positions of one layer after the other.
fn attention(
    ceilings: &mut Ceilings<'_>,
    [n_kv_heads, n_heads, dim]: Heads,
    ty: GgmlType,
    n_tokens: usize,
    n_layers: usize,
) {
    let place = if n_layers > 1 { " memory" } else { "" };
    let name = format!("attention {n_kv_heads}x{n_heads}x{dim} {ty} x{n_tokens}{place}");
    if !filter(&name) {
        return;
    }
    let row_bytes = n_kv_heads * dim / ty.block_elements() * ty.block_bytes();
    let row: Vec<f32> = (0..n_kv_heads * dim).map(|i| (i as f32 - 90.0) * 0.01).collect();
    let mut bytes = vec![0; n_layers * POSITIONS * row_bytes];
    bytes.chunks_exact_mut(row_bytes).for_each(|bytes| kernels::kv_encode(ty, &row, bytes));
    let mut layers = bytes.chunks_exact(POSITIONS * row_bytes).cycle();
    let stride = n_heads * dim;
    let data: Vec<f32> = (0..n_tokens * stride).map(|i| (i % 67) as f32 * 0.01).collect();
    let q = Queries { data: &data, stride, n_heads, head_dim: dim };
    let spans: Vec<_> = (0..n_tokens).map(|t| 0..POSITIONS - n_tokens + t + 1).collect();
    let scoring = Scoring { scale: 0.125, softcap: None, sinks: None };
    let mut scores = vec![0.0; kernels::attention_scratch(n_tokens, n_heads, POSITIONS)];
    let mut results = vec![0.0; n_tokens * stride];
    let read = 2 * POSITIONS * row_bytes;
    let products = 2 * n_tokens * n_kv_heads * n_heads * dim * POSITIONS;
    let work = Work { bytes: read, of: bytes.len(), products, kind: Products::Floats };
    let mut layer = [&[][..]; 2];
    let mut rows = |head: usize| {
        if head == 0 {
            layer = [(); 2].map(|()| layers.next().unwrap_or_default());
        }
        let row_bytes = row_bytes / n_kv_heads;
        let head_offset = head * POSITIONS * row_bytes;
        layer.map(|bytes| KvRows {
            ty,
            bytes,
            row_bytes,
            head_offset,
            capacity: POSITIONS,
            finite: true,
        })
    };
    report(ceilings, &name, &work, || {
        for head in 0..n_kv_heads {
            let [k, v] = rows(head);
            let mut out = AttentionOut { data: &mut results, stride, value_dim: dim };
            kernels::attention(&q, &spans, &k, &v, &scoring, &mut scores, &mut out);
        }
    });
    if n_tokens == 1 {
        attention_parts(ceilings, (&name, &work), &q, &scoring, n_kv_heads, &mut rows);
    }
}

/// The parts that threads share where there is one token.
fn attention_parts<'a>(
    ceilings: &mut Ceilings<'_>,
    (name, work): (&str, &Work),
    q: &Queries<'_>,
    scoring: &Scoring<'_>,
    n_kv_heads: usize,
    rows: &mut dyn FnMut(usize) -> [KvRows<'a>; 2],
) {
    let mut dots = vec![0.0; q.n_heads * POSITIONS];
    let part =
        Work { bytes: work.bytes / 2, of: work.of / 2, products: work.products / 2, ..*work };
    report(ceilings, &format!("{name}: scores"), &part, || {
        for head in 0..n_kv_heads {
            kernels::attention_scores(q, 0..POSITIONS, &rows(head)[0], &mut dots);
        }
    });
    let mut weights = dots.clone();
    let mut factors = vec![1.0; q.n_heads];
    let floats = size_of_val(&dots[..]);
    let weigh = Work { bytes: n_kv_heads * floats, of: floats, products: 0, ..*work };
    report(ceilings, &format!("{name}: weights"), &weigh, || {
        for _ in 0..n_kv_heads {
            weights.copy_from_slice(&dots);
            kernels::attention_weights(&mut weights, scoring, 0, &mut factors);
        }
    });
    let mut results = vec![0.0; q.n_heads * q.head_dim];
    report(ceilings, &format!("{name}: values"), &part, || {
        for head in 0..n_kv_heads {
            let values = &rows(head)[1];
            kernels::attention_values(&weights, &factors, 0..POSITIONS, values, &mut results);
        }
    });
}

/// Everything else: GB/s of its f32 input.
fn vectors(ceilings: &mut Ceilings<'_>) {
    const N: usize = 1536;
    let x: Vec<f32> = (0..N).map(|i| (i as f32 - 700.0) * 0.003).collect();
    let mut y = x.clone();
    let mut run = |name: &str, f: &mut dyn FnMut(&mut [f32])| {
        let work = Work { bytes: 4 * N, of: 4 * N, products: 0, kind: Products::Floats };
        report(ceilings, name, &work, || {
            y.copy_from_slice(&x);
            f(&mut y);
        });
    };
    run("copy", &mut |_| ());
    run("rms_norm", &mut |y| kernels::rms_norm_assign(y, Some(&x), 1e-5));
    run("layer_norm", &mut |y| kernels::layer_norm(&x, Some(&x), Some(&x), 1e-5, y));
    run("silu_mul", &mut |y| kernels::silu_mul(y, &x));
    run("gelu_mul", &mut |y| kernels::gelu_mul(y, &x));
    run("softcap", &mut |y| kernels::softcap(y, 30.0));
    run("softmax", &mut |y| kernels::softmax(y));
    run("add_assign", &mut |y| kernels::add_assign(y, &x));
    for pairing in [RopePairing::Interleaved, RopePairing::HalfSplit] {
        run(&format!("rope {pairing:?}"), &mut |y| {
            y.chunks_exact_mut(64).for_each(|y| kernels::rope(y, &x[..32], &x[32..64], pairing));
        });
    }
    let (mut qs, mut scales, mut sums) = (vec![0; N], vec![0.0; N / 32], vec![0; N / 16]);
    run("quantize_q8", &mut |y| kernels::quantize_q8(y, 32, &mut qs, &mut scales, &mut sums));
    let mut stored = vec![0; 4 * N];
    for ty in [GgmlType::F16, GgmlType::Q8_0] {
        let n = N / ty.block_elements() * ty.block_bytes();
        run(&format!("kv_encode {ty}"), &mut |y| kernels::kv_encode(ty, y, &mut stored[..n]));
    }
}

fn matmul(
    ceilings: &mut Ceilings<'_>,
    ty: GgmlType,
    bytes: &[u8],
    n_in: usize,
    n_tokens: usize,
    exact: bool,
) {
    let precision = if exact { "exact " } else { "" };
    let place = if bytes.len() > SMALL {
        format!(" memory, rows of {n_in}")
    } else {
        format!(" rows of {n_in}")
    };
    let name = format!("{precision}{ty} x{n_tokens}{place}");
    if !filter(&name) {
        return;
    }
    let row_bytes = n_in / ty.block_elements() * ty.block_bytes();
    let n_rows = bytes.len() / row_bytes;
    let mut bytes = bytes[..n_rows * row_bytes].to_vec();
    tame_scales(ty, &mut bytes);
    let x: Vec<f32> = (0..n_in * n_tokens).map(|i| ((i * 37 % 101) as f32 - 50.0) * 0.02).collect();
    let block = kernels::activation_format(ty).block().max(32);
    let mut qs = vec![0_i8; x.len()];
    let mut scales = vec![0.0; x.len() / block];
    let mut sums = vec![0_i16; x.len() / 16];
    for (t, x) in x.chunks_exact(n_in).enumerate() {
        kernels::quantize_q8(
            x,
            block,
            &mut qs[t * n_in..][..n_in],
            &mut scales[t * n_in / block..][..n_in / block],
            &mut sums[t * n_in / 16..][..n_in / 16],
        );
    }
    let activations = if exact || kernels::activation_format(ty) == ActFormat::F32 {
        Activations::F32(&x)
    } else {
        Activations::Q8(Q8 { block, qs: &qs, scales: &scales, sums: &sums })
    };
    let mut scratch = vec![0.0; kernels::matmul_scratch(n_in)];
    // Piece by piece: what is timed at once is short enough to be seldom interrupted.
    let n_rows = n_rows.min(SMALL / row_bytes);
    let mut data = vec![0.0; n_rows * n_tokens];
    let mut pieces = bytes.chunks_exact(n_rows * row_bytes).cycle();
    let work = Work {
        bytes: n_rows * row_bytes,
        of: bytes.len(),
        products: n_rows * n_in * n_tokens,
        kind: match activations {
            Activations::F32(_) => Products::Floats,
            Activations::Q8(_) => Products::Bytes,
        },
    };
    report(ceilings, &name, &work, || {
        let Some(bytes) = pieces.next() else { return };
        let w = Weights { ty, bytes, n_rows, n_in };
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
        // Around 2^-9, so that no product is subnormal.
        GgmlType::F32 | GgmlType::F16 | GgmlType::BF16 => {
            let (n, top) = (ty.block_bytes(), if ty == GgmlType::F16 { 0x18 } else { 0x3b });
            bytes.iter_mut().skip(n - 1).step_by(n).for_each(|b| *b = *b & 0x81 | top);
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

/// What a line does in one run.
struct Work {
    /// Bytes that it reads.
    bytes: usize,
    /// How many it reads before it comes to the same ones again.
    of: usize,
    products: usize,
    kind: Products,
}

/// GB/s and thousand million multiplications a second, each with its share of what there is at most.
fn report(ceilings: &mut Ceilings<'_>, name: &str, work: &Work, mut run: impl FnMut()) {
    if !filter(name) {
        return;
    }
    let time = fastest_ms(&mut run);
    let (read, multiplied) = (work.bytes as f64 / time / 1e6, work.products as f64 / time / 1e6);
    let share = 100.0 * read / ceilings.read(work.of);
    let mut line = format!("{name:42} {read:7.2} GB/s {share:4.0} %");
    if work.products > 0 {
        let share = 100.0 * multiplied / ceilings.peak(work.kind);
        let _ = write!(line, " {multiplied:7.2} GMAC/s {share:4.0} %");
    }
    print(&line);
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
