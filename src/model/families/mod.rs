//! One file per family of architectures: each writes the program of its models from the shared blocks.

mod bert;
mod gemma;
mod gpt_oss;
mod granite;
mod llama;
mod olmo;
mod phi3;
mod qwen;
mod smollm3;

use super::config::ModelKind::{self, Decoder, Encoder};
use super::emitter::{Emitter, Result};
use super::failure::ModelFailure;

/// Writes the program of the architecture that GGUF calls `arch`.
pub(crate) fn emit(arch: &str, e: &mut Emitter<'_>) -> Result<()> {
    let (kind, family) = find(arch)?;
    e.hp.require_direction(kind)?;
    family(e)
}

/// What models of an architecture are for. One that is not in the list is refused by name.
pub(crate) fn kind(arch: &str) -> Result<ModelKind> {
    find(arch).map(|(kind, _)| kind)
}

/// The architectures that this engine computes, as GGUF names them.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().map(|(name, ..)| *name)
}

fn find(arch: &str) -> Result<(ModelKind, Family)> {
    let family = FAMILIES.iter().find(|(name, ..)| *name == arch);
    family.map(|(_, kind, family)| (*kind, *family)).ok_or_else(|| {
        ModelFailure::UnknownArchitecture {
            found: arch.to_owned(),
            supported: names().collect::<Vec<_>>().join(", "),
        }
    })
}

type Family = fn(&mut Emitter<'_>) -> Result<()>;

const FAMILIES: &[(&str, ModelKind, Family)] = &[
    ("bert", Encoder, bert::bert),
    ("gemma", Decoder, gemma::gemma),
    ("gemma2", Decoder, gemma::gemma2),
    ("gemma3", Decoder, gemma::gemma3),
    ("gpt-oss", Decoder, gpt_oss::gpt_oss),
    ("granite", Decoder, granite::granite),
    ("llama", Decoder, llama::llama),
    ("nomic-bert", Encoder, bert::nomic_bert),
    ("olmo2", Decoder, olmo::olmo2),
    ("olmoe", Decoder, olmo::olmoe),
    ("phi3", Decoder, phi3::phi3),
    ("qwen2", Decoder, qwen::qwen2),
    ("qwen3", Decoder, qwen::qwen3),
    ("qwen3moe", Decoder, qwen::qwen3),
    ("smollm3", Decoder, smollm3::smollm3),
];
