//! Dot products of queries and keys.

use core::arch::wasm32::*;
use core::ops::Range;

use super::{TOGETHER, Tile, Work};
use crate::kernels::simd128::decode::HALVES_UP;
use crate::kernels::simd128::kv::{Block, KvFormat};
use crate::kernels::simd128::lanes::{load_f32, store_f32};
use crate::kernels::simd128::reduce::fold_four;
use crate::kernels::{KvRows, Queries};

/// Those of a tile, to its rows of `scores`.
pub(super) fn score(tile: &Tile<'_>, q: &Queries<'_>, k: &KvRows<'_>, scores: &mut [f32]) {
    if tile.direct(k) {
        // Halves want the queries of their one token scaled.
        let mut room = [[0.0; 16]; TOGETHER * QUICK_DIM / 16];
        let heads = &q.data[tile.first * q.stride..][..q.n_heads * q.head_dim];
        if let Some(scaled) = scale_up(heads, &mut room) {
            let data = scaled.as_flattened();
            let q = Queries { data, stride: data.len(), ..*q };
            let tile = Tile { first: 0, ..*tile };
            return tile.run(k, q.head_dim, true, &mut Scores { tile: &tile, q: &q, scores });
        }
    }
    tile.run(k, q.head_dim, false, &mut Scores { tile, q, scores });
}

struct Scores<'a> {
    tile: &'a Tile<'a>,
    q: &'a Queries<'a>,
    scores: &'a mut [f32],
}

impl Work for Scores<'_> {
    fn on<const B: usize, F: KvFormat<B>, const R: usize>(
        &mut self,
        rows: [usize; R],
        block: &Block<'_>,
        positions: &Range<usize>,
    ) {
        // As many positions as leave their sums in registers.
        if R <= 2 {
            self.together::<B, F, R, 4>(rows, block, positions);
        } else {
            self.together::<B, F, R, 2>(rows, block, positions);
        }
    }
}

impl Scores<'_> {
    /// `P` positions at a time; the first stands in for those that the last ones lack.
    #[inline(always)]
    fn together<const B: usize, F: KvFormat<B>, const R: usize, const P: usize>(
        &mut self,
        rows: [usize; R],
        block: &Block<'_>,
        positions: &Range<usize>,
    ) {
        let (stride, dim) = (self.q.stride, self.q.head_dim);
        let queries = rows.map(|r| &self.q.data[self.tile.place(r, stride, dim)]);
        let queries = queries.map(|q| &q.as_chunks::<16>().0[..dim / 16]);
        let first = rows.map(|r| self.tile.scores(r, positions).start);
        let mut keys = block.rows(positions).map(|key| &key.as_chunks::<B>().0[..dim / 8]);
        let mut done = 0;
        while let Some(key) = keys.next() {
            let mut some = [key; P];
            some[1..].iter_mut().zip(&mut keys).for_each(|(to, key)| *to = key);
            let sums = dots::<B, F, R, P>(queries, some);
            let n = P.min(positions.len() - done);
            for r in 0..R {
                let to = &mut self.scores[first[r] + done..][..n];
                match to.first_chunk_mut() {
                    Some(to) => *to = sums[r],
                    None => to.copy_from_slice(&sums[r][..n]),
                }
            }
            done += n;
        }
    }
}

/// Queries times [`HALVES_UP`], as halves want them; nothing if a number gets too large for an f32 or there is no room.
fn scale_up<'a>(queries: &[f32], scaled: &'a mut [[f32; 16]]) -> Option<&'a [[f32; 16]]> {
    let scaled = scaled.get_mut(..queries.len() / 16)?;
    let to = scaled.as_flattened_mut().as_chunks_mut::<4>().0;
    let mut largest = u32x4_splat(0);
    for (to, from) in to.iter_mut().zip(queries.as_chunks::<4>().0) {
        let x = f32x4_mul(load_f32(from), f32x4_splat(HALVES_UP));
        largest = u32x4_max(largest, i32x4_shl(x, 1));
        store_f32(to, x);
    }
    let infinite = v128_any_true(u32x4_ge(largest, u32x4_splat(0xff00_0000)));
    (!infinite).then_some(scaled)
}

/// The dot products of `P` keys with every query.
#[inline(always)]
fn dots<const B: usize, F: KvFormat<B>, const R: usize, const P: usize>(
    queries: [&[[f32; 16]]; R],
    keys: [&[[u8; B]]; P],
) -> [[f32; P]; R] {
    // The partial sums 0 to 3 of all, then 8 to 11, which are added to them, and so on: as the tree has it.
    let mut sums = quarter::<B, F, R, P, 0>(queries, keys);
    add_all(&mut sums, &quarter::<B, F, R, P, 2>(queries, keys));
    let mut others = quarter::<B, F, R, P, 1>(queries, keys);
    add_all(&mut others, &quarter::<B, F, R, P, 3>(queries, keys));
    add_all(&mut sums, &others);
    let mut dots = [[0.0; P]; R];
    let results = dots.as_flattened_mut().chunks_mut(4);
    for (results, some) in results.zip(sums.as_flattened().chunks(4)) {
        let mut lanes = [0.0; 4];
        store_f32(&mut lanes, fold_four(core::array::from_fn(|j| some[j.min(some.len() - 1)])));
        results.copy_from_slice(&lanes[..some.len()]);
    }
    dots
}

/// Partial sums `4 J..4 J + 4` of every key with every query.
#[inline(always)]
fn quarter<const B: usize, F: KvFormat<B>, const R: usize, const P: usize, const J: usize>(
    queries: [&[[f32; 16]]; R],
    keys: [&[[u8; B]]; P],
) -> [[v128; P]; R] {
    let mut sums = [[f32x4_splat(0.0); P]; R];
    for chunk in 0..queries[0].len() {
        let q = queries.map(|q| load_f32(&q[chunk].as_chunks::<4>().0[J]));
        for p in 0..P {
            let key = F::four(&keys[p][2 * chunk + J / 2], J % 2);
            for r in 0..R {
                sums[r][p] = f32x4_add(sums[r][p], f32x4_mul(q[r], key));
            }
        }
    }
    sums
}

#[inline(always)]
fn add_all<const R: usize, const P: usize>(sums: &mut [[v128; P]; R], others: &[[v128; P]; R]) {
    for r in 0..R {
        for p in 0..P {
            sums[r][p] = f32x4_add(sums[r][p], others[r][p]);
        }
    }
}

/// Longest query that is scaled with as many as go together.
const QUICK_DIM: usize = 256;
