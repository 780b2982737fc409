//! Keys and values: blocks of positions, and the formats that are used as they are stored.

use core::arch::wasm32::*;
use core::ops::Range;

use super::decode::{HALVES_UP, decode, halves, placed_half_words, placed_halves};
use super::lanes::{load_at, load_from, load_i16x4_from};
use crate::kernels::KvRows;
use crate::quant::GgmlType;

/// Adjacent rows of keys or values.
#[derive(Clone)]
pub(super) struct Block<'a> {
    pub(super) positions: Range<usize>,
    /// From the first row's start on; rows are `row_bytes` apart.
    bytes: &'a [u8],
    row_bytes: usize,
}

impl<'a> Block<'a> {
    /// The rows of some of its positions, each from its start to at least its end.
    #[inline(always)]
    pub(super) fn rows(&self, positions: &Range<usize>) -> impl Iterator<Item = &'a [u8]> {
        let skipped = (positions.start - self.positions.start) * self.row_bytes;
        let bytes = self.bytes.get(skipped..).unwrap_or_default();
        bytes.chunks(self.row_bytes).take(positions.len())
    }
}

/// Calls `run` with one block after the other and its format: as stored if `direct`, else decoded to F32.
pub(super) fn over_blocks(
    stored: &KvRows<'_>,
    dim: usize,
    positions: Range<usize>,
    direct: bool,
    mut run: impl FnMut(&Block<'_>, GgmlType),
) {
    let mut decoded = [0.0; DECODED];
    let row_bytes = dim / stored.ty.block_elements() * stored.ty.block_bytes();
    let mut start = positions.start;
    while start < positions.end {
        let row = start % stored.capacity;
        let n = (positions.end - start)
            .min(stored.capacity - row)
            .min(DECODED / dim)
            .min(MAX_POSITIONS);
        let bytes = &stored.bytes[row * stored.row_bytes + stored.head_offset..];
        let block = Block { positions: start..start + n, bytes, row_bytes: stored.row_bytes };
        start += n;
        if direct {
            run(&block, stored.ty);
            continue;
        }
        let rows = block.rows(&block.positions);
        for (row, decoded) in rows.zip(decoded.chunks_exact_mut(dim)) {
            decode(stored.ty, &row[..row_bytes], decoded);
        }
        let bytes = bytemuck::cast_slice(&decoded[..n * dim]);
        run(&Block { bytes, row_bytes: 4 * dim, ..block }, GgmlType::F32);
    }
}

/// A format whose rows are used as they are stored, `B` bytes for 16 elements.
///
/// The quick ways of reading give elements divided by `UP`, a power of two by which the other factor of a product is
/// multiplied instead: the product has the same bits. An element that is not finite comes out wrong.
pub(super) trait KvFormat<const B: usize> {
    const UP: f32;
    /// The elements as they are, whatever they are.
    fn exact(bytes: &[u8; B]) -> [v128; 4];
    /// The elements, quickly.
    fn quick(bytes: &[u8; B]) -> [v128; 4];
    /// Elements `4 j..4 j + 4`, quickly.
    fn quick_four(bytes: &[u8; B], j: usize) -> v128;
    /// Keeps in `special` what tells later whether an element was not finite.
    fn watch(bytes: &[u8; B], special: &mut v128);
    /// Whether there was one.
    fn met(special: v128) -> bool;
}

pub(super) struct KvF32;
pub(super) struct KvF16;

impl KvFormat<64> for KvF32 {
    const UP: f32 = 1.0;

    #[inline(always)]
    fn exact(bytes: &[u8; 64]) -> [v128; 4] {
        Self::quick(bytes)
    }

    #[inline(always)]
    fn quick(bytes: &[u8; 64]) -> [v128; 4] {
        [
            load_at::<0, 64>(bytes),
            load_at::<16, 64>(bytes),
            load_at::<32, 64>(bytes),
            load_at::<48, 64>(bytes),
        ]
    }

    #[inline(always)]
    fn quick_four(bytes: &[u8; 64], j: usize) -> v128 {
        load_from(bytes, 16 * j)
    }

    #[inline(always)]
    fn watch(_bytes: &[u8; 64], _special: &mut v128) {}

    #[inline(always)]
    fn met(_special: v128) -> bool {
        false
    }
}

impl KvFormat<32> for KvF16 {
    const UP: f32 = HALVES_UP;

    #[inline(always)]
    fn exact(bytes: &[u8; 32]) -> [v128; 4] {
        let [a, b] = halves(load_at::<0, 32>(bytes));
        let [c, d] = halves(load_at::<16, 32>(bytes));
        [a, b, c, d]
    }

    #[inline(always)]
    fn quick(bytes: &[u8; 32]) -> [v128; 4] {
        let [a, b] = placed_halves(load_at::<0, 32>(bytes));
        let [c, d] = placed_halves(load_at::<16, 32>(bytes));
        [a, b, c, d]
    }

    #[inline(always)]
    fn quick_four(bytes: &[u8; 32], j: usize) -> v128 {
        placed_half_words(load_i16x4_from(bytes, 8 * j))
    }

    #[inline(always)]
    fn watch(bytes: &[u8; 32], special: &mut v128) {
        // Without its sign a half is not finite from 0x7c00 on: the largest is remembered.
        let (low, high) = (load_at::<0, 32>(bytes), load_at::<16, 32>(bytes));
        let larger = u16x8_max(i16x8_shl(low, 1), i16x8_shl(high, 1));
        *special = u16x8_max(*special, larger);
    }

    #[inline(always)]
    fn met(special: v128) -> bool {
        v128_any_true(u16x8_ge(special, u16x8_splat(0xf800)))
    }
}

/// Elements of a decoded block: 8 KiB.
pub(super) const DECODED: usize = 2048;
/// Positions of a block.
pub(super) const MAX_POSITIONS: usize = 32;
