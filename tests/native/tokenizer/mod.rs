//! The tokenizer's refusals and memory. Ids and texts are compared in `tests/tokenizer`, which runs in browsers too.

mod memory;
mod refusals;
