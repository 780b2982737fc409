//! The one error of the crate's edge: an opaque message with a kind whose code is API.
//!
//! It knows no other module. Modules convert their own failures into it with `From`.

use core::fmt;

/// The crate's result.
pub type Result<T> = core::result::Result<T, Error>;

/// What went wrong, by who can mend it. [`ErrorKind::code`] is stable and the same in JS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A key or value of the caller's options is wrong.
    InvalidOption,
    /// The file is corrupt or is not a model.
    InvalidModel,
    /// The file is valid but asks for something that is not built.
    UnsupportedModel,
    /// The plan does not fit the budget, or the memory cannot be had.
    OutOfMemory,
    /// Bytes of the model could not be read.
    SourceFailed,
    /// The context has no room for what was asked.
    ContextFull,
    /// Called in the wrong state.
    Misuse,
    /// What was asked for could not be written.
    OutputFailed,
    /// A bug of ours, or a trap.
    Internal,
}

impl ErrorKind {
    /// Every kind, in the order of the code list that JS is checked against.
    pub const ALL: [Self; 9] = [
        Self::InvalidOption,
        Self::InvalidModel,
        Self::UnsupportedModel,
        Self::OutOfMemory,
        Self::SourceFailed,
        Self::ContextFull,
        Self::Misuse,
        Self::OutputFailed,
        Self::Internal,
    ];

    /// The stable name that callers match on.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::InvalidOption => "invalid_option",
            Self::InvalidModel => "invalid_model",
            Self::UnsupportedModel => "unsupported_model",
            Self::OutOfMemory => "out_of_memory",
            Self::SourceFailed => "source_failed",
            Self::ContextFull => "context_full",
            Self::Misuse => "misuse",
            Self::OutputFailed => "output_failed",
            Self::Internal => "internal",
        }
    }
}

/// One fact beside the message, for programs: `needed_bytes`, `available_bytes`, `tensor`, `key`, `offset`…
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(untagged)]
pub enum Detail {
    /// A count or a size.
    Number(u64),
    /// A name.
    Text(String),
}

/// An error with its cause and remedy in the message.
#[derive(Debug, Clone)]
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Debug, Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    details: Vec<(&'static str, Detail)>,
}

impl Error {
    /// An error of `kind`; `message` names the culprit and, where there is one, the remedy.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { inner: Box::new(Inner { kind, message: message.into(), details: Vec::new() }) }
    }

    /// The same error with one more fact for programs; one of the same name gives way.
    #[must_use]
    pub fn with(mut self, name: &'static str, detail: impl Into<Detail>) -> Self {
        self.inner.details.retain(|(known, _)| *known != name);
        self.inner.details.push((name, detail.into()));
        self
    }

    /// The same kind and facts under another sentence, from a place that knows more of what was wanted.
    #[must_use]
    pub fn reworded(&self, message: impl Into<String>) -> Self {
        let mut reworded = self.clone();
        reworded.inner.message = message.into();
        reworded
    }

    /// What went wrong, by who can mend it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// The stable code of the kind.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.inner.kind.code()
    }

    /// The sentence for people.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// The facts for programs.
    #[must_use]
    pub fn details(&self) -> &[(&'static str, Detail)] {
        &self.inner.details
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.message)
    }
}

impl core::error::Error for Error {}

impl From<u64> for Detail {
    fn from(value: u64) -> Self {
        Self::Number(value)
    }
}

impl From<&str> for Detail {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Detail {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

/// A detail's name as JS and JSON have it: `needed_bytes` → `neededBytes`.
pub(crate) fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |mut out, word| {
        let mut chars = word.chars();
        out.extend(chars.next().map(|c| c.to_ascii_uppercase()));
        out.push_str(chars.as_str());
        out
    })
}
