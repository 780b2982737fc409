//! Loads ahead of use.
//!
//! Rows are read four at a time, a few bytes of each: streams that end after a kilobyte or two, which a processor's
//! prefetcher does not follow. One load that walks line by line through the next four rows gives it a stream that it does
//! follow: out of cache that makes decode two to four times as fast, and it costs next to nothing in cache.

use crate::kernels::Weights;

/// The four rows after group `four`; where there are none, or they would drive out what is in use, some that are in cache.
pub(super) fn next_rows<'a>(w: &Weights<'a>, four: usize) -> &'a [u8] {
    let n = 4 * w.row_bytes();
    let next = w.bytes.get(n * (four + 1)..n * (four + 2)).filter(|_| n <= MAX_BYTES);
    next.unwrap_or(&w.bytes[4 * four * w.row_bytes()..][..w.row_bytes()])
}

/// Loads `N` bytes, spread evenly. What comes of them has to be used, or the compiler leaves them out.
#[inline(always)]
pub(super) fn touch<const N: usize>(bytes: &[u8]) -> u8 {
    let mut seen = 0;
    for i in 0..N {
        seen |= bytes[bytes.len() / N * i];
    }
    seen
}

/// Loads a byte of every cache line. In a loop of its own: the prefetcher knows a stream by its load instruction.
#[inline(never)]
pub(super) fn touch_lines(bytes: &[u8]) -> u8 {
    bytes.chunks(64).fold(0, |seen, line| seen | line[0])
}

/// More than this and the rows in use share the first level of cache with nothing.
const MAX_BYTES: usize = 32 << 10;
