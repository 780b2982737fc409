//! What only exists in wasm: the bridge between Rust's reads and sources written in JS, against the suite of all sources.
#![cfg(target_arch = "wasm32")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it panics")]

#[path = "../shared/source_conformance.rs"]
mod source_conformance;

use std::rc::{Rc, Weak};

use js_sys::{Array, Promise, Uint8Array};
use sluice::source::web::{DeskSource, JsDesk, JsSource, WebSource};
use sluice::source::{MemorySource, Places, ReadRequest, Ticket, WeightSource};
use source_conformance::source_conforms;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};
use wasm_bindgen_futures::JsFuture;
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_dedicated_worker);

#[wasm_bindgen(module = "/tests/wasm/chunked-source.js")]
extern "C" {
    /// A JS source of these files that brings its bytes in chunks of so many, each in a turn of its own.
    #[wasm_bindgen(js_name = chunkedSource)]
    fn chunked_source(files: Array, chunk_bytes: u32) -> JsSource;
}

#[wasm_bindgen(module = "/tests/wasm/desk.js")]
extern "C" {
    /// A desk at which reads end when [`IdleDesk::end_all`] says so.
    #[wasm_bindgen(js_name = idleDesk)]
    fn idle_desk(memory: JsValue) -> IdleDesk;

    #[derive(Clone)]
    type IdleDesk;

    #[wasm_bindgen(method, getter, js_name = isClosed)]
    fn is_closed(this: &IdleDesk) -> bool;

    #[wasm_bindgen(method, js_name = endAll)]
    fn end_all(this: &IdleDesk);
}

/// A place that another worker may write.
#[derive(Debug)]
struct Place([u8; 8]);

impl Places for Place {
    fn fill(&self, _: Ticket, _: usize, _: usize, _: &mut dyn FnMut(&mut [u8])) -> bool {
        false
    }

    fn lend(&self, _: Ticket, _: usize) -> Option<usize> {
        Some(self.0.as_ptr().addr())
    }
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

#[wasm_bindgen_test]
async fn a_place_outlives_its_desk_until_the_read_has_ended() {
    let desk = idle_desk(wasm_bindgen::memory());
    let source = DeskSource::open(desk.clone().unchecked_into::<JsDesk>()).await.unwrap();
    let places: Rc<dyn Places> = Rc::new(Place([0; 8]));
    let alive: Weak<dyn Places> = Rc::downgrade(&places);
    let ticket = Ticket { slot: 0, generation: 0 };
    source.submit(ReadRequest { ticket, file: 0, offset: 0, len: 8 }, &places);
    drop((source, places));
    assert!(desk.is_closed(), "the reader is told");
    assert!(alive.upgrade().is_some(), "the reader may still write there");
    desk.end_all();
    for _ in 0..10 {
        JsFuture::from(Promise::resolve(&JsValue::NULL)).await.unwrap();
    }
    assert!(alive.upgrade().is_none(), "nobody writes there any more");
}
