//! What a model's header says, whichever format wrote it: metadata, tensor directory, files.

use super::Metadata;
use crate::quant::GgmlType;

/// The facts of a model: one header for all files of a split.
#[derive(Debug, Clone, Default)]
pub struct Header {
    /// Typed facts under their keys.
    pub metadata: Metadata,
    /// The tensor directory, in the order of the file.
    pub tensors: Vec<TensorEntry>,
    /// The files that hold the tensor data; one unless the model is split.
    pub files: Vec<FilePart>,
}

/// One file of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePart {
    /// Offset of the first byte of tensor data.
    pub data_offset: u64,
    /// Bytes the file must have for its directory to be true.
    pub min_bytes: u64,
}

/// One tensor of the directory. Its place is checked: `offset + n_bytes` does not overflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorEntry {
    /// GGUF name, such as `blk.0.attn_q.weight`.
    pub name: String,
    /// Number format.
    pub ty: TensorType,
    /// Sizes in ggml's order: the length of a row first.
    pub shape: Vec<u64>,
    /// Index into [`Header::files`].
    pub file: u32,
    /// Offset of the first byte in that file.
    pub offset: u64,
    /// Bytes of the whole tensor; 0 when the type is unknown.
    pub n_bytes: u64,
}

/// A tensor's number format; a type number that is unknown matters only when the tensor is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TensorType {
    /// A format that this crate reads.
    Known(GgmlType),
    /// ggml's type number of one that it does not.
    Unknown(u32),
}

impl TensorEntry {
    /// Elements of a row.
    #[must_use]
    pub fn n_cols(&self) -> u64 {
        self.shape.first().copied().unwrap_or(1)
    }

    /// Rows, all outer dimensions multiplied.
    #[must_use]
    pub fn n_rows(&self) -> u64 {
        self.shape.iter().skip(1).product()
    }
}

impl Header {
    /// Index of the tensor named `name` in the directory.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        self.tensors.iter().position(|t| t.name == name)
    }

    /// The tensor named `name`.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<&TensorEntry> {
        self.find(name).map(|i| &self.tensors[i])
    }
}
