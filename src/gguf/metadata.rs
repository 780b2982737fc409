//! Typed metadata under string keys: the values as the file has them. `getters.rs` turns them into what is asked for.

use std::collections::BTreeMap;

/// A metadata value with GGUF's own types.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names are the types")]
pub enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    /// Any bytes: GGUF says UTF-8, real files do not always keep to it.
    String(Box<[u8]>),
    Array(Array),
    U64(u64),
    I64(i64),
    F64(f64),
}

/// An array of one type, as compact as its bytes in the file.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names are the types")]
pub enum Array {
    U8(Vec<u8>),
    I8(Vec<i8>),
    U16(Vec<u16>),
    I16(Vec<i16>),
    U32(Vec<u32>),
    I32(Vec<i32>),
    F32(Vec<f32>),
    Bool(Vec<bool>),
    /// Strings in one arena, no allocation per string: string `i` is `bytes[ends[i-1]..ends[i]]`. See [`Strings`].
    Strings {
        /// All strings one after the other.
        bytes: Vec<u8>,
        /// Where each ends.
        ends: Vec<u32>,
    },
    /// Arrays, each with a type and length of its own.
    Arrays(Vec<Self>),
    U64(Vec<u64>),
    I64(Vec<i64>),
    F64(Vec<f64>),
}

/// A view of an array of strings.
#[derive(Debug, Clone, Copy)]
pub struct Strings<'a> {
    bytes: &'a [u8],
    ends: &'a [u32],
}

/// Metadata in key order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metadata {
    entries: BTreeMap<String, Value>,
}

impl Value {
    /// The name of the type, as messages spell it.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::U8(_) => "u8",
            Self::I8(_) => "i8",
            Self::U16(_) => "u16",
            Self::I16(_) => "i16",
            Self::U32(_) => "u32",
            Self::I32(_) => "i32",
            Self::F32(_) => "f32",
            Self::Bool(_) => "bool",
            Self::String(_) => "string",
            Self::Array(array) => array.type_name(),
            Self::U64(_) => "u64",
            Self::I64(_) => "i64",
            Self::F64(_) => "f64",
        }
    }
}

impl Array {
    /// How many elements.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::U8(v) => v.len(),
            Self::I8(v) => v.len(),
            Self::U16(v) => v.len(),
            Self::I16(v) => v.len(),
            Self::U32(v) => v.len(),
            Self::I32(v) => v.len(),
            Self::F32(v) => v.len(),
            Self::Bool(v) => v.len(),
            Self::Strings { ends, .. } => ends.len(),
            Self::Arrays(v) => v.len(),
            Self::U64(v) => v.len(),
            Self::I64(v) => v.len(),
            Self::F64(v) => v.len(),
        }
    }

    /// Whether there is no element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name of the type, as messages spell it.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::U8(_) => "array of u8",
            Self::I8(_) => "array of i8",
            Self::U16(_) => "array of u16",
            Self::I16(_) => "array of i16",
            Self::U32(_) => "array of u32",
            Self::I32(_) => "array of i32",
            Self::F32(_) => "array of f32",
            Self::Bool(_) => "array of bool",
            Self::Strings { .. } => "array of strings",
            Self::Arrays(_) => "array of arrays",
            Self::U64(_) => "array of u64",
            Self::I64(_) => "array of i64",
            Self::F64(_) => "array of f64",
        }
    }

    /// An array of these strings.
    #[must_use]
    pub fn strings<S: AsRef<[u8]>>(strings: impl IntoIterator<Item = S>) -> Self {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for s in strings {
            bytes.extend_from_slice(s.as_ref());
            ends.push(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        }
        Self::Strings { bytes, ends }
    }
}

impl<'a> Strings<'a> {
    /// A view of an arena: string `i` is `bytes[ends[i-1]..ends[i]]`.
    #[must_use]
    pub const fn new(bytes: &'a [u8], ends: &'a [u32]) -> Self {
        Self { bytes, ends }
    }

    /// How many strings.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no string.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// String `i`; empty past the end.
    #[must_use]
    pub fn get(&self, i: usize) -> &'a [u8] {
        let start = i.checked_sub(1).map_or(0, |before| self.end(before));
        self.bytes.get(start..self.end(i)).unwrap_or(&[])
    }

    /// All strings in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = &'a [u8]> {
        (0..self.len()).map(move |i| self.get(i))
    }

    fn end(&self, i: usize) -> usize {
        self.ends.get(i).map_or(0, |end| *end as usize)
    }
}

impl Metadata {
    /// The value under `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.entries.get(key)
    }

    /// Puts `value` under `key`; gives back the one it replaces.
    pub fn insert(&mut self, key: impl Into<String>, value: Value) -> Option<Value> {
        self.entries.insert(key.into(), value)
    }

    /// Removes `key`: what is read once and long (a vocabulary) need not stay.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.entries.remove(key)
    }

    /// All entries in key order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(k, v)| (k.as_str(), v))
    }

    /// How many entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
