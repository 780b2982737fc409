//! The price of a session is what it takes, nothing is taken later, and memory that cannot be had is an error.

use sluice::model::{KvType, LogitsWanted, ModelConfig, ModelMemory, Precision, Shape, State};

use super::driver::{Driver, EXACT, FAST, golden, shape};
use crate::allocations::{measure, refusing_from};

const MODELS: [&str; 5] = [
    "models/llama-gqa",
    "models/gemma3",
    "models/phi3",
    "quant/llama-q4_k_m",
    "quant/qwen3moe-q8_0",
];

fn shapes() -> impl Iterator<Item = Shape> {
    [(1, 1, 1), (256, 64, 1), (200, 64, 64), (100, 3, 2)]
        .into_iter()
        .map(|(n_ctx, n_batch, n_logits)| Shape { n_ctx, n_batch, n_logits })
}

#[test]
fn a_session_takes_what_it_was_priced() {
    for name in MODELS {
        for config in [EXACT, FAST, ModelConfig { precision: Precision::Fast, kv: KvType::F32 }] {
            for shape in shapes() {
                let driver = Driver::open(name, &config, &shape);
                let ModelMemory { scratch_bytes, logits_bytes, kv_bytes, .. } =
                    driver.model.memory(&shape);
                let (state, taken) = measure(|| State::new(&driver.model, &shape));
                state.unwrap();
                let priced = scratch_bytes + logits_bytes + kv_bytes;
                assert_eq!(taken.peak_bytes as u64, priced, "{name}, {config:?}, {shape:?}");
            }
        }
    }
}

#[test]
fn a_pass_takes_nothing() {
    for name in MODELS {
        for config in [EXACT, FAST] {
            let prompt = golden(name).prompt;
            let mut driver = Driver::open(name, &config, &shape(16));
            let ((), taken) = measure(|| {
                for chunk in prompt.chunks(16) {
                    driver.pass(chunk, LogitsWanted::None);
                }
                driver.state.rewind(10).unwrap();
                driver.pass(&prompt[..1], LogitsWanted::Last);
                driver.pass(&prompt[1..3], LogitsWanted::All);
            });
            assert_eq!(taken.n_allocations, 0, "{name}, {config:?}");
        }
    }
}

#[test]
fn memory_that_cannot_be_had_is_an_error() {
    for name in MODELS {
        let shape = Shape { n_ctx: 256, n_batch: 128, n_logits: 128 };
        let driver = Driver::open(name, &FAST, &shape);
        // From refusing almost everything to refusing the largest piece only.
        for from in (10..18).map(|k| 1 << k) {
            let state = refusing_from(from, || State::new(&driver.model, &shape));
            if let Err(error) = state {
                assert_eq!(error.code(), "out_of_memory", "{name}, from {from} bytes on");
            } else {
                assert!(from > 1 << 12, "{name}: nothing of {from} bytes is needed?");
            }
        }
    }
}

#[test]
fn prices_of_absurd_shapes_are_absurd() {
    let driver = Driver::open("models/llama-gqa", &EXACT, &shape(1));
    let all = u32::MAX;
    let memory = driver.model.memory(&Shape { n_ctx: all, n_batch: all, n_logits: all });
    assert!(
        memory.kv_bytes > 1 << 40
            && memory.scratch_bytes > 1 << 40
            && memory.logits_bytes > 1 << 40
    );
    for (n_ctx, n_batch, n_logits) in [(0, 1, 1), (1, 0, 1), (1, 1, 0)] {
        let error = State::new(&driver.model, &Shape { n_ctx, n_batch, n_logits }).unwrap_err();
        assert_eq!(error.code(), "invalid_option");
    }
}

#[test]
fn the_cache_is_not_touched_before_it_is_used() {
    // A context far beyond what this machine has is only an address range; it runs at once.
    let prompt = golden("models/llama-gqa").prompt;
    let shape = Shape { n_ctx: 1 << 22, n_batch: 8, n_logits: 8 };
    let mut driver = Driver::open("models/llama-gqa", &EXACT, &shape);
    assert!(driver.model.memory(&shape).kv_bytes > 3 << 30, "3 GiB of keys and values");
    let want =
        Driver::open("models/llama-gqa", &EXACT, &super::driver::shape(8)).logits(&prompt, 8);
    assert!(driver.logits(&prompt, 8) == want, "the same logits");
    assert!(resident_kib() < 1 << 20, "less than 1 GiB is in memory");
}

/// Kilobytes of this process that are in memory.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|kib| kib.trim().strip_suffix("kB")?.trim().parse().ok()).unwrap_or(0)
}
