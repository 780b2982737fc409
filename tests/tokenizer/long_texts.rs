//! Texts that repeat one thing a million times: time stays near linear, where a quadratic algorithm would take hours.
#![allow(clippy::disallowed_methods, reason = "a native test may look at the clock")]

use std::time::{Duration, Instant};

use sluice::gguf::Value;
use sluice::tokenizer::Tokenizer;

use crate::fixtures::{GEMMA3, PRETOK, QWEN2, SMOLLM2};

/// A megabyte takes about a second at worst; this is the mark of a mistake, not of a slow machine.
const DEADLINE: Duration = Duration::from_secs(30);

const REPEATED: &[&str] = &[
    "a",
    "A",
    " ",
    "\n",
    "7",
    "é",
    "É",
    "天",
    "\u{301}",
    "!",
    "'",
    "\u{a0}",
    "\r\n",
    " \n",
    " a",
    "a ",
    "aA",
    "ÉA",
    "<",
    "<|im_start|>",
    "<unused1>",
    "<0x41>",
    "<unused",
    "'s",
    "1a",
    "/",
    "<sentinel:1",
    "IMGIMGA",
    "The quick brown fox. ",
];

#[test]
fn a_megabyte_of_anything_is_encoded_in_time() {
    for fixture in [&SMOLLM2, &QWEN2, &GEMMA3] {
        let tokenizer = fixture.tokenizer();
        for repeated in REPEATED {
            encode_in_time(&tokenizer, fixture.name, repeated, 1_000_000);
        }
    }
}

#[test]
fn every_rule_cuts_long_texts_in_time() {
    let mut metadata = PRETOK.metadata();
    let golden = PRETOK.cases();
    for group in golden["groups"].as_array().unwrap() {
        let pre = group["pre"][0].as_str().unwrap();
        metadata.insert("tokenizer.ggml.pre", Value::String(pre.as_bytes().into()));
        let tokenizer = Tokenizer::from_metadata(&metadata).unwrap();
        for repeated in REPEATED {
            encode_in_time(&tokenizer, pre, repeated, 200_000);
        }
    }
}

fn encode_in_time(tokenizer: &Tokenizer, name: &str, repeated: &str, n_bytes: usize) {
    let mut text = repeated.repeat(n_bytes / repeated.len());
    text.push('b');
    let start = Instant::now();
    let ids = tokenizer.encode(&text, true, true).unwrap();
    let elapsed = start.elapsed();
    assert!(!ids.is_empty(), "{name}: {repeated:?}");
    assert!(elapsed < DEADLINE, "{name}: {n_bytes} bytes of {repeated:?} took {elapsed:?}");
}
