//! Typed metadata under string keys.

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
    String(Box<[u8]>),
    Array(Array),
    U64(u64),
    I64(i64),
    F64(f64),
}

/// An array of one type. Strings sit in one arena: no allocation per string.
#[derive(Debug, Clone, PartialEq)]
pub enum Array {
    /// Strings: string `i` is `bytes[ends[i-1]..ends[i]]`.
    Strings {
        /// All strings one after the other.
        bytes: Vec<u8>,
        /// Where each ends.
        ends: Vec<u32>,
    },
    /// 32-bit floats (scores are the long ones).
    F32(Vec<f32>),
    /// 32-bit integers, signed or not (token types are the long ones).
    I32(Vec<i32>),
    /// Anything else, nested arrays included.
    Other(Vec<Value>),
}

/// Metadata in key order.
#[derive(Debug, Clone, Default)]
pub struct Metadata {
    entries: BTreeMap<String, Value>,
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
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(k, v)| (k.as_str(), v))
    }
}
