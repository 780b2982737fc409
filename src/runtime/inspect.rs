//! What a model is and what it would take, from its header alone.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::Serialize;

use super::budget;
use super::config::OpenConfig;
use super::host::{Host, Outcome};
use super::open::{computed_header, read_header};
use crate::error::{Error, Result};
use crate::gguf::{Header, TensorType};
use crate::model::{Model, ModelConfig};
use crate::planner::{LedgerItem, Plan};
use crate::source::WeightSource;
use crate::tokenizer::Tokenizer;

/// A model's header, read and understood. Plans for other budgets need no further reading.
#[derive(Debug)]
pub struct Inspection {
    header: Header,
    tokenizer: Tokenizer,
    source: Rc<dyn WeightSource>,
}

/// The verdict, for programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// Architecture as GGUF names it; empty where the file does not say.
    pub architecture: String,
    /// The model's own name; empty where the file does not say.
    pub name: String,
    /// Values of all tensors.
    pub parameters: u64,
    /// Layers; 0 when the model cannot run.
    pub layers: u32,
    /// Tokens of the vocabulary; 0 when the model cannot run.
    pub vocabulary: u32,
    /// Context that the model was trained for; 0 when the model cannot run.
    pub context_trained: u32,
    /// Bytes of all files, as far as the directory reaches.
    pub file_bytes: u64,
    /// Bytes of tensors by number format.
    pub types: BTreeMap<String, u64>,
    /// The plan; `None` when the model cannot run or nothing fits the budget.
    pub plan: Option<PlanReport>,
    /// Why there is no plan: the error's code and message.
    pub refused: Option<Refusal>,
}

/// A plan, for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanReport {
    /// Positions of the context.
    pub context: u32,
    /// Columns of a prefill chunk.
    pub batch: u32,
    /// Slots of the ring.
    pub slots: u32,
    /// Bytes of a slot.
    pub slot_bytes: u64,
    /// Bytes that will be taken.
    pub total_bytes: u64,
    /// The smallest budget that runs the model so.
    pub floor_bytes: u64,
    /// The budget.
    pub budget_bytes: u64,
    /// It does not fit and runs because the caller insisted.
    pub forced: bool,
    /// Weight bytes that stay in memory.
    pub resident_bytes: u64,
    /// Weight bytes of a pass.
    pub weight_bytes: u64,
    /// Weight bytes that each decoded token reads again.
    pub streamed_bytes_per_token: u64,
    /// Where the bytes go.
    pub ledger: BTreeMap<&'static str, u64>,
}

/// Why a model cannot run as asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The error's code.
    pub code: &'static str,
    /// The error's message.
    pub message: String,
}

impl Inspection {
    /// Reads the header behind `source`; tensor data is never touched.
    ///
    /// # Errors
    /// `source_failed`, `invalid_model`, `unsupported_model` for a header that cannot be read. A model that can be read but
    /// not run is a verdict, not an error.
    pub async fn read(source: Rc<dyn WeightSource>, host: &dyn Host) -> Outcome<Self> {
        let mut header = read_header(&source, host).await?;
        let tokenizer = Tokenizer::take_from(&mut header.metadata)?;
        Ok(Self { header, tokenizer, source })
    }

    /// The plan under `config`.
    ///
    /// # Errors
    /// `unsupported_model` or `invalid_model` when the model cannot run, `out_of_memory` with what it would take.
    pub fn plan(&self, config: &OpenConfig) -> Result<Plan> {
        let model_config = ModelConfig { precision: config.precision, kv: config.kv_type() };
        let computed = computed_header(&self.header, &model_config, config.residency)?;
        let model = Model::new(&computed, &model_config)?;
        budget::plan_for(&computed, &model, &self.tokenizer, config, &*self.source)
    }

    /// The verdict under `config`.
    #[must_use]
    pub fn verdict(&self, config: &OpenConfig) -> Verdict {
        let model = self.model(config);
        let plan = self.plan(config);
        let text = |key| self.header.metadata.get_str(key).ok().flatten().unwrap_or_default();
        let hparams = model.as_ref().ok().map(Model::hparams);
        let mut types = BTreeMap::new();
        for tensor in &self.header.tensors {
            let name = match tensor.ty {
                TensorType::Known(ty) => ty.name().to_owned(),
                TensorType::Unknown(id) => format!("type {id}"),
            };
            *types.entry(name).or_insert(0) += tensor.n_bytes;
        }
        Verdict {
            architecture: text("general.architecture").to_owned(),
            name: text("general.name").to_owned(),
            parameters: self.header.tensors.iter().map(|t| t.shape.iter().product::<u64>()).sum(),
            layers: hparams.map_or(0, |h| h.n_layer),
            vocabulary: hparams.map_or(0, |h| h.n_vocab),
            context_trained: hparams.map_or(0, |h| h.n_ctx_train),
            file_bytes: self.header.files.iter().map(|f| f.min_bytes).sum(),
            types,
            plan: plan.as_ref().ok().map(PlanReport::of),
            refused: plan.as_ref().err().map(Refusal::of),
        }
    }

    fn model(&self, config: &OpenConfig) -> Result<Model> {
        let config = ModelConfig { precision: config.precision, kv: config.kv_type() };
        Model::new(&self.header, &config)
    }
}

impl Verdict {
    /// The verdict in words, for the terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut lines = vec![
            format!("model      {} ({})", self.name, self.architecture),
            format!("size       {} bytes, {} parameters", self.file_bytes, self.parameters),
        ];
        let types = self.types.iter().map(|(name, bytes)| format!("{name} {bytes}"));
        lines.push(format!("types      {}", types.collect::<Vec<_>>().join(", ")));
        if self.layers > 0 {
            lines.push(format!(
                "shape      {} layers, {} tokens, trained for {} positions",
                self.layers, self.vocabulary, self.context_trained
            ));
        }
        if let Some(refused) = &self.refused {
            lines.push(format!("refused    {} [{}]", refused.message, refused.code));
        }
        lines.join("\n")
    }
}

impl PlanReport {
    /// What of `plan` is told.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        let ledger = plan.ledger.iter().map(|&LedgerItem { name, bytes }| (name, bytes)).collect();
        Self {
            context: plan.n_ctx,
            batch: plan.n_batch,
            slots: plan.n_slots,
            slot_bytes: plan.slot_bytes,
            total_bytes: plan.total_bytes,
            floor_bytes: plan.floor_bytes,
            budget_bytes: plan.budget_bytes,
            forced: plan.forced,
            resident_bytes: plan.resident_bytes,
            weight_bytes: plan.weight_bytes,
            streamed_bytes_per_token: plan.streamed_bytes_per_token,
            ledger,
        }
    }
}

impl Refusal {
    fn of(error: &Error) -> Self {
        Self { code: error.code(), message: error.message().to_owned() }
    }
}
