//! What the tokenizer refuses, and with which words; small vocabularies of each kind.
#![allow(clippy::disallowed_methods, reason = "a native test may look at the clock")]

use std::time::{Duration, Instant};

use sluice::gguf::{Array, Metadata, Value};
use sluice::tokenizer::Tokenizer;

use crate::allocations::measure;

const TOKENS: &str = "tokenizer.ggml.tokens";

fn text(value: &str) -> Value {
    Value::String(value.as_bytes().into())
}

fn strings(values: &[&str]) -> Value {
    Value::Array(Array::strings(values))
}

/// A small SentencePiece vocabulary.
fn spm() -> Metadata {
    let mut m = Metadata::default();
    m.insert("tokenizer.ggml.model", text("llama"));
    m.insert(TOKENS, strings(&["<unk>", "<s>", "</s>", "▁a", "b", "▁", "a", "<0x0A>"]));
    m.insert(
        "tokenizer.ggml.scores",
        Value::Array(Array::F32(vec![0.0, 0.0, 0.0, -1.0, -2.0, -3.0, -4.0, 0.0])),
    );
    m.insert("tokenizer.ggml.token_type", Value::Array(Array::I32(vec![2, 3, 3, 1, 1, 1, 1, 6])));
    m
}

/// A small byte-level vocabulary.
fn bpe() -> Metadata {
    let mut m = Metadata::default();
    m.insert("tokenizer.ggml.model", text("gpt2"));
    m.insert("tokenizer.ggml.pre", text("gpt-2"));
    m.insert(TOKENS, strings(&["a", "b", "ab", "Ġ", "Ġa"]));
    m.insert("tokenizer.ggml.merges", strings(&["a b", "Ġ a"]));
    m
}

/// A small BERT vocabulary.
fn bert() -> Metadata {
    let mut m = Metadata::default();
    m.insert("tokenizer.ggml.model", text("bert"));
    m.insert(
        TOKENS,
        strings(&["[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁cafe", "s", "▁!", "▁天", "▁a"]),
    );
    m.insert(
        "tokenizer.ggml.token_type",
        Value::Array(Array::I32(vec![3, 3, 3, 3, 1, 1, 1, 1, 1])),
    );
    for (role, id) in [("bos", 2), ("unknown", 1), ("seperator", 3), ("padding", 0)] {
        m.insert(format!("tokenizer.ggml.{role}_token_id"), Value::U32(id));
    }
    m
}

fn ids(metadata: &Metadata, text: &str, add_special: bool) -> Vec<u32> {
    Tokenizer::from_metadata(metadata).unwrap().encode(text, add_special, false).unwrap()
}

fn refusal(metadata: &Metadata) -> (&'static str, String) {
    let e = Tokenizer::from_metadata(metadata).unwrap_err();
    (e.code(), e.message().to_owned())
}

#[test]
fn small_vocabularies_work() {
    assert_eq!(ids(&spm(), "ab\na", true), [1, 3, 4, 7, 6]);
    assert_eq!(ids(&bpe(), "ab a", false), [2, 4]);
    assert_eq!(ids(&bpe(), "abc", false), [2], "a byte without a token is left out");
    assert_eq!(ids(&spm(), "", true), [1]);
    assert_eq!(ids(&spm(), "", false), [0; 0]);
}

#[test]
fn word_piece_takes_the_longest_from_the_left() {
    assert_eq!(ids(&bert(), "Cafés!  xyz 天a", true), [2, 4, 5, 6, 1, 7, 8, 3]);
    assert_eq!(
        ids(&bert(), "ca\u{301}\u{200b}fe\0s", false),
        [4, 5],
        "marks and control characters go"
    );
    assert_eq!(ids(&bert(), "", true), [2, 3]);
    let mut cased = bert();
    cased.insert("tokenizer.ggml.normalizer.lowercase", Value::Bool(false));
    assert_eq!(ids(&cased, "Cafe cafe café", false), [1, 4, 1]);
    let decoded = Tokenizer::from_metadata(&bert()).unwrap().decode(&[2, 4, 5, 6, 3], false);
    assert_eq!(decoded, b" cafes !");
}

#[test]
fn a_word_costs_its_length_however_long_a_token_is() {
    let with_token_of = |len: usize| {
        let mut m = bert();
        m.insert(
            TOKENS,
            strings(&["[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁a", "a", &"a".repeat(len)]),
        );
        m.insert("tokenizer.ggml.token_type", Value::Array(Array::I32(vec![3, 3, 3, 3, 1, 1, 1])));
        m
    };
    assert_eq!(ids(&with_token_of(400), &"a".repeat(802), false), [4, 6, 6, 5]);
    let started = Instant::now();
    assert_eq!(ids(&with_token_of(20_001), &"a".repeat(20_001), false).len(), 20_001);
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
}

