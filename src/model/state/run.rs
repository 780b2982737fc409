//! The steps of [`State::compute`]: everything that needs no weights. An operation is so many units of equal cost (a
//! token, a pair, a group of heads and a token); a step takes as many as its bound allows.

use core::mem::take;
use core::ops::Range;

use super::one_token::ONE_TOKEN_WORTH_SHARING;
use super::shared::{Attention, Kept, WORTH_SHARING, attention_cost};
use super::{Need, Pass, State, misuse};
use crate::error::Result;
use crate::kernels;
use crate::model::Model;
use crate::model::program::{Buf, Op, Projection, Rows, Seen, Step, Weighting};

impl State {
    /// At most one step of work that needs no weights.
    ///
    /// # Errors
    /// `misuse` when weights are wanted or no pass is under way.
    pub fn compute(&mut self, model: &Model) -> Result<()> {
        if self.need(model) != Need::Compute {
            return Err(misuse("there is nothing to compute without weights now".to_owned()));
        }
        let stage = self.layer(model);
        let mut left = self.bounds.other.max(1);
        while left > 0 && self.need(model) == Need::Compute && self.layer(model) == stage {
            let Some((pass, step)) = self.current(model) else { break };
            let (n_units, cost) = self.units_of(&pass, &step);
            let first = pass.at.unit;
            let end = n_units.min(first + (left / cost.max(1)).max(1));
            let end = self.run(model, &pass, &step, first..end);
            left = left.saturating_sub(cost.saturating_mul(end - first));
            self.take_units(model, &pass, &step, end, n_units);
        }
        Ok(())
    }

    fn take_units(&mut self, model: &Model, pass: &Pass, step: &Step, end: usize, n_units: usize) {
        let mut pass = *pass;
        pass.at.unit = end;
        self.pass = Some(pass);
        if end < n_units {
            return;
        }
        match step.op {
            Op::ExpertIn { .. } => {
                pass.at.gathered = true;
                self.pass = Some(pass);
            }
            Op::Route { n_used, .. } => {
                self.scratch.routing.sort(pass.tokens_of(step), n_used as usize);
                self.end_step(model);
            }
            _ => self.end_step(model),
        }
    }

    /// Units of an operation, and what one costs in multiplications or what takes as long.
    fn units_of(&self, pass: &Pass, step: &Step) -> (usize, usize) {
        let n_tokens = pass.tokens_of(step).len();
        let of_rows = |rows: Rows, cost: usize| (n_tokens * rows.per_token() as usize, cost);
        let of_tokens = |cost: usize| (n_tokens, cost);
        match step.op {
            Op::RopeTable { rope } => {
                let n_angles =
                    self.scratch.ropes[rope.0 as usize].cos.len() / self.shape.n_batch as usize;
                of_tokens(n_angles * 64)
            }
            Op::RmsNorm { width, groups, .. } => of_tokens((width * groups) as usize * 3),
            Op::LayerNorm { width, .. } => of_tokens(width as usize * 5),
            Op::Gelu { width } => of_tokens(width as usize * 16),
            Op::Round { rows, width, .. } => of_rows(rows, width as usize * 4),
            Op::Combine { rows, width, .. } => of_rows(rows, width as usize * 16),
            Op::Softcap { width, .. } => of_tokens(width as usize * 16),
            Op::Rotate { n_head, head_dim, .. } => of_tokens((n_head * head_dim) as usize * 2),
            Op::KvWrite { layer } => {
                let kv = self.kv.layer(layer);
                of_tokens((kv.n_head_kv * kv.head_dim) as usize * 8)
            }
            Op::Attend { seen, n_head, n_head_kv, head_dim, .. } => {
                // The last token sees most.
                let last = pass.pos + u32::try_from(pass.n_tokens - 1).unwrap_or(u32::MAX);
                let n_seen = match seen {
                    Seen::Past(layer) => self.kv.layer(layer).span(last).len(),
                    Seen::Text => pass.n_tokens,
                };
                let cost = attention_cost(n_seen, (n_head / n_head_kv) as usize, head_dim as usize);
                (n_tokens * n_head_kv as usize, cost)
            }
            Op::Route { n_expert, n_used, .. } => {
                of_tokens(n_expert as usize * (16 + n_used as usize))
            }
            Op::ExpertIn { projection: p, .. } => {
                (self.scratch.routing.pairs(pass.at.expert).len(), p.n_in as usize * 5)
            }
            Op::Bias { width, .. }
            | Op::Scale { width, .. }
            | Op::AddResidual { width, .. }
            | Op::Clear { width, .. } => of_tokens(width as usize),
            Op::Embed { .. } | Op::AddRows { .. } | Op::MatMul { .. } | Op::ExpertOut { .. } => {
                (0, 1)
            }
        }
    }

