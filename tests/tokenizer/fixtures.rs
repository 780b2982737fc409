//! The vocabularies and cases among the fixtures, compiled in.

use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::Value;
use sluice::gguf::{Header, Metadata};
use sluice::tokenizer::Tokenizer;

/// One vocabulary and what llama.cpp makes of texts with it.
pub(crate) struct Fixture {
    /// Its name in messages.
    pub(crate) name: &'static str,
    vocab_gz: &'static [u8],
    cases: &'static str,
}

macro_rules! fixture {
    ($name:literal, $cases:literal) => {
        Fixture {
            name: $name,
            vocab_gz: include_bytes!(concat!("../fixtures/vocab/", $name, ".vocab.gguf.gz")),
            cases: include_str!(concat!("../fixtures/tokenizer/", $cases, ".json")),
        }
    };
}

pub(crate) const SMOLLM2: Fixture = fixture!("smollm2", "smollm2");
pub(crate) const QWEN2: Fixture = fixture!("qwen2", "qwen2");
pub(crate) const GEMMA3: Fixture = fixture!("gemma3", "gemma3");
pub(crate) const PRETOK: Fixture = fixture!("pretok", "pretokenizers");

impl Fixture {
    pub(crate) fn file(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        GzDecoder::new(self.vocab_gz).read_to_end(&mut bytes).unwrap();
        bytes
    }

    pub(crate) fn metadata(&self) -> Metadata {
        Header::parse(&self.file()).unwrap().metadata
    }

    pub(crate) fn tokenizer(&self) -> Tokenizer {
        Tokenizer::from_metadata(&self.metadata()).unwrap()
    }

    pub(crate) fn cases(&self) -> Value {
        serde_json::from_str(self.cases).unwrap()
    }
}

/// The ids of a JSON array.
pub(crate) fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|id| id.as_u64().unwrap().try_into().unwrap()).collect()
}

/// The bytes of hexadecimal digits.
pub(crate) fn bytes_of_hex(hex: &str) -> Vec<u8> {
    hex.as_bytes()
        .chunks(2)
        .map(|two| u8::from_str_radix(core::str::from_utf8(two).unwrap(), 16).unwrap())
        .collect()
}
