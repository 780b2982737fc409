//! The worker as the runtime's host: its clock, its event loop, its memory.

use std::cell::Cell;
use std::rc::Rc;
use std::task::Waker;

use js_sys::Promise;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen_futures::JsFuture;

use super::call::Call;
use super::facts::plain;
use crate::runtime::{Checkpoint, Host, PAGE_BYTES, Progress, Snapshot, Stage, Stats, Wants};

#[wasm_bindgen]
extern "C" {
    /// `Host` of `js/worker/host.ts`.
    #[wasm_bindgen(typescript_type = "Host")]
    #[derive(Debug)]
    pub type JsHost;

    /// Resolves after messages that have arrived were handled.
    #[wasm_bindgen(method)]
    pub(super) fn turn(this: &JsHost) -> Promise;

    /// Tells how far reading the model has got.
    #[wasm_bindgen(method)]
    fn progress(
        this: &JsHost,
        stage: &str,
        loaded_bytes: f64,
        total_bytes: f64,
        layer: Option<u32>,
        n_layer: u32,
    );

    /// What is to be shown of the run now: 1 for the figures, 2 for a picture, 3 for both, 0 for nothing.
    #[wasm_bindgen(method)]
    fn wants(this: &JsHost) -> u32;

    /// The figures that were wanted.
    #[wasm_bindgen(method)]
    fn stats(this: &JsHost, stats: JsValue);

    /// The picture that was wanted.
    #[wasm_bindgen(method)]
    fn snapshot(this: &JsHost, snapshot: JsValue);

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
    last_asked: Cell<f64>,
    /// When progress was last told, and of what.
    told: Cell<(f64, Stage)>,
}

impl WebHost {
    pub(super) fn new(js: &Rc<JsHost>, call: &Call, buffer_bytes: u64) -> Self {
        let last_turn = Rc::new(Cell::new(now()));
        let last_asked = Cell::new(f64::NEG_INFINITY);
        let told = Cell::new((f64::NEG_INFINITY, Stage::Load));
        let js = Rc::clone(js);
        Self { js, call: call.clone(), buffer_bytes, last_turn, last_asked, told }
    }
}

impl Host for WebHost {
    fn now_ms(&self) -> f64 {
        now()
    }

    fn checkpoint(&self, now_ms: f64) -> Checkpoint {
        if self.call.aborted() {
            return Checkpoint::Stop;
        }
        if self.call.held() {
            return Checkpoint::Wait(Box::pin(self.call.clone().released()));
        }
        if now_ms - self.last_turn.get() < TURN_MS {
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

    #[cfg(target_feature = "atomics")]
    fn team(&self) -> Option<std::sync::Arc<dyn crate::runtime::Team>> {
        super::threads::team()
    }

    fn wake_on_abort(&self, waker: &Waker) {
        self.call.wake_on_change(waker);
    }

    fn memory_bytes(&self) -> u64 {
        linear_memory_bytes() + self.buffer_bytes
    }

    fn take_memory(&self, linear_bytes: u64) {
        // Less a page, in which the allocator keeps its own account.
        let missing = linear_bytes.saturating_sub(linear_memory_bytes() + PAGE_BYTES);
        let mut rest = Vec::<u8>::new();
        // A failure is no harm: then memory is taken when it is needed.
        if usize::try_from(missing).is_ok_and(|n| rest.try_reserve_exact(n).is_ok()) {
            core::hint::black_box(&rest); // or the compiler leaves it out
        }
    }

    fn progress(&self, progress: &Progress) {
        let Progress { stage, loaded_bytes, total_bytes, layer, n_layer } = *progress;
        let (loaded, total) = (loaded_bytes as f64, total_bytes as f64);
        let now = now();
        let last = self.told.get();
        if last.1 == stage && loaded_bytes < total_bytes && now - last.0 < TELL_MS {
            return;
        }
        self.told.set((now, stage));
        self.js.progress(stage.name(), loaded, total, layer, n_layer);
    }

    fn wants(&self, now_ms: f64) -> Wants {
        if now_ms - self.last_asked.get() < ASK_MS {
            return Wants::default();
        }
        self.last_asked.set(now_ms);
        let wants = self.js.wants();
        Wants { stats: wants & 1 != 0, snapshot: wants & 2 != 0 }
    }

    fn stats(&self, stats: &Stats) {
        self.js.stats(plain(stats));
    }

    fn snapshot(&self, snapshot: &Snapshot) {
        self.js.snapshot(plain(snapshot));
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
    core::arch::wasm32::memory_size(0) as u64 * PAGE_BYTES
}

/// The event loop gets a turn this often; with a step of 20 ms before the next checkpoint it is never kept waiting for 50.
const TURN_MS: f64 = 25.0;

/// The host is asked what it wants to see this often; steps are much shorter.
const ASK_MS: f64 = 15.0;

/// Progress is told this often.
const TELL_MS: f64 = 100.0;
