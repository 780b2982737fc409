//! Logits → token: small stateless filters in a documented chain, and one seeded generator of random numbers.
//!
//! It knows numbers and token ids only: no text, no model. `docs/sampling.md` has every definition, range and default.
//! All arithmetic is our own or exact, so the same seed gives the same tokens on every platform.

mod chain;
mod config;

mod candidates;
mod filters;
mod history;
mod logit_edits;
mod mirostat;

mod breakers;
mod dry;
mod logprobs;

mod rng;
mod scan;

pub use breakers::{DryBreakers, Pieces, SplitBreaker};
pub use chain::{Sample, Sampler};
pub use config::SamplerConfig;
pub use logprobs::TokenLogprob;

#[cfg(test)]
mod tests;
