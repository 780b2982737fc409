//! The native host: a clock, the process's memory, and reads that are complete at once.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use super::host::Host;
use crate::error::Result;
use crate::source::WeightSource;
use crate::source::native::{FileSource, MmapSource};
use crate::team::{Pool, Team};

pub use crate::source::native::block_on;

/// Runs the engine in this process.
#[derive(Debug)]
pub struct NativeHost {
    started: Instant,
    pool: Option<Arc<Pool>>,
}

impl NativeHost {
    /// A host whose clock starts now.
    #[must_use]
    #[allow(clippy::disallowed_methods, reason = "the native host is where time comes in")]
    pub fn new() -> Self {
        Self { started: Instant::now(), pool: None }
    }

    /// A host with `n_threads` threads that compute, the calling one included. They end with the host.
    #[must_use]
    pub fn with_threads(n_threads: u32) -> Self {
        let pool = (n_threads > 1).then(|| Pool::spawn(n_threads as usize));
        Self { pool, ..Self::new() }
    }
}

impl Drop for NativeHost {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            pool.end();
        }
    }
}

impl Default for NativeHost {
    fn default() -> Self {
        Self::new()
    }
}

impl Host for NativeHost {
    fn now_ms(&self) -> f64 {
        self.started.elapsed().as_secs_f64() * 1000.0
    }

    fn team(&self) -> Option<Arc<dyn Team>> {
        self.pool.clone().map(|pool| pool as Arc<dyn Team>)
    }

    fn memory_bytes(&self) -> u64 {
        resident_set_bytes().unwrap_or(0)
    }
}

/// The files of one model as a source.
///
/// # Errors
/// `source_failed` naming the file that cannot be opened.
pub fn open_source(paths: &[PathBuf], mmap: bool) -> Result<Rc<dyn WeightSource>> {
    Ok(if mmap { Rc::new(MmapSource::open(paths)?) } else { Rc::new(FileSource::open(paths)?) })
}

/// Resident set of this process, from the second field of `/proc/self/statm` (in pages of 4 KiB); `None` where there is no such file.
#[allow(clippy::disallowed_methods, reason = "the native host measures the process it runs in")]
fn resident_set_bytes() -> Option<u64> {
    let statm = std::fs::read("/proc/self/statm").ok()?;
    let pages: u64 = core::str::from_utf8(&statm).ok()?.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4096)
}
