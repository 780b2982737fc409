//! Everything that can be wrong with a header, each naming the key or tensor, what was found and what was expected.

use crate::error::{Error, ErrorKind};

/// Why a model is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ModelFailure {
    #[error("architecture '{found}' is not supported; supported are {supported}")]
    UnknownArchitecture { found: String, supported: String },
    #[error("metadata key '{key}' is missing")]
    MissingKey { key: String },
    #[error("metadata key '{key}' is {found}: {why}")]
    KeyValue { key: String, found: String, why: &'static str },
    #[error(
        "metadata key 'tokenizer.ggml.tokens' has {n_tokens} tokens, but token_embd.weight has {n_rows} rows"
    )]
    VocabularySize { n_tokens: usize, n_rows: u32 },
    #[error("metadata key '{key}' is {found}, which is not supported: {why}")]
    KeyUnsupported { key: String, found: String, why: &'static str },
    #[error("tensor {name} is missing")]
    MissingTensor { name: String },
    #[error("tensor {name} has the shape {found:?}, expected {expected:?}")]
    TensorShape { name: String, found: Vec<u64>, expected: Vec<u64> },
    #[error("tensor {name} has the number format {id}, which this engine does not read")]
    TensorType { name: String, id: u32 },
    #[error("tensor {name}: a row of {n_in} values is no whole number of {ty} blocks")]
    TensorRow { name: String, n_in: u64, ty: &'static str },
    #[error("tensor {name} is too large: {what}")]
    TensorSize { name: String, what: &'static str },
    #[error("tensor {name} is not part of architecture '{arch}' as this engine computes it")]
    UnknownTensor { name: String, arch: String },
    #[error("tensor {name} holds {found} at index {index}: {why}")]
    TensorValue { name: String, index: usize, found: f32, why: &'static str },
    #[error(
        "keys and values as q8_0 need heads of a multiple of 32 values; the heads of this model have {head_dim}: choose f16 or f32"
    )]
    KvBlocks { head_dim: u32 },
}

impl From<ModelFailure> for Error {
    fn from(failure: ModelFailure) -> Self {
        use ModelFailure as F;
        let message = failure.to_string();
        let kind = match &failure {
            F::UnknownArchitecture { .. }
            | F::KeyUnsupported { .. }
            | F::TensorType { .. }
            | F::TensorSize { .. }
            | F::UnknownTensor { .. } => ErrorKind::UnsupportedModel,
            F::KvBlocks { .. } => ErrorKind::InvalidOption,
            _ => ErrorKind::InvalidModel,
        };
        let error = Self::new(kind, message);
        match failure {
            F::UnknownArchitecture { found, .. } => error.with("architecture", found),
            F::MissingKey { key } | F::KeyValue { key, .. } | F::KeyUnsupported { key, .. } => {
                error.with("key", key)
            }
            F::MissingTensor { name }
            | F::TensorShape { name, .. }
            | F::TensorType { name, .. }
            | F::TensorRow { name, .. }
            | F::TensorSize { name, .. }
            | F::UnknownTensor { name, .. }
            | F::TensorValue { name, .. } => error.with("tensor", name),
            F::VocabularySize { .. } => error.with("key", "tokenizer.ggml.tokens"),
            F::KvBlocks { .. } => error.with("key", "kvType"),
        }
    }
}
