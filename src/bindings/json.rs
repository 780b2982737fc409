//! Plain values of JS as the runtime's templates take them.

use js_sys::{Array, Object};
use wasm_bindgen::{JsCast, JsValue};

use crate::error::{Error, ErrorKind, Result};
use crate::runtime::Json;

/// The plain value of `value`; what is undefined inside an object counts as not given.
///
/// # Errors
/// `invalid_option` naming `key` for what JSON cannot say.
pub(super) fn read_json(key: &'static str, value: &JsValue) -> Result<Json> {
    read(value, 0).ok_or_else(|| {
        let what = format!("is not plain data, or is nested more than {MAX_DEPTH} deep");
        Error::new(ErrorKind::InvalidOption, format!("'{key}' {what}")).with("key", key)
    })
}

fn read(value: &JsValue, depth: usize) -> Option<Json> {
    if depth > MAX_DEPTH {
        return None;
    }
    if value.is_null() || value.is_undefined() {
        return Some(Json::Null);
    }
    if let Some(flag) = value.as_bool() {
        return Some(Json::Bool(flag));
    }
    if let Some(number) = value.as_f64() {
        return Some(read_number(number));
    }
    if let Some(text) = value.as_string() {
        return Some(Json::Text(text));
    }
    if let Some(list) = value.dyn_ref::<Array>() {
        return list
            .iter()
            .map(|item| read(&item, depth + 1))
            .collect::<Option<_>>()
            .map(Json::List);
    }
    if value.is_function() || !value.is_object() {
        return None;
    }
    let entry = |pair: JsValue| {
        let pair: Array = pair.into();
        let value = pair.get(1);
        (!value.is_undefined()).then(|| Some((pair.get(0).as_string()?, read(&value, depth + 1)?)))
    };
    let entries = Object::entries(value.unchecked_ref());
    entries.iter().filter_map(entry).collect::<Option<_>>().map(Json::Object)
}

#[allow(clippy::cast_possible_truncation, reason = "it is whole and JS is exact below 2^53")]
fn read_number(number: f64) -> Json {
    if number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0 {
        Json::Whole(number as i64)
    } else {
        Json::Number(number)
    }
}

const MAX_DEPTH: usize = 64;
