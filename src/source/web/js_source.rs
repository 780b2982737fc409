//! The JS object behind a browser source, and what its failures mean here.

use js_sys::{Function, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::{Closure, JsValue, wasm_bindgen};

use crate::error::{Error, ErrorKind};

#[wasm_bindgen]
extern "C" {
    /// `Source` of `js/worker/source.ts`.
    #[wasm_bindgen(typescript_type = "Source")]
    pub type JsSource;

    /// How many files.
    #[wasm_bindgen(method, getter, js_name = fileCount)]
    pub fn file_count(this: &JsSource) -> u32;

    /// Bytes that its buffers take at most.
    #[wasm_bindgen(method, getter, js_name = bufferBytes)]
    pub fn buffer_bytes(this: &JsSource) -> f64;

    /// Whether reading the same bytes again costs no network.
    #[wasm_bindgen(method, getter)]
    pub fn rereads(this: &JsSource) -> bool;

    /// Bytes of a file, where they are known.
    #[wasm_bindgen(method)]
    pub fn size(this: &JsSource, file: u32) -> Option<f64>;

    /// `readInto`, where the source has it.
    #[wasm_bindgen(method, getter, js_name = readInto)]
    pub fn reader(this: &JsSource) -> Option<Function>;

    /// Fills `place` before it returns; false when the bytes are not there yet and `read` has to wait for them.
    #[wasm_bindgen(method, catch, js_name = readInto)]
    pub fn read_into(
        this: &JsSource,
        file: u32,
        offset: f64,
        place: &mut [u8],
    ) -> Result<bool, JsValue>;

    /// Whether bytes may still be on their way over a network.
    #[wasm_bindgen(method, getter)]
    pub fn arriving(this: &JsSource) -> Option<bool>;

    /// `willUse`, where the source has it.
    #[wasm_bindgen(method, getter, js_name = willUse)]
    pub fn orderer(this: &JsSource) -> Option<Function>;

    /// What a pass reads, in the order of use.
    #[wasm_bindgen(method, js_name = willUse)]
    pub fn will_use(this: &JsSource, files: Vec<u32>, offsets: Vec<f64>, lengths: Vec<f64>);

    /// Reads `len` bytes in order; `sink` may be called until the promise settles.
    #[wasm_bindgen(method)]
    pub fn read(
        this: &JsSource,
        file: u32,
        offset: f64,
        len: usize,
        sink: &Closure<dyn FnMut(usize, Uint8Array) -> bool>,
    ) -> Promise;

    /// Ends all reads under way.
    #[wasm_bindgen(method)]
    pub fn cancel(this: &JsSource);
}

/// The error that a JS error with one of our codes stands for; anything else is a fault of ours.
pub(super) fn error_from_js(thrown: &JsValue) -> Error {
    let text = |key: &str| Reflect::get(thrown, &JsValue::from_str(key)).ok()?.as_string();
    let kind =
        text("code").and_then(|code| ErrorKind::ALL.into_iter().find(|kind| kind.code() == code));
    let Some(kind) = kind else {
        // A message may hold an address or a token of access; the class says where to look and holds neither.
        let thrown = text("name").unwrap_or_else(|| "no error".to_owned());
        let message = format!("reading failed in an unforeseen way: {thrown}");
        return Error::new(ErrorKind::Internal, message).with("thrown", thrown);
    };
    let mut error = Error::new(kind, text("message").unwrap_or_default());
    let details = Reflect::get(thrown, &JsValue::from_str("details")).unwrap_or_default();
    for name in DETAILS {
        let value = Reflect::get(&details, &JsValue::from_str(name)).unwrap_or_default();
        if let Some(text) = value.as_string() {
            error = error.with(name, text);
        } else if let Some(number) = value.as_f64() {
            error = error.with(name, super::whole(number));
        }
    }
    error
}

/// Facts that sources of JS put beside their messages.
const DETAILS: [&str; 8] = ["url", "file", "offset", "length", "status", "size", "got", "reason"];
