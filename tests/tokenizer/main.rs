//! The tokenizer against the ids of llama.cpp, natively and in browsers: nothing here reads a file at run time.

mod fixtures;
mod golden;
#[cfg(not(target_arch = "wasm32"))]
mod long_texts;
mod pretokenizers;
mod properties;
