//! Sliding windows: a layer that keeps only its window gives what a full cache gives, and a sequence goes back only where
//! its windows reach.

use sluice::TokenId;
use sluice::model::{KvType, LogitsWanted, ModelConfig, Precision, Shape};

use super::driver::{Driver, EXACT, golden};

/// Windows of 12 and 10 positions.
const MODELS: [&str; 2] = ["models/gemma2", "models/gemma3"];

/// A context that holds all of a layer's positions in any case: the chunk is as long as the context.
const FULL: Shape = Shape { n_ctx: 256, n_batch: 256, n_logits: 256 };

/// Long enough for every window to come round several times.
fn long_prompt(name: &str) -> Vec<TokenId> {
    golden(name).prompt.into_iter().cycle().take(250).collect()
}

#[test]
fn a_window_gives_what_a_full_cache_gives() {
    for name in MODELS {
        for kv in [KvType::F32, KvType::F16, KvType::Q8_0] {
            let config = ModelConfig { precision: Precision::Exact, kv };
            let prompt = long_prompt(name);
            let mut full = Driver::open(name, &config, &FULL);
            let want = full.logits(&prompt, 256);
            for n_batch in [1, 5, 52] {
                let shape = Shape { n_ctx: 256, n_batch, n_logits: n_batch };
                let mut windowed = Driver::open(name, &config, &shape);
                let kept = |d: &Driver, s: &Shape| d.model.memory(s).kv_bytes;
                assert!(
                    kept(&windowed, &shape) < kept(&full, &FULL),
                    "{name}: a window keeps less"
                );
                let got = windowed.logits(&prompt, n_batch as usize);
                assert!(got == want, "{name}, {kv:?}, chunks of {n_batch}");
            }
        }
    }
}

#[test]
fn memory_of_windows_does_not_follow_the_context() {
    for name in MODELS {
        let shape = |n_ctx| Shape { n_ctx, n_batch: 16, n_logits: 1 };
        let driver = Driver::open(name, &EXACT, &shape(64));
        let kept = |n_ctx| driver.model.memory(&shape(n_ctx)).kv_bytes;
        let hp = driver.model.hparams();
        let row = 2 * 4 * u64::from(hp.n_head_kv * hp.head_dim);
        // gemma2: every other layer is windowed; gemma3: all but every sixth.
        let n_full = if name.ends_with('2') { 2 } else { 1 };
        assert_eq!(kept(8192) - kept(4096), n_full * 4096 * row, "{name}");
    }
}

#[test]
fn a_sequence_goes_back_as_far_as_its_windows_reach() {
    for name in MODELS {
        let (prompt, shape) = (long_prompt(name), Shape { n_ctx: 256, n_batch: 4, n_logits: 4 });
        let mut driver = Driver::open(name, &EXACT, &shape);
        let n_vocab = golden(name).n_vocab;
        let want = driver.logits(&prompt[..200], 4);

        // 64 positions are kept, of which a window needs 12 or 10.
        driver.state.rewind(160).unwrap();
        assert_eq!(driver.state.pos(), 160);
        let again = driver.logits(&prompt[160..200], 4);
        assert!(again == want[160 * n_vocab..], "{name}: the same from 160 on");

        let error = driver.state.rewind(100).unwrap_err();
        assert_eq!(error.code(), "misuse");
        assert!(error.message().contains("position 100"), "{error}");
        assert_eq!(driver.state.pos(), 200, "a refused rewind changes nothing");
        assert!(driver.state.rewind(201).is_err(), "there is nothing ahead");

        driver.state.rewind(0).unwrap();
        let fresh = driver.logits(&prompt[..20], 4);
        assert!(fresh == want[..20 * n_vocab], "{name}: the same from the start");
    }
}

#[test]
fn a_full_cache_goes_back_anywhere() {
    let name = "models/llama-gqa";
    let (prompt, n_vocab) = (golden(name).prompt, golden(name).n_vocab);
    let mut driver = Driver::open(name, &EXACT, &Shape { n_ctx: 64, n_batch: 8, n_logits: 8 });
    let want = driver.logits(&prompt, 8);
    for pos in [39, 17, 1, 0] {
        driver.state.rewind(pos).unwrap();
        let again = driver.logits(&prompt[pos as usize..], 8);
        assert!(again == want[pos as usize * n_vocab..], "from {pos}");
    }
}

#[test]
fn a_pass_that_was_dropped_leaves_the_sequence_where_it_was() {
    for name in MODELS {
        let (prompt, shape) = (long_prompt(name), Shape { n_ctx: 256, n_batch: 16, n_logits: 16 });
        let n_vocab = golden(name).n_vocab;
        let want = Driver::open(name, &EXACT, &shape).logits(&prompt, 16);
        let mut driver = Driver::open(name, &EXACT, &shape);
        driver.logits(&prompt[..128], 16);
        let state = &mut driver.state;
        state.begin(&driver.model, &prompt[..16], 128, LogitsWanted::All).unwrap();
        for _ in 0..60 {
            assert!(driver.step(), "{name}: the pass is under way");
        }
        assert_eq!(driver.state.pos(), 128, "{name}");
        driver.state.rewind(128).unwrap();
        let got = driver.logits(&prompt[128..144], 16);
        assert!(got == want[128 * n_vocab..144 * n_vocab], "{name}: as if nothing had happened");
    }
}
