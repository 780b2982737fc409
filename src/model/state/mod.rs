//! A session: the program of a model run step by step over its working memory and its KV cache.
//!
//! A pass is begun with tokens, then driven: [`State::need`] says what is next, [`State::feed`] takes one bounded step
//! on a tile of weights, [`State::compute`] one bounded step that needs none. How the work is cut into tiles, steps and
//! passes changes no bit of the result. After [`State::new`] nothing is allocated.

mod elementwise;
mod one_token;
mod project;
mod routing;
mod rows;
mod run;
mod scratch;
mod shared;

use core::ops::Range;
use std::sync::Arc;

use super::Model;
use super::config::{LogitsWanted, ModelKind, Shape, StepBounds};
use super::kv_cache::KvCache;
use super::program::{Buf, Op, Scope, Step};
use crate::TokenId;
use crate::error::{Error, ErrorKind, Result};
use crate::team::{THREADS, Team};
use scratch::Scratch;

pub(crate) use scratch::{Sizes, filled};

/// One sequence over one model.
#[derive(Debug)]
pub struct State {
    shape: Shape,
    bounds: StepBounds,
    scratch: Scratch,
    kv: KvCache,
    /// Threads to share large steps with; `None`: the caller's alone.
    team: Option<Arc<dyn Team>>,
    pos: u32,
    pass: Option<Pass>,
    /// Rows of logits of the last pass that ended.
    n_logits: usize,
    /// Rows of what the head would have got, likewise.
    n_hidden: usize,
}

/// What a pass waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// A tile that starts at `first_row` and is a prefix of these rows.
    Rows {
        /// Index into [`Model::uses`].
        use_index: usize,
        /// Row of the tensor.
        first_row: u32,
        /// Rows from there on.
        n_rows: u32,
    },
    /// A step without weights.
    Compute,
    /// Nothing: the pass has ended, or none was begun.
    Done,
}

/// What became of a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fed {
    /// The step's bound is reached: the same tile is wanted again.
    Again,
    /// The tile is used up.
    Consumed,
}

/// A pass under way.
#[derive(Debug, Clone, Copy)]
struct Pass {
    /// Position of the first token.
    pos: u32,
    n_tokens: usize,
    n_wanted: usize,
    /// Whether what is wanted are logits.
    heads: bool,
    /// Index into the program.
    step: usize,
    at: Cursor,
}

/// How far an operation is.
#[derive(Debug, Clone, Copy, Default)]
struct Cursor {
    /// Units of work without weights.
    unit: usize,
    /// The expert whose turn it is.
    expert: usize,
    /// Whether its tokens are gathered.
    gathered: bool,
    /// Rows of the projection (of this expert) that are done.
    row: u32,
    /// Rows of the tile at hand; 0 when there is none.
    tile_rows: u32,
    /// Rows of it that are done.
    tile_row: u32,
    /// Rows of the block that is under way.
    block_rows: u32,
    /// Columns of the block that are done.
    column: usize,
}

impl State {
    /// Takes the memory that [`Model::memory`] prices.
    ///
    /// # Errors
    /// `invalid_option` for a size of 0, `out_of_memory` when the memory cannot be had.
    pub fn new(model: &Model, shape: &Shape) -> Result<Self> {
        Self::with_team(model, shape, None)
    }

    /// As [`State::new`], with threads that share the large steps; [`Model::team_bytes`] more are taken for them.
    /// They change no bit of the result.
    ///
    /// # Errors
    /// As for [`State::new`].
    pub fn with_team(model: &Model, shape: &Shape, team: Option<Arc<dyn Team>>) -> Result<Self> {
        for (n, key) in
            [(shape.n_ctx, "context"), (shape.n_batch, "batch"), (shape.n_logits, "logits")]
        {
            if n == 0 {
                let message = format!("option '{key}' must be at least 1");
                return Err(Error::new(ErrorKind::InvalidOption, message).with("key", key));
            }
        }
        let n_threads = team.as_ref().map_or(1, |team| team.n_threads());
        Ok(Self {
            shape: *shape,
            bounds: StepBounds::default().shared_by(n_threads),
            scratch: Scratch::new(&model.program, shape, n_threads)?,
            kv: KvCache::new(&model.program.kv, model.config.kv, shape)?,
            team: team.filter(|team| THREADS && team.n_threads() > 1),
            pos: 0,
            pass: None,
            n_logits: 0,
            n_hidden: 0,
        })
    }

