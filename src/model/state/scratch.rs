//! The working memory of a session: what it takes is computed once, for the price and for the allocation alike.

use core::ops::Range;

use crate::TokenId;
use crate::error::{Error, ErrorKind, Result};
use crate::kernels::{attention_scratch, matmul_scratch};
use crate::model::config::Shape;
use crate::model::program::{Buf, Program};

/// Sizes in elements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    memories: [u64; Buf::N_MEMORIES],
    rounded: u64,
    rounded_blocks: u64,
    row: u64,
    scores: u64,
    queries: u64,
    tile: u64,
    rope_angles: u64,
    n_ropes: u64,
    n_batch: u64,
    pairs: u64,
    n_expert: u64,
}

impl Sizes {
    pub(crate) fn new(program: &Program, shape: &Shape) -> Self {
        let n_batch = u64::from(shape.n_batch);
        let needs = &program.needs;
        let group = needs.group.max(1);
        // Without a cache, a text sees itself.
        let longest =
            program.kv.iter().map(|layer| layer.capacity(shape)).max().unwrap_or(shape.n_batch);
        let tile = u64::from(attention_tile(group)).min(n_batch);
        let mut memories = program.widths.map(|width| width.saturating_mul(n_batch));
        let logits = Buf::Logits.memory();
        memories[logits] = program.widths[logits].saturating_mul(u64::from(shape.n_logits));
        Self {
            memories,
            rounded: needs.rounded.saturating_mul(n_batch),
            rounded_blocks: needs.rounded_blocks.saturating_mul(n_batch),
            row: matmul_scratch(needs.row as usize) as u64,
            scores: u64::from(longest).saturating_mul(u64::from(group)).saturating_mul(tile),
            queries: (u64::from(group) * u64::from(needs.head_dim)).saturating_mul(tile),
            tile,
            rope_angles: angles(program).saturating_mul(n_batch),
            n_ropes: program.ropes.len() as u64,
            n_batch,
            pairs: u64::from(needs.n_used).saturating_mul(n_batch),
            n_expert: u64::from(needs.n_expert),
        }
    }

    /// Bytes of the logits.
    pub(crate) fn logits_bytes(&self) -> u64 {
        bytes::<f32>(self.memories[Buf::Logits.memory()])
    }

    /// Bytes of everything else.
    pub(crate) fn scratch_bytes(&self) -> u64 {
        let floats: u64 = self.memories.iter().fold(0, |n, m| n.saturating_add(*m));
        let floats = floats - self.memories[Buf::Logits.memory()].min(floats);
        [
            bytes::<f32>(floats),
            bytes::<i8>(self.rounded),
            bytes::<f32>(self.rounded_blocks),
            bytes::<i16>(self.rounded / 16),
            self.own_bytes(),
            bytes::<f32>(self.rope_angles).saturating_mul(2),
            bytes::<RopeTable>(self.n_ropes),
            bytes::<TokenId>(self.n_batch),
            bytes::<u32>(self.pairs).saturating_mul(2),
            bytes::<f32>(self.pairs).saturating_mul(2),
            bytes::<u32>(self.n_expert.saturating_mul(2) + u64::from(self.n_expert > 0)),
        ]
        .into_iter()
        .fold(0, u64::saturating_add)
    }

    /// What `n_threads` take beside that, where they are several: working memory for each, and a place for results.
    pub(crate) fn team_bytes(&self, n_threads: u32) -> u64 {
        let others = u64::from(n_threads.saturating_sub(1));
        let stage = if others > 0 { bytes::<f32>(self.stage()) } else { 0 };
        others.saturating_mul(self.own_bytes().saturating_add(stage)).saturating_add(stage)
    }

    fn own_bytes(&self) -> u64 {
        let floats = [self.row, self.scores, self.queries].map(bytes::<f32>);
        floats.into_iter().fold(bytes::<Range<usize>>(self.tile), u64::saturating_add)
            + size_of::<Own>() as u64
    }

    /// Results of a piece of several columns, or of the attention of a tile.
    fn stage(&self) -> u64 {
        self.queries.max(STAGE)
    }
}

/// The working memory.
#[derive(Debug)]
pub(crate) struct Scratch {
    /// The memories of the buffers.
    pub(crate) memories: [Vec<f32>; Buf::N_MEMORIES],
    /// The 8-bit copy of one buffer.
    pub(crate) rounded: Rounded,
    /// What each thread has for itself; the first is the caller's.
    pub(crate) own: Vec<Own>,
    /// Sines and cosines of the chunk, for each rotary embedding.
    pub(crate) ropes: Vec<RopeTable>,
    /// The tokens of the chunk.
    pub(crate) tokens: Vec<TokenId>,
    /// Which token goes through which expert.
    pub(crate) routing: super::routing::Routing,
}

