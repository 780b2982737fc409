//! Headers: every golden file, pieces of any size, both formats written and read.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails where it panics, and runs where there are files"
)]

mod cases;
mod formats;
mod pieces;

use std::path::PathBuf;

fn fixture(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(path)
}

fn read(path: &str) -> Vec<u8> {
    let path = fixture(path);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
