//! The verdict from a header alone, and the speed that is predicted from given rates.

use std::cell::Cell;
use std::rc::Rc;

use sluice::error::Result;
use sluice::gguf::Header;
use sluice::model::{Model, ModelConfig, Precision};
use sluice::planner::Plan;
use sluice::quant::GgmlType;
use sluice::runtime::native::{NativeHost, block_on};
use sluice::runtime::{
    FormatWork, Inspection, Kernel, KernelRates, KvType, MATRIX_SHARE, OpenConfig, Prediction,
    Rates, Work, measure, predict,
};
use sluice::source::MemorySource;

use super::chat::with_vocabulary;

const RATES: KernelRates =
    KernelRates { decode_weights_per_second: 1e9, prefill_weights_per_second: 4e9 };

fn inspected(name: &str) -> Inspection {
    inspected_bytes(std::fs::read(format!("tests/fixtures/{name}")).expect("fixture"))
}

fn inspected_bytes(bytes: Vec<u8>) -> Inspection {
    let source = Rc::new(MemorySource::new(vec![bytes]));
    block_on(Inspection::read(source, &NativeHost::new())).expect("header")
}

fn plan_of(name: &str, config: &OpenConfig) -> Plan {
    inspected(name).plan(config).expect("plan")
}

fn small() -> OpenConfig {
    OpenConfig { budget_bytes: Some(64_000_000), n_ctx: Some(64), ..OpenConfig::default() }
}

fn predicted(plan: &Plan, storage: Option<f64>) -> Option<Prediction> {
    let rates = Rates { kernels: vec![RATES], storage_bytes_per_second: storage };
    predict(&Work { formats: vec![format_work(GgmlType::Q4_1, 1.0)] }, plan, &rates)
}

/// Times the weights whose products take 0.2 s of decoding at [`RATES`].
fn format_work(ty: GgmlType, times: f64) -> FormatWork {
    FormatWork {
        kernel: Kernel { ty, n_in: 256 },
        decode_weights: times * 2e8 * MATRIX_SHARE,
        prefill_weights: times * 1e8 * MATRIX_SHARE,
    }
}

fn close(found: f64, expected: f64) -> bool {
    (found / expected - 1.0).abs() < 1e-9
}

#[test]
fn weights_in_memory_take_the_time_of_the_kernels() {
    let plan = Plan { n_slots: 0, n_batch: 64, ..plan_of("models/llama-gqa.gguf", &small()) };
    let found = predicted(&plan, None).expect("nothing streams");
    assert!(close(found.decode_tokens_per_second, 5.0), "{found:?}");
    assert!(close(found.prefill_tokens_per_second.expect("rate"), 40.0), "{found:?}");
    assert_eq!(found.basis.storage_bytes_per_second, None);
    assert_eq!(predicted(&plan, Some(1.0)), Some(found), "the storage is not asked");
    let short = Plan { n_batch: 8, ..plan };
    let found = predicted(&short, None).expect("decodes");
    assert_eq!(found.prefill_tokens_per_second, None, "chunks shorter than the measured one");
}

#[test]
fn reading_adds_to_computing_and_a_chunk_shares_it() {
    let plan = Plan {
        n_slots: 2,
        n_batch: 32,
        streamed_bytes_per_token: 300_000_000,
        weight_bytes: 400_000_000,
        resident_bytes: 80_000_000,
        ..plan_of("models/llama-gqa.gguf", &small())
    };
    let found = predicted(&plan, Some(1e9)).expect("rates");
    assert!(close(found.decode_tokens_per_second, 1.0 / (0.2 + 0.3)), "{found:?}");
    let prefill = found.prefill_tokens_per_second.expect("rate");
    assert!(close(prefill, 1.0 / (0.025 + 0.32 / 32.0)), "{found:?}");
    assert_eq!(predicted(&plan, None), None, "a storage of unknown speed predicts nothing");
    assert_eq!(predicted(&plan, Some(0.0)), None);
}

#[test]
fn formats_have_speeds_of_their_own_and_small_ones_go_with_the_rest() {
    let formats = vec![
        format_work(GgmlType::Q4_1, 1.0),
        format_work(GgmlType::Q8_0, 0.5),
        format_work(GgmlType::F16, 0.1),
    ];
    let work = Work { formats };
    let kernels: Vec<GgmlType> = work.kernels().map(|kernel| kernel.ty).collect();
    assert_eq!(kernels, [GgmlType::Q4_1, GgmlType::Q8_0], "a tenth of 1.6 is more than 0.1");
    let slow = KernelRates { decode_weights_per_second: 5e8, ..RATES };
    let plan = Plan { n_slots: 0, n_batch: 64, ..plan_of("models/llama-gqa.gguf", &small()) };
    let rates = Rates { kernels: vec![RATES, slow], storage_bytes_per_second: None };
    let found = predict(&work, &plan, &rates).expect("rates");
    assert!(close(1.0 / found.decode_tokens_per_second, 0.4 * 1.6 / 1.5), "{found:?}");
    assert_eq!(found.basis.format, "Q4_1");
    let rates = Rates { kernels: Vec::new(), ..rates };
    assert_eq!(predict(&work, &plan, &rates), None, "nothing was measured");
}

