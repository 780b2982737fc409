//! Bytes of a model file's head → facts: metadata and the tensor directory. It never touches tensor data.

mod getters;
mod header;
mod metadata;

pub use header::{FilePart, Header, TensorEntry, TensorType};
pub use metadata::{Array, Metadata, Strings, Value};
