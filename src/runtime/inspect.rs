//! What a model is and what it would take, from its header alone.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde::Serialize;

use super::budget;
use super::config::OpenConfig;
use super::engine::share;
use super::host::{Host, Outcome};
use super::open::{computed_header, read_header};
use super::predict::{Kernel, Prediction, Rates, Work, predict};
use crate::error::{Detail, Error, Result, camel_case};
use crate::gguf::{Header, TensorEntry, TensorType};
use crate::model::{Model, ModelConfig};
use crate::planner::{LedgerItem, Plan};
use crate::source::WeightSource;
use crate::tokenizer::{Tokenizer, template_name};

/// A model's header, read and understood. Plans for other budgets need no further reading.
#[derive(Debug)]
pub struct Inspection {
    header: Header,
    /// Or why its vocabulary cannot be used: then the model cannot run, and the verdict says so.
    tokenizer: Result<Tokenizer>,
    source: Rc<dyn WeightSource>,
}

/// The verdict, for programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// What the model is.
    #[serde(flatten)]
    pub card: ModelCard,
    /// What it takes.
    #[serde(flatten)]
    pub fit: Fit,
}

/// What a model is, whatever it is opened with.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelCard {
    /// Architecture as GGUF names it; empty where the file does not say.
    pub architecture: String,
    /// `decoder`, or `encoder` for one that embeds texts and generates none; `None` when the model cannot run.
    pub kind: Option<&'static str>,
    /// The model's own name, where the file says it.
    pub name: Option<String>,
    /// Values of all tensors.
    pub parameters: u64,
    /// Layers; 0 when the model cannot run.
    pub layers: u32,
    /// Tokens of the vocabulary; 0 when the model cannot run.
    pub vocabulary: u32,
    /// Context that the model was trained for; 0 when the model cannot run.
    pub trained_context: u32,
    /// Where the chat template comes from: `file`, or the name of the fallback that the vocabulary chose; `None` where there is neither.
    pub chat_template: Option<&'static str>,
    /// Bytes of all files: what a download takes. Where the source does not know, as far as the directory reaches.
    pub file_bytes: u64,
    /// Bytes of tensors by number format.
    pub types: BTreeMap<String, u64>,
}

/// How a model fits under one config.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fit {
    /// The plan; `None` when the model cannot run or nothing fits the budget.
    pub plan: Option<PlanReport>,
    /// Why there is no plan.
    pub refused: Option<Refusal>,
    /// The smallest budget that runs the model so, also when that is why it is refused.
    pub floor_bytes: Option<u64>,
    /// Share of the weights of a pass that stays in memory, 0 to 1.
    pub resident_share: Option<f64>,
    /// Expected speed, where rates were given.
    pub predicted: Option<Prediction>,
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
    /// The error's facts for programs, by camelCase name.
    pub details: BTreeMap<String, Detail>,
}

impl Inspection {
    /// Reads the header behind `source`; tensor data is never touched.
    ///
    /// # Errors
    /// `source_failed`, `invalid_model`, `unsupported_model` for a header that cannot be read. A model that can be read but
    /// not run is a verdict, not an error.
    pub async fn read(source: Rc<dyn WeightSource>, host: &dyn Host) -> Outcome<Self> {
        let mut header = read_header(&source, host).await?;
        let tokenizer = Tokenizer::take_from(&mut header.metadata);
        Ok(Self { header, tokenizer, source })
    }

    /// The plan under `config`.
    ///
    /// # Errors
    /// `unsupported_model` or `invalid_model` when the model cannot run, `out_of_memory` with what it would take.
    pub fn plan(&self, config: &OpenConfig) -> Result<Plan> {
        let computed = self.computed(config)?;
        self.plan_of(&computed, &Model::new(&computed, &model_config(config))?, config)
    }

    /// The kernels whose speed decides that of the model under `config`; the rates of [`Inspection::fit`] are theirs.
    ///
    /// # Errors
    /// As for [`Inspection::plan`], memory apart.
    pub fn kernels(&self, config: &OpenConfig) -> Result<Vec<Kernel>> {
        let computed = self.computed(config)?;
        let model = Model::new(&computed, &model_config(config))?;
        Ok(Work::of(&computed, &model).kernels().collect())
    }

    /// How the model fits under `config`; with `rates`, how fast it will be.
    #[must_use]
    pub fn fit(&self, config: &OpenConfig, rates: Option<&Rates>) -> Fit {
        match self.try_fit(config, rates) {
            Ok(fit) => fit,
            Err(error) => Fit {
                plan: None,
                floor_bytes: needed_bytes(&error),
                refused: Some(Refusal::of(&error)),
                resident_share: None,
                predicted: None,
            },
        }
    }

