//! What can be wrong with the head of a model file, in the words of the message.

use crate::error::{Error, ErrorKind};

/// A failure of reading a header. The reader adds where in the header it was.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ParseError {
    #[error("the file is empty")]
    Empty,
    #[error("the file starts with {start}: {guess}")]
    NotAModel { start: String, guess: &'static str },
    #[error(
        "GGUF version {0} is not read, only 2 and 3: convert the model again with current tools"
    )]
    Version(u32),
    #[error(
        "the file is a big-endian GGUF (its version reads as {0:#010x}): only little-endian ones are read"
    )]
    BigEndian(u32),
    #[error("the file is cut off or damaged: {needed} bytes are needed, it has {file_bytes}")]
    Truncated { needed: u64, file_bytes: u64 },
    #[error("the header would be {needed} bytes long, more than {limit}: the file is damaged")]
    TooLong { needed: u64, limit: u64 },
    #[error("{declared} {what} are declared at byte {offset}, more than {room} fit")]
    Count { what: &'static str, declared: u64, room: u64, offset: u64 },
    #[error("{problem} at byte {offset}")]
    Malformed { problem: String, offset: u64 },
    #[error("key '{key}' {problem}")]
    Key { key: String, problem: String },
    #[error("tensor '{tensor}' {problem}")]
    Tensor { tensor: String, problem: String },
    #[error("split model: {0}")]
    Split(String),
    #[error("{0} bytes for the header cannot be had")]
    Memory(u64),
}

impl ParseError {
    /// The crate's error, with `place` (where in the header) before the message.
    pub(super) fn at(self, place: &str) -> Error {
        let kind = match self {
            Self::Version(_) | Self::BigEndian(_) => ErrorKind::UnsupportedModel,
            Self::Memory(_) => ErrorKind::OutOfMemory,
            _ => ErrorKind::InvalidModel,
        };
        let message = if place.is_empty() { self.to_string() } else { format!("{place}: {self}") };
        let error = Error::new(kind, message);
        match self {
            Self::Truncated { needed, file_bytes } => {
                error.with("needed_bytes", needed).with("available_bytes", file_bytes)
            }
            Self::Malformed { offset, .. } | Self::Count { offset, .. } => {
                error.with("offset", offset)
            }
            Self::Key { key, .. } => error.with("key", key),
            Self::Tensor { tensor, .. } => error.with("tensor", tensor),
            _ => error,
        }
    }
}

impl From<ParseError> for Error {
    fn from(error: ParseError) -> Self {
        error.at("")
    }
}
