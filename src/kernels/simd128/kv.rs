//! Keys and values: blocks of positions, and the formats that are used as they are stored.

use core::arch::wasm32::*;
use core::ops::Range;

use super::decode::{HALVES_UP, decode, placed_half_words, placed_halves};
use super::lanes::{load_at, load_from, load_i16x4_from};
use crate::kernels::KvRows;
use crate::quant::GgmlType;

/// Adjacent rows of keys or values.
pub(super) struct Block<'a> {
    pub(super) positions: Range<usize>,
    /// From the first row's start on; rows are `row_bytes` apart.
    bytes: &'a [u8],
    row_bytes: usize,
}

impl<'a> Block<'a> {
    /// Bytes `at..at + B` of each row from position `first` on.
    #[inline(always)]
    pub(super) fn columns<const B: usize>(
        &self,
        first: usize,
        at: usize,
    ) -> impl FnMut() -> Option<&'a [u8; B]> {
        let (bytes, row_bytes) = (self.bytes, self.row_bytes);
        let mut start = (first - self.positions.start) * row_bytes + at;
        move || {
            let column = bytes.get(start..start + B)?.first_chunk();
            start += row_bytes;
            column
        }
    }

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
    let blocks = blocks(stored, dim, positions);
    if direct {
        return blocks.for_each(|block| run(&block, stored.ty));
    }
    let mut decoded = [0.0; DECODED];
    let row_bytes = dim / stored.ty.block_elements() * stored.ty.block_bytes();
    for block in blocks {
        let decoded = &mut decoded[..block.positions.len() * dim];
        let rows = block.rows(&block.positions);
        for (row, decoded) in rows.zip(decoded.chunks_exact_mut(dim)) {
            decode(stored.ty, &row[..row_bytes], decoded);
        }
        let bytes = bytemuck::cast_slice(decoded);
        run(&Block { bytes, row_bytes: 4 * dim, ..block }, GgmlType::F32);
    }
}

/// Positions in blocks, none of which goes around the end of the storage.
fn blocks<'a>(
    stored: &KvRows<'a>,
    dim: usize,
    positions: Range<usize>,
) -> impl Iterator<Item = Block<'a>> {
    let KvRows { bytes, row_bytes, head_offset, capacity, .. } = *stored;
    let mut start = positions.start;
    core::iter::from_fn(move || {
        let row = start % capacity;
        let n = (positions.end - start).min(capacity - row).min(DECODED / dim).min(MAX_POSITIONS);
        let block = Block {
            positions: start..start + n,
            bytes: &bytes[row * row_bytes + head_offset..],
            row_bytes,
        };
        start += n;
        (n > 0).then_some(block)
    })
}

/// A format whose rows are used as they are stored, `B` bytes for eight elements.
///
/// Elements come divided by `UP`, a power of two by which the other factor of a product is multiplied instead: the product
/// has the same bits.
pub(super) trait KvFormat<const B: usize> {
    const UP: f32;
    /// The elements.
    fn eight(bytes: &[u8; B]) -> [v128; 2];
    /// Elements `4 half..4 half + 4`.
    fn four(bytes: &[u8; B], half: usize) -> v128;
}

pub(super) struct KvF32;
/// All of them are finite.
pub(super) struct KvF16;

impl KvFormat<32> for KvF32 {
    const UP: f32 = 1.0;

    #[inline(always)]
    fn eight(bytes: &[u8; 32]) -> [v128; 2] {
        [load_at::<0, 32>(bytes), load_at::<16, 32>(bytes)]
    }

    #[inline(always)]
    fn four(bytes: &[u8; 32], half: usize) -> v128 {
        load_from(bytes, 16 * half)
    }
}

impl KvFormat<16> for KvF16 {
    const UP: f32 = HALVES_UP;

    #[inline(always)]
    fn eight(bytes: &[u8; 16]) -> [v128; 2] {
        placed_halves(load_at::<0, 16>(bytes))
    }

    #[inline(always)]
    fn four(bytes: &[u8; 16], half: usize) -> v128 {
        placed_half_words(load_i16x4_from(bytes, 8 * half))
    }
}

/// Elements of a decoded block: 16 KiB.
pub(super) const DECODED: usize = 4096;
/// Positions of a block.
pub(super) const MAX_POSITIONS: usize = 32;
