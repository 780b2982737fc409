//! Headers that are wrong: each is refused with the culprit's name, and none makes the model panic.

use serde_json::Value as Json;
use sluice::error::Error;
use sluice::gguf::{Array, Header, TensorType, Value};
use sluice::model::{KvType, LogitsWanted, Model, ModelConfig, Precision};
use sluice::quant::GgmlType;

use super::driver::{Driver, EXACT, fixture, shape};

#[test]
fn what_is_accepted_runs() {
    let index: Json = serde_json::from_slice(&fixture("parser/index.json")).unwrap();
    let mut n_run = 0;
    for case in index.as_array().unwrap().iter().filter(|case| case["level"] == "model") {
        let file = case["file"].as_str().unwrap();
        match Driver::of_file(fixture(&format!("parser/{file}")), &EXACT, &shape(4)) {
            Ok(mut driver) => {
                driver.pass(&[1, 2, 3], LogitsWanted::All);
                n_run += 1;
            }
            Err(error) => assert_ne!(case["expect"], "accept", "{file}: {error}"),
        }
    }
    assert!(n_run > 15, "{n_run} files ran");
}

/// A fault, the code it gives, and what its message says.
type Fault = (fn(&mut Header), &'static str, &'static [&'static str]);

const FAULTS: &[Fault] = &[
    (
        |h| drop(h.metadata.remove("general.architecture")),
        "invalid_model",
        &["general.architecture", "missing"],
    ),
    (
        |h| set(h, "general.architecture", text("gpt-j")),
        "unsupported_model",
        &["'gpt-j'", "llama", "gemma3"],
    ),
    (
        |h| drop(h.metadata.remove("llama.block_count")),
        "invalid_model",
        &["llama.block_count", "missing"],
    ),
    (
        |h| set(h, "llama.block_count", Value::U32(0)),
        "invalid_model",
        &["llama.block_count", "at least 1"],
    ),
    (
        |h| set(h, "llama.block_count", Value::U32(u32::MAX)),
        "invalid_model",
        &["llama.block_count", "absurdly"],
    ),
    (|h| set(h, "llama.block_count", Value::U32(4)), "invalid_model", &["blk.3.", "missing"]),
    (
        |h| set(h, "llama.block_count", Value::U32(2)),
        "unsupported_model",
        &["blk.2.", "not part of"],
    ),
    (
        |h| set(h, "llama.embedding_length", Value::F32(64.0)),
        "invalid_model",
        &["llama.embedding_length", "f32 64"],
    ),
    (
        |h| set(h, "llama.embedding_length", Value::U32(128)),
        "invalid_model",
        &["[64, 96]", "[128, 96]"],
    ),
    (
        |h| set(h, "llama.attention.head_count", Value::U32(5)),
        "invalid_model",
        &["head_count", "does not divide"],
    ),
    (
        |h| set(h, "llama.attention.head_count_kv", Value::U32(3)),
        "invalid_model",
        &["head_count_kv", "divide"],
    ),
    (
        |h| set(h, "llama.attention.head_count_kv", Value::U32(0)),
        "invalid_model",
        &["head_count_kv", "at least 1"],
    ),
    (
        |h| set(h, "llama.attention.key_length", Value::U32(32)),
        "invalid_model",
        &["attn_", "[64, 64]"],
    ),
    (
        |h| set(h, "llama.attention.value_length", Value::U32(32)),
        "invalid_model",
        &["attn_", "[64, 64]"],
    ),
    (
        |h| set_both_lengths(h, 16, 32),
        "unsupported_model",
        &["attention.value_length", "32", "one size"],
    ),
    (
        |h| set(h, "llama.attention.layer_norm_rms_epsilon", Value::F32(f32::NAN)),
        "invalid_model",
        &["rms_epsilon"],
    ),
    (
        |h| set(h, "llama.attention.layer_norm_rms_epsilon", Value::F32(-1.0)),
        "invalid_model",
        &["rms_epsilon"],
    ),
    (
        |h| set(h, "llama.context_length", Value::U32(0)),
        "invalid_model",
        &["context_length", "at least 1"],
    ),
    (
        |h| set(h, "llama.rope.dimension_count", Value::U32(7)),
        "invalid_model",
        &["rope.dimension_count", "even"],
    ),
    (
        |h| set(h, "llama.rope.dimension_count", Value::U32(18)),
        "invalid_model",
        &["rope.dimension_count", "18"],
    ),
    (
        |h| set(h, "llama.rope.freq_base", Value::F32(0.0)),
        "invalid_model",
        &["rope.freq_base", "above 0"],
    ),
    (
        |h| set(h, "llama.rope.scaling.type", text("dynamic")),
        "unsupported_model",
        &["rope.scaling.type", "dynamic"],
    ),
    (
        |h| set(h, "llama.attention.causal", Value::Bool(false)),
        "unsupported_model",
        &["attention.causal", "false"],
    ),
    (
        |h| set_yarn(h, "llama.rope.scaling.yarn_log_multiplier", 0.1),
        "unsupported_model",
        &["yarn_log_multiplier", "0.1"],
    ),
    (
        |h| set(h, "llama.rope.scaling.factor", Value::F32(-2.0)),
        "invalid_model",
        &["rope.scaling.factor", "-2"],
    ),
    (
        |h| set(h, "llama.attention.head_count", heads(&[4, 4])),
        "invalid_model",
        &["2 values", "each layer"],
    ),
    (
        |h| set(h, "llama.attention.head_count", heads(&[4, 2, 4])),
        "unsupported_model",
        &["layer to layer"],
    ),
    (
        |h| set(h, "llama.vocab_size", Value::U32(95)),
        "invalid_model",
        &["llama.vocab_size", "95 tokens"],
    ),
    (
        |h| set(h, "tokenizer.ggml.tokens", tokens(95)),
        "invalid_model",
        &["tokenizer.ggml.tokens", "95 tokens"],
    ),
    (|h| set_experts(h, 4, 5), "invalid_model", &["expert_used_count", "5"]),
    (|h| set_experts(h, 4, 0), "invalid_model", &["expert_used_count", "at least 1"]),
    (|h| set_experts(h, 4, 2), "invalid_model", &["ffn_gate_inp.weight", "missing"]),
    (|h| lose(h, "token_embd.weight"), "invalid_model", &["token_embd.weight", "missing"]),
    (|h| lose(h, "output_norm.weight"), "invalid_model", &["output_norm.weight", "missing"]),
    (|h| lose(h, "blk.1.ffn_gate.weight"), "invalid_model", &["blk.1.ffn_gate.weight", "missing"]),
    (
        |h| reshape(h, "blk.0.attn_norm.weight", &[63]),
        "invalid_model",
        &["blk.0.attn_norm", "[63]", "[64]"],
    ),
    (
        |h| reshape(h, "blk.0.attn_k.weight", &[32, 64]),
        "invalid_model",
        &["blk.0.attn_k", "[32, 64]", "[64, 32]"],
    ),
    (|h| reshape(h, "blk.0.attn_k.weight", &[]), "invalid_model", &["blk.0.attn_k", "[]"]),
    (|h| reshape(h, "token_embd.weight", &[64, u64::MAX]), "invalid_model", &["token_embd.weight"]),
    (
        |h| retype(h, "output.weight", TensorType::Unknown(26)),
        "unsupported_model",
        &["output.weight", "26"],
    ),
    (
        |h| retype(h, "output.weight", TensorType::Known(GgmlType::Q4_K)),
        "invalid_model",
        &["output.weight", "Q4_K"],
    ),
    (
        |h| rename(h, "blk.0.attn_q.weight", "blk.0.attn_q.scale"),
        "invalid_model",
        &["blk.0.attn_q.weight"],
    ),
    (
        |h| rename(h, "output.weight", "output.scale"),
        "unsupported_model",
        &["output.scale", "'llama'"],
    ),
    (
        |h| rename(h, "blk.0.ffn_up.weight", "blk.0.ffn_gate.0.weight"),
        "invalid_model",
        &["blk.0.ffn_up.weight"],
    ),
];

#[test]
fn every_fault_names_its_culprit() {
    let header = Header::parse(&fixture("models/llama-gqa.gguf")).unwrap();
    for (i, (spoil, code, parts)) in FAULTS.iter().enumerate() {
        let mut header = header.clone();
        spoil(&mut header);
        let error = Model::new(&header, &EXACT)
            .err()
            .unwrap_or_else(|| panic!("fault {i}, {parts:?}: accepted"));
        assert_eq!(error.code(), *code, "fault {i}: {error}");
        for part in *parts {
            assert!(error.message().contains(part), "fault {i}: '{part}' is not in: {error}");
        }
        assert!(!error.details().is_empty(), "fault {i}: a fact for programs: {error}");
    }
}

#[test]
fn keys_that_only_some_families_need() {
    let error = |name: &str, key: &str| -> Error {
        let mut header = Header::parse(&fixture(&format!("models/{name}.gguf"))).unwrap();
        assert!(header.metadata.remove(key).is_some(), "{name} has {key}");
        Model::new(&header, &EXACT).unwrap_err()
    };
    for (name, key) in [
        ("gemma2", "gemma2.attention.sliding_window"),
        ("gemma2", "gemma2.attn_logit_softcapping"),
        ("gemma2", "gemma2.final_logit_softcapping"),
        ("granite", "granite.logit_scale"),
        ("llama-moe", "llama.expert_used_count"),
    ] {
        let error = error(name, key);
        assert_eq!(error.code(), "invalid_model", "{name}: {error}");
        assert!(error.message().contains(key), "{name}: {error}");
    }
}

#[test]
fn experts_one_by_one_are_refused_by_name() {
    let mut header = Header::parse(&fixture("models/llama-moe.gguf")).unwrap();
    rename(&mut header, "blk.0.ffn_gate_exps.weight", "blk.0.ffn_gate.0.weight");
    let error = Model::new(&header, &EXACT).unwrap_err();
    assert_eq!(error.code(), "unsupported_model");
    assert!(error.message().contains("blk.0.ffn_gate.0.weight"), "{error}");
}

#[test]
fn kv_blocks_must_fit_the_heads() {
    let header = Header::parse(&fixture("models/llama-gqa.gguf")).unwrap();
    let config = ModelConfig { precision: Precision::Fast, kv: KvType::Q8_0 };
    let error = Model::new(&header, &config).unwrap_err();
    assert_eq!(error.code(), "invalid_option");
    assert!(error.message().contains("q8_0") && error.message().contains("16"), "{error}");
}

pub(super) fn set(h: &mut Header, key: &str, value: Value) {
    h.metadata.insert(key, value);
}

fn set_both_lengths(h: &mut Header, key: u32, value: u32) {
    set(h, "llama.attention.key_length", Value::U32(key));
    set(h, "llama.attention.value_length", Value::U32(value));
}

fn set_yarn(h: &mut Header, key: &str, value: f32) {
    set(h, "llama.rope.scaling.type", text("yarn"));
    set(h, key, Value::F32(value));
}

fn set_experts(h: &mut Header, n: u32, n_used: u32) {
    set(h, "llama.expert_count", Value::U32(n));
    set(h, "llama.expert_used_count", Value::U32(n_used));
}

fn lose(h: &mut Header, name: &str) {
    h.tensors.retain(|t| t.name != name);
}

fn reshape(h: &mut Header, name: &str, to: &[u64]) {
    let i = h.find(name).unwrap();
    h.tensors[i].shape = to.to_vec();
}

fn retype(h: &mut Header, name: &str, to: TensorType) {
    let i = h.find(name).unwrap();
    h.tensors[i].ty = to;
}

fn rename(h: &mut Header, name: &str, to: &str) {
    let i = h.find(name).unwrap();
    h.tensors[i].name = to.to_owned();
}

pub(super) fn text(s: &str) -> Value {
    Value::String(s.as_bytes().into())
}

pub(super) fn heads(values: &[u32]) -> Value {
    Value::Array(Array::U32(values.to_vec()))
}

fn tokens(n: usize) -> Value {
    Value::Array(Array::strings(vec!["t"; n]))
}
