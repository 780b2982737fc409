//! How fast a plan will be, from what was measured on the device: pure arithmetic.

use serde::Serialize;

use crate::gguf::{Header, TensorType};
use crate::model::{Model, Phase};
use crate::planner::Plan;
use crate::quant::GgmlType;

/// Speed of the matrix kernels on one format, in weights multiplied by one column per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KernelRates {
    /// With one column at a time.
    pub decode_weights_per_second: f64,
    /// With [`PREFILL_COLUMNS`] columns at a time.
    pub prefill_weights_per_second: f64,
}

/// What was measured on the device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// The kernels.
    pub kernel: KernelRates,
    /// The storage that weights would be read from in every pass; `None` where nothing can be read again.
    pub storage_bytes_per_second: Option<f64>,
}

/// Expected speed of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Prediction {
    /// New tokens per second at the start of a context.
    pub decode_tokens_per_second: f64,
    /// Tokens of a long prompt per second; `None` for chunks shorter than what was measured.
    pub prefill_tokens_per_second: Option<f64>,
    /// What it was made from.
    pub basis: Basis,
}

/// What a prediction was made from.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Basis {
    /// Number format whose kernel was measured: the one with the most bytes.
    pub format: &'static str,
    /// Its speed.
    #[serde(flatten)]
    pub kernel: KernelRates,
    /// Speed of the storage; `None` where it was not needed or cannot be measured.
    pub storage_bytes_per_second: Option<f64>,
}

/// Multiplications that a model asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Work {
    /// Weights that a decoded token meets: all matrices of a pass, of experts as many as a token goes through.
    pub decode_weights: f64,
    /// Weights that a prompt's token meets: the same without the head.
    pub prefill_weights: f64,
}

/// The kernel that does most of a model's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MainKernel {
    /// Number format with the most bytes in a pass.
    pub ty: GgmlType,
    /// Elements of the rows of its largest tensor.
    pub n_in: u64,
}

/// The matrices of a pass: format, elements of a row, rows that one token meets, and whether they are the head's.
struct Matrix {
    ty: GgmlType,
    n_in: u64,
    rows: f64,
    bytes: u64,
    head: bool,
}

impl Work {
    /// What `model` asks for; `header` is the one it was made from.
    #[must_use]
    pub fn of(header: &Header, model: &Model) -> Self {
        let mut work = Self { decode_weights: 0.0, prefill_weights: 0.0 };
        for matrix in matrices(header, model) {
            let weights = matrix.rows * matrix.n_in as f64;
            work.decode_weights += weights;
            work.prefill_weights += if matrix.head { 0.0 } else { weights };
        }
        work
    }
}

impl MainKernel {
    /// The main kernel of `model`; `None` for a model without matrices.
    #[must_use]
    pub fn of(header: &Header, model: &Model) -> Option<Self> {
        let mut kinds: Vec<(GgmlType, u64, Matrix)> = Vec::new();
        for matrix in matrices(header, model) {
            match kinds.iter_mut().find(|(ty, ..)| *ty == matrix.ty) {
                Some((_, bytes, largest)) => {
                    *bytes += matrix.bytes;
                    if matrix.bytes > largest.bytes {
                        *largest = matrix;
                    }
                }
                None => kinds.push((matrix.ty, matrix.bytes, matrix)),
            }
        }
        let (ty, _, largest) = kinds.into_iter().max_by_key(|(_, bytes, _)| *bytes)?;
        Some(Self { ty, n_in: largest.n_in })
    }
}

/// The speed that `plan` will have. Computing and reading add up: one thread does both. The attention, which grows with the
/// context, is left out, and formats other than the measured one count as equally fast. `None` when weights stream and the
/// storage's speed is not known.
#[must_use]
pub fn predict(work: &Work, plan: &Plan, format: GgmlType, rates: &Rates) -> Option<Prediction> {
    let streams = plan.n_slots > 0;
    let storage = rates.storage_bytes_per_second.filter(|_| streams);
    if streams && storage.is_none() {
        return None;
    }
    let reading = |bytes: u64| storage.map_or(0.0, |rate| bytes as f64 / rate);
    let kernel = rates.kernel;
    let decode = work.decode_weights / kernel.decode_weights_per_second
        + reading(plan.streamed_bytes_per_token);
    let chunk = reading(plan.weight_bytes.saturating_sub(plan.resident_bytes));
    let prefill = work.prefill_weights / kernel.prefill_weights_per_second
        + chunk / f64::from(plan.n_batch.max(1));
    let whole_chunks = plan.n_batch >= PREFILL_COLUMNS;
    Some(Prediction {
        decode_tokens_per_second: positive(1.0 / decode)?,
        prefill_tokens_per_second: positive(1.0 / prefill).filter(|_| whole_chunks),
        basis: Basis { format: format.name(), kernel, storage_bytes_per_second: storage },
    })
}

/// Columns of the measured chunk.
pub const PREFILL_COLUMNS: u32 = 16;

/// A rate that was measured as nothing, or work that is nothing, predicts nothing.
fn positive(rate: f64) -> Option<f64> {
    (rate.is_finite() && rate > 0.0).then_some(rate)
}

fn matrices<'a>(header: &'a Header, model: &'a Model) -> impl Iterator<Item = Matrix> + 'a {
    let share = model
        .hparams()
        .experts
        .as_ref()
        .map_or(1.0, |e| f64::from(e.n_expert_used) / f64::from(e.n_expert.max(1)));
    model.uses().iter().filter_map(move |used| {
        let tensor = &header.tensors[used.tensor as usize];
        let TensorType::Known(ty) = tensor.ty else { return None };
        if matches!(used.phase, Phase::Open | Phase::Embed) {
            return None;
        }
        let n_in = tensor.n_cols();
        let rows = f64::from(used.n_rows) * if used.deferred { share } else { 1.0 };
        Some(Matrix { ty, n_in, rows, bytes: used.bytes(), head: used.phase == Phase::Head })
    })
}
