//! Metadata that is missing, of the wrong type, out of range, or asks for what is not built.

use sluice::gguf::Value;

use super::attempt::{counts, text};
use super::{Case, refuse_all};

#[test]
fn each_is_refused_and_the_next_open_works() {
    refuse_all(CASES);
}

#[test]
fn every_key_that_is_needed_is_missed_by_name() {
    for key in [
        "general.architecture",
        "llama.block_count",
        "llama.context_length",
        "llama.embedding_length",
        "llama.feed_forward_length",
        "llama.attention.head_count",
        "llama.attention.layer_norm_rms_epsilon",
    ] {
        let mut attempt = super::Attempt::sound();
        attempt.lose(key);
        let error = attempt.open().err().unwrap_or_else(|| panic!("{key}: accepted"));
        super::assert_says(key, &error, "invalid_model", &[&format!("'{key}' is missing")]);
    }
}

pub(super) const CASES: &[Case] = &[
    Case {
        what: "a key that is missing",
        code: "invalid_model",
        says: &["'llama.block_count' is missing"],
        spoil: |a| a.lose("llama.block_count"),
    },
    Case {
        what: "a value of another type",
        code: "invalid_model",
        says: &["'llama.block_count' has a string", "a whole number"],
        spoil: |a| a.set("llama.block_count", text("three")),
    },
    Case {
        what: "a fraction where a count is needed",
        code: "invalid_model",
        says: &["'llama.embedding_length' has f32 64", "a whole number"],
        spoil: |a| a.set("llama.embedding_length", Value::F32(64.0)),
    },
    Case {
        what: "a negative count",
        code: "invalid_model",
        says: &["'llama.block_count' has i32 -1", "from 0"],
        spoil: |a| a.set("llama.block_count", Value::I32(-1)),
    },
    Case {
        what: "a count beyond 32 bits",
        code: "invalid_model",
        says: &["'llama.block_count' has u64", "4294967295"],
        spoil: |a| a.set("llama.block_count", Value::U64(1 << 40)),
    },
    Case {
        what: "an absurdly large count",
        code: "invalid_model",
        says: &["'llama.block_count' is 4294967295", "absurdly large"],
        spoil: |a| a.set("llama.block_count", Value::U32(u32::MAX)),
    },
    Case {
        what: "zero layers",
        code: "invalid_model",
        says: &["'llama.block_count' is 0", "at least 1"],
        spoil: |a| a.set("llama.block_count", Value::U32(0)),
    },
    Case {
        what: "zero heads",
        code: "invalid_model",
        says: &["'llama.attention.head_count' is 0", "at least 1"],
        spoil: |a| a.set("llama.attention.head_count", Value::U32(0)),
    },
    Case {
        what: "an embedding of zero values",
        code: "invalid_model",
        says: &["'llama.embedding_length' is 0", "at least 1"],
        spoil: |a| a.set("llama.embedding_length", Value::U32(0)),
    },
    Case {
        what: "a feed-forward of zero values",
        code: "invalid_model",
        says: &["'llama.feed_forward_length' is 0", "at least 1"],
        spoil: |a| a.set("llama.feed_forward_length", Value::U32(0)),
    },
    Case {
        what: "a trained context of zero",
        code: "invalid_model",
        says: &["'llama.context_length' is 0", "at least 1"],
        spoil: |a| a.set("llama.context_length", Value::U32(0)),
    },
    Case {
        what: "heads that do not divide the embedding",
        code: "invalid_model",
        says: &["'llama.attention.head_count' is 5", "does not divide"],
        spoil: |a| {
            a.set("llama.attention.head_count", Value::U32(5));
            a.set("llama.attention.head_count_kv", Value::U32(5));
        },
    },
    Case {
        what: "key heads that do not divide the heads",
        code: "invalid_model",
        says: &["'llama.attention.head_count_kv' is 3", "does not divide"],
        spoil: |a| a.set("llama.attention.head_count_kv", Value::U32(3)),
    },
    Case {
        what: "keys and values of different sizes",
        code: "unsupported_model",
        says: &["'llama.attention.value_length' is 32", "one size"],
        spoil: |a| {
            a.set("llama.attention.key_length", Value::U32(16));
            a.set("llama.attention.value_length", Value::U32(32));
        },
    },
    Case {
        what: "a list that has not one value for each layer",
        code: "invalid_model",
        says: &["'llama.attention.head_count'", "2 values", "one value for each layer"],
        spoil: |a| a.set("llama.attention.head_count", counts(&[4, 4])),
    },
    Case {
        what: "values that differ from layer to layer",
        code: "unsupported_model",
        says: &["'llama.attention.head_count'", "differ from layer to layer"],
        spoil: |a| a.set("llama.attention.head_count", counts(&[4, 2, 4])),
    },
    Case {
        what: "an epsilon that is not a number",
        code: "invalid_model",
        says: &["layer_norm_rms_epsilon' is NaN", "finite"],
        spoil: |a| a.set("llama.attention.layer_norm_rms_epsilon", Value::F32(f32::NAN)),
    },
    Case {
        what: "a negative epsilon",
        code: "invalid_model",
        says: &["layer_norm_rms_epsilon' is -1", "not be negative"],
        spoil: |a| a.set("llama.attention.layer_norm_rms_epsilon", Value::F32(-1.0)),
    },
    Case {
        what: "an odd number of rotated values",
        code: "invalid_model",
        says: &["'llama.rope.dimension_count' is 7", "must be even"],
        spoil: |a| a.set("llama.rope.dimension_count", Value::U32(7)),
    },
    Case {
        what: "a rotation base of zero",
        code: "invalid_model",
        says: &["'llama.rope.freq_base' is 0", "above 0"],
        spoil: |a| a.set("llama.rope.freq_base", Value::F32(0.0)),
    },
    Case {
        what: "a kind of position scaling that is not built",
        code: "unsupported_model",
        says: &["'llama.rope.scaling.type' is dynamic", "not supported"],
        spoil: |a| a.set("llama.rope.scaling.type", text("dynamic")),
    },
    Case {
        what: "a scaling factor that is not above zero",
        code: "invalid_model",
        says: &["'llama.rope.scaling.factor' is -2", "above 0"],
        spoil: |a| {
            a.set("llama.rope.scaling.type", text("linear"));
            a.set("llama.rope.scaling.factor", Value::F32(-2.0));
        },
    },
    Case {
        what: "attention that looks ahead",
        code: "unsupported_model",
        says: &["'llama.attention.causal' is false", "looks back only"],
        spoil: |a| a.set("llama.attention.causal", Value::Bool(false)),
    },
    Case {
        what: "more experts used than there are",
        code: "invalid_model",
        says: &["'llama.expert_used_count' is 5", "not so many experts"],
        spoil: |a| {
            a.set("llama.expert_count", Value::U32(4));
            a.set("llama.expert_used_count", Value::U32(5));
        },
    },
    Case {
        what: "an unknown architecture",
        code: "unsupported_model",
        says: &["'gpt-j' is not supported", "supported are", "gemma3", "llama"],
        spoil: |a| a.set("general.architecture", text("gpt-j")),
    },
    Case {
        what: "a vocabulary size that the embedding has not",
        code: "invalid_model",
        says: &["'llama.vocab_size' is 95 tokens", "token_embd.weight"],
        spoil: |a| a.set("llama.vocab_size", Value::U32(95)),
    },
    Case {
        what: "a key that is not UTF-8",
        code: "invalid_model",
        says: &["a metadata key that is not UTF-8", "bad\\x80key", "at byte"],
        spoil: |a| a.fixtures(&["parser/bad/utf8-key.gguf"]),
    },
    Case {
        what: "a text that is needed and is not UTF-8",
        code: "invalid_model",
        says: &["'general.architecture'", "text in UTF-8 is needed"],
        spoil: |a| a.set("general.architecture", Value::String(b"lla\x80ma"[..].into())),
    },
    Case {
        what: "a key that stands there twice",
        code: "invalid_model",
        says: &["'llama.block_count' stands there twice"],
        spoil: |a| a.fixtures(&["parser/bad/duplicate-key.gguf"]),
    },
    Case {
        what: "an empty key",
        code: "invalid_model",
        says: &["an empty metadata key at byte 32"],
        spoil: |a| a.fixtures(&["parser/bad/empty-key.gguf"]),
    },
    Case {
        what: "an unknown type of value",
        code: "invalid_model",
        says: &["'x' has the unknown value type 13"],
        spoil: |a| a.fixtures(&["parser/bad/value-type-13.gguf"]),
    },
    Case {
        what: "lists within lists without end",
        code: "invalid_model",
        says: &["'x'", "nested more than 8 deep"],
        spoil: |a| a.fixtures(&["parser/bad/deeply-nested-array.gguf"]),
    },
    Case {
        what: "an alignment that is no power of two",
        code: "invalid_model",
        says: &["'general.alignment' is 48", "no power of two"],
        spoil: |a| a.fixtures(&["parser/bad/alignment-48.gguf"]),
    },
];
