//! Every position of the tiny models within the limit that was measured between exact f32 implementations.

use super::driver::{Driver, EXACT, FAST, golden, shape, worst};

const LIMIT: f32 = 2e-4;

/// One test a model, so that a failure names it.
macro_rules! within_the_limit {
    ($($test:ident: $name:literal;)*) => {$(
        #[test]
        fn $test() {
            check($name);
        }
    )*};
}

within_the_limit! {
    llama_gqa: "llama-gqa";
    llama_7to1: "llama-7to1";
    llama_bias: "llama-bias";
    llama_ropefreqs_tied: "llama-ropefreqs-tied";
    llama_linear: "llama-linear";
    llama_yarn: "llama-yarn";
    llama_moe: "llama-moe";
    qwen2: "qwen2";
    qwen3: "qwen3";
    qwen3moe: "qwen3moe";
    gemma: "gemma";
    gemma2: "gemma2";
    gemma3: "gemma3";
    phi3: "phi3";
    phi3_longrope_long: "phi3-longrope-long";
    phi3_longrope_short: "phi3-longrope-short";
    smollm3: "smollm3";
    gpt_oss: "gpt-oss";
    granite: "granite";
    olmo2: "olmo2";
    olmoe: "olmoe";
}

fn check(name: &str) {
    let path = format!("models/{name}");
    let golden = golden(&path);
    let mut driver = Driver::open(&path, &EXACT, &shape(64)).with_tiles(&[7, 1, 30]);
    let got = driver.logits(&golden.prompt, golden.prompt.len());
    let (difference, at) = worst(&got, &golden.logits);
    println!("{name}: {difference:e}");
    let (position, id) = (at / golden.n_vocab, at % golden.n_vocab);
    assert!(difference <= LIMIT, "{name}: {difference:e} at position {position}, id {id}");
}

/// Models of every number format.
fn quantised() -> Vec<String> {
    let path = format!("{}/tests/fixtures/quant", env!("CARGO_MANIFEST_DIR"));
    let names = std::fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> =
        names.filter_map(|name| Some(name.strip_suffix(".gguf")?.to_owned())).collect();
    names.sort();
    assert!(names.len() > 25, "every format has a model");
    names
}

#[test]
fn every_number_format_within_the_limit() {
    for name in quantised() {
        let path = format!("quant/{name}");
        let golden = golden(&path);
        let mut driver = Driver::open(&path, &EXACT, &shape(64)).with_tiles(&[13, 5]);
        let (difference, _) = worst(&driver.logits(&golden.prompt, 64), &golden.logits);
        println!("{name}: {difference:e}");
        assert!(difference <= LIMIT, "{name}: {difference:e}");
    }
}

#[test]
fn fast_points_the_same_way() {
    for name in quantised() {
        let path = format!("quant/{name}");
        let golden = golden(&path);
        let mut driver = Driver::open(&path, &FAST, &shape(64)).with_tiles(&[13, 5]);
        let got = driver.logits(&golden.prompt, 64);
        let rows = got.chunks(golden.n_vocab).zip(golden.logits.chunks(golden.n_vocab));
        let lowest = rows.map(|(a, b)| cosine(a, b)).fold(1.0, f64::min);
        println!("{name}: {lowest}");
        assert!(lowest > 0.99, "{name}: cosine {lowest}");
    }
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}
