//! Reads by another worker, over shared memory: a request is a few words that it finds, a completion a word that it changes. The
//! bytes go straight to their place. The other side is `js/worker/desk.ts`.
//!
//! A place's address is given out for as long as its read is under way: the loader uses it again only when the read has ended,
//! and what it lies in is held here until then.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::hint::spin_loop;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Waker;

use js_sys::Promise;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};
use wasm_bindgen_futures::{JsFuture, spawn_local};

use super::js_source::error_from_js;
use super::{MAX_SAFE_OFFSET, columns, whole};
use crate::error::Result;
use crate::source::ended::EndedReads;
use crate::source::{
    Completion, FileRange, Places, ReadRequest, WeightSource, dropped, read_failed,
};

#[wasm_bindgen]
extern "C" {
    /// `Desk` of `js/worker/desk.ts`.
    #[wasm_bindgen(typescript_type = "Desk")]
    pub type JsDesk;

    /// Has the other worker look at the words at `address` from now on; the facts below hold when the promise resolves.
    #[wasm_bindgen(method)]
    fn serve(this: &JsDesk, address: usize) -> Promise;

    #[wasm_bindgen(method, getter, js_name = fileCount)]
    fn file_count(this: &JsDesk) -> u32;

    #[wasm_bindgen(method, getter, js_name = bufferBytes)]
    fn buffer_bytes(this: &JsDesk) -> f64;

    #[wasm_bindgen(method, getter)]
    fn rereads(this: &JsDesk) -> bool;

    #[wasm_bindgen(method, getter)]
    fn arriving(this: &JsDesk) -> bool;

    /// Passes on what a pass reads, in the order of use.
    #[wasm_bindgen(method, js_name = willUse)]
    fn will_use(this: &JsDesk, files: Vec<u32>, offsets: Vec<f64>, lengths: Vec<f64>);

    #[wasm_bindgen(method)]
    fn size(this: &JsDesk, file: u32) -> Option<f64>;

    /// Wakes the other worker.
    #[wasm_bindgen(method)]
    fn ring(this: &JsDesk);

    /// Blocks while the count of ended reads is `seen`, for at most `ms`.
    #[wasm_bindgen(method)]
    fn block(this: &JsDesk, seen: u32, ms: f64);

    /// Resolves when the count of ended reads is not `seen` any more, or a failure has arrived. It never rejects.
    #[wasm_bindgen(method)]
    fn changed(this: &JsDesk, seen: u32) -> Promise;

    /// Why the read of entry `index` failed; undefined while the message is on its way.
    #[wasm_bindgen(method, js_name = takeFailure)]
    fn take_failure(this: &JsDesk, index: usize) -> JsValue;
}

/// A [`WeightSource`] whose reads another worker does.
pub struct DeskSource {
    shared: Rc<Shared>,
}

struct Shared {
    js: JsDesk,
    desk: &'static Desk,
    /// Reads that wait for an entry.
    waiting: RefCell<VecDeque<Posted>>,
    /// What the entries hold.
    posted: RefCell<[Option<Posted>; N_ENTRIES]>,
    n_posted: Cell<usize>,
    /// The entry that is filled next.
    next: Cell<usize>,
    /// The count of ended reads when the entries were last looked at.
    seen: Cell<u32>,
    ended: EndedReads,
    listening: Cell<bool>,
}

/// A read that was asked for.
#[derive(Debug)]
struct Posted {
    request: ReadRequest,
    address: usize,
    /// Keeps the place alive.
    _places: Rc<dyn Places>,
}

/// The words, as both sides see them.
#[repr(C)]
struct Desk {
    /// Changes when there is something to look at.
    bell: AtomicU32,
    /// Counts reads that have ended.
    n_ended: AtomicU32,
    /// Counts cancellations: a read that was asked for before one need not be done.
    n_cancelled: AtomicU32,
    /// Not 0: nobody is here any more.
    closed: AtomicU32,
    entries: [Entry; N_ENTRIES],
}

#[repr(C)]
struct Entry {
    state: AtomicU32,
    file: AtomicU32,
    offset_low: AtomicU32,
    offset_high: AtomicU32,
    len: AtomicU32,
    address: AtomicU32,
    /// What `n_cancelled` was.
    n_cancelled: AtomicU32,
    _unused: AtomicU32,
}

