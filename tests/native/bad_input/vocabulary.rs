//! Vocabularies that cannot be right.

use sluice::gguf::{Array, Value};

use super::{Attempt, Case, refuse_all};

#[test]
fn each_is_refused_and_the_next_open_works() {
    refuse_all(CASES);
}

#[test]
fn texts_that_are_not_utf8_and_need_not_be_are_accepted() {
    for name in ["parser/bad/utf8-value.gguf", "parser/bad/utf8-token.gguf"] {
        let mut attempt = Attempt::sound();
        attempt.fixtures(&[name]);
        attempt.assert_works(name);
    }
}

#[test]
fn a_vocabulary_size_beside_the_list_of_tokens_counts_for_nothing() {
    let mut attempt = Attempt::sound();
    spm(&mut attempt);
    attempt.set("llama.vocab_size", Value::U32(95));
    attempt.assert_works("12 tokens and 12 rows");
}

#[test]
fn text_on_its_way_out_is_priced() {
    let session = |longest: String| {
        let mut attempt = Attempt::sound();
        spm(&mut attempt);
        let tokens = (0..11).map(|i| format!("t{i}")).chain([longest]);
        attempt.set("tokenizer.ggml.tokens", Value::Array(Array::strings(tokens)));
        attempt.open().unwrap().plan().ledger_bytes("session")
    };
    // Bytes and three times as much text in the detokenizer, the text again where stop strings are looked for.
    assert_eq!(session("x".repeat(1003)) - session("xyz".to_owned()), (1 + 3 + 3) * 1000);
}

/// A SentencePiece vocabulary of 12 tokens.
fn spm(attempt: &mut Attempt) {
    attempt.fixtures(&["parser/ok/with-tokenizer.gguf"]);
}

pub(super) const CASES: &[Case] = &[
    Case {
        what: "an unknown kind of vocabulary",
        code: "unsupported_model",
        says: &["'tokenizer.ggml.model' names 'foo'", "not supported"],
        spoil: |a| a.fixtures(&["parser/bad/tokenizer-unknown-model.gguf"]),
    },
    Case {
        what: "an unknown rule for cutting text",
        code: "unsupported_model",
        says: &["'tokenizer.ggml.pre' names 'foo'", "not supported"],
        spoil: |a| a.fixtures(&["parser/bad/tokenizer-bpe-unknown-pre.gguf"]),
    },
    Case {
        what: "no vocabulary",
        code: "invalid_model",
        says: &["'tokenizer.ggml.model' is missing"],
        spoil: |a| a.lose("tokenizer.ggml.model"),
    },
    Case {
        what: "no tokens",
        code: "invalid_model",
        says: &["'tokenizer.ggml.tokens' is missing"],
        spoil: |a| {
            spm(a);
            a.lose("tokenizer.ggml.tokens");
        },
    },
    Case {
        what: "tokens that are no texts",
        code: "invalid_model",
        says: &["'tokenizer.ggml.tokens'", "array of u32", "array of strings"],
        spoil: |a| a.fixtures(&["parser/bad/tokenizer-tokens-type.gguf"]),
    },
    Case {
        what: "the same token twice",
        code: "invalid_model",
        says: &["'tokenizer.ggml.tokens' has 'a' twice, as 0 and as 1"],
        spoil: |a| {
            spm(a);
            let mut tokens: Vec<_> = (0..12).map(|i| format!("t{i}")).collect();
            (tokens[0], tokens[1]) = ("a".to_owned(), "a".to_owned());
            a.set("tokenizer.ggml.tokens", Value::Array(Array::strings(tokens)));
        },
    },
    Case {
        what: "scores of another number than tokens",
        code: "invalid_model",
        says: &["'tokenizer.ggml.scores' has 2 entries for 12 tokens"],
        spoil: |a| a.fixtures(&["parser/bad/tokenizer-scores-short.gguf"]),
    },
    Case {
        what: "a score that is not a number",
        code: "invalid_model",
        says: &["'tokenizer.ggml.scores'"],
        spoil: |a| {
            spm(a);
            a.set("tokenizer.ggml.scores", Value::Array(Array::F32(vec![f32::NAN; 12])));
        },
    },
    Case {
        what: "token types of another number than tokens",
        code: "invalid_model",
        says: &["'tokenizer.ggml.token_type' has 1 entries for 12 tokens"],
        spoil: |a| a.fixtures(&["parser/bad/tokenizer-token-type-short.gguf"]),
    },
    Case {
        what: "merges that are missing",
        code: "invalid_model",
        says: &["'tokenizer.ggml.merges' is missing"],
        spoil: |a| a.fixtures(&["parser/bad/tokenizer-bpe-no-merges.gguf"]),
    },
    Case {
        what: "a merge that names no tokens",
        code: "invalid_model",
        says: &["'tokenizer.ggml.merges' entry 0 'ab'", "does not name two tokens"],
        spoil: |a| a.fixtures(&["parser/bad/tokenizer-bpe-bad-merge.gguf"]),
    },
    Case {
        what: "a begin token outside the vocabulary",
        code: "invalid_model",
        says: &["'tokenizer.ggml.bos_token_id' is 9999 in a vocabulary of 12 tokens"],
        spoil: |a| a.fixtures(&["parser/bad/tokenizer-bos-out-of-range.gguf"]),
    },
    Case {
        what: "more tokens than rows of the embedding",
        code: "invalid_model",
        says: &["'tokenizer.ggml.tokens' has 13 tokens", "token_embd.weight has 12 rows"],
        spoil: |a| {
            spm(a);
            let tokens = (0..13).map(|i| format!("t{i}"));
            a.set("tokenizer.ggml.tokens", Value::Array(Array::strings(tokens)));
            a.set("tokenizer.ggml.scores", Value::Array(Array::F32(vec![0.0; 13])));
            a.set("tokenizer.ggml.token_type", Value::Array(Array::I32(vec![1; 13])));
        },
    },
];
