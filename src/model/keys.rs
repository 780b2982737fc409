//! The metadata keys of one architecture, `ARCH.name`, with the ranges that a hyper-parameter can have. Absent, of another
//! type, and out of range are three different errors; each names the key.

use super::failure::ModelFailure;
use crate::error::{Error, Result};
use crate::gguf::{Array, Metadata, Value};

/// The keys of the architecture that the file names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keys<'a> {
    metadata: &'a Metadata,
    arch: &'a str,
}

impl<'a> Keys<'a> {
    pub(crate) fn new(metadata: &'a Metadata) -> Result<Self> {
        Ok(Self { metadata, arch: metadata.require_str("general.architecture")? })
    }

    /// The architecture's name in GGUF.
    pub(crate) fn arch(&self) -> &'a str {
        self.arch
    }

    /// `ARCH.name`.
    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.arch)
    }

    /// A whole number in `0..=max`.
    pub(crate) fn whole(&self, name: &str, max: u32) -> Result<Option<u32>> {
        match self.metadata.get_u32(&self.key(name))? {
            Some(n) if n > max => Err(self.bad(name, &n.to_string(), "it is absurdly large")),
            other => Ok(other),
        }
    }

    /// A whole number in `1..=max`.
    pub(crate) fn count(&self, name: &str, max: u32) -> Result<Option<u32>> {
        match self.whole(name, max)? {
            Some(0) => Err(self.bad(name, "0", "it must be at least 1")),
            other => Ok(other),
        }
    }

    /// [`Self::count`] of something that a file may say layer by layer; then all layers must say the same.
    pub(crate) fn layer_count(&self, name: &str, max: u32, n_layer: u32) -> Result<Option<u32>> {
        let key = self.key(name);
        if !matches!(self.metadata.get(&key), Some(Value::Array(_))) {
            return self.count(name, max);
        }
        let values = self.metadata.get_u32s(&key)?.unwrap_or_default();
        self.check_len(name, values.len(), n_layer)?;
        match values.first() {
            Some(&n) if values.iter().all(|&other| other == n) => {
                let why = "it must be at least 1, and not absurdly large";
                if n == 0 || n > max {
                    Err(self.bad(name, &n.to_string(), why))
                } else {
                    Ok(Some(n))
                }
            }
            _ => Err(self.unsupported(name, "an array", "its values differ from layer to layer")),
        }
    }

    /// A truth value for each layer; `None` where the key is absent or is a number.
    pub(crate) fn layer_flags(&self, name: &str, n_layer: u32) -> Result<Option<Vec<bool>>> {
        let key = self.key(name);
        let Some(Value::Array(Array::Bool(flags))) = self.metadata.get(&key) else {
            return Ok(None);
        };
        self.check_len(name, flags.len(), n_layer)?;
        Ok(Some(flags.clone()))
    }

    /// A finite number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<f32>> {
        match self.metadata.get_f32(&self.key(name))? {
            Some(x) if !x.is_finite() => Err(self.bad(name, &x.to_string(), "it must be finite")),
            other => Ok(other),
        }
    }

    /// A finite number above zero.
    pub(crate) fn positive(&self, name: &str) -> Result<Option<f32>> {
        match self.number(name)? {
            Some(x) if x <= 0.0 => Err(self.bad(name, &x.to_string(), "it must be above 0")),
            other => Ok(other),
        }
    }

    /// A finite number of at least zero.
    pub(crate) fn not_negative(&self, name: &str) -> Result<Option<f32>> {
        match self.number(name)? {
            Some(x) if x < 0.0 => Err(self.bad(name, &x.to_string(), "it must not be negative")),
            other => Ok(other),
        }
    }

    /// A finite number above zero that files also switch off by writing 0.
    pub(crate) fn scale(&self, name: &str) -> Result<Option<f32>> {
        Ok(self.not_negative(name)?.filter(|&x| x != 0.0))
    }

    /// A truth value.
    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>> {
        self.metadata.get_bool(&self.key(name))
    }

    /// A text.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&'a str>> {
        self.metadata.get_str(&self.key(name))
    }

    /// Tokens of the vocabulary and the key that says so: the length of the list, or `ARCH.vocab_size` where ids have no texts.
    /// Beside a list that key counts for nothing, as in llama.cpp; a list that the tokenizer has taken out is the tokenizer's to
    /// compare.
    pub(crate) fn n_vocab(&self) -> Result<Option<(String, u64)>> {
        let key = "tokenizer.ggml.tokens";
        if let Some(tokens) = self.metadata.get_strings(key)? {
            return Ok(Some((key.to_owned(), tokens.len() as u64)));
        }
        if !matches!(
            self.metadata.get_str("tokenizer.ggml.model")?,
            None | Some("none" | "no_vocab")
        ) {
            return Ok(None);
        }
        Ok(self.whole("vocab_size", u32::MAX)?.map(|n| (self.key("vocab_size"), u64::from(n))))
    }

    /// The value of a key that no architecture can do without.
    pub(crate) fn required<T>(&self, name: &str, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| ModelFailure::MissingKey { key: self.key(name) }.into())
    }

    /// The error for a value that means nothing.
    pub(crate) fn bad(&self, name: &str, found: &str, why: &'static str) -> Error {
        ModelFailure::KeyValue { key: self.key(name), found: found.to_owned(), why }.into()
    }

    /// The error for a value that means something this engine does not do.
    pub(crate) fn unsupported(&self, name: &str, found: &str, why: &'static str) -> Error {
        ModelFailure::KeyUnsupported { key: self.key(name), found: found.to_owned(), why }.into()
    }

    fn check_len(&self, name: &str, len: usize, n_layer: u32) -> Result<()> {
        if len as u64 == u64::from(n_layer) {
            return Ok(());
        }
        let found = format!("an array of {len} values");
        Err(self.bad(name, &found, "there must be one value for each layer"))
    }
}