    /// Sets what one step may take.
    pub fn set_bounds(&mut self, bounds: StepBounds) {
        self.bounds = bounds;
    }

    /// Begins a pass of `tokens` at `pos`, which must be [`State::pos`]. A pass that was under way is dropped.
    ///
    /// # Errors
    /// `invalid_option` for a token that is not in the vocabulary, `context_full` when the tokens do not fit, `misuse`
    /// for no tokens, more than a batch or than there are logits for, another position, or a vector that was not set.
    pub fn begin(
        &mut self,
        model: &Model,
        tokens: &[TokenId],
        pos: u32,
        want: LogitsWanted,
    ) -> Result<()> {
        let n_wanted = match want {
            LogitsWanted::None => 0,
            LogitsWanted::Last => 1,
            LogitsWanted::All | LogitsWanted::Hidden => tokens.len(),
        };
        if model.kind == ModelKind::Encoder && (pos > 0 || want != LogitsWanted::Hidden) {
            return Err(misuse("an encoder takes whole texts and has no logits".to_owned()));
        }
        self.check_begin(model, tokens, pos, if want.uses_head() { n_wanted } else { 0 })?;
        self.scratch.tokens.clear();
        self.scratch.tokens.extend_from_slice(tokens);
        // `check_begin` saw that this is at most n_ctx.
        let end = pos.saturating_add(u32::try_from(tokens.len()).unwrap_or(u32::MAX));
        self.kv.reach(end);
        self.n_logits = 0;
        self.n_hidden = 0;
        let heads = want != LogitsWanted::Hidden;
        let (n_tokens, at) = (tokens.len(), Cursor::default());
        self.pass = Some(Pass { pos, n_tokens, n_wanted, heads, step: 0, at });
        self.settle(model);
        Ok(())
    }

    /// What the pass waits for.
    #[must_use]
    pub fn need(&self, model: &Model) -> Need {
        let Some((pass, step)) = self.current(model) else { return Need::Done };
        let at = pass.at;
        let rows = |use_index: u32, first_row, n_rows| Need::Rows {
            use_index: use_index as usize,
            first_row,
            n_rows,
        };
        match step.op {
            Op::Embed { use_index, .. } => rows(use_index, self.scratch.tokens[at.unit], 1),
            Op::AddRows { use_index, n_rows, .. } => rows(use_index, at.row, n_rows - at.row),
            Op::MatMul { projection: p, .. } => rows(p.use_index, at.row, p.n_rows - at.row),
            Op::ExpertIn { .. } if !at.gathered => Need::Compute,
            Op::ExpertIn { projection: p, n_expert, .. }
            | Op::ExpertOut { projection: p, n_expert, .. } => {
                let n_rows = p.n_rows / n_expert;
                let expert = u32::try_from(at.expert).unwrap_or(n_expert);
                rows(p.use_index, expert * n_rows + at.row, n_rows - at.row)
            }
            _ => Need::Compute,
        }
    }

    /// Logits of the last pass, `[n_wanted, n_vocab]`; empty before its end.
    #[must_use]
    pub fn logits(&self) -> &[f32] {
        let memory = &self.scratch.memories[Buf::Logits.memory()];
        let n_rows = self.shape.n_logits as usize;
        &memory[..memory.len() / n_rows * self.n_logits]
    }

    /// What the head would have got for each token of the last pass, or what an encoder ends with, if that was wanted:
    /// `[n_tokens, n_embd]`; else empty.
    #[must_use]
    pub fn hidden(&self, model: &Model) -> &[f32] {
        let memory = &self.scratch.memories[Buf::Hidden.memory()];
        &memory[..self.n_hidden * model.hparams.n_embd as usize]
    }

    /// The position of the next token.
    #[must_use]
    pub fn pos(&self) -> u32 {
        self.pos
    }

    /// Where the pass stands: 0 for the embedding, then the layers, then the head.
    #[must_use]
    pub fn layer(&self, model: &Model) -> usize {
        self.current(model).map_or(0, |(_, step)| step.stage as usize)
    }

