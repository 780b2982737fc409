//! What a piece of code allocates, per thread: so that tests can hold bounds on memory.
#![allow(unsafe_code, reason = "a global allocator is an unsafe trait; it counts and passes on")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// What a closure allocated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allocated {
    /// Most bytes that were live at once, over those live at the start.
    pub(crate) peak_bytes: usize,
    /// Bytes that are still live, over those live at the start.
    pub(crate) live_bytes: usize,
    /// Calls that took or grew memory.
    pub(crate) n_allocations: usize,
}

/// Runs `f` on this thread and counts.
pub(crate) fn measure<T>(f: impl FnOnce() -> T) -> (T, Allocated) {
    let before = LIVE.get();
    PEAK.set(before);
    CALLS.set(0);
    let value = f();
    let peak_bytes = PEAK.get().saturating_sub(before).try_into().unwrap_or(0);
    let live_bytes = (LIVE.get() - before).try_into().unwrap_or(0);
    (value, Allocated { peak_bytes, live_bytes, n_allocations: CALLS.get() })
}

/// Runs `f` on this thread with an allocator that refuses every piece of `n_bytes` or more.
pub(crate) fn refusing_from<T>(n_bytes: usize, f: impl FnOnce() -> T) -> T {
    REFUSED_FROM.set(n_bytes);
    let value = f();
    REFUSED_FROM.set(usize::MAX);
    value
}

thread_local! {
    static REFUSED_FROM: Cell<usize> = const { Cell::new(usize::MAX) };
    /// Signed: memory may be freed by another thread than the one that took it.
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

fn count(bytes: isize) {
    let live = LIVE.get() + bytes;
    LIVE.set(live);
    PEAK.set(PEAK.get().max(live));
    CALLS.set(CALLS.get() + usize::from(bytes > 0));
}

// SAFETY: every call goes to the system's allocator with the same arguments; counting touches thread-local cells that
// need neither allocation nor destructors.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= REFUSED_FROM.get() {
            return core::ptr::null_mut();
        }
        count(layout.size().cast_signed());
        // SAFETY: the caller keeps GlobalAlloc's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= REFUSED_FROM.get() {
            return core::ptr::null_mut();
        }
        count(layout.size().cast_signed());
        // SAFETY: the caller keeps GlobalAlloc's contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: the caller keeps GlobalAlloc's contract.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if new_size >= REFUSED_FROM.get() {
            return core::ptr::null_mut();
        }
        // The old block lives until the new one is filled.
        count(new_size.cast_signed());
        count(-layout.size().cast_signed());
        // SAFETY: the caller keeps GlobalAlloc's contract.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}
