//! Reads through a JS object (`js/worker/source.ts`): HTTP ranges, stored and picked files. The waiting, retrying and streaming is
//! done in JS, where it is short and where it is tested; here bytes are put into their places and reads are counted out.

mod desk;
mod js_source;

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::task::Waker;

use js_sys::Uint8Array;
use wasm_bindgen::prelude::Closure;
use wasm_bindgen_futures::{JsFuture, spawn_local};

use self::js_source::error_from_js;
use super::ended::EndedReads;
use super::{Completion, FileRange, Places, ReadRequest, WeightSource, dropped, read_failed};

pub use self::desk::{DeskSource, JsDesk};
pub use self::js_source::JsSource;

/// A [`WeightSource`] whose bytes come from JS.
pub struct WebSource {
    js: JsSource,
    at_once: bool,
    ended: Rc<EndedReads>,
}

impl WebSource {
    /// Reads the files of `js`.
    #[must_use]
    pub fn new(js: JsSource) -> Self {
        let at_once = js.reader().is_some();
        Self { js, at_once, ended: Rc::default() }
    }
}

impl WeightSource for WebSource {
    fn n_files(&self) -> u32 {
        self.js.file_count()
    }

    fn file_bytes(&self, file: u32) -> Option<u64> {
        self.js.size(file).map(whole)
    }

    fn submit(&self, request: ReadRequest, places: &Rc<dyn Places>) {
        let ReadRequest { ticket, offset, len, .. } = request;
        if offset.checked_add(len as u64).is_none_or(|end| end > MAX_SAFE_OFFSET) {
            let result = Err(read_failed(&request, "no file is that long"));
            self.ended.push(Completion { ticket, result });
        } else if !(self.at_once && self.read_at_once(&request, &**places)) {
            self.start_read(request, places);
        }
    }

    fn reads_at_once(&self) -> bool {
        self.at_once
    }

    fn rereads(&self) -> bool {
        self.js.rereads()
    }

    fn is_arriving(&self) -> bool {
        self.js.arriving().unwrap_or(false)
    }

    fn will_use(&self, ranges: &[FileRange]) {
        if self.js.orderer().is_none() {
            return;
        }
        let (files, offsets, lengths) = columns(ranges);
        self.js.will_use(files, offsets, lengths);
    }

    fn poll(&self) -> Option<Completion> {
        self.ended.pop()
    }

    fn wake_on_completion(&self, waker: &Waker) {
        self.ended.wake_on_push(waker);
    }

    fn cancel_all(&self) {
        self.js.cancel();
    }

    fn buffer_bytes(&self) -> u64 {
        whole(self.js.buffer_bytes())
    }
}

impl WebSource {
    /// The bytes go from the file into the place in one call; false when they are not there yet.
    fn read_at_once(&self, request: &ReadRequest, places: &dyn Places) -> bool {
        let ReadRequest { ticket, file, offset, len } = *request;
        let mut read = Ok(true);
        let took = places.fill(ticket, 0, len, &mut |place| {
            read = self.js.read_into(file, offset as f64, place);
        });
        let result = match read {
            Ok(false) => return false,
            Ok(true) if took => Ok(()),
            Ok(true) => Err(dropped(request)),
            Err(thrown) => Err(error_from_js(&thrown)),
        };
        self.ended.push(Completion { ticket, result });
        true
    }

    /// The bytes come chunk by chunk.
    fn start_read(&self, request: ReadRequest, places: &Rc<dyn Places>) {
        let ReadRequest { ticket, file, offset, len } = request;
        let placed = Rc::new(Cell::new(0));
        let sink = {
            let (places, placed) = (Rc::clone(places), Rc::clone(&placed));
            Closure::new(move |at: usize, bytes: Uint8Array| {
                let n_bytes = bytes.length() as usize;
                let took = places.fill(ticket, at, n_bytes, &mut |place| bytes.copy_to(place));
                if took {
                    placed.set(placed.get() + n_bytes);
                }
                took
            })
        };
        let reading = self.js.read(file, offset as f64, len, &sink);
        let ended = Rc::clone(&self.ended);
        spawn_local(async move {
            let result = match JsFuture::from(reading).await {
                Ok(_) if placed.get() == len => Ok(()),
                Ok(_) => Err(dropped(&request)),
                Err(thrown) => Err(error_from_js(&thrown)),
            };
            drop(sink);
            ended.push(Completion { ticket, result });
        });
    }
}

impl fmt::Debug for WebSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSource").field("n_files", &self.n_files()).finish_non_exhaustive()
    }
}

/// Files, offsets and lengths of `ranges`, as JS takes them.
fn columns(ranges: &[FileRange]) -> (Vec<u32>, Vec<f64>, Vec<f64>) {
    let files = ranges.iter().map(|r| r.file).collect();
    let offsets = ranges.iter().map(|r| r.offset as f64).collect();
    (files, offsets, ranges.iter().map(|r| r.len as f64).collect())
}

/// Beyond it a number of JS no longer names every byte.
const MAX_SAFE_OFFSET: u64 = (1 << 53) - 1;

/// A byte count that JS holds as a number.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "byte counts are whole and not negative; the cast saturates"
)]
fn whole(bytes: f64) -> u64 {
    bytes as u64
}
