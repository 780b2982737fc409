//! What templates are given: plain values as JSON has them, with the keys of objects in their order.

use core::fmt;

/// A plain value.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Whole(i64),
    /// Any other number.
    Number(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Self>),
    /// An object.
    Object(Vec<(String, Self)>),
}

impl Json {
    /// The value under `key`, if this is an object that has one.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(fields) => fields.iter().find(|(name, _)| name == key).map(|(_, v)| v),
            _ => None,
        }
    }

    /// The text, if this is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The same with every text and key put through `change`.
    pub(super) fn map_texts(&self, change: &mut impl FnMut(&str) -> String) -> Self {
        match self {
            Self::Text(text) => Self::Text(change(text)),
            Self::List(items) => Self::List(items.iter().map(|v| v.map_texts(change)).collect()),
            Self::Object(fields) => Self::Object(
                fields.iter().map(|(key, v)| (change(key), v.map_texts(change))).collect(),
            ),
            other => other.clone(),
        }
    }

    /// Shows every text and key to `see`.
    pub(super) fn each_text(&self, see: &mut impl FnMut(&str)) {
        match self {
            Self::Text(text) => see(text),
            Self::List(items) => items.iter().for_each(|v| v.each_text(see)),
            Self::Object(fields) => {
                for (key, value) in fields {
                    see(key);
                    value.each_text(see);
                }
            }
            _ => {}
        }
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<&Json> for minijinja::Value {
    fn from(json: &Json) -> Self {
        match json {
            Json::Null => Self::from(()),
            Json::Bool(flag) => Self::from(*flag),
            Json::Whole(n) => Self::from(*n),
            Json::Number(x) => Self::from(*x),
            Json::Text(text) => Self::from(text.as_str()),
            Json::List(items) => items.iter().map(Self::from).collect(),
            Json::Object(fields) => Self::from_pairs(
                fields.iter().map(|(key, value)| (key.as_str(), Self::from(value))),
            ),
        }
    }
}

/// For messages: what kind of value it is.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Bool(_) => "true or false",
            Self::Whole(_) | Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        })
    }
}
