//! The one conversion of an error into a JS `Error` with `code` and `details`; `js/errors.ts` makes the class of it.

use js_sys::{Object, Reflect};
use wasm_bindgen::JsValue;

use crate::error::{Detail, Error, ErrorKind, camel_case};
use crate::runtime::Halted;

/// The JS error.
pub(super) fn to_js(error: &Error) -> JsValue {
    let details = Object::new();
    for (name, detail) in error.details() {
        let value = match detail {
            Detail::Number(number) => JsValue::from_f64(*number as f64),
            Detail::Text(text) => JsValue::from_str(text),
        };
        set(&details, &camel_case(name), &value);
    }
    let js = js_sys::Error::new(error.message());
    set(&js, "code", &JsValue::from_str(error.code()));
    set(&js, "details", &details);
    js.into()
}

/// What a call that was stopped rejects with; its caller has turned away already.
pub(super) fn halted_to_js(halted: &Halted) -> JsValue {
    match halted {
        Halted::Failed(error) => to_js(error),
        Halted::Aborted => to_js(&Error::new(ErrorKind::Misuse, "the call was aborted")),
    }
}

fn set(object: &JsValue, key: &str, value: &JsValue) {
    // Setting a property of a plain object cannot fail.
    let _ = Reflect::set(object, &JsValue::from_str(key), value);
}
