//! Encoders against llama.cpp's embeddings, and against themselves: tiles, bounds of steps and precision of what is not quantised
//! change no bit.

use sluice::error::ErrorKind;
use sluice::model::{LogitsWanted, ModelConfig, ModelKind, Pooling, StepBounds};

use super::driver::{Driver, EXACT, FAST, fixture, shape, worst};

const ENCODERS: [&str; 2] = ["bert", "nomic-bert"];
const LIMIT: f32 = 1e-4;

fn prompt(name: &str) -> Vec<u32> {
    let facts: serde_json::Value =
        serde_json::from_slice(&fixture(&format!("models/{name}.json"))).unwrap();
    let ids = facts["prompt"].as_array().unwrap();
    ids.iter().map(|id| u32::try_from(id.as_u64().unwrap()).unwrap()).collect()
}

fn hidden(driver: &mut Driver, ids: &[u32]) -> Vec<f32> {
    driver.state.rewind(0).unwrap();
    assert!(driver.pass(ids, LogitsWanted::Hidden).is_empty(), "an encoder has no logits");
    driver.state.hidden(&driver.model).to_vec()
}

fn open(name: &str, config: &ModelConfig, tiles: &[u32]) -> Driver {
    Driver::open(&format!("models/{name}"), config, &shape(64)).with_tiles(tiles)
}

#[test]
fn within_the_limit_of_llama_cpp() {
    for name in ENCODERS {
        let ids = prompt(name);
        let mut driver = open(name, &EXACT, &[7, 1, 30]);
        assert_eq!(driver.model.kind(), ModelKind::Encoder);
        assert_eq!(driver.model.hparams().pooling, Some(Pooling::Mean), "{name}");
        let rows = hidden(&mut driver, &ids);
        let width = rows.len() / ids.len();
        let mean: Vec<f32> = (0..width)
            .map(|i| rows.iter().skip(i).step_by(width).sum::<f32>() / ids.len() as f32)
            .collect();
        let expected = fixture(&format!("models/{name}.embedding.f32"));
        let expected: Vec<f32> =
            expected.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        let (difference, at) = worst(&mean, &expected);
        println!("{name}: {difference:e}");
        assert!(difference <= LIMIT, "{name}: {difference:e} at {at}");
    }
}

#[test]
fn tiles_bounds_and_neighbours_change_no_bit() {
    for name in ENCODERS {
        let ids = prompt(name);
        let expected = hidden(&mut open(name, &EXACT, &[u32::MAX]), &ids);
        for tiles in [&[1][..], &[5, 64, 3]] {
            let mut driver = open(name, &FAST, tiles);
            driver.state.set_bounds(StepBounds { macs_f32: 1, macs_rounded: 1, other: 1 });
            assert_eq!(hidden(&mut driver, &ids), expected, "{name}, tiles of {tiles:?}");
            let short = hidden(&mut driver, &ids[..3]);
            assert_ne!(short[..], expected[..short.len()], "{name}: tokens see what comes after");
            assert_eq!(hidden(&mut driver, &ids), expected, "{name}: nothing stays of a text");
        }
    }
}

#[test]
fn what_an_encoder_cannot_do_is_refused() {
    let mut driver = open("bert", &EXACT, &[u32::MAX]);
    let ids = prompt("bert");
    for want in [LogitsWanted::Last, LogitsWanted::All, LogitsWanted::None] {
        let error = driver.state.begin(&driver.model, &ids, 0, want).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse, "{want:?}: {error}");
    }
    hidden(&mut driver, &ids);
    let pos = driver.state.pos();
    let error = driver.state.begin(&driver.model, &ids, pos, LogitsWanted::Hidden).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse, "no text goes on: {error}");
}
