//! Large steps cut into pieces for the threads of a team. Whole rows and whole heads only: a chain of additions is never cut, so
//! the pieces' bits are those of the step done in one.

use core::ops::Range;

use super::scratch::Own;
use crate::kernels::{self, Activations, AttentionOut, KvRows, Out, Q8, Queries, Scoring, Weights};
use crate::model::kv_cache::KvCache;
use crate::quant::GgmlType;
use crate::team::{Grid, Team};

/// A product, cut into runs of rows. With several columns a piece's results are not adjacent: they go through the thread's stage.
pub(super) fn multiply_shared(
    team: &dyn Team,
    weights: &Weights<'_>,
    activations: &Activations<'_>,
    n_columns: usize,
    own: &mut [Own],
    out: Out<'_>,
) {
    let Weights { ty, bytes, n_rows, n_in } = *weights;
    let stage = own[0].stage.len();
    let n_pieces = team.n_threads() * PIECES;
    let rows = n_rows.div_ceil(n_pieces).next_multiple_of(ROWS).min(stage / COLUMNS);
    let grid = Grid {
        data: out.data,
        stride: out.stride,
        first: out.first_row,
        width: n_rows,
        n_columns,
        piece: (rows, n_columns),
    };
    let row_bytes = weights.row_bytes();
    grid.share(team, own, |own, mut piece| {
        let rows = piece.elements();
        let bytes = &bytes[rows.start * row_bytes..rows.end * row_bytes];
        let (n_rows, row) = (rows.len(), &mut own.row);
        let weights = Weights { ty, bytes, n_rows, n_in };
        if n_columns == 1 {
            let mut out = Out { data: piece.column(0), stride: n_rows, first_row: 0 };
            kernels::matmul(&weights, activations, 1, row, &mut out);
            return;
        }
        let together = stage / n_rows / COLUMNS * COLUMNS;
        for first in (0..n_columns).step_by(together) {
            let columns = first..n_columns.min(first + together);
            let results = &mut own.stage[..columns.len() * n_rows];
            let mut out = Out { data: results, stride: n_rows, first_row: 0 };
            let some = some_columns(activations, n_in, &columns);
            kernels::matmul(&weights, &some, columns.len(), row, &mut out);
            for (column, results) in columns.zip(results.chunks_exact(n_rows)) {
                piece.column(column).copy_from_slice(results);
            }
        }
    });
}

fn some_columns<'a>(all: &Activations<'a>, n_in: usize, columns: &Range<usize>) -> Activations<'a> {
    let of = |n: usize| columns.start * (n_in / n)..columns.end * (n_in / n);
    match all {
        Activations::F32(x) => Activations::F32(&x[of(1)]),
        Activations::Q8(x) => Activations::Q8(Q8 {
            block: x.block,
            qs: &x.qs[of(1)],
            scales: &x.scales[of(x.block)],
            sums: &x.sums[of(16)],
        }),
    }
}

/// The keys and values that queries see.
#[derive(Debug)]
pub(super) enum Kept<'a> {
    /// Those of a layer of the cache, for a chunk whose first token is at `pos`.
    Cache { kv: &'a KvCache, layer: u32, pos: u32 },
    /// Those of a whole text, as they were computed: `[n_tokens, width]`, of heads of `head_dim`.
    Text { keys: &'a [f32], values: &'a [f32], width: usize, head_dim: usize },
}

impl<'a> Kept<'a> {
    /// What the queries of key-value head `head_kv` see.
    pub(super) fn rows(&self, head_kv: usize) -> (KvRows<'a>, KvRows<'a>) {
        match *self {
            Self::Cache { kv, layer, .. } => kv.rows(layer, head_kv),
            Self::Text { keys, values, width, head_dim } => {
                let rows = |x: &'a [f32]| KvRows {
                    ty: GgmlType::F32,
                    bytes: bytemuck::cast_slice(x),
                    row_bytes: width * size_of::<f32>(),
                    head_offset: head_kv * head_dim * size_of::<f32>(),
                    capacity: x.len() / width,
                    finite: false,
                };
                (rows(keys), rows(values))
            }
        }
    }
}

/// One attention operation on the tokens of a chunk.
#[derive(Debug)]
pub(super) struct Attention<'a> {
    pub(super) kept: Kept<'a>,
    pub(super) n_head: usize,
    /// Heads that share keys and values.
    pub(super) group: usize,
    pub(super) head_dim: usize,
    pub(super) scale: f32,
    pub(super) softcap: Option<f32>,
    /// One for each head.
    pub(super) sinks: Option<&'a [f32]>,
}

