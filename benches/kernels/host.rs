//! Clock, output and arguments of the benchmark: the standard library's natively, imports of the module in wasm.
#![allow(unsafe_code, reason = "imports of a wasm module are foreign functions")]

#[cfg(not(target_arch = "wasm32"))]
mod native {
    #![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "a program on its own")]

    use std::sync::LazyLock;
    use std::time::Instant;

    static START: LazyLock<Instant> = LazyLock::new(Instant::now);

    pub(crate) fn now_ms() -> f64 {
        START.elapsed().as_secs_f64() * 1e3
    }

    pub(crate) fn print(line: &str) {
        println!("{line}");
    }

    /// Whether a line of this name is wanted: any argument is part of it, or there is none.
    pub(crate) fn filter(name: &str) -> bool {
        let mut wanted = std::env::args().skip(1).filter(|a| !a.starts_with('-')).peekable();
        wanted.peek().is_none() || wanted.any(|part| name.contains(&part))
    }
}

#[cfg(target_arch = "wasm32")]
mod wasm {
    #[link(wasm_import_module = "bench")]
    unsafe extern "C" {
        fn now() -> f64;
        fn line(text: *const u8, bytes: usize);
        fn wanted(text: *const u8, bytes: usize) -> i32;
    }

    pub(crate) fn now_ms() -> f64 {
        // SAFETY: the host's clock takes and changes nothing.
        unsafe { now() }
    }

    pub(crate) fn print(text: &str) {
        // SAFETY: the host reads the text during the call only.
        unsafe { line(text.as_ptr(), text.len()) }
    }

    /// Whether a line of this name is wanted.
    pub(crate) fn filter(name: &str) -> bool {
        // SAFETY: the host reads the text during the call only.
        unsafe { wanted(name.as_ptr(), name.len()) != 0 }
    }
}

#[cfg(not(target_arch = "wasm32"))]
use native::now_ms;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) use native::{filter, print};
#[cfg(target_arch = "wasm32")]
use wasm::now_ms;
#[cfg(target_arch = "wasm32")]
pub(crate) use wasm::{filter, print};

/// Milliseconds of the fastest twentieth of many runs, which nothing interrupted. What runs stays a function of its own:
/// browsers compile those anew that are called often, and none that is still running.
#[inline(never)]
pub(crate) fn fastest_ms(run: &mut dyn FnMut()) -> f64 {
    let begin = now_ms();
    let mut turns = 1;
    let mut times = Vec::new();
    while times.len() < 50 || now_ms() - begin < 500.0 {
        let start = now_ms();
        (0..turns).for_each(|_| run());
        let elapsed = now_ms() - start;
        // Clocks of browsers are coarse, and looking at them takes its time: what is timed lasts at least 0.2 ms.
        if elapsed < 0.2 {
            turns *= 2;
        } else {
            times.push(elapsed / f64::from(turns));
        }
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 20]
}