impl DeskSource {
    /// Sets up a desk and waits until the other worker is at it.
    ///
    /// # Errors
    /// What that worker failed with.
    pub async fn open(js: JsDesk) -> Result<Self> {
        let zero = || AtomicU32::new(0);
        // It stays for good: the other worker may look at it until it has seen that it is closed.
        let desk: &'static Desk = Box::leak(Box::new(Desk {
            bell: zero(),
            n_ended: zero(),
            n_cancelled: zero(),
            closed: zero(),
            entries: core::array::from_fn(|_| Entry {
                state: zero(),
                file: zero(),
                offset_low: zero(),
                offset_high: zero(),
                len: zero(),
                address: zero(),
                n_cancelled: zero(),
                _unused: zero(),
            }),
        }));
        let serving = js.serve(core::ptr::from_ref(desk).addr());
        JsFuture::from(serving).await.map_err(|thrown| error_from_js(&thrown))?;
        let shared = Shared {
            js,
            desk,
            waiting: RefCell::default(),
            posted: RefCell::new([const { None }; N_ENTRIES]),
            n_posted: Cell::new(0),
            next: Cell::new(0),
            seen: Cell::new(0),
            ended: EndedReads::default(),
            listening: Cell::new(false),
        };
        Ok(Self { shared: Rc::new(shared) })
    }
}

impl WeightSource for DeskSource {
    fn n_files(&self) -> u32 {
        self.shared.js.file_count()
    }

    fn file_bytes(&self, file: u32) -> Option<u64> {
        self.shared.js.size(file).map(whole)
    }

    fn submit(&self, request: ReadRequest, places: &Rc<dyn Places>) {
        let ReadRequest { ticket, offset, len, .. } = request;
        let fail = |error| self.shared.ended.push(Completion { ticket, result: Err(error) });
        if offset.checked_add(len as u64).is_none_or(|end| end > MAX_SAFE_OFFSET) {
            return fail(read_failed(&request, "no file is that long"));
        }
        let Some(address) = places.lend(ticket, len) else { return fail(dropped(&request)) };
        let posted = Posted { request, address, _places: Rc::clone(places) };
        self.shared.waiting.borrow_mut().push_back(posted);
        self.shared.post();
    }

    fn rereads(&self) -> bool {
        self.shared.js.rereads()
    }

    fn is_arriving(&self) -> bool {
        self.shared.js.arriving()
    }

    fn will_use(&self, ranges: &[FileRange]) {
        let (files, offsets, lengths) = columns(ranges);
        self.shared.js.will_use(files, offsets, lengths);
    }

    fn poll(&self) -> Option<Completion> {
        self.shared.collect();
        self.shared.ended.pop()
    }

    fn wake_on_completion(&self, waker: &Waker) {
        self.shared.ended.wake_on_push(waker);
        self.shared.listen();
    }

    fn block(&self) {
        let Shared { js, desk, seen, n_posted, .. } = &*self.shared;
        let waits = || desk.n_ended.load(Ordering::Acquire) == seen.get();
        if n_posted.get() == 0
            || (0..SPINS).any(|_| {
                spin_loop();
                !waits()
            })
        {
            return;
        }
        js.block(seen.get(), BLOCK_MS);
    }

    fn cancel_all(&self) {
        for Posted { request, .. } in self.shared.waiting.take() {
            let result = Err(dropped(&request));
            self.shared.ended.push(Completion { ticket: request.ticket, result });
        }
        if self.shared.n_posted.get() > 0 {
            self.shared.desk.n_cancelled.fetch_add(1, Ordering::SeqCst);
            self.shared.ring();
        }
    }

    fn buffer_bytes(&self) -> u64 {
        whole(self.shared.js.buffer_bytes())
    }
}

/// The other worker may still be writing: places stay until their reads have ended, and for good if it never says so.
impl Drop for DeskSource {
    fn drop(&mut self) {
        self.shared.waiting.take();
        self.shared.desk.closed.store(1, Ordering::SeqCst);
        self.shared.ring();
        self.shared.listen();
    }
}

