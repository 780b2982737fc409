//! Metadata as the type that is asked for. Integers of any width widen; a value of another type, a negative or too
//! large one is an error that names the key; an absent key is `None`, or an error from the `require_` form.

use std::borrow::Cow;

use super::{Array, Metadata, Strings, Value};
use crate::error::{Error, ErrorKind, Result};

/// One `get_` and one `require_` method per type of a single value.
macro_rules! single_values {
    ($($get:ident, $require:ident, $ty:ty, $wanted:literal, $convert:expr;)*) => {$(
        #[doc = concat!("The value under `key` as ", $wanted, ", if there is one.\n\n# Errors\nIf the value is something else.")]
        pub fn $get(&self, key: &str) -> Result<Option<$ty>> {
            let Some(value) = self.get(key) else { return Ok(None) };
            $convert(value).map(Some).ok_or_else(|| mismatch(key, value, $wanted))
        }

        #[doc = concat!("The value under `key` as ", $wanted, ".\n\n# Errors\nIf there is none, or the value is something else.")]
        pub fn $require(&self, key: &str) -> Result<$ty> {
            self.$get(key)?.ok_or_else(|| missing(key))
        }
    )*};
}

impl Metadata {
    single_values! {
        get_u32, require_u32, u32, "a whole number from 0 to 4294967295", |v| integer(v)?.try_into().ok();
        get_u64, require_u64, u64, "a whole number from 0 on", |v| integer(v)?.try_into().ok();
        get_i32, require_i32, i32, "a whole number of 32 bits", |v| integer(v)?.try_into().ok();
        get_f32, require_f32, f32, "a number with a fraction (f32 or f64)", float;
        get_bool, require_bool, bool, "a bool", |v: &_| if let Value::Bool(b) = v { Some(*b) } else { None };
    }

    /// The text under `key`, if there is one.
    ///
    /// # Errors
    /// If the value is something else or is not UTF-8.
    pub fn get_str(&self, key: &str) -> Result<Option<&str>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let text =
            if let Value::String(bytes) = value { core::str::from_utf8(bytes).ok() } else { None };
        text.map(Some).ok_or_else(|| mismatch(key, value, "text in UTF-8"))
    }

    /// The text under `key`.
    ///
    /// # Errors
    /// If there is none, or the value is something else or is not UTF-8.
    pub fn require_str(&self, key: &str) -> Result<&str> {
        self.get_str(key)?.ok_or_else(|| missing(key))
    }

    /// The array under `key`, if there is one.
    ///
    /// # Errors
    /// If the value is no array.
    pub fn get_array(&self, key: &str) -> Result<Option<&Array>> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Array(array)) => Ok(Some(array)),
            Some(value) => Err(mismatch(key, value, "an array")),
        }
    }

    /// The strings of the array under `key`, if there is one. An empty array of any type has none.
    ///
    /// # Errors
    /// If the value is something else.
    pub fn get_strings(&self, key: &str) -> Result<Option<Strings<'_>>> {
        self.array_of(key, "an array of strings", |array| match array {
            Array::Strings { bytes, ends } => Some(Strings::new(bytes, ends)),
            other => other.is_empty().then_some(Strings::new(&[], &[])),
        })
    }

    /// The floats of the array under `key`, if there is one; f64 is rounded.
    ///
    /// # Errors
    /// If the value is something else.
    pub fn get_f32s(&self, key: &str) -> Result<Option<Cow<'_, [f32]>>> {
        self.array_of(key, "an array of f32 or f64", |array| match array {
            Array::F32(v) => Some(Cow::Borrowed(v.as_slice())),
            Array::F64(v) => Some(v.iter().map(|x| narrow(*x)).collect()),
            other => other.is_empty().then_some(Cow::Borrowed(&[])),
        })
    }

    /// The whole numbers of the array under `key`, if there is one.
    ///
    /// # Errors
    /// If the value is something else, or a number does not fit.
    pub fn get_i32s(&self, key: &str) -> Result<Option<Cow<'_, [i32]>>> {
        self.array_of(key, "an array of whole numbers of 32 bits", |array| match array {
            Array::I32(v) => Some(Cow::Borrowed(v.as_slice())),
            other => integers(other).map(Cow::Owned),
        })
    }

    /// The whole numbers of the array under `key`, if there is one.
    ///
    /// # Errors
    /// If the value is something else, or a number is negative or too large.
    pub fn get_u32s(&self, key: &str) -> Result<Option<Cow<'_, [u32]>>> {
        self.array_of(key, "an array of whole numbers from 0 to 4294967295", |array| match array {
            Array::U32(v) => Some(Cow::Borrowed(v.as_slice())),
            other => integers(other).map(Cow::Owned),
        })
    }

    /// The bools of the array under `key`, if there is one.
    ///
    /// # Errors
    /// If the value is something else.
    pub fn get_bools(&self, key: &str) -> Result<Option<&[bool]>> {
        self.array_of(key, "an array of bools", |array| match array {
            Array::Bool(v) => Some(v.as_slice()),
            other => other.is_empty().then_some(&[][..]),
        })
    }

    fn array_of<'a, T>(
        &'a self,
        key: &str,
        wanted: &str,
        convert: impl Fn(&'a Array) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let converted = if let Value::Array(array) = value { convert(array) } else { None };
        converted.map(Some).ok_or_else(|| mismatch(key, value, wanted))
    }
}