#[test]
fn work_counts_the_head_for_new_tokens_only_and_experts_by_share() -> Result<()> {
    let config = ModelConfig { precision: Precision::Fast, kv: KvType::F16 };
    for name in ["llama-gqa", "qwen3moe"] {
        let bytes = std::fs::read(format!("tests/fixtures/models/{name}.gguf")).expect("fixture");
        let header = Header::parse(&bytes)?;
        let model = Model::new(&header, &config)?;
        let work = Work::of(&header, &model);
        let all: u64 = header.tensors.iter().map(|t| t.shape.iter().product::<u64>()).sum();
        let decode: f64 = work.formats.iter().map(|format| format.decode_weights).sum();
        let prefill: f64 = work.formats.iter().map(|format| format.prefill_weights).sum();
        assert!(prefill > 0.0 && prefill < decode, "{name}");
        assert!(decode <= all as f64, "{name}: {work:?} of {all}");
        if let Some(experts) = &model.hparams().experts {
            assert!(experts.n_expert_used < experts.n_expert, "{name}");
            let weights = |part: &str| -> f64 {
                let of = header.tensors.iter().filter(|t| t.name.contains(part));
                of.map(|t| t.shape.iter().product::<u64>() as f64).sum()
            };
            let spared = 1.0 - f64::from(experts.n_expert_used) / f64::from(experts.n_expert);
            let spared = weights("_exps") * spared;
            let norms = weights("norm") - weights("output_norm");
            let dense = weights("blk.") - weights("_exps") - norms;
            let expected = dense + weights("_exps") - spared;
            assert!(close(prefill, expected), "{name}: {work:?}, not {expected}");
        }
    }
    Ok(())
}

#[test]
fn the_kernels_are_timed_by_the_given_clock_and_soon_done() {
    for (ty, precision) in [
        (GgmlType::Q4_1, Precision::Fast),
        (GgmlType::Q6_K, Precision::Fast),
        (GgmlType::Q4_1, Precision::Exact),
        (GgmlType::F32, Precision::Fast),
    ] {
        let kernel = Kernel { ty, n_in: 1 << 20 };
        let time = Cell::new(0.0);
        let clock = || {
            time.set(time.get() + 1.0);
            time.get()
        };
        let rates = measure(&kernel, precision, &clock);
        assert!(time.get() < 320.0, "{ty}: {} ms", time.get());
        let per_run = 16.0 * rates.decode_weights_per_second;
        assert!(close(rates.prefill_weights_per_second, per_run), "{ty}: {rates:?}");
    }
}

#[test]
fn a_card_counts_shapes_that_a_file_makes_up() {
    let mut file = b"GGUF".to_vec();
    file.extend([3_u32.to_le_bytes(), 4_u32.to_le_bytes(), [0; 4], [0; 4], [0; 4]].concat());
    for name in *b"abcd" {
        file.extend(1_u64.to_le_bytes());
        file.push(name);
        file.extend(2_u32.to_le_bytes());
        file.extend([(1_u64 << 31).to_le_bytes(), (1_u64 << 31).to_le_bytes()].concat());
        file.extend(9999_u32.to_le_bytes());
        file.extend(0_u64.to_le_bytes());
    }
    file.resize(file.len().next_multiple_of(32), 0);
    let source = Rc::new(MemorySource::new(vec![file]));
    let inspection = block_on(Inspection::read(source, &NativeHost::new())).expect("header");
    assert_eq!(inspection.card().parameters, u64::MAX, "as many as a number can say");
}

#[test]
fn a_verdict_tells_the_plan_or_why_there_is_none() {
    let inspection = inspected("models/llama-gqa.gguf");
    let rates = Rates { kernels: vec![RATES], storage_bytes_per_second: None };
    let fit = inspection.fit(&small(), Some(&rates));
    let plan = fit.plan.as_ref().expect("it fits");
    assert_eq!(fit.floor_bytes, Some(plan.floor_bytes));
    assert_eq!(fit.resident_share, Some(1.0));
    assert!(fit.predicted.expect("rates were given").decode_tokens_per_second > 0.0);
    assert!(!inspection.kernels(&small()).expect("it runs").is_empty());

    let tiny = OpenConfig { budget_bytes: Some(65536), ..small() };
    let fit = inspection.fit(&tiny, Some(&rates));
    let refused = fit.refused.as_ref().expect("too small");
    assert_eq!(refused.code, "out_of_memory");
    assert!(refused.details.contains_key("neededBytes"), "{refused:?}");
    assert_eq!(fit.floor_bytes, Some(plan.floor_bytes));
    assert_eq!((fit.plan, fit.predicted), (None, None));

    let unknown = inspected("parser/bad/unknown-architecture.gguf");
    let verdict = unknown.verdict(&small());
    assert_eq!(verdict.fit.refused.expect("refused").code, "unsupported_model");
    assert!(!verdict.card.architecture.is_empty() && verdict.card.file_bytes > 0);
    assert!(unknown.kernels(&small()).is_err());
}

#[test]
fn a_template_that_the_file_lacks_is_said_before_it_is_used() {
    let card = |bytes| {
        let verdict = inspected_bytes(bytes).verdict(&small());
        (verdict.card.chat_template, verdict.text())
    };
    let (template, text) = card(with_vocabulary("llama-gqa"));
    assert_eq!(template, Some("chatml"), "the vocabulary has its markers");
    assert!(text.contains("template   chatml (fallback"), "{text}");
    let (template, text) =
        card(std::fs::read("tests/fixtures/models/llama-gqa.gguf").expect("file"));
    assert_eq!(template, None);
    assert!(text.contains("template   none"), "{text}");
}

#[test]
fn a_model_without_a_name_has_none() {
    let mut bytes = std::fs::read("tests/fixtures/models/llama-gqa.gguf").expect("fixture");
    assert!(inspected_bytes(bytes.clone()).card().name.is_some_and(|name| !name.is_empty()));
    let key = b"general.name";
    let at = bytes.windows(key.len()).position(|window| window == key).expect("the key");
    bytes[at..at + key.len()].copy_from_slice(b"general.nome");
    let verdict = inspected_bytes(bytes).verdict(&small());
    assert_eq!(verdict.card.name, None);
    assert!(verdict.text().starts_with("model      unnamed (llama)"), "{}", verdict.text());
}
