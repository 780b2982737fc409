//! What lines of the benchmark are compared with: a plain read of the same bytes, and the most products of their kind that
//! this build can make. Each is measured when the first line asks for it.

use core::hint::black_box;
use std::collections::BTreeMap;

use super::host::{fastest_ms, filter, print};
use super::peak;

/// What is multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Products {
    /// Of bytes, summed as integers.
    Bytes,
    /// Of f32.
    Floats,
}

/// Measured so far.
pub(crate) struct Ceilings<'a> {
    bytes: &'a [u8],
    /// GB/s by the bytes that are read over and over.
    reads: BTreeMap<usize, f64>,
    /// GMAC/s.
    peaks: BTreeMap<Products, f64>,
}

impl<'a> Ceilings<'a> {
    /// Plain reads are of these.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, reads: BTreeMap::new(), peaks: BTreeMap::new() }
    }

    /// Measures those that are asked for by name.
    pub(crate) fn show(&mut self) {
        for size in [PIECE, self.bytes.len()].into_iter().filter(|size| filter(&read_name(*size))) {
            self.read(size);
        }
        let both = [Products::Bytes, Products::Floats];
        for products in both.into_iter().filter(|products| filter(peak_name(*products))) {
            self.peak(products);
        }
    }

    /// GB/s of a plain read that goes over so many bytes again and again. Sizes count up to the next power of two.
    pub(crate) fn read(&mut self, size: usize) -> f64 {
        let size = size.next_power_of_two().min(self.bytes.len());
        *self.reads.entry(size).or_insert_with(|| {
            let piece = size.min(PIECE);
            let mut pieces = self.bytes[..size].chunks_exact(piece).cycle();
            let time = fastest_ms(&mut || {
                let words: &[u64] = bytemuck::cast_slice(pieces.next().unwrap_or_default());
                let sum = words.as_chunks::<16>().0.iter().fold([0_u64; 16], |mut sum, words| {
                    for i in 0..16 {
                        sum[i] ^= words[i];
                    }
                    sum
                });
                black_box(sum);
            });
            let rate = piece as f64 / time / 1e6;
            print(&format!("{:34} {rate:7.2} GB/s", read_name(size)));
            rate
        })
    }

    /// GMAC/s.
    pub(crate) fn peak(&mut self, products: Products) -> f64 {
        *self.peaks.entry(products).or_insert_with(|| {
            let mut made = 0;
            let time = fastest_ms(&mut || {
                made = match products {
                    Products::Bytes => peak::bytes(),
                    Products::Floats => peak::floats(),
                };
            });
            let rate = made as f64 / time / 1e6;
            print(&format!("{:34} {:19} {rate:7.2} GMAC/s", peak_name(products), ""));
            rate
        })
    }
}

fn read_name(size: usize) -> String {
    format!("read {} KB", size.div_ceil(1024))
}

fn peak_name(products: Products) -> &'static str {
    match products {
        Products::Bytes => "peak of bytes",
        Products::Floats => "peak of f32",
    }
}

/// What is read at once: short enough to be seldom interrupted.
const PIECE: usize = 1 << 18;
