//! Where the weights of an opened model are: every tensor, and which of its rows stay in memory.

use serde::Serialize;

use super::Engine;
use crate::gguf::{TensorEntry, TensorType};
use crate::model::Phase;

/// The tensors in the order of the file, and the ring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Layout {
    /// The tensors.
    pub tensors: Vec<TensorLayout>,
    /// Slots of the ring; 0 when nothing streams.
    pub slots: u32,
    /// Bytes of one.
    pub slot_bytes: u64,
}

/// One tensor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TensorLayout {
    /// As GGUF names it.
    pub name: String,
    /// Number format.
    #[serde(rename = "type")]
    pub ty: String,
    /// Rows.
    pub rows: u64,
    /// Bytes in the file.
    pub bytes: u64,
    /// File of a split model.
    pub file: u32,
    /// Where it begins there.
    pub offset: u64,
    /// The first row that stays in memory.
    pub first_resident_row: u64,
    /// How many rows stay in memory; the others are read in each pass that needs them.
    pub resident_rows: u64,
}

impl Layout {
    /// The layout of an opened model.
    #[must_use]
    pub fn of(engine: &Engine) -> Self {
        let mut tensors: Vec<_> = engine.header.tensors.iter().map(streamed).collect();
        for vector in engine.model.uses().iter().filter(|u| u.phase == Phase::Open) {
            keep(
                &mut tensors,
                vector.tensor,
                u64::from(vector.first_row),
                u64::from(vector.n_rows),
            );
        }
        for run in &engine.plan.residents {
            keep(&mut tensors, run.tensor, u64::from(run.first_row), u64::from(run.n_rows));
        }
        Self { tensors, slots: engine.plan.n_slots, slot_bytes: engine.plan.slot_bytes }
    }
}

fn streamed(tensor: &TensorEntry) -> TensorLayout {
    let ty = match tensor.ty {
        TensorType::Known(ty) => ty.name().to_owned(),
        TensorType::Unknown(id) => format!("type {id}"),
    };
    TensorLayout {
        name: tensor.name.clone(),
        ty,
        rows: tensor.n_rows(),
        bytes: tensor.n_bytes,
        file: tensor.file,
        offset: tensor.offset,
        first_resident_row: 0,
        resident_rows: 0,
    }
}

fn keep(tensors: &mut [TensorLayout], tensor: u32, first_row: u64, n_rows: u64) {
    if let Some(tensor) = tensors.get_mut(tensor as usize) {
        (tensor.first_resident_row, tensor.resident_rows) = (first_row, n_rows);
    }
}
