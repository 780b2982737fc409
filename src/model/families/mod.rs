//! One file per family of architectures: each writes the program of its models from the shared blocks.

mod gemma;
mod gpt_oss;
mod granite;
mod llama;
mod olmo;
mod phi3;
mod qwen;
mod smollm3;

use super::emitter::{Emitter, Result};
use super::failure::ModelFailure;

/// Writes the program of the architecture that GGUF calls `arch`.
pub(crate) fn emit(arch: &str, e: &mut Emitter<'_>) -> Result<()> {
    (find(arch)?)(e)
}

/// Refuses an architecture that is not in the list, by name.
pub(crate) fn check(arch: &str) -> Result<()> {
    find(arch).map(|_| ())
}

/// The architectures that this engine computes, as GGUF names them.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().map(|(name, _)| *name)
}

fn find(arch: &str) -> Result<Family> {
    let family = FAMILIES.iter().find(|(name, _)| *name == arch);
    family.map(|(_, family)| *family).ok_or_else(|| ModelFailure::UnknownArchitecture {
        found: arch.to_owned(),
        supported: names().collect::<Vec<_>>().join(", "),
    })
}

type Family = fn(&mut Emitter<'_>) -> Result<()>;

const FAMILIES: &[(&str, Family)] = &[
    ("gemma", gemma::gemma),
    ("gemma2", gemma::gemma2),
    ("gemma3", gemma::gemma3),
    ("gpt-oss", gpt_oss::gpt_oss),
    ("granite", granite::granite),
    ("llama", llama::llama),
    ("olmo2", olmo::olmo2),
    ("olmoe", olmo::olmoe),
    ("phi3", phi3::phi3),
    ("qwen2", qwen::qwen2),
    ("qwen3", qwen::qwen3),
    ("qwen3moe", qwen::qwen3),
    ("smollm3", smollm3::smollm3),
];
