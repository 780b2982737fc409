//! The tokenizer against the ids of llama.cpp, natively and in browsers: nothing here reads a file at run time.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it panics")]

mod chat;
#[cfg(not(target_arch = "wasm32"))]
mod deep;
mod fixtures;
mod golden;
#[cfg(not(target_arch = "wasm32"))]
mod long_texts;
mod pretokenizers;
mod properties;