impl Attention<'_> {
    /// Positions that a token of the chunk sees.
    pub(super) fn span(&self, token: usize) -> Range<usize> {
        match self.kept {
            Kept::Cache { kv, layer, pos } => {
                kv.layer(layer).span(pos + u32::try_from(token).unwrap_or(u32::MAX))
            }
            Kept::Text { keys, width, .. } => 0..keys.len() / width,
        }
    }

    /// One group of heads for some tokens, in place of their queries: `data` begins at the first one's row.
    pub(super) fn alone(
        &self,
        own: &mut Own,
        group: usize,
        tokens: Range<usize>,
        data: &mut [f32],
    ) {
        let (stride, width) = (self.n_head * self.head_dim, self.group * self.head_dim);
        let data = &mut data[group * width..];
        for (to, from) in
            own.queries.chunks_exact_mut(width).zip(data.chunks(stride)).take(tokens.len())
        {
            to.copy_from_slice(&from[..width]);
        }
        let heads = group * self.group..(group + 1) * self.group;
        let mut out = AttentionOut { data, stride, value_dim: self.head_dim };
        self.attend(&mut own.spans, &own.queries, &mut own.scores, &heads, tokens, &mut out);
    }

    /// One group of heads for some tokens, in place of their queries, by all threads of `team`.
    pub(super) fn shared(
        &self,
        team: &dyn Team,
        own: &mut [Own],
        group: usize,
        tokens: Range<usize>,
        data: &mut [f32],
    ) {
        let head_dim = self.head_dim;
        let n_threads = team.n_threads();
        // As few tiles of tokens as give every thread as many.
        let tiles = tokens.len().div_ceil(own[0].attention_tile()).next_multiple_of(n_threads);
        let tile = tokens.len().div_ceil(tiles);
        let n_pieces = tokens.len().div_ceil(tile);
        // Heads that share keys and values are faster together: they part only to give every thread something.
        let parts = n_threads.div_ceil(n_pieces).min(self.group);
        let heads =
            (self.group.div_ceil(parts)..=self.group).find(|n| self.group.is_multiple_of(*n));
        let heads = heads.unwrap_or(self.group);
        let grid = Grid {
            data,
            stride: self.n_head * head_dim,
            first: group * self.group * head_dim,
            width: self.group * head_dim,
            n_columns: tokens.len(),
            piece: (heads * head_dim, tile),
        };
        grid.share(team, own, |own, mut piece| {
            let (elements, columns) = (piece.elements(), piece.columns());
            let width = elements.len();
            let n = columns.len() * width;
            for (i, to) in own.queries[..n].chunks_exact_mut(width).enumerate() {
                to.copy_from_slice(piece.column(i));
            }
            let first = group * self.group + elements.start / head_dim;
            let heads = first..first + width / head_dim;
            let tokens = tokens.start + columns.start..tokens.start + columns.end;
            let Own { queries, scores, spans, stage, .. } = own;
            let mut out =
                AttentionOut { data: &mut stage[..n], stride: width, value_dim: head_dim };
            self.attend(spans, queries, scores, &heads, tokens, &mut out);
            for (i, results) in stage[..n].chunks_exact(width).enumerate() {
                piece.column(i).copy_from_slice(results);
            }
        });
    }

    /// Some heads of one group for some tokens, whose queries are side by side.
    fn attend(
        &self,
        spans: &mut Vec<Range<usize>>,
        queries: &[f32],
        scores: &mut [f32],
        heads: &Range<usize>,
        tokens: Range<usize>,
        out: &mut AttentionOut<'_>,
    ) {
        spans.clear();
        spans.extend(tokens.map(|token| self.span(token)));
        let (n_heads, head_dim) = (heads.len(), self.head_dim);
        let queries = Queries { data: queries, stride: n_heads * head_dim, n_heads, head_dim };
        let (keys, values) = self.kept.rows(heads.start / self.group);
        let sinks = self.sinks.map(|sinks| &sinks[heads.clone()]);
        let scoring = Scoring { scale: self.scale, softcap: self.softcap, sinks };
        kernels::attention(&queries, spans, &keys, &values, &scoring, scores, out);
    }
}

/// What attention costs for one token and one group of heads, in multiplications or what takes as long.
pub(super) fn attention_cost(n_seen: usize, n_heads: usize, head_dim: usize) -> usize {
    n_seen.saturating_mul(n_heads).saturating_mul(2 * head_dim + 16)
}

/// Multiplications, or what takes as long, below which calling the others takes longer than doing it.
pub(super) const WORTH_SHARING: usize = 32 << 10;
/// Pieces for each thread, so that one that comes late takes fewer.
pub(super) const PIECES: usize = 3;
/// Rows and columns that the kernels take together: pieces of whole ones cost nothing extra, and more rows than these would leave
/// the threads unequal shares of a small product.
const ROWS: usize = 4;
const COLUMNS: usize = 16;
