//! What JS learns of an opened model, and how structs become plain JS objects.

use serde::Serialize;
use serde_wasm_bindgen::Serializer;
use wasm_bindgen::JsValue;

use crate::runtime::{Engine, KvType, Layout, OpenConfig, PlanReport, Precision};

/// Everything that stays as it is while the model is open.
#[derive(Debug, Serialize)]
pub(super) struct Facts {
    pub(super) config: EffectiveConfig,
    pub(super) model: ModelFacts,
    pub(super) plan: PlanReport,
    pub(super) layout: Layout,
}

/// `EffectiveConfig` of `js/options.ts`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EffectiveConfig {
    memory: u64,
    context: u32,
    batch: u32,
    kv_type: &'static str,
    precision: &'static str,
    threads: u32,
}

/// `ModelFacts` of `js/protocol.ts`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ModelFacts {
    architecture: String,
    kind: &'static str,
    name: Option<String>,
    layers: u32,
    vocabulary: u32,
    width: u32,
    trained_context: u32,
    chat_template: Option<&'static str>,
}

impl Facts {
    /// The facts of `engine`, which was opened with `config`.
    pub(super) fn of(engine: &Engine, config: &OpenConfig) -> Self {
        let (plan, hparams) = (engine.plan(), engine.model().hparams());
        let kv_type = match plan.kv {
            KvType::F32 => "f32",
            KvType::F16 => "f16",
            KvType::Q8_0 => "q8_0",
        };
        let precision = match config.precision {
            Precision::Fast => "fast",
            Precision::Exact => "exact",
        };
        let name = engine.header().metadata.get_str("general.name");
        Self {
            config: EffectiveConfig {
                memory: plan.budget_bytes,
                context: plan.n_ctx,
                batch: plan.n_batch,
                kv_type,
                precision,
                threads: engine.stats().threads,
            },
            model: ModelFacts {
                architecture: hparams.arch.clone(),
                kind: engine.model().kind().name(),
                name: name.ok().flatten().map(str::to_owned),
                layers: hparams.n_layer,
                vocabulary: hparams.n_vocab,
                width: hparams.n_embd,
                trained_context: hparams.n_ctx_train,
                chat_template: engine.chat_template(),
            },
            plan: PlanReport::of(plan),
            layout: Layout::of(engine),
        }
    }
}

/// A plain JS object: numbers, texts, lists, nested objects.
pub(super) fn plain(value: &impl Serialize) -> JsValue {
    // Structs of numbers, texts and maps by name always serialise.
    value.serialize(&Serializer::json_compatible()).unwrap_or_default()
}
