//! Tiles of weights: the steps of [`State::feed`]. A step multiplies a block of rows with a block of columns, within a
//! bound; a row's result does not depend on either.

use core::mem::take;

use super::shared::{WORTH_SHARING, multiply_shared};
use super::{Cursor, Fed, Need, Pass, State, misuse};
use crate::error::Result;
use crate::kernels::{self, Activations, Out, Q8, Weights};
use crate::model::program::{Buf, Op, Part, Projection, Step};
use crate::model::{Model, StepBounds};
use crate::quant::{GgmlType, dequantize_row};

/// One step of a projection: which part of the tile, which columns, and where both ends lie.
#[derive(Debug, Clone, Copy)]
struct Block {
    n_rows: u32,
    n_columns: usize,
    /// First column in its buffer, or in the rounded copy of that buffer.
    input: (Buf, usize),
    /// First row of its buffer that is written.
    output: (Buf, usize),
    /// Width of a row of the output.
    stride: usize,
    /// Place of the first result in it.
    first: usize,
}

impl State {
    /// At most one step on a tile: rows `first_row..first_row + n_rows` of the tensor of the use that
    /// [`State::need`] names, which start at the row it names. On [`Fed::Again`] the same tile comes again.
    ///
    /// # Errors
    /// `misuse` for a tile that is not the wanted one.
    pub fn feed(
        &mut self,
        model: &Model,
        first_row: u32,
        n_rows: u32,
        bytes: &[u8],
    ) -> Result<Fed> {
        let (mut pass, step) = self.check_tile(model, first_row, n_rows, bytes)?;
        pass.at.tile_rows = n_rows;
        match step.op {
            Op::Embed { ty, width, scale, .. } => {
                self.embed(ty, width as usize, scale, pass.at.unit, bytes);
                pass.at.unit += 1;
                pass.at.tile_rows = 0;
                self.pass = Some(pass);
                if pass.at.unit == pass.n_tokens {
                    self.end_step(model);
                }
                Ok(Fed::Consumed)
            }
            Op::AddRows { ty, width, n_rows, .. } => {
                self.add_rows(ty, width as usize, &pass, bytes);
                pass.at.row += pass.at.tile_rows;
                pass.at.tile_rows = 0;
                self.pass = Some(pass);
                if pass.at.row == n_rows {
                    self.end_step(model);
                }
                Ok(Fed::Consumed)
            }
            Op::MatMul { projection: p, parts, n_parts } => {
                let row = pass.at.row + pass.at.tile_row;
                let (part, first) = part_at(&parts[..n_parts as usize], row);
                let tokens = pass.tokens_of(&step);
                let (rows, columns) =
                    cut(&self.bounds, &pass.at, &p, part.n_rows - first, tokens.len());
                let token = tokens.start + pass.at.column;
                let output_row = if part.output == Buf::Logits { pass.at.column } else { token };
                let block = Block {
                    n_rows: rows,
                    n_columns: columns,
                    input: (p.input, token),
                    output: (part.output, output_row),
                    stride: part.n_rows as usize,
                    first: first as usize,
                };
                self.multiply(&p, &block, pass.at.tile_row, bytes);
                Ok(self.advance(model, pass, &block, tokens.len(), p.n_rows))
            }
            Op::ExpertIn { projection: p, output, n_expert, .. } => {
                Ok(self.feed_expert_in(model, pass, &p, output, p.n_rows / n_expert, bytes))
            }
            Op::ExpertOut { projection: p, output, n_expert } => {
                Ok(self.feed_expert_out(model, pass, &p, output, p.n_rows / n_expert, bytes))
            }
            _ => Err(misuse("no weights are wanted now".to_owned())),
        }
    }

    fn check_tile(
        &self,
        model: &Model,
        first_row: u32,
        n_rows: u32,
        bytes: &[u8],
    ) -> Result<(Pass, Step)> {
        let (Some((pass, step)), Need::Rows { use_index, first_row: wanted, n_rows: at_most }) =
            (self.current(model), self.need(model))
        else {
            return Err(misuse("no weights are wanted now".to_owned()));
        };
        let row_bytes = u64::from(model.uses[use_index].row_bytes);
        let fits =
            n_rows >= 1 && n_rows <= at_most && u64::from(n_rows) * row_bytes == bytes.len() as u64;
        let same = pass.at.tile_rows == 0 || pass.at.tile_rows == n_rows;
        if first_row == wanted && fits && same {
            return Ok((pass, step));
        }
        Err(misuse(format!(
            "a tile of {n_rows} rows from row {first_row} in {} bytes; wanted are 1 to {at_most} rows of {row_bytes} bytes \
             from row {wanted}, and the same tile until it is used up",
            bytes.len()
        )))
    }