#[test]
fn bare_ids_have_no_texts() {
    let mut m = Metadata::default();
    m.insert("tokenizer.ggml.model", text("none"));
    m.insert("general.architecture", text("llama"));
    m.insert("llama.vocab_size", Value::U32(u32::MAX));
    let (tokenizer, allocated) = measure(|| Tokenizer::from_metadata(&m).unwrap());
    assert_eq!((tokenizer.n_vocab(), tokenizer.has_texts()), (u32::MAX as usize, false));
    assert!(allocated.peak_bytes < 1000, "a file may make up the number: {allocated:?}");
    assert_eq!(tokenizer.encode("a", true, true).unwrap_err().code(), "misuse");
    assert_eq!(tokenizer.decode(&[1, 2], true), b"");
    assert!(!tokenizer.is_eog(2));
}

#[test]
fn arrays_that_do_not_fit_are_refused_by_key() {
    let with = |key: &str, value| {
        let mut m = spm();
        m.insert(key, value);
        refusal(&m)
    };
    let short = || Value::Array(Array::F32(vec![0.0; 3]));
    assert_eq!(
        with("tokenizer.ggml.scores", short()),
        (
            "invalid_model",
            "metadata key 'tokenizer.ggml.scores' has 3 entries for 8 tokens".to_owned()
        )
    );
    for (key, value) in [
        ("tokenizer.ggml.scores", Value::Array(Array::F32(vec![f32::NAN; 8]))),
        ("tokenizer.ggml.scores", strings(&["0"])),
        ("tokenizer.ggml.token_type", Value::Array(Array::I32(vec![1; 7]))),
        ("tokenizer.ggml.token_type", short()),
        ("tokenizer.ggml.bos_token_id", Value::U32(8)),
        ("tokenizer.ggml.eos_token_id", text("</s>")),
        ("tokenizer.ggml.add_bos_token", Value::U32(1)),
        (TOKENS, Value::U32(8)),
        (TOKENS, strings(&["a", "a"])),
    ] {
        let (code, message) = with(key, value);
        assert_eq!(code, "invalid_model", "{key}: {message}");
        assert!(message.contains(&format!("'{key}'")), "{message}");
    }
    let mut m = spm();
    m.remove(TOKENS);
    assert_eq!(
        refusal(&m),
        ("invalid_model", "metadata key 'tokenizer.ggml.tokens' is missing".to_owned())
    );
}

#[test]
fn a_role_outside_the_vocabulary_matters_only_for_begin_and_end() {
    let mut m = spm();
    m.insert("tokenizer.ggml.padding_token_id", Value::U32(8));
    assert_eq!(Tokenizer::from_metadata(&m).unwrap().special_ids().pad, None);
}

#[test]
fn unknown_kinds_and_rules_are_unsupported() {
    let mut m = spm();
    m.insert("tokenizer.ggml.model", text("t5"));
    let (code, message) = refusal(&m);
    assert_eq!(code, "unsupported_model");
    assert_eq!(message, "metadata key 'tokenizer.ggml.model' names 't5', which is not supported");
    let mut m = bpe();
    m.insert("tokenizer.ggml.pre", text("gpt-9"));
    let (code, message) = refusal(&m);
    assert_eq!(code, "unsupported_model");
    assert!(message.contains("'tokenizer.ggml.pre' names 'gpt-9'"), "{message}");
}

#[test]
fn merges_must_be_there_and_name_tokens() {
    let mut m = bpe();
    m.insert("tokenizer.ggml.merges", strings(&["a b", "a c"]));
    let (code, message) = refusal(&m);
    assert_eq!(code, "invalid_model");
    assert!(message.contains("'tokenizer.ggml.merges' entry 1 'a c'"), "{message}");
    m.remove("tokenizer.ggml.merges");
    assert_eq!(refusal(&m).0, "invalid_model");
}

#[test]
fn what_is_added_to_texts_must_exist() {
    let mut m = bpe();
    m.insert("tokenizer.ggml.add_bos_token", Value::Bool(true));
    let (code, message) = refusal(&m);
    assert_eq!(code, "invalid_model");
    assert!(message.contains("'tokenizer.ggml.add_bos_token'"), "{message}");
    m.insert("tokenizer.ggml.bos_token_id", Value::U32(0));
    assert_eq!(ids(&m, "b", true), [0, 1]);
}

#[test]
fn taking_the_arrays_gives_the_same_tokenizer() {
    for mut m in [spm(), bpe(), bert()] {
        let copied = Tokenizer::from_metadata(&m).unwrap();
        let taken = Tokenizer::take_from(&mut m).unwrap();
        let text = "ab a\nb";
        assert_eq!(
            taken.encode(text, true, true).unwrap(),
            copied.encode(text, true, true).unwrap()
        );
        assert_eq!(taken.memory_bytes(), copied.memory_bytes());
        for key in ["tokens", "scores", "token_type", "merges"] {
            assert!(m.get(&format!("tokenizer.ggml.{key}")).is_none(), "{key} is still there");
        }
    }
}
