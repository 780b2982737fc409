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
#[derive(Debug, Clone, PartialEq)]
pub struct Rates {
    /// The kernels, in the order of [`Work::kernels`].
    pub kernels: Vec<KernelRates>,
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
    /// The number format with the most weights; others that count were measured too.
    pub format: &'static str,
    /// Its kernel's speed.
    #[serde(flatten)]
    pub kernel: KernelRates,
    /// Speed of the storage; `None` where it was not needed or cannot be measured.
    pub storage_bytes_per_second: Option<f64>,
}

/// Multiplications that a model asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// By number format, most weights first.
    pub formats: Vec<FormatWork>,
}

/// Multiplications with weights of one format.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FormatWork {
    /// What does them.
    pub kernel: Kernel,
    /// Weights that a decoded token meets: all matrices of a pass, of experts as many as a token goes through.
    pub decode_weights: f64,
    /// Weights that a prompt's token meets: the same without the head.
    pub prefill_weights: f64,
}

/// A kernel whose speed counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernel {
    /// Number format of the weights.
    pub ty: GgmlType,
    /// Elements of the rows of the largest tensor.
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
        let mut formats: Vec<(FormatWork, u64)> = Vec::new();
        for Matrix { ty, n_in, rows, bytes, head } in matrices(header, model) {
            let at = formats.iter().position(|(work, _)| work.kernel.ty == ty);
            let at = at.unwrap_or_else(|| {
                let kernel = Kernel { ty, n_in };
                formats.push((FormatWork { kernel, decode_weights: 0.0, prefill_weights: 0.0 }, 0));
                formats.len() - 1
            });
            let (work, largest) = &mut formats[at];
            let weights = rows * n_in as f64;
            work.decode_weights += weights;
            work.prefill_weights += if head { 0.0 } else { weights };
            if bytes > *largest {
                (work.kernel.n_in, *largest) = (n_in, bytes);
            }
        }
        let mut formats: Vec<FormatWork> = formats.into_iter().map(|(work, _)| work).collect();
        formats.sort_by(|a, b| b.decode_weights.total_cmp(&a.decode_weights));
        Self { formats }
    }

    /// The kernels that are worth measuring: of the format with the most weights, and of each that has a tenth of them.
    pub fn kernels(&self) -> impl Iterator<Item = Kernel> {
        let all = self.sum(|work| work.decode_weights);
        let counts = move |(i, work): &(usize, &FormatWork)| {
            *i == 0 || work.decode_weights >= LEAST_SHARE * all
        };
        self.formats.iter().enumerate().filter(counts).map(|(_, work)| work.kernel)
    }

    fn sum(&self, weights: impl Fn(&FormatWork) -> f64) -> f64 {
        self.formats.iter().map(weights).sum()
    }

    /// Seconds of all multiplications, formats that were not measured being as fast as the others together. NaN without rates.
    fn seconds(
        &self,
        rates: &[KernelRates],
        weights: impl Fn(&FormatWork) -> f64,
        rate: impl Fn(&KernelRates) -> f64,
    ) -> f64 {
        // The kernels are the first formats: their weights fall from one to the next.
        let known = || self.formats.iter().zip(rates);
        let seconds: f64 = known().map(|(work, rates)| weights(work) / rate(rates)).sum();
        let measured: f64 = known().map(|(work, _)| weights(work)).sum();
        seconds * self.sum(weights) / measured
    }
}

/// The speed that `plan` will have. Computing and reading add up: one thread does both. The attention, which grows with the
/// context, is left out. `None` when weights stream and the storage's speed is not known.
#[must_use]
pub fn predict(work: &Work, plan: &Plan, rates: &Rates) -> Option<Prediction> {
    let streams = plan.n_slots > 0;
    let storage = rates.storage_bytes_per_second.filter(|_| streams);
    if streams && storage.is_none() {
        return None;
    }
    let reading = |bytes: u64| storage.map_or(0.0, |rate| bytes as f64 / rate);
    let kernels = &rates.kernels;
    let decode = work.seconds(kernels, |w| w.decode_weights, |r| r.decode_weights_per_second);
    let decode = decode / MATRIX_SHARE + reading(plan.streamed_bytes_per_token);
    let prefill = work.seconds(kernels, |w| w.prefill_weights, |r| r.prefill_weights_per_second);
    let chunk = reading(plan.weight_bytes.saturating_sub(plan.resident_bytes));
    let prefill = prefill / MATRIX_SHARE + chunk / f64::from(plan.n_batch.max(1));
    let whole_chunks = plan.n_batch >= PREFILL_COLUMNS;
    Some(Prediction {
        decode_tokens_per_second: positive(1.0 / decode)?,
        prefill_tokens_per_second: positive(1.0 / prefill).filter(|_| whole_chunks),
        basis: Basis {
            format: work.formats.first()?.kernel.ty.name(),
            kernel: *kernels.first()?,
            storage_bytes_per_second: storage,
        },
    })
}

/// What the products with weights take of the time of computing; the rest goes to everything between them.
/// `scripts/bench/predicted-cpu.mjs` shows how well it does.
pub const MATRIX_SHARE: f64 = 0.85;

/// Formats with fewer of the weights are not worth the time of measuring.
const LEAST_SHARE: f64 = 0.1;

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