/// Working memory of one thread.
#[derive(Debug)]
pub(crate) struct Own {
    /// One row of weights, decoded.
    pub(crate) row: Vec<f32>,
    /// Scores of attention.
    pub(crate) scores: Vec<f32>,
    /// Queries of one piece of attention.
    pub(crate) queries: Vec<f32>,
    /// Positions that those queries see.
    pub(crate) spans: Vec<Range<usize>>,
    /// Results on their way to where they belong; empty where a thread works alone.
    pub(crate) stage: Vec<f32>,
}

/// Activations rounded to 8 bits, `[n_rows, width]`, for the kernels of quantised weights.
#[derive(Debug)]
pub(crate) struct Rounded {
    /// The values.
    pub(crate) qs: Vec<i8>,
    /// A scale for each block.
    pub(crate) scales: Vec<f32>,
    /// Sums of 16 neighbours.
    pub(crate) sums: Vec<i16>,
}

/// `[n_tokens, n_rot / 2]` each.
#[derive(Debug)]
pub(crate) struct RopeTable {
    pub(crate) cos: Vec<f32>,
    pub(crate) sin: Vec<f32>,
}

impl Scratch {
    /// For `n_threads` that work side by side.
    pub(crate) fn new(program: &Program, shape: &Shape, n_threads: usize) -> Result<Self> {
        let sizes = Sizes::new(program, shape);
        let mut own = reserved(n_threads as u64)?;
        for _ in 0..n_threads.max(1) {
            own.push(Own::new(&sizes, n_threads > 1)?);
        }
        let mut memories = core::array::from_fn(|_| Vec::new());
        for (memory, n) in memories.iter_mut().zip(sizes.memories) {
            *memory = filled(n)?;
        }
        let mut ropes = reserved(sizes.n_ropes)?;
        for rope in &program.ropes {
            let n = (rope.n_rot() as u64 / 2).saturating_mul(sizes.n_batch);
            ropes.push(RopeTable { cos: filled(n)?, sin: filled(n)? });
        }
        Ok(Self {
            memories,
            rounded: Rounded {
                qs: filled(sizes.rounded)?,
                scales: filled(sizes.rounded_blocks)?,
                sums: filled(sizes.rounded / 16)?,
            },
            own,
            ropes,
            tokens: reserved(sizes.n_batch)?,
            routing: super::routing::Routing::new(sizes.pairs, sizes.n_expert)?,
        })
    }
}

impl Own {
    fn new(sizes: &Sizes, beside_others: bool) -> Result<Self> {
        Ok(Self {
            row: filled(sizes.row)?,
            scores: filled(sizes.scores)?,
            queries: filled(sizes.queries)?,
            spans: reserved(sizes.tile)?,
            stage: filled(if beside_others { sizes.stage() } else { 0 })?,
        })
    }

    /// Tokens that attention takes at a time.
    pub(crate) fn attention_tile(&self) -> usize {
        self.spans.capacity()
    }
}

/// Results of pieces of a product on their way, in elements: they stay in the first level of cache.
const STAGE: u64 = 8192;

/// Tokens that share the scratch of the scores.
fn attention_tile(group: u32) -> u32 {
    let group = group as usize;
    u32::try_from(attention_scratch(usize::MAX, group, 1) / group).unwrap_or(1)
}

fn angles(program: &Program) -> u64 {
    program.ropes.iter().map(|rope| rope.n_rot() as u64 / 2).sum()
}

fn bytes<T>(n: u64) -> u64 {
    n.saturating_mul(size_of::<T>() as u64)
}

/// `n` zeros.
pub(crate) fn filled<T: Clone + Default>(n: u64) -> Result<Vec<T>> {
    let mut items = reserved(n)?;
    // `reserved` has seen that `n` fits.
    items.resize(usize::try_from(n).unwrap_or(0), T::default());
    Ok(items)
}

/// Room for `n`.
pub(crate) fn reserved<T>(n: u64) -> Result<Vec<T>> {
    let too_large = || {
        let n_bytes = bytes::<T>(n);
        let message = format!(
            "{n_bytes} bytes of working memory cannot be had: choose a smaller batch or context"
        );
        Error::new(ErrorKind::OutOfMemory, message).with("needed_bytes", n_bytes)
    };
    let mut items = Vec::new();
    items
        .try_reserve_exact(usize::try_from(n).map_err(|_| too_large())?)
        .map_err(|_| too_large())?;
    Ok(items)
}