    fn embed(&mut self, ty: GgmlType, width: usize, scale: f32, token: usize, bytes: &[u8]) {
        let row = &mut self.scratch.memories[Buf::Residual.memory()][token * width..][..width];
        dequantize_row(ty, bytes, row);
        if scale != 1.0 {
            kernels::scale(row, scale);
        }
    }

    /// Adds the rows of a tile to the tokens that they belong to; those behind the last token are nobody's.
    fn add_rows(&mut self, ty: GgmlType, width: usize, pass: &Pass, bytes: &[u8]) {
        let first = pass.at.row as usize;
        let row = &mut self.scratch.own[0].row[..width];
        let tokens = &mut self.scratch.memories[Buf::Residual.memory()][..pass.n_tokens * width];
        let tokens = tokens.chunks_exact_mut(width).skip(first);
        let row_bytes = width / ty.block_elements() * ty.block_bytes();
        for (token, bytes) in tokens.zip(bytes.chunks_exact(row_bytes)) {
            dequantize_row(ty, bytes, row);
            kernels::add_assign(token, row);
        }
    }

    /// From the gathered tokens of an expert to the rows of its pairs.
    fn feed_expert_in(
        &mut self,
        model: &Model,
        pass: Pass,
        p: &Projection,
        output: Buf,
        n_of_expert: u32,
        bytes: &[u8],
    ) -> Fed {
        let row = pass.at.row + pass.at.tile_row;
        let pairs = self.scratch.routing.pairs(pass.at.expert);
        let (rows, columns) = cut(&self.bounds, &pass.at, p, n_of_expert - row, pairs.len());
        let block = Block {
            n_rows: rows,
            n_columns: columns,
            input: (Buf::Gathered, pass.at.column),
            output: (output, pairs.start + pass.at.column),
            stride: n_of_expert as usize,
            first: row as usize,
        };
        self.multiply(p, &block, pass.at.tile_row, bytes);
        self.add_expert_bias(model, p, &block, pass.at.expert * block.stride + block.first);
        self.advance(model, pass, &block, pairs.len(), n_of_expert)
    }

    /// From the pairs of an expert, weighted, to the sums of their tokens.
    fn feed_expert_out(
        &mut self,
        model: &Model,
        pass: Pass,
        p: &Projection,
        output: Buf,
        n_of_expert: u32,
        bytes: &[u8],
    ) -> Fed {
        let row = (pass.at.row + pass.at.tile_row) as usize;
        let pairs = self.scratch.routing.pairs(pass.at.expert);
        let (rows, columns) = cut(
            &self.bounds,
            &pass.at,
            p,
            n_of_expert - pass.at.row - pass.at.tile_row,
            pairs.len(),
        );
        let first_pair = pairs.start + pass.at.column;
        let n_rows = rows as usize;
        let block = Block {
            n_rows: rows,
            n_columns: columns,
            input: (p.input, first_pair),
            output: (Buf::Gathered, 0),
            stride: n_rows,
            first: 0,
        };
        self.multiply(p, &block, pass.at.tile_row, bytes);
        self.add_expert_bias(model, p, &block, pass.at.expert * n_of_expert as usize + row);

        let of_step = first_pair..first_pair + columns;
        let width = n_of_expert as usize;
        let gathered = take(&mut self.scratch.memories[Buf::Gathered.memory()]);
        let sums = &mut self.scratch.memories[output.memory()];
        let routing = &self.scratch.routing;
        let weighted = routing.tokens(of_step.clone()).iter().zip(routing.weights(of_step));
        for ((&token, &weight), given) in weighted.zip(gathered.chunks_exact(n_rows)) {
            let sum = &mut sums[token as usize * width + row..][..n_rows];
            kernels::add_scaled(sum, given, weight);
        }
        self.scratch.memories[Buf::Gathered.memory()] = gathered;
        self.advance(model, pass, &block, pairs.len(), n_of_expert)
    }

    /// Adds the bias of an expert's rows to the results of a block; `at` is the bias of its first row.
    fn add_expert_bias(&mut self, model: &Model, p: &Projection, block: &Block, at: usize) {
        let Some(id) = p.bias else { return };
        let n_rows = block.n_rows as usize;
        let bias = &model.vectors[id.0 as usize][at..][..n_rows];
        let results = &mut self.scratch.memories[block.output.0.memory()];
        let columns = results[block.output.1 * block.stride..].chunks_mut(block.stride);
        for column in columns.take(block.n_columns) {
            kernels::add_assign(&mut column[block.first..][..n_rows], bias);
        }
    }

