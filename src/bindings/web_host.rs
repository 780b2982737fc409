//! The worker as the runtime's host: its clock, its event loop, its memory.

use std::cell::Cell;
use std::rc::Rc;
use std::task::Waker;

use js_sys::Promise;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen_futures::JsFuture;

use super::call::Call;
use crate::runtime::{Checkpoint, Host, OpenProgress};

#[wasm_bindgen]
extern "C" {
    /// `Host` of `js/worker/host.ts`.
    #[wasm_bindgen(typescript_type = "Host")]
    #[derive(Debug)]
    pub type JsHost;

    /// Resolves after messages that have arrived were handled.
    #[wasm_bindgen(method)]
    fn turn(this: &JsHost) -> Promise;

    /// Tells how far reading the model has got.
    #[wasm_bindgen(method)]
    fn progress(this: &JsHost, loaded_bytes: f64, total_bytes: f64);

    /// Bytes of memory of the device; undefined where it does not say.
    #[wasm_bindgen(method, getter, js_name = deviceBytes)]
    fn device_bytes(this: &JsHost) -> Option<f64>;

    #[wasm_bindgen(js_namespace = performance)]
    pub(super) fn now() -> f64;
}

/// One call's host.
pub(super) struct WebHost {
    js: Rc<JsHost>,
    call: Call,
    /// JS buffers of the source, which count as memory.
    buffer_bytes: u64,
    last_turn: Rc<Cell<f64>>,
}

impl WebHost {
    pub(super) fn new(js: &Rc<JsHost>, call: &Call, buffer_bytes: u64) -> Self {
        let last_turn = Rc::new(Cell::new(now()));
        Self { js: Rc::clone(js), call: call.clone(), buffer_bytes, last_turn }
    }
}

impl Host for WebHost {
    fn now_ms(&self) -> f64 {
        now()
    }

    fn checkpoint(&self) -> Checkpoint {
        if self.call.aborted() {
            return Checkpoint::Stop;
        }
        if self.call.held() {
            return Checkpoint::Wait(Box::pin(self.call.clone().released()));
        }
        if now() - self.last_turn.get() < TURN_MS {
            return Checkpoint::Go;
        }
        let (turn, last_turn) = (JsFuture::from(self.js.turn()), Rc::clone(&self.last_turn));
        Checkpoint::Wait(Box::pin(async move {
            // The promise never rejects.
            let _ = turn.await;
            last_turn.set(now());
        }))
    }

    fn aborted(&self) -> bool {
        self.call.aborted()
    }

    fn wake_on_abort(&self, waker: &Waker) {
        self.call.wake_on_change(waker);
    }

    fn memory_bytes(&self) -> u64 {
        linear_memory_bytes() + self.buffer_bytes
    }

    fn opening(&self, progress: &OpenProgress) {
        self.js.progress(progress.loaded_bytes as f64, progress.total_bytes as f64);
    }
}

/// Bytes of memory of the device, where it says.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "whole and not negative"
)]
pub(super) fn device_bytes(host: &JsHost) -> Option<u64> {
    host.device_bytes().map(|bytes| bytes as u64)
}

/// Bytes of this module's linear memory.
pub(super) fn linear_memory_bytes() -> u64 {
    core::arch::wasm32::memory_size(0) as u64 * 65536
}

/// The event loop gets a turn this often; with a step of 20 ms before the next checkpoint it is never kept waiting for 50.
const TURN_MS: f64 = 25.0;
