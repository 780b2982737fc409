//! Bytes of a model file's head → facts: metadata and the tensor directory. It never touches tensor data.

mod header;
mod metadata;

mod getters;
mod split;

mod reader;

mod format;
mod parser;

mod arrays;
mod directory;

mod cursor;
mod parse_error;

mod llmw;
mod write;

pub use format::Format;
pub use header::{FilePart, Header, TensorEntry, TensorType};
pub use metadata::{Array, Metadata, Strings, Value};
pub use reader::HeaderReader;
pub use split::{Split, join, sibling_names};
pub use write::{ModelWriter, TensorSpec};
