//! What is kept of a panic: the place in the source. Its text stays here: it means nothing to a user and may hold theirs.

use std::cell::RefCell;
use std::panic;

use wasm_bindgen::prelude::wasm_bindgen;

thread_local! {
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs once when the module starts.
#[wasm_bindgen(start)]
pub fn start() {
    panic::set_hook(Box::new(|panicked| {
        let place =
            panicked.location().map(|at| format!("{}:{}", crate_path(at.file()), at.line()));
        PLACE.set(place);
    }));
}

/// Where the module panicked; it can be called after the trap. Undefined: the trap was no panic.
#[wasm_bindgen(js_name = panicPlace)]
#[must_use]
pub fn panic_place() -> Option<String> {
    PLACE.with_borrow(Clone::clone)
}

/// The path from its last `src` on: what is before it belongs to the machine that compiled it.
fn crate_path(file: &str) -> &str {
    file.rfind("src/").map_or(file, |at| &file[at..])
}
