//! Which rows stay in memory, spread evenly over the pass so that reading the others overlaps with computing on these.
//!
//! There is one sequence of small units for a model, and a budget keeps as much of its beginning as it can hold: more budget
//! keeps the same rows and some more.

use std::collections::BTreeMap;

use super::ledger::region;
use super::plan::ResidentRun;
use super::request::Experts;
use super::weights::{WeightTensor, Weights};

/// A few small tensors that a pass uses one after the other, or the next rows of a large one. Becomes resident at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Unit {
    first: u32,
    n_tensors: u32,
    /// Rows of the tensor, when it is one that is split.
    split_rows: Option<u32>,
}

/// All of it: every tensor of layers and head, and the embedding table if `table`.
pub(super) fn all(weights: &Weights, table: bool) -> Vec<ResidentRun> {
    let table = weights.table.iter().filter(|_| table);
    table.chain(&weights.tensors).map(|t| t.run(t.n_rows)).collect()
}

/// Bytes that runs take.
pub(super) fn bytes(runs: &[ResidentRun]) -> u64 {
    runs.iter().map(|r| region(r.bytes())).sum()
}

/// The runs that `room` bytes hold, in the order of use.
pub(super) fn fill(weights: &Weights, experts: Option<Experts>, room: u64) -> Vec<ResidentRun> {
    let units = units(weights, experts);
    let mut kept = Kept { weights, rows: BTreeMap::new(), room };
    for unit in sequence(&units, weights) {
        if !kept.add(unit, experts) {
            break;
        }
    }
    kept.rows.iter().map(|(i, n_rows)| weights.tensors[*i as usize].run(*n_rows)).collect()
}

struct Kept<'a> {
    weights: &'a Weights,
    /// Rows by index into the weights' tensors.
    rows: BTreeMap<u32, u32>,
    room: u64,
}

impl Kept<'_> {
    /// Keeps the unit, or as much of it as there is room for; false if that is not all of it.
    fn add(&mut self, unit: Unit, experts: Option<Experts>) -> bool {
        for i in unit.first..unit.first + unit.n_tensors {
            let t = &self.weights.tensors[i as usize];
            let had = self.rows.get(&i).copied().unwrap_or(0);
            let wanted = unit.split_rows.map_or(t.n_rows, |n| t.n_rows.min(had + n));
            let cost = |rows: u32| if rows == 0 { 0 } else { region(t.run(rows).bytes()) };
            let mut n_rows = wanted;
            if unit.split_rows.is_some() {
                let step = row_step(t, experts);
                while n_rows > had && cost(n_rows) - cost(had) > self.room {
                    n_rows = (n_rows - 1) / step * step;
                }
            }
            if n_rows <= had || cost(n_rows) - cost(had) > self.room {
                return false;
            }
            self.room -= cost(n_rows) - cost(had);
            self.rows.insert(i, n_rows);
            if n_rows < wanted {
                return false;
            }
        }
        true
    }
}

/// The units in the order of use.
fn units(weights: &Weights, experts: Option<Experts>) -> Vec<Unit> {
    let mut units = Vec::new();
    let tensors = &weights.tensors;
    let unit_bytes = weights.natural_slot;
    let mut at = 0;
    while at < tensors.len() {
        let t = &tensors[at];
        let first = u32::try_from(at).unwrap_or(u32::MAX);
        if t.bytes() > unit_bytes {
            let n_units = t.bytes().div_ceil(unit_bytes);
            let rows = u32::try_from(u64::from(t.n_rows).div_ceil(n_units)).unwrap_or(u32::MAX);
            let rows = rows.next_multiple_of(row_step(t, experts)).min(t.n_rows);
            let unit = Unit { first, n_tensors: 1, split_rows: Some(rows) };
            units.extend(core::iter::repeat_n(unit, t.n_rows.div_ceil(rows) as usize));
            at += 1;
            continue;
        }
        let mut sum = 0;
        let n = tensors[at..].iter().take_while(|u| {
            sum += u.bytes();
            sum <= unit_bytes && u.phase == t.phase && u.deferred == t.deferred
        });
        let n = n.count();
        units.push(Unit {
            first,
            n_tensors: u32::try_from(n).unwrap_or(u32::MAX),
            split_rows: None,
        });
        at += n;
    }
    units
}

/// The order in which units become resident: those of every token first, experts after; each of the two in the order of reversed bits, of
/// which every beginning is spread evenly.
fn sequence<'a>(units: &'a [Unit], weights: &'a Weights) -> impl Iterator<Item = Unit> + 'a {
    [false, true].into_iter().flat_map(move |deferred| {
        let of_kind: Vec<Unit> = units
            .iter()
            .copied()
            .filter(|u| weights.tensors[u.first as usize].deferred == deferred)
            .collect();
        let bits = usize::BITS - of_kind.len().saturating_sub(1).leading_zeros();
        (0..1_usize << bits).filter_map(move |i| {
            let reversed = if bits == 0 { 0 } else { i.reverse_bits() >> (usize::BITS - bits) };
            of_kind.get(reversed).copied()
        })
    })
}

/// Rows that stay together: what kernels compute at a time, or an expert.
fn row_step(t: &WeightTensor, experts: Option<Experts>) -> u32 {
    match experts {
        Some(e) if t.deferred && e.n > 0 => (t.n_rows / e.n).max(1),
        _ => 8,
    }
}
