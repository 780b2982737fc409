//! Sources of the native command: positional reads of files, and memory maps. Not compiled for wasm.

mod block_on;
mod file;
mod mmap;

pub use block_on::block_on;
pub use file::FileSource;
pub use mmap::MmapSource;
