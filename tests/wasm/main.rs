//! What only exists in wasm: the bridge between Rust's reads and sources written in JS, against the suite of all sources.
#![cfg(target_arch = "wasm32")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it panics")]

#[path = "../shared/source_conformance.rs"]
mod source_conformance;

use std::rc::Rc;

use js_sys::{Array, Uint8Array};
use sluice::source::web::{JsSource, WebSource};
use sluice::source::{MemorySource, WeightSource};
use source_conformance::source_conforms;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_dedicated_worker);

#[wasm_bindgen(module = "/tests/wasm/chunked-source.js")]
extern "C" {
    /// A JS source of these files that brings its bytes in chunks of so many, each in a turn of its own.
    #[wasm_bindgen(js_name = chunkedSource)]
    fn chunked_source(files: Array, chunk_bytes: u32) -> JsSource;
}

fn web_source(files: &[Vec<u8>], chunk_bytes: u32) -> Rc<dyn WeightSource> {
    let files = files.iter().map(|f| Uint8Array::from(&f[..])).collect();
    Rc::new(WebSource::new(chunked_source(files, chunk_bytes)))
}

#[wasm_bindgen_test]
async fn sources_in_js_conform() {
    for chunk_bytes in [1 << 20, 10_007] {
        source_conforms(&move |files| Box::pin(async move { web_source(&files, chunk_bytes) }))
            .await;
    }
}

#[wasm_bindgen_test]
async fn memory_conforms() {
    source_conforms(&|files| {
        Box::pin(async { Rc::new(MemorySource::new(files)) as Rc<dyn WeightSource> })
    })
    .await;
}