    /// Does `units` of an operation, or the first of them; gives the end of what is done.
    fn run(&mut self, model: &Model, pass: &Pass, step: &Step, units: Range<usize>) -> usize {
        let first = pass.tokens_of(step).start;
        let tokens = first + units.start..first + units.end;
        let rows_of =
            |rows: Rows| if rows == Rows::Tokens { tokens.clone() } else { units.clone() };
        match step.op {
            Op::RopeTable { rope } => self.fill_rope_table(model, pass, rope.0 as usize, tokens),
            Op::RmsNorm { input, output, weight, width, groups, eps } => {
                let weight = &model.vectors[weight.0 as usize];
                self.rms_norm(input, output, weight, width as usize, groups as usize, eps, tokens);
            }
            Op::Round { input, rows, width, block } => {
                self.round(input, width as usize, block as usize, rows_of(rows));
            }
            Op::LayerNorm { input, output, weight, bias, width, eps } => {
                let [weight, bias] = [weight, bias].map(|id| &model.vectors[id.0 as usize][..]);
                self.layer_norm(input, output, weight, bias, width as usize, eps, tokens);
            }
            Op::Gelu { width } => {
                self.for_rows(Buf::Gate, width, &units, first, kernels::gelu);
            }
            Op::Bias { buf, vector, at, width } => {
                let vector = &model.vectors[vector.0 as usize][at as usize..][..width as usize];
                self.for_rows(buf, width, &units, first, |row| kernels::add_assign(row, vector));
            }
            Op::Scale { buf, width, factor } => {
                self.for_rows(buf, width, &units, first, |row| kernels::scale(row, factor));
            }
            Op::Softcap { buf, width, cap } => {
                self.for_rows(buf, width, &units, first, |row| kernels::softcap(row, cap));
            }
            Op::Clear { buf, width } => {
                self.for_rows(buf, width, &units, first, |row| row.fill(0.0));
            }
            Op::Rotate { buf, rope, n_head, head_dim } => {
                self.rotate(
                    model,
                    buf,
                    rope.0 as usize,
                    (n_head * head_dim) as usize,
                    head_dim as usize,
                    tokens,
                );
            }
            Op::KvWrite { layer } => self.write_kv(pass, layer, tokens),
            Op::Combine { gating, rows, width } => {
                self.combine(gating, width as usize, rows_of(rows));
            }
            Op::AddResidual { width, scale } => self.add_residual(width as usize, scale, tokens),
            Op::Route { n_expert, n_used, weighting } => {
                self.route(n_expert as usize, n_used as usize, weighting, tokens);
            }
            Op::ExpertIn { projection, .. } => self.gather(pass, &projection, units.clone()),
            Op::Attend { .. } => return self.attend(model, pass, step, units),
            Op::Embed { .. } | Op::AddRows { .. } | Op::MatMul { .. } | Op::ExpertOut { .. } => {}
        }
        units.end
    }

