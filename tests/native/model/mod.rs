//! The model against llama.cpp's logits, and against itself: however a pass is cut, the bits are the same.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a helper that fails is a test that fails"
)]

mod bad_headers;
mod cuts;
mod driver;
mod encoders;
mod goldens;
mod memory;
mod noise;
mod stepper;
mod windows;