impl Shared {
    /// Writes requests into entries as far as there are free ones, in turn.
    fn post(&self) {
        let mut waiting = self.waiting.borrow_mut();
        let mut posted = self.posted.borrow_mut();
        let mut news = false;
        while !waiting.is_empty()
            && let free @ None = &mut posted[self.next.get()]
        {
            let Some(read) = waiting.pop_front() else { break };
            self.desk.entries[self.next.get()].write(&read, &self.desk.n_cancelled);
            *free = Some(read);
            self.n_posted.set(self.n_posted.get() + 1);
            self.next.set((self.next.get() + 1) % N_ENTRIES);
            news = true;
        }
        if news {
            self.ring();
        }
    }

    /// Waits for the end of reads in a task of its own: of some, or of all once the desk is closed.
    fn listen(self: &Rc<Self>) {
        if self.n_posted.get() == 0 || self.listening.replace(true) {
            return;
        }
        let shared = Rc::clone(self);
        spawn_local(async move {
            while shared.n_posted.get() > 0 {
                let changed = shared.js.changed(shared.seen.get());
                let _ = JsFuture::from(changed).await; // never rejects
                if shared.collect() && shared.desk.closed.load(Ordering::SeqCst) == 0 {
                    break;
                }
            }
            shared.listening.set(false);
        });
    }

    /// Takes the reads that have ended out of their entries; whether there were any.
    fn collect(&self) -> bool {
        // The count first: what ends after it is seen now or changes it again.
        self.seen.set(self.desk.n_ended.load(Ordering::SeqCst));
        let mut any = false;
        for index in 0..N_ENTRIES {
            if self.n_posted.get() == 0 {
                break;
            }
            let entry = &self.desk.entries[index];
            let state = entry.state.load(Ordering::Acquire);
            if !matches!(state, DONE | CANCELLED | FAILED) {
                continue;
            }
            let failure = if state == FAILED { self.js.take_failure(index) } else { JsValue::NULL };
            if failure.is_undefined() {
                continue;
            }
            let Some(Posted { request, .. }) = self.posted.borrow_mut()[index].take() else {
                continue;
            };
            entry.state.store(FREE, Ordering::Release);
            self.n_posted.set(self.n_posted.get() - 1);
            let result = match state {
                DONE => Ok(()),
                CANCELLED => Err(dropped(&request)),
                _ => Err(error_from_js(&failure)),
            };
            self.ended.push(Completion { ticket: request.ticket, result });
            any = true;
        }
        if any {
            self.post();
        }
        any
    }

    fn ring(&self) {
        self.desk.bell.fetch_add(1, Ordering::SeqCst);
        self.js.ring();
    }
}

impl Entry {
    fn write(&self, read: &Posted, n_cancelled: &AtomicU32) {
        let Posted { request: ReadRequest { file, offset, len, .. }, address, .. } = read;
        let [low, high] =
            [offset & 0xffff_ffff, offset >> 32].map(|word| u32::try_from(word).unwrap_or(0));
        let word = |bytes: usize| u32::try_from(bytes).unwrap_or(0);
        for (to, value) in [
            (&self.file, *file),
            (&self.offset_low, low),
            (&self.offset_high, high),
            (&self.len, word(*len)),
            (&self.address, word(*address)),
            (&self.n_cancelled, n_cancelled.load(Ordering::Relaxed)),
        ] {
            to.store(value, Ordering::Relaxed);
        }
        self.state.store(POSTED, Ordering::Release);
    }
}

impl fmt::Debug for DeskSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeskSource").field("n_files", &self.n_files()).finish_non_exhaustive()
    }
}

/// More than a loader ever has under way at a time; what comes beyond waits.
const N_ENTRIES: usize = 64;

const FREE: u32 = 0;
const POSTED: u32 = 1;
const DONE: u32 = 2;
const FAILED: u32 = 3;
const CANCELLED: u32 = 4;

/// Looks before blocking: a read from the page cache ends in a fraction of a millisecond.
const SPINS: u32 = 2000;
/// A step's time: then messages get their turn.
const BLOCK_MS: f64 = 10.0;