    /// Chooses the experts of some tokens.
    fn route(
        &mut self,
        n_expert: usize,
        n_used: usize,
        weighting: Weighting,
        tokens: Range<usize>,
    ) {
        let opinions = &mut self.scratch.memories[Buf::Router.memory()];
        for token in tokens {
            let opinion = &mut opinions[token * n_expert..][..n_expert];
            self.scratch.routing.choose(token, opinion, n_used, weighting);
        }
    }

    /// Rows of the tokens of one expert, side by side, rounded if its weights want that.
    fn gather(&mut self, pass: &Pass, p: &Projection, units: Range<usize>) {
        let width = p.n_in as usize;
        let pairs = self.scratch.routing.pairs(pass.at.expert);
        let mut gathered = take(&mut self.scratch.memories[Buf::Gathered.memory()]);
        let rows = &self.scratch.memories[p.input.memory()];
        let tokens =
            self.scratch.routing.tokens(pairs.start + units.start..pairs.start + units.end);
        for (row, &token) in gathered[units.start * width..].chunks_exact_mut(width).zip(tokens) {
            row.copy_from_slice(&rows[token as usize * width..][..width]);
        }
        self.scratch.memories[Buf::Gathered.memory()] = gathered;
        if let Some(block) = p.block {
            self.round(Buf::Gathered, width, block as usize, units);
        }
    }

    /// Attention of one group of heads for adjacent tokens: unit `u` is group `u / n_tokens`, token `u % n_tokens`, so
    /// that the tokens of a group come one after the other and share its keys and values.
    fn attend(&mut self, model: &Model, pass: &Pass, step: &Step, units: Range<usize>) -> usize {
        let Op::Attend { seen, n_head, n_head_kv, head_dim, scoring: rule } = step.op else {
            return units.end;
        };
        let tokens = pass.tokens_of(step);
        let (group, first) = (units.start / tokens.len(), units.start % tokens.len());
        let mut queries = take(&mut self.scratch.memories[Buf::Query.memory()]);
        let memories = &self.scratch.memories;
        let attention = Attention {
            kept: match seen {
                Seen::Past(layer) => Kept::Cache { kv: &self.kv, layer, pos: pass.pos },
                Seen::Text => {
                    let width = (n_head_kv * head_dim) as usize;
                    let rows = |buf: Buf| &memories[buf.memory()][..pass.n_tokens * width];
                    let (keys, values) = (rows(Buf::Key), rows(Buf::Value));
                    Kept::Text { keys, values, width, head_dim: head_dim as usize }
                }
            },
            n_head: n_head as usize,
            group: (n_head / n_head_kv) as usize,
            head_dim: head_dim as usize,
            scale: rule.scale,
            softcap: rule.softcap,
            sinks: rule.sinks.map(|id| &model.vectors[id.0 as usize][..]),
        };
        let stride = attention.n_head * attention.head_dim;
        let own = &mut self.scratch.own;
        let data = &mut queries[(tokens.start + first) * stride..];
        let seen = attention.span(tokens.end - 1).len();
        let cost = attention_cost(seen, attention.group, attention.head_dim);
        let least = if tokens.len() == 1 { ONE_TOKEN_WORTH_SHARING } else { WORTH_SHARING };
        let worth_sharing = units.len().saturating_mul(cost) >= least;
        let team = self.team.as_deref().filter(|_| worth_sharing);
        let Some(team) = team else {
            let n = (tokens.len() - first).min(units.len()).min(own[0].attention_tile());
            let first = tokens.start + first;
            attention.alone(&mut own[0], group, first..first + n, data);
            self.scratch.memories[Buf::Query.memory()] = queries;
            return units.start + n;
        };
        let n_units = if tokens.len() == 1 {
            let heads = group * attention.group..(group + units.len()) * attention.group;
            attention.one_token(team, own, heads, tokens.start, data);
            units.len()
        } else {
            let n = (tokens.len() - first).min(units.len());
            let first = tokens.start + first;
            attention.shared(team, own, group, first..first + n, data);
            n
        };
        self.scratch.memories[Buf::Query.memory()] = queries;
        units.start + n_units
    }
}