    fn try_fit(&self, config: &OpenConfig, rates: Option<&Rates>) -> Result<Fit> {
        let computed = self.computed(config)?;
        let model = Model::new(&computed, &model_config(config))?;
        let plan = self.plan_of(&computed, &model, config)?;
        let work = Work::of(&computed, &model);
        let predicted = rates.and_then(|rates| predict(&work, &plan, rates));
        Ok(Fit {
            floor_bytes: Some(plan.floor_bytes),
            resident_share: Some(share(plan.resident_bytes, plan.weight_bytes)),
            plan: Some(PlanReport::of(&plan)),
            refused: None,
            predicted,
        })
    }

    /// What the model is.
    #[must_use]
    pub fn card(&self) -> ModelCard {
        let model = Model::new(&self.header, &model_config(&OpenConfig::default()));
        let text = |key| self.header.metadata.get_str(key).ok().flatten().map(str::to_owned);
        let hparams = model.as_ref().ok().map(Model::hparams);
        let mut types = BTreeMap::new();
        for tensor in &self.header.tensors {
            let name = match tensor.ty {
                TensorType::Known(ty) => ty.name().to_owned(),
                TensorType::Unknown(id) => format!("type {id}"),
            };
            let n_bytes = types.entry(name).or_insert(0_u64);
            *n_bytes = n_bytes.saturating_add(tensor.n_bytes);
        }
        let files = (0..).zip(&self.header.files);
        let sizes = files.map(|(i, file)| self.source.file_bytes(i).unwrap_or(file.min_bytes));
        let tokenizer = self.tokenizer.as_ref().ok();
        ModelCard {
            chat_template: tokenizer.and_then(|t| template_name(&self.header.metadata, t)),
            architecture: text("general.architecture").unwrap_or_default(),
            kind: model.as_ref().ok().map(|model| model.kind().name()),
            name: text("general.name"),
            parameters: self.header.tensors.iter().map(n_values).fold(0, u64::saturating_add),
            layers: hparams.map_or(0, |h| h.n_layer),
            vocabulary: hparams.map_or(0, |h| h.n_vocab),
            trained_context: hparams.map_or(0, |h| h.n_ctx_train),
            file_bytes: sizes.fold(0, u64::saturating_add),
            types,
        }
    }

    /// The verdict under `config`.
    #[must_use]
    pub fn verdict(&self, config: &OpenConfig) -> Verdict {
        Verdict { card: self.card(), fit: self.fit(config, None) }
    }

    fn computed(&self, config: &OpenConfig) -> Result<Cow<'_, Header>> {
        computed_header(&self.header, &model_config(config), config.residency)
    }

    fn plan_of(&self, computed: &Header, model: &Model, config: &OpenConfig) -> Result<Plan> {
        let tokenizer = self.tokenizer.as_ref().map_err(Clone::clone)?;
        budget::plan_for(computed, model, tokenizer, config, &*self.source)
    }
}

/// Values of a tensor. Of a number format that is not known the header need not hold true: nothing bounds the shape.
fn n_values(tensor: &TensorEntry) -> u64 {
    tensor.shape.iter().copied().fold(1, u64::saturating_mul)
}

fn model_config(config: &OpenConfig) -> ModelConfig {
    ModelConfig { precision: config.precision, kv: config.kv_type() }
}

fn needed_bytes(error: &Error) -> Option<u64> {
    error.details().iter().find_map(|(name, detail)| match detail {
        Detail::Number(bytes) if *name == "needed_bytes" => Some(*bytes),
        _ => None,
    })
}

impl Verdict {
    /// The verdict in words, for the terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let card = &self.card;
        let mut lines = vec![
            format!(
                "model      {} ({})",
                card.name.as_deref().unwrap_or("unnamed"),
                card.architecture
            ),
            format!("size       {} bytes, {} parameters", card.file_bytes, card.parameters),
        ];
        let types = card.types.iter().map(|(name, bytes)| format!("{name} {bytes}"));
        lines.push(format!("types      {}", types.collect::<Vec<_>>().join(", ")));
        if card.layers > 0 {
            lines.push(format!(
                "shape      {}, {} layers, {} tokens, trained for {} positions",
                card.kind.unwrap_or_default(),
                card.layers,
                card.vocabulary,
                card.trained_context
            ));
        }
        match card.chat_template {
            Some("file") => {}
            Some(name) => lines.push(format!("template   {name} (fallback: the file has none)")),
            None => lines.push("template   none".to_owned()),
        }
        if let Some(refused) = &self.fit.refused {
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
        let details = error.details().iter();
        let details = details.map(|(name, detail)| (camel_case(name), detail.clone())).collect();
        Self { code: error.code(), message: error.message().to_owned(), details }
    }
}
