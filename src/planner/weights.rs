//! What the uses say of the weights, for planning: sizes, the longest row, layers as they lie in the file.

use super::plan::ResidentRun;
use super::request::{Experts, Request};
use crate::error::{Error, ErrorKind, Result};
use crate::gguf::Header;
use crate::model::{Phase, Use};

/// Embedding rows that can be in memory or under way at a time while the table is not resident.
pub const EMBED_ROWS: usize = 32;

/// A tensor that passes read from, its rows in the order that they become resident in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WeightTensor {
    pub(super) tensor: u32,
    pub(super) first_row: u32,
    pub(super) n_rows: u32,
    pub(super) row_bytes: u32,
    pub(super) phase: Phase,
    /// The pass names the rows: experts.
    pub(super) deferred: bool,
}

/// The weights of a model.
#[derive(Debug)]
pub(super) struct Weights {
    /// Tensors of layers and head in the order of their first use.
    pub(super) tensors: Vec<WeightTensor>,
    /// The embedding table, unless it is the head too.
    pub(super) table: Option<WeightTensor>,
    /// Bytes of the longest row that goes through a slot.
    pub(super) longest_row: u64,
    /// Bytes of the longest embedding row.
    pub(super) embed_row: u64,
    /// The size of slot that fits how the layers lie in the file.
    pub(super) natural_slot: u64,
    pub(super) n_uses: u64,
    pub(super) n_tensors: u64,
}

impl WeightTensor {
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.n_rows) * u64::from(self.row_bytes)
    }

    /// The first `n_rows` of it as a resident run.
    pub(super) fn run(&self, n_rows: u32) -> ResidentRun {
        ResidentRun {
            tensor: self.tensor,
            first_row: self.first_row,
            n_rows,
            row_bytes: self.row_bytes,
        }
    }
}

impl Weights {
    pub(super) fn new(request: &Request<'_>) -> Result<Self> {
        let mut tensors: Vec<WeightTensor> = Vec::new();
        let mut tables: Vec<WeightTensor> = Vec::new();
        let mut place = vec![None; request.header.tensors.len()];
        for u in request.uses.iter().filter(|u| u.phase != Phase::Open && u.n_rows > 0) {
            let w = check(request.header, u)?;
            if u.phase == Phase::Embed && u.deferred {
                tables.push(w);
                continue;
            }
            match &mut place[u.tensor as usize] {
                Some(i) => join(&mut tensors[*i], &w),
                slot => {
                    *slot = Some(tensors.len());
                    tensors.push(w);
                }
            }
        }
        let embed_row = tables.iter().map(|t| u64::from(t.row_bytes)).max().unwrap_or(0);
        tables.retain(|t| place[t.tensor as usize].is_none());
        Ok(Self {
            longest_row: tensors.iter().map(|t| u64::from(t.row_bytes)).max().unwrap_or(0),
            embed_row,
            natural_slot: natural_slot(request.header, &tensors),
            table: tables.first().copied(),
            tensors,
            n_uses: request.uses.len() as u64,
            n_tensors: request.header.tensors.len() as u64,
        })
    }

    /// Bytes of all weights of layers and head.
    pub(super) fn bytes(&self) -> u64 {
        self.tensors.iter().map(WeightTensor::bytes).sum()
    }

    /// Pieces that a pass without residents takes through slots of `slot_bytes`, at most.
    pub(super) fn n_pieces(&self, slot_bytes: u64) -> u64 {
        let pieces = |t: &WeightTensor| {
            u64::from(t.n_rows).div_ceil((slot_bytes / u64::from(t.row_bytes)).max(1))
        };
        self.tensors.iter().filter(|t| !t.deferred).map(pieces).sum()
    }
}

/// Weight bytes that one token reads again.
pub(super) fn streamed_per_token(
    uses: &[Use],
    experts: Option<Experts>,
    residents: &[ResidentRun],
) -> u64 {
    let streamed = |u: &Use| {
        let end = u.first_row + u.n_rows;
        let kept = residents.iter().find(|r| r.tensor == u.tensor).map_or(0, |r| {
            let (from, to) = (r.first_row.max(u.first_row), (r.first_row + r.n_rows).min(end));
            to.saturating_sub(from)
        });
        u64::from(u.n_rows - kept) * u64::from(u.row_bytes)
    };
    let share = |u: &Use, bytes: u64| match (u.phase, u.deferred, experts) {
        (Phase::Embed, true, _) => bytes.min(u64::from(u.row_bytes)),
        (_, true, Some(e)) if e.n > 0 => bytes / u64::from(e.n) * u64::from(e.n_used.min(e.n)),
        _ => bytes,
    };
    uses.iter().filter(|u| u.phase != Phase::Open).map(|u| share(u, streamed(u))).sum()
}

fn check(header: &Header, u: &Use) -> Result<WeightTensor> {
    let end = u64::from(u.first_row) + u64::from(u.n_rows);
    let entry = header.tensors.get(u.tensor as usize);
    let fits = entry.is_some_and(|t| u.row_bytes > 0 && end * u64::from(u.row_bytes) <= t.n_bytes);
    if !fits || end > u64::from(u32::MAX) {
        let name = entry.map_or("?", |t| t.name.as_str());
        let message = format!(
            "a use of {name} names rows up to {end} of {} bytes, which the file does not have",
            u.row_bytes
        );
        return Err(Error::new(ErrorKind::Internal, message).with("tensor", name));
    }
    let Use { tensor, first_row, n_rows, row_bytes, phase, deferred } = *u;
    Ok(WeightTensor { tensor, first_row, n_rows, row_bytes, phase, deferred })
}

/// Widens `t` by the rows of a further use.
fn join(t: &mut WeightTensor, more: &WeightTensor) {
    let end = (t.first_row + t.n_rows).max(more.first_row + more.n_rows);
    t.first_row = t.first_row.min(more.first_row);
    t.n_rows = end - t.first_row;
}

/// A slot that takes a whole layer in one read where layers are small, and otherwise the size that reads are fast with.
fn natural_slot(header: &Header, tensors: &[WeightTensor]) -> u64 {
    let mut largest = 0;
    let mut at = 0;
    while at < tensors.len() {
        let phase = tensors[at].phase;
        let n = tensors[at..].iter().take_while(|t| t.phase == phase).count();
        if matches!(phase, Phase::Layer(_)) {
            let span = span(header, &tensors[at..at + n]);
            largest = largest.max(span.unwrap_or(u64::MAX));
        }
        at += n;
    }
    if largest <= LARGEST_LAYER_SLOT { largest.max(SMALLEST_SLOT) } else { USUAL_SLOT }
}

/// Bytes from the first to the last of the rows in the file; nothing if they are in several files or experts.
fn span(header: &Header, tensors: &[WeightTensor]) -> Option<u64> {
    let file = header.tensors[tensors[0].tensor as usize].file;
    let (mut start, mut end) = (u64::MAX, 0);
    for t in tensors {
        let entry = &header.tensors[t.tensor as usize];
        if entry.file != file || t.deferred {
            return None;
        }
        let from = entry.offset + u64::from(t.first_row) * u64::from(t.row_bytes);
        start = start.min(from);
        end = end.max(from + t.bytes());
    }
    Some(end - start)
}

/// Reads of this size are as fast as any, and it is near to what a processor's second cache holds.
const USUAL_SLOT: u64 = 2 << 20;
const LARGEST_LAYER_SLOT: u64 = 4 << 20;
/// Below this, reads are so slow and so many that a smaller slot saves nothing.
pub(super) const SMALLEST_SLOT: u64 = 256 << 10;
