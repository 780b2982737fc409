//! Operations that take one row at a time.

use core::mem::take;
use core::ops::Range;

use super::rows::{each_row, round_shared};
use super::{Pass, State};
use crate::kernels;
use crate::model::Model;
use crate::model::program::{Buf, Gating};

impl State {
    /// Applies `f` to rows of a buffer. Rows of logits are counted from the first token that has any.
    pub(super) fn for_rows(
        &mut self,
        buf: Buf,
        width: u32,
        units: &Range<usize>,
        first_token: usize,
        f: impl Fn(&mut [f32]) + Sync,
    ) {
        let (width, offset) = (width as usize, if buf == Buf::Logits { 0 } else { first_token });
        let rows = (units.start + offset) * width..(units.end + offset) * width;
        let rows = &mut self.scratch.memories[buf.memory()][rows];
        each_row(self.team.as_deref(), rows, width, |_, row| f(row));
    }

    pub(super) fn fill_rope_table(
        &mut self,
        model: &Model,
        pass: &Pass,
        rope: usize,
        tokens: Range<usize>,
    ) {
        let table = &mut self.scratch.ropes[rope];
        let rope = &model.program.ropes[rope];
        let n = rope.n_rot() / 2;
        let factors =
            rope.factors.chosen(self.shape.n_ctx).map(|id| &model.vectors[id.0 as usize][..]);
        for token in tokens {
            let pos = pass.pos + u32::try_from(token).unwrap_or(u32::MAX);
            let at = token * n..(token + 1) * n;
            rope.fill(pos, factors, &mut table.cos[at.clone()], &mut table.sin[at]);
        }
    }

    pub(super) fn rms_norm(
        &mut self,
        input: Buf,
        output: Buf,
        weight: &[f32],
        width: usize,
        groups: usize,
        eps: f32,
        tokens: Range<usize>,
    ) {
        let values = tokens.start * groups * width..tokens.end * groups * width;
        let mut out = take(&mut self.scratch.memories[output.memory()]);
        let (team, rows) = (self.team.as_deref(), &mut out[values.clone()]);
        if input.memory() == output.memory() {
            each_row(team, rows, width, |_, row| kernels::rms_norm_assign(row, Some(weight), eps));
        } else {
            let x = &self.scratch.memories[input.memory()][values];
            each_row(team, rows, width, |i, row| {
                kernels::rms_norm(&x[i * width..][..width], Some(weight), eps, row);
            });
        }
        self.scratch.memories[output.memory()] = out;
    }

    pub(super) fn layer_norm(
        &mut self,
        input: Buf,
        output: Buf,
        weight: &[f32],
        bias: &[f32],
        width: usize,
        eps: f32,
        tokens: Range<usize>,
    ) {
        let values = tokens.start * width..tokens.end * width;
        let mut out = take(&mut self.scratch.memories[output.memory()]);
        if input.memory() != output.memory() {
            let x = &self.scratch.memories[input.memory()][values.clone()];
            out[values.clone()].copy_from_slice(x);
        }
        each_row(self.team.as_deref(), &mut out[values], width, |_, row| {
            kernels::layer_norm_assign(row, Some(weight), Some(bias), eps);
        });
        self.scratch.memories[output.memory()] = out;
    }

    pub(super) fn round(&mut self, input: Buf, width: usize, block: usize, rows: Range<usize>) {
        let rounded = &mut self.scratch.rounded;
        let of = |n: usize| rows.start * (width / n)..rows.end * (width / n);
        round_shared(
            self.team.as_deref(),
            &self.scratch.memories[input.memory()][of(1)],
            (width, block),
            &mut rounded.qs[of(1)],
            &mut rounded.scales[of(block)],
            &mut rounded.sums[of(16)],
        );
    }

    pub(super) fn rotate(
        &mut self,
        model: &Model,
        buf: Buf,
        rope: usize,
        width: usize,
        head_dim: usize,
        tokens: Range<usize>,
    ) {
        let (table, rope) = (&self.scratch.ropes[rope], &model.program.ropes[rope]);
        let (n_rot, n) = (rope.n_rot(), rope.n_rot() / 2);
        let rows = &mut self.scratch.memories[buf.memory()];
        let rows = &mut rows[tokens.start * width..tokens.end * width];
        each_row(self.team.as_deref(), rows, width, |i, row| {
            let at = (tokens.start + i) * n;
            let (cos, sin) = (&table.cos[at..][..n], &table.sin[at..][..n]);
            for head in row.chunks_exact_mut(head_dim) {
                kernels::rope(&mut head[..n_rot], cos, sin, rope.pairing);
            }
        });
    }

    pub(super) fn write_kv(&mut self, pass: &Pass, layer: u32, tokens: Range<usize>) {
        let kv = self.kv.layer(layer);
        let width = kv.n_head_kv as usize * kv.head_dim as usize;
        let keys = &self.scratch.memories[Buf::Key.memory()];
        let values = &self.scratch.memories[Buf::Value.memory()];
        for token in tokens {
            let pos = pass.pos + u32::try_from(token).unwrap_or(u32::MAX);
            let at = token * width..(token + 1) * width;
            self.kv.write(layer, pos, &keys[at.clone()], &values[at]);
        }
    }

    pub(super) fn combine(&mut self, gating: Gating, width: usize, rows: Range<usize>) {
        let values = rows.start * width..rows.end * width;
        let mut gate = take(&mut self.scratch.memories[Buf::Gate.memory()]);
        let up = &self.scratch.memories[Buf::Up.memory()][values.clone()];
        let combine = match gating {
            Gating::Silu => kernels::silu_mul,
            Gating::ClampedSilu => kernels::clamped_silu_mul,
            Gating::Gelu => kernels::gelu_mul,
        };
        each_row(self.team.as_deref(), &mut gate[values], width, |i, row| {
            combine(row, &up[i * width..][..width]);
        });
        self.scratch.memories[Buf::Gate.memory()] = gate;
    }

    pub(super) fn add_residual(&mut self, width: usize, scale: f32, tokens: Range<usize>) {
        let values = tokens.start * width..tokens.end * width;
        let mut residual = take(&mut self.scratch.memories[Buf::Residual.memory()]);
        let block = &self.scratch.memories[Buf::Hidden.memory()][values.clone()];
        each_row(self.team.as_deref(), &mut residual[values], width, |i, row| {
            let block = &block[i * width..][..width];
            if scale == 1.0 {
                kernels::add_assign(row, block);
            } else {
                kernels::add_scaled(row, block, scale);
            }
        });
        self.scratch.memories[Buf::Residual.memory()] = residual;
    }
}