    /// Goes back to `pos`, forgetting what is there and after it; a pass under way is dropped.
    ///
    /// # Errors
    /// `misuse` for a position ahead, or one whose sliding window is no longer kept. 0 always succeeds.
    pub fn rewind(&mut self, pos: u32) -> Result<()> {
        if pos > self.pos {
            return Err(misuse(format!(
                "position {pos} is ahead of the sequence, which is at {}",
                self.pos
            )));
        }
        if !self.kv.holds(pos) {
            return Err(misuse(format!(
                "the sliding window before position {pos} is no longer kept"
            )));
        }
        if pos == 0 {
            self.kv.clear();
        }
        self.pass = None;
        self.n_logits = 0;
        self.pos = pos;
        Ok(())
    }

    /// The pass under way and its step.
    fn current(&self, model: &Model) -> Option<(Pass, Step)> {
        let pass = self.pass?;
        model.program.steps.get(pass.step).map(|step| (pass, *step))
    }

    fn check_begin(
        &self,
        model: &Model,
        tokens: &[TokenId],
        pos: u32,
        n_wanted: usize,
    ) -> Result<()> {
        let Shape { n_ctx, n_batch, n_logits } = self.shape;
        if tokens.is_empty() || tokens.len() > n_batch as usize || n_wanted > n_logits as usize {
            let n = tokens.len();
            return Err(misuse(format!(
                "a pass of {n} tokens; the batch is {n_batch}, with {n_logits} logits"
            )));
        }
        if pos != self.pos {
            return Err(misuse(format!(
                "a pass at position {pos}; the sequence is at {}",
                self.pos
            )));
        }
        if let Some(use_index) = model.unset_vector(if model.vectors_follow { 0 } else { u32::MAX })
        {
            return Err(misuse(format!(
                "the tensor of use {use_index} was not given to the model"
            )));
        }
        let n_vocab = model.hparams.n_vocab;
        if let Some(&id) = tokens.iter().find(|&&id| id >= n_vocab) {
            let message = format!("token id {id} is not in the vocabulary of {n_vocab} tokens");
            return Err(Error::new(ErrorKind::InvalidOption, message).with("id", u64::from(id)));
        }
        let needed = u64::from(pos) + tokens.len() as u64;
        if needed > u64::from(n_ctx) {
            let message =
                format!("the sequence needs {needed} positions but the context has {n_ctx}");
            return Err(Error::new(ErrorKind::ContextFull, message)
                .with("needed", needed)
                .with("available", u64::from(n_ctx)));
        }
        Ok(())
    }

    /// Moves to the first operation that has something to do, or ends the pass.
    fn settle(&mut self, model: &Model) {
        let Some(mut pass) = self.pass else { return };
        loop {
            let Some(step) = model.program.steps.get(pass.step) else {
                self.pos = pass.pos + u32::try_from(pass.n_tokens).unwrap_or(0);
                (self.n_logits, self.n_hidden) =
                    if pass.heads { (pass.n_wanted, 0) } else { (0, pass.n_wanted) };
                self.pass = None;
                return;
            };
            if pass.takes(step) && self.find_expert(&mut pass, step) {
                break;
            }
            pass.step += 1;
            pass.at = Cursor::default();
        }
        self.pass = Some(pass);
    }

    /// Moves an operation of experts to the next one that has tokens; false when there is none left.
    fn find_expert(&self, pass: &mut Pass, step: &Step) -> bool {
        if !step.op.is_of_experts() {
            return true;
        }
        match self.scratch.routing.busy_from(pass.at.expert) {
            Some((expert, _)) => {
                pass.at.expert = expert;
                true
            }
            None => false,
        }
    }

    /// Ends the operation under way.
    fn end_step(&mut self, model: &Model) {
        if let Some(pass) = &mut self.pass {
            pass.step += 1;
            pass.at = Cursor::default();
        }
        self.settle(model);
    }
}

impl Pass {
    /// Whether the pass has something to do in `step`. Where no logits are wanted, the head ends with its norm.
    fn takes(&self, step: &Step) -> bool {
        let is_norm = matches!(step.op, Op::RmsNorm { .. });
        !self.tokens_of(step).is_empty() && (self.heads || step.scope != Scope::Head || is_norm)
    }

    /// The tokens of the chunk that a step works on.
    fn tokens_of(&self, step: &Step) -> Range<usize> {
        let n = match step.scope {
            Scope::All => self.n_tokens,
            Scope::LastLayer => self.n_wanted.max(1),
            Scope::Head => self.n_wanted,
        };
        self.n_tokens - n..self.n_tokens
    }
}

fn misuse(message: String) -> Error {
    Error::new(ErrorKind::Misuse, message)
}
