//! Opening a large vocabulary: Gemma's 262,144 tokens, read piece by piece as from a network. A binary of its own, so
//! that in a browser the linear memory is as small as at the start of an engine.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it panics")]

use std::io::Read;

use flate2::read::GzDecoder;
use sluice::gguf::HeaderReader;
use sluice::tokenizer::Tokenizer;
use wasm_bindgen_test::wasm_bindgen_test;

#[wasm_bindgen_test(unsupported = test)]
fn gemmas_vocabulary_opens_within_16_mb() {
    let mut file = GzDecoder::new(GEMMA3_GZ);
    let mut reader = HeaderReader::new(Some(FILE_BYTES));
    let (before, mut spent_ms) = (linear_memory_bytes(), 0.0);
    let mut header = loop {
        let wanted = reader.wanted();
        let mut piece = vec![0; usize::try_from(wanted.end - wanted.start).unwrap()];
        file.read_exact(&mut piece).unwrap();
        let (header, ms) = timed(|| reader.push(&piece).unwrap());
        spent_ms += ms;
        if let Some(header) = header {
            break header;
        }
    };
    let (tokenizer, ms) = timed(|| Tokenizer::take_from(&mut header.metadata).unwrap());
    spent_ms += ms;
    let grown = linear_memory_bytes() - before;
    let figures = format!("{spent_ms:.0} ms, linear memory grew by {grown} bytes");
    report(&figures);
    assert_eq!(tokenizer.n_vocab(), 262_144, "tokens of the vocabulary");
    assert!(grown <= 16_000_000, "{figures}");
    let text = "Opened.\n";
    assert_eq!(
        tokenizer.decode(&tokenizer.encode(text, true, true).unwrap(), false),
        text.as_bytes(),
        "decoded again"
    );
}

#[cfg(target_arch = "wasm32")]
fn timed<T>(f: impl FnOnce() -> T) -> (T, f64) {
    let start = js_sys::Date::now();
    let value = f();
    (value, js_sys::Date::now() - start)
}

#[cfg(not(target_arch = "wasm32"))]
#[allow(clippy::disallowed_methods, reason = "a native test may look at the clock")]
fn timed<T>(f: impl FnOnce() -> T) -> (T, f64) {
    let start = std::time::Instant::now();
    let value = f();
    (value, start.elapsed().as_secs_f64() * 1e3)
}

#[cfg(target_arch = "wasm32")]
fn linear_memory_bytes() -> usize {
    core::arch::wasm32::memory_size::<0>() << 16
}

/// Natively there is none to measure.
#[cfg(not(target_arch = "wasm32"))]
fn linear_memory_bytes() -> usize {
    0
}

#[cfg(target_arch = "wasm32")]
fn report(line: &str) {
    wasm_bindgen_test::console_log!("{line}");
}

#[cfg(not(target_arch = "wasm32"))]
#[allow(clippy::print_stdout, reason = "figures are for people")]
fn report(line: &str) {
    println!("{line}");
}

const GEMMA3_GZ: &[u8] = include_bytes!("../fixtures/vocab/gemma3.vocab.gguf.gz");
const FILE_BYTES: u64 = 6_511_168;
