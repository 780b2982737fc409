//! One option as JS gave it, read into the type that is wanted; every refusal names its key. (Derived deserialisers cannot:
//! what fails inside a field does not know the field's name.)

use js_sys::{Array, Object, Reflect};
use wasm_bindgen::{JsCast, JsValue};

use super::json::read_json;
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::Json;

/// How an option goes into a config: its name in JS, and what to do with its value.
pub(super) type Field<C> = (&'static str, fn(&mut C, &Given) -> Result<()>);

/// Reads `options`, a plain object or undefined, into `config`. Values that are undefined count as not given.
pub(super) fn read<C>(options: &JsValue, fields: &[Field<C>], config: &mut C) -> Result<()> {
    if options.is_undefined() {
        return Ok(());
    }
    let Some(object) = options.dyn_ref::<Object>() else {
        return Err(Error::new(ErrorKind::InvalidOption, "the options must be an object"));
    };
    for key in Object::keys(object).iter() {
        let value = Reflect::get(object, &key).unwrap_or_default();
        let key = key.as_string().unwrap_or_default();
        let Some((name, apply)) = fields.iter().find(|(name, _)| *name == key) else {
            return Err(unknown(&key, fields.iter().map(|(name, _)| *name)));
        };
        if !value.is_undefined() {
            apply(config, &Given { key: name, value })?;
        }
    }
    Ok(())
}

/// A value and the key it stands under.
#[derive(Debug)]
pub(super) struct Given {
    key: &'static str,
    value: JsValue,
}

impl Given {
    /// The key.
    pub(super) fn key(&self) -> &'static str {
        self.key
    }

    /// Any number.
    pub(super) fn number(&self) -> Result<f64> {
        self.value.as_f64().ok_or_else(|| self.refused("a number"))
    }

    /// A number as the nearest f32.
    pub(super) fn float(&self) -> Result<f32> {
        #[allow(clippy::cast_possible_truncation, reason = "the rounding is meant")]
        self.number().map(|number| number as f32)
    }

    /// A whole number from `least` to `most`.
    pub(super) fn whole(&self, least: i64, most: i64) -> Result<i64> {
        let number = self.number()?;
        if number.fract() == 0.0 && number >= least as f64 && number <= most as f64 {
            #[allow(clippy::cast_possible_truncation, reason = "it is whole and in range")]
            return Ok(number as i64);
        }
        Err(self.refused(&format!("a whole number from {least} to {most}")))
    }

    /// A whole number that fits 32 bits.
    pub(super) fn count(&self) -> Result<u32> {
        let count = self.whole(0, i64::from(u32::MAX))?;
        u32::try_from(count).map_err(|_| self.refused("a count"))
    }

    /// True or false.
    pub(super) fn flag(&self) -> Result<bool> {
        self.value.as_bool().ok_or_else(|| self.refused("true or false"))
    }

    /// A text, if it is one.
    pub(super) fn text(&self) -> Option<String> {
        self.value.as_string()
    }

    /// Plain data.
    pub(super) fn json(&self) -> Result<Json> {
        read_json(self.key, &self.value)
    }

    /// A text or a list of texts.
    pub(super) fn texts(&self) -> Result<Vec<String>> {
        if let Some(text) = self.text() {
            return Ok(vec![text]);
        }
        let list = self.value.dyn_ref::<Array>();
        let texts = list.and_then(|list| list.iter().map(|item| item.as_string()).collect());
        texts.ok_or_else(|| self.refused("a text or a list of texts"))
    }

    /// The value that goes with one of a few names.
    pub(super) fn one_of<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T> {
        let given = self.text();
        let found = choices.iter().find(|(name, _)| given.as_deref() == Some(*name));
        found.map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<_> = choices.iter().map(|(name, _)| format!("'{name}'")).collect();
            self.refused(&names.join(" or "))
        })
    }

    /// Numbers under keys that are whole numbers: `{ "123": -1 }`.
    pub(super) fn numbers_by_id(&self) -> Result<Vec<(u32, f64)>> {
        let wrong = || self.refused("an object of token ids and numbers");
        let object = self.value.dyn_ref::<Object>().ok_or_else(wrong)?;
        let entry = |pair: JsValue| {
            let pair: Array = pair.into();
            let id = pair.get(0).as_string()?.parse().ok()?;
            Some((id, pair.get(1).as_f64()?))
        };
        Object::entries(object).iter().map(|pair| entry(pair).ok_or_else(wrong)).collect()
    }

    /// The refusal of this value: it must be `what`.
    pub(super) fn refused(&self, what: &str) -> Error {
        let given = match (self.text(), self.value.as_f64(), self.value.as_bool()) {
            (Some(text), ..) => format!("'{}'", text.chars().take(40).collect::<String>()),
            (_, Some(number), _) => number.to_string(),
            (.., Some(flag)) => flag.to_string(),
            _ => "of another type".to_owned(),
        };
        let message = format!("option '{}' is {given}; it must be {what}", self.key);
        Error::new(ErrorKind::InvalidOption, message).with("key", self.key)
    }
}

fn unknown(key: &str, known: impl Iterator<Item = &'static str>) -> Error {
    let known: Vec<_> = known.collect();
    let message = format!(
        "unknown option '{key}'; the engine has {}; docs/api.md lists those of the page too",
        known.join(", ")
    );
    Error::new(ErrorKind::InvalidOption, message).with("key", key.to_owned())
}
