//! Native tests of everything that crosses a module seam, in one binary.

mod allocations;
mod architecture;
mod bounded;
mod cli;
mod error;
mod generate;
mod gguf;
mod loader;
mod model;
mod planner;
mod quant;
mod real;
mod sampler;
mod source;
mod tokenizer;
