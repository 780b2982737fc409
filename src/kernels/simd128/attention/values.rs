//! Sums of values by their weights.

use core::arch::wasm32::*;
use core::ops::Range;

use super::{Tile, Work};
use crate::kernels::simd128::kv::{Block, KvFormat, MAX_POSITIONS};
use crate::kernels::simd128::lanes::{load_f32, store_f32};
use crate::kernels::{AttentionOut, KvRows};

/// Those of a tile, a factor for each row.
pub(super) fn add_up(
    tile: &Tile<'_>,
    weights: &[f32],
    factors: &[f32],
    v: &KvRows<'_>,
    out: &mut AttentionOut<'_>,
) {
    let (stride, dim) = (out.stride, out.value_dim);
    tile.rows().for_each(|row| out.data[tile.place(row, stride, dim)].fill(0.0));
    // Long rows are decoded one after the other: a processor reads ahead of that, and not of columns of them.
    let direct = tile.direct(v) && v.row_bytes <= SHORT_ROW;
    tile.run(v, dim, direct, &mut Values { tile, weights, out });
    for (row, factor) in tile.rows().zip(factors) {
        out.data[tile.place(row, stride, dim)].iter_mut().for_each(|x| *x *= factor);
    }
}

struct Values<'a, 'b> {
    tile: &'a Tile<'a>,
    weights: &'a [f32],
    out: &'a mut AttentionOut<'b>,
}

impl Work for Values<'_, '_> {
    fn on<const B: usize, F: KvFormat<B>, const R: usize>(
        &mut self,
        rows: [usize; R],
        block: &Block<'_>,
        positions: &Range<usize>,
    ) {
        let (stride, dim) = (self.out.stride, self.out.value_dim);
        let places = rows.map(|r| self.tile.place(r, stride, dim).start);
        // The weights of a position side by side. A weight is at most 1, so that nothing gets too large.
        let mut weights = [[0.0; R]; MAX_POSITIONS];
        for (r, row) in rows.into_iter().enumerate() {
            let from = &self.weights[self.tile.scores(row, positions)];
            weights.iter_mut().zip(from).for_each(|(to, from)| to[r] = from * F::UP);
        }
        let weights = &weights[..positions.len()];
        // Eight elements at a time: their sums, the values and a weight stay in registers.
        for i in 0..dim / 8 {
            let mut sums = places.map(|place| {
                let (from, _) = self.out.data[place + 8 * i..][..8].as_chunks::<4>();
                [load_f32(&from[0]), load_f32(&from[1])]
            });
            let mut next = block.columns::<B>(positions.start, B * i);
            let (pairs, last) = weights.as_chunks::<2>();
            for [a, b] in pairs {
                let (Some(x), Some(y)) = (next(), next()) else { break };
                let (x, y) = (F::eight(x), F::eight(y));
                for r in 0..R {
                    add(&mut sums[r], a[r], x);
                    add(&mut sums[r], b[r], y);
                }
            }
            if let ([weights], Some(x)) = (last, next()) {
                let x = F::eight(x);
                (0..R).for_each(|r| add(&mut sums[r], weights[r], x));
            }
            for (place, sums) in places.iter().zip(sums) {
                let (to, _) = self.out.data[place + 8 * i..][..8].as_chunks_mut::<4>();
                store_f32(&mut to[0], sums[0]);
                store_f32(&mut to[1], sums[1]);
            }
        }
    }
}

#[inline(always)]
fn add(sums: &mut [v128; 2], weight: f32, value: [v128; 2]) {
    let weight = f32x4_splat(weight);
    sums[0] = f32x4_add(sums[0], f32x4_mul(weight, value[0]));
    sums[1] = f32x4_add(sums[1], f32x4_mul(weight, value[1]));
}

/// Bytes of a row whose neighbours are read with it.
const SHORT_ROW: usize = 128;