fn integer(value: &Value) -> Option<i128> {
    Some(match *value {
        Value::U8(v) => v.into(),
        Value::I8(v) => v.into(),
        Value::U16(v) => v.into(),
        Value::I16(v) => v.into(),
        Value::U32(v) => v.into(),
        Value::I32(v) => v.into(),
        Value::U64(v) => v.into(),
        Value::I64(v) => v.into(),
        _ => return None,
    })
}

fn integers<T: TryFrom<i128>>(array: &Array) -> Option<Vec<T>> {
    fn convert<S: Copy + Into<i128>, T: TryFrom<i128>>(values: &[S]) -> Option<Vec<T>> {
        values.iter().map(|v| T::try_from((*v).into()).ok()).collect()
    }
    match array {
        Array::U8(v) => convert(v),
        Array::I8(v) => convert(v),
        Array::U16(v) => convert(v),
        Array::I16(v) => convert(v),
        Array::U32(v) => convert(v),
        Array::I32(v) => convert(v),
        Array::U64(v) => convert(v),
        Array::I64(v) => convert(v),
        other => other.is_empty().then(Vec::new),
    }
}

fn float(value: &Value) -> Option<f32> {
    match *value {
        Value::F32(v) => Some(v),
        Value::F64(v) => Some(narrow(v)),
        _ => None,
    }
}

#[allow(clippy::cast_possible_truncation, reason = "rounds to the nearest f32")]
const fn narrow(x: f64) -> f32 {
    x as f32
}

fn missing(key: &str) -> Error {
    Error::new(ErrorKind::InvalidModel, format!("metadata key '{key}' is missing")).with("key", key)
}

fn mismatch(key: &str, value: &Value, wanted: &str) -> Error {
    let found = match value {
        Value::String(_) => "a string".to_owned(),
        Value::Array(array) => format!("an {} ({} elements)", array.type_name(), array.len()),
        Value::F32(v) => format!("f32 {v}"),
        Value::F64(v) => format!("f64 {v}"),
        Value::Bool(v) => format!("bool {v}"),
        other => format!("{} {}", other.type_name(), integer(other).unwrap_or_default()),
    };
    let message = format!("metadata key '{key}' has {found} where {wanted} is needed");
    Error::new(ErrorKind::InvalidModel, message).with("key", key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata() -> Metadata {
        let mut m = Metadata::default();
        m.insert("byte", Value::U8(7));
        m.insert("negative", Value::I32(-1));
        m.insert("huge", Value::U64(1 << 32));
        m.insert("double", Value::F64(0.1));
        m.insert("bytes", Value::String(Box::new([0xff])));
        m.insert("empty", Value::Array(Array::F32(Vec::new())));
        m.insert("shorts", Value::Array(Array::I16(vec![1, -2])));
        m.insert("words", Value::Array(Array::strings(["a", "", "bc"])));
        m
    }

    #[test]
    fn integers_widen_and_are_bounded() {
        let m = metadata();
        assert_eq!(m.require_u32("byte").unwrap(), 7);
        assert_eq!(m.require_u64("huge").unwrap(), 1 << 32);
        assert_eq!(m.get_i32s("shorts").unwrap().unwrap().as_ref(), [1, -2]);
        let e = m.require_u32("negative").unwrap_err();
        let wanted = "metadata key 'negative' has i32 -1 where a whole number from 0 to 4294967295 is needed";
        assert_eq!((e.code(), e.message()), ("invalid_model", wanted));
        assert!(m.get_u32("huge").is_err());
        assert!(m.get_u32s("shorts").is_err());
    }

    #[test]
    fn other_types_are_refused_and_absence_is_none() {
        let m = metadata();
        assert_eq!(m.get_f32("double").unwrap(), Some(0.1));
        assert!(m.get_f32("byte").is_err());
        assert!(m.get_str("bytes").is_err());
        assert!(m.get_bool("byte").is_err());
        assert_eq!(m.get_str("absent").unwrap(), None);
        assert_eq!(
            m.require_str("absent").unwrap_err().message(),
            "metadata key 'absent' is missing"
        );
    }

    #[test]
    fn strings_come_out_of_the_arena() {
        let m = metadata();
        let words: Vec<&[u8]> = m.get_strings("words").unwrap().unwrap().iter().collect();
        assert_eq!(words, [&b"a"[..], b"", b"bc"]);
        assert_eq!(m.get_strings("empty").unwrap().unwrap().len(), 0);
        assert!(m.get_strings("shorts").is_err());
    }
}
