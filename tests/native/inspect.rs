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
    Inspection, KernelRates, KvType, MainKernel, OpenConfig, Prediction, Rates, Work, measure,
    predict,
};
use sluice::source::MemorySource;

const RATES: KernelRates =
    KernelRates { decode_weights_per_second: 1e9, prefill_weights_per_second: 4e9 };

fn inspected(name: &str) -> Inspection {
    let bytes = std::fs::read(format!("tests/fixtures/{name}")).expect("fixture");
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
    let work = Work { decode_weights: 2e8, prefill_weights: 1e8 };
    let rates = Rates { kernel: RATES, storage_bytes_per_second: storage };
    predict(&work, plan, GgmlType::Q4_1, &rates)
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
fn work_counts_the_head_for_new_tokens_only_and_experts_by_share() -> Result<()> {
    let config = ModelConfig { precision: Precision::Fast, kv: KvType::F16 };
    for name in ["llama-gqa", "qwen3moe"] {
        let bytes = std::fs::read(format!("tests/fixtures/models/{name}.gguf")).expect("fixture");
        let header = Header::parse(&bytes)?;
        let model = Model::new(&header, &config)?;
        let work = Work::of(&header, &model);
        let all: u64 = header.tensors.iter().map(|t| t.shape.iter().product::<u64>()).sum();
        assert!(work.prefill_weights > 0.0 && work.prefill_weights < work.decode_weights, "{name}");
        assert!(work.decode_weights <= all as f64, "{name}: {work:?} of {all}");
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
            assert!(close(work.prefill_weights, expected), "{name}: {work:?}, not {expected}");
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
        let kernel = MainKernel { ty, n_in: 1 << 20 };
        let time = Cell::new(0.0);
        let clock = || {
            time.set(time.get() + 1.0);
            time.get()
        };
        let rates = measure(&kernel, precision, &clock);
        assert!(time.get() < 130.0, "{ty}: {} ms", time.get());
        let per_run = 16.0 * rates.decode_weights_per_second;
        assert!(close(rates.prefill_weights_per_second, per_run), "{ty}: {rates:?}");
    }
}

#[test]
fn a_verdict_tells_the_plan_or_why_there_is_none() {
    let inspection = inspected("models/llama-gqa.gguf");
    let rates = Rates { kernel: RATES, storage_bytes_per_second: None };
    let fit = inspection.fit(&small(), Some(&rates));
    let plan = fit.plan.as_ref().expect("it fits");
    assert_eq!(fit.floor_bytes, Some(plan.floor_bytes));
    assert_eq!(fit.resident_share, Some(1.0));
    assert!(fit.predicted.expect("rates were given").decode_tokens_per_second > 0.0);
    assert!(inspection.main_kernel(&small()).is_ok());

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
    assert!(unknown.main_kernel(&small()).is_err());
}