    /// `output = weights * input` for one block; `tile_row` is its first row in the tile `bytes`.
    fn multiply(&mut self, p: &Projection, block: &Block, tile_row: u32, bytes: &[u8]) {
        let (n_in, n_rows) = (p.n_in as usize, block.n_rows as usize);
        let row_bytes = n_in / p.ty.block_elements() * p.ty.block_bytes();
        let bytes = &bytes[tile_row as usize * row_bytes..][..n_rows * row_bytes];
        let weights = Weights { ty: p.ty, bytes, n_rows, n_in };
        let (input, output) = (block.input.0.memory(), block.output.0.memory());
        debug_assert_ne!(input, output, "a projection does not write what it reads");

        let scratch = &mut self.scratch;
        let mut results = take(&mut scratch.memories[output]);
        let columns = block.input.1..block.input.1 + block.n_columns;
        let activations = match p.block {
            None => {
                Activations::F32(&scratch.memories[input][columns.start * n_in..columns.end * n_in])
            }
            Some(values) => {
                let of = |n: usize| columns.start * (n_in / n)..columns.end * (n_in / n);
                let values = values as usize;
                Activations::Q8(Q8 {
                    block: values,
                    qs: &scratch.rounded.qs[of(1)],
                    scales: &scratch.rounded.scales[of(values)],
                    sums: &scratch.rounded.sums[of(16)],
                })
            }
        };
        let data = &mut results[block.output.1 * block.stride..];
        let mut out = Out { data, stride: block.stride, first_row: block.first };
        let n_macs = n_in.saturating_mul(n_rows).saturating_mul(block.n_columns);
        match &self.team {
            Some(team) if n_macs >= WORTH_SHARING => {
                let n_columns = block.n_columns;
                multiply_shared(&**team, &weights, &activations, n_columns, &mut scratch.own, out);
            }
            _ => {
                let row = &mut scratch.own[0].row;
                kernels::matmul(&weights, &activations, block.n_columns, row, &mut out);
            }
        }
        scratch.memories[output] = results;
    }

    /// Counts a block as done; `n_rows` are the rows of the operation (of this expert).
    fn advance(
        &mut self,
        model: &Model,
        mut pass: Pass,
        block: &Block,
        n_columns: usize,
        n_rows: u32,
    ) -> Fed {
        let at = &mut pass.at;
        at.block_rows = block.n_rows;
        at.column += block.n_columns;
        if at.column == n_columns {
            at.column = 0;
            at.tile_row += at.block_rows;
        }
        if at.tile_row < at.tile_rows {
            self.pass = Some(pass);
            return Fed::Again;
        }
        at.row += at.tile_rows;
        (at.tile_rows, at.tile_row) = (0, 0);
        let ended = at.row == n_rows;
        if ended {
            // `settle` looks for the next expert, and for the next operation when there is none.
            *at = Cursor { expert: at.expert + 1, ..Cursor::default() };
            let of_experts =
                model.program.steps.get(pass.step).is_some_and(|step| step.op.is_of_experts());
            if !of_experts {
                pass.step += 1;
                pass.at = Cursor::default();
            }
        }
        self.pass = Some(pass);
        if ended {
            self.settle(model);
        }
        Fed::Consumed
    }
}

/// Rows and columns of the next step: `left` rows of the operation fit one output, the tile may have fewer.
fn cut(
    bounds: &StepBounds,
    at: &Cursor,
    p: &Projection,
    left: u32,
    n_columns: usize,
) -> (u32, usize) {
    let bound = if p.block.is_some() { bounds.macs_rounded } else { bounds.macs_f32 };
    let n_in = (p.n_in as usize).max(1);
    let rows = if at.column > 0 {
        at.block_rows
    } else {
        let fit = bound / n_in.saturating_mul(n_columns);
        let rows = (u32::try_from(fit).unwrap_or(u32::MAX) / LANES).max(1) * LANES;
        rows.min(left).min(at.tile_rows - at.tile_row)
    };
    let fit = bound / n_in.saturating_mul(rows as usize);
    let columns = fit.max(LANES as usize).min(n_columns - at.column);
    (rows, columns)
}

/// The part of a projection's results that `row` belongs to, and its place in it.
fn part_at(parts: &[Part], row: u32) -> (Part, u32) {
    let mut first = row;
    for part in parts {
        if first < part.n_rows {
            return (*part, first);
        }
        first -= part.n_rows;
    }
    unreachable!("the parts have all rows of their projection")
}

/// Rows and columns that the kernels take at a time.
const LANES: u32 = 4;
