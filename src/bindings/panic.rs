//! What is kept of a panic: the place in the source. Its text stays here: it means nothing to a user and may hold theirs.

use std::panic;
use std::sync::{Mutex, PoisonError};

use wasm_bindgen::prelude::wasm_bindgen;

/// Of the first panic: with threads, those after it are its consequence.
static PLACE: Mutex<Option<String>> = Mutex::new(None);

/// Runs once when the module starts.
#[wasm_bindgen(start)]
pub fn start() {
    panic::set_hook(Box::new(|panicked| {
        let place =
            panicked.location().map(|at| format!("{}:{}", crate_path(at.file()), at.line()));
        let mut first = PLACE.lock().unwrap_or_else(PoisonError::into_inner);
        if first.is_none() {
            *first = place;
        }
    }));
}

/// Where the module panicked; it can be called after the trap. Undefined: the trap was no panic.
#[wasm_bindgen(js_name = panicPlace)]
#[must_use]
pub fn panic_place() -> Option<String> {
    PLACE.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The path from its last `src` on: what is before it belongs to the machine that compiled it.
fn crate_path(file: &str) -> &str {
    file.rfind("src/").map_or(file, |at| &file[at..])
}
