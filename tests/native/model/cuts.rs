//! However the work is cut, into tiles, steps, chunks or single tokens, the bits are the same.

use sluice::model::{KvType, LogitsWanted, ModelConfig, Precision, Shape, StepBounds};

use super::driver::{Driver, EXACT, FAST, golden, shape};

/// Dense with odd heads, fused projections, windows, experts, quantised in blocks of 32 and of 256 mixed.
const MODELS: [&str; 7] = [
    "models/llama-7to1",
    "models/phi3",
    "models/gemma2",
    "models/llama-moe",
    "models/smollm3",
    "quant/llama-mixed",
    "quant/qwen3moe-q8_0",
];

fn configs() -> impl Iterator<Item = ModelConfig> {
    [EXACT, FAST, ModelConfig { precision: Precision::Fast, kv: KvType::F32 }].into_iter()
}

/// Steps so small that every operation takes many.
const TINY: StepBounds = StepBounds { macs_f32: 1, macs_rounded: 1000, other: 300 };

#[test]
fn tiles_and_steps_change_no_bit() {
    for name in MODELS {
        for config in configs() {
            let prompt = golden(name).prompt;
            let whole = Driver::open(name, &config, &shape(64)).logits(&prompt, 64);
            for tiles in [&[1][..], &[3, 17, 4], &[64, 5]] {
                let mut driver = Driver::open(name, &config, &shape(64)).with_tiles(tiles);
                assert!(driver.logits(&prompt, 64) == whole, "{name}, tiles {tiles:?}");
                driver.state.rewind(0).unwrap();
                driver.state.set_bounds(TINY);
                assert!(driver.logits(&prompt, 64) == whole, "{name}, tiles {tiles:?}, tiny steps");
            }
        }
    }
}

#[test]
fn chunks_change_no_bit() {
    for name in MODELS {
        for config in configs() {
            let prompt = golden(name).prompt;
            let whole = Driver::open(name, &config, &shape(64)).logits(&prompt, 64);
            for n_batch in [1, 2, 7, 39] {
                let mut driver = Driver::open(name, &config, &shape(n_batch));
                let chunked = driver.logits(&prompt, n_batch as usize);
                assert!(chunked == whole, "{name}, chunks of {n_batch}");
            }
        }
    }
}

#[test]
fn logits_that_are_not_wanted_change_nothing_else() {
    for name in MODELS {
        for config in configs() {
            let (prompt, mut all) = (golden(name).prompt, Driver::open(name, &config, &shape(64)));
            let n_vocab = golden(name).n_vocab;
            let want = all.logits(&prompt, 64);
            let few = Shape { n_ctx: 256, n_batch: 16, n_logits: 1 };
            let mut last = Driver::open(name, &config, &few);
            let (before, after) = prompt.split_at(prompt.len() - 3);
            for chunk in before.chunks(16) {
                assert!(
                    last.pass(chunk, LogitsWanted::None).is_empty(),
                    "{name}: none were asked for"
                );
            }
            let got = last.pass(after, LogitsWanted::Last);
            assert!(got == &want[want.len() - n_vocab..], "{name}: the last logits");
        }
    }
}

#[test]
fn the_kv_formats_stay_close() {
    for (kv, limit) in [(KvType::F16, 0.02), (KvType::Q8_0, 0.3)] {
        let name = "models/qwen3";
        let golden = golden(name);
        let config = ModelConfig { precision: Precision::Exact, kv };
        let got = Driver::open(name, &config, &shape(64)).logits(&golden.prompt, 64);
        let (difference, _) = super::driver::worst(&got, &golden.logits);
        assert!(difference > 0.0 && difference < limit, "{kv:?}: {difference}");
        let single = Driver::open(name, &config, &shape(1)).logits(&golden.prompt, 1);
        assert!(got == single, "{kv:?}: token by token");
    }
}
