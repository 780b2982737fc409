//! Clock, output and threads of the benchmark: the standard library's natively; in wasm imports of the module, and workers that
//! all run it on one memory.
#![allow(unsafe_code, reason = "imports of a wasm module are foreign functions")]

#[cfg(not(target_arch = "wasm32"))]
mod native {
    #![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "a program on its own")]

    use std::sync::LazyLock;
    use std::time::Instant;

    use sluice::team::Pool;

    static START: LazyLock<Instant> = LazyLock::new(Instant::now);

    pub(crate) fn now_ms() -> f64 {
        START.elapsed().as_secs_f64() * 1e3
    }

    pub(crate) fn print(line: &str) {
        println!("{line}");
    }

    /// Gives `work` as many threads as there are cores, four at most.
    pub(crate) fn lead(work: impl FnOnce(&Pool)) {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let pool = Pool::spawn(cores.min(4));
        work(&pool);
        pool.end();
    }
}

#[cfg(target_arch = "wasm32")]
mod wasm {
    use std::sync::OnceLock;

    use sluice::team::Pool;

    #[link(wasm_import_module = "bench")]
    unsafe extern "C" {
        fn now() -> f64;
        fn line(text: *const u8, bytes: usize);
        fn number() -> usize;
        fn threads() -> usize;
    }

    static POOL: OnceLock<Pool> = OnceLock::new();

    pub(crate) fn now_ms() -> f64 {
        // SAFETY: the host's clock takes and changes nothing.
        unsafe { now() }
    }

    pub(crate) fn print(text: &str) {
        // SAFETY: the host reads the text during the call only.
        unsafe { line(text.as_ptr(), text.len()) }
    }

    /// In the first worker gives `work` all of them; the others help until it has ended.
    pub(crate) fn lead(work: impl FnOnce(&Pool)) {
        // SAFETY: the host says numbers that it gave the workers; the calls take and change nothing.
        let (number, threads) = unsafe { (number(), threads()) };
        if number > 0 {
            return POOL.wait().serve(number);
        }
        let pool = POOL.get_or_init(|| Pool::new(threads));
        work(pool);
        pool.end();
    }
}

#[cfg(not(target_arch = "wasm32"))]
pub(crate) use native::{lead, now_ms, print};
#[cfg(target_arch = "wasm32")]
pub(crate) use wasm::{lead, now_ms, print};
