//! Native tests of everything that crosses a module seam, in one binary.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it panics")]
#![allow(
    clippy::disallowed_methods,
    reason = "tests read their fixtures, on machines that have files"
)]
#![allow(clippy::cast_possible_truncation, reason = "small numbers of fixtures")]
#![allow(clippy::print_stdout, reason = "measured figures, shown with --nocapture")]

mod allocations;
mod architecture;
mod arriving;
mod bad_input;
mod bounded;
mod chat;
mod cli;
mod cores;
mod documented_defaults;
mod embed;
mod encoder;
mod error;
mod generate;
mod gguf;
mod inspect;
mod loader;
mod make_model;
mod model;
mod planner;
mod quant;
mod real;
mod sampler;
mod source;
mod tokenizer;
