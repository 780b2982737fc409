//! The tensor directory as the families see it: a tensor is asked for by name and shape, and whatever nobody asked for
//! is refused in the end, so that a model with an unknown part never runs without it.

use std::collections::BTreeMap;

use super::failure::ModelFailure;
use crate::gguf::{Header, TensorEntry, TensorType};
use crate::quant::GgmlType;

/// A tensor whose presence, type and shape are checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tensor {
    /// Index into the directory.
    pub(crate) index: u32,
    /// Number format.
    pub(crate) ty: GgmlType,
    /// Values of a row.
    pub(crate) n_in: u32,
    /// Rows.
    pub(crate) n_rows: u32,
    /// Stored bytes of a row.
    pub(crate) row_bytes: u32,
}

/// The directory, and who was asked for.
#[derive(Debug)]
pub(crate) struct Tensors<'a> {
    header: &'a Header,
    by_name: BTreeMap<&'a str, usize>,
    asked: Vec<bool>,
}

type Result<T> = core::result::Result<T, ModelFailure>;

impl<'a> Tensors<'a> {
    pub(crate) fn new(header: &'a Header) -> Self {
        let by_name =
            header.tensors.iter().enumerate().map(|(i, t)| (t.name.as_str(), i)).collect();
        Self { header, by_name, asked: vec![false; header.tensors.len()] }
    }

    /// Whether the file has the tensor.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Where the tensor lies, for putting uses into the order of the file.
    pub(crate) fn place(&self, name: &str) -> (u32, u64) {
        self.by_name.get(name).map_or((u32::MAX, u64::MAX), |&i| {
            let entry = &self.header.tensors[i];
            (entry.file, entry.offset)
        })
    }

    /// The tensor `name`, which must have `shape` (row length first).
    pub(crate) fn require(&mut self, name: &str, shape: &[u32]) -> Result<Tensor> {
        self.find(name, shape)?.ok_or_else(|| ModelFailure::MissingTensor { name: name.to_owned() })
    }

    /// The tensor `name`, if the file has it; then it must have `shape`.
    pub(crate) fn find(&mut self, name: &str, shape: &[u32]) -> Result<Option<Tensor>> {
        let Some(&index) = self.by_name.get(name) else { return Ok(None) };
        self.asked[index] = true;
        check(&self.header.tensors[index], index, shape).map(Some)
    }

    /// Refuses tensors that nobody asked for, but for those that say again what metadata says.
    pub(crate) fn check_all_asked(&self, arch: &str) -> Result<()> {
        let redundant = |name: &str| {
            name.ends_with(".attn_rot_embd") || name.ends_with(".attn.rotary_emb.inv_freq")
        };
        let stranger = self
            .header
            .tensors
            .iter()
            .zip(&self.asked)
            .find(|(t, asked)| !**asked && !redundant(&t.name));
        match stranger {
            Some((t, _)) => {
                Err(ModelFailure::UnknownTensor { name: t.name.clone(), arch: arch.to_owned() })
            }
            None => Ok(()),
        }
    }
}

fn check(entry: &TensorEntry, index: usize, shape: &[u32]) -> Result<Tensor> {
    let name = || entry.name.clone();
    // Dimensions that are not written are 1.
    let dim = |i: usize| entry.shape.get(i).copied().unwrap_or(1);
    let wanted = |i: usize| shape.get(i).map_or(1, |&n| u64::from(n));
    if (0..entry.shape.len().max(shape.len())).any(|i| dim(i) != wanted(i)) {
        let expected = shape.iter().map(|&n| u64::from(n)).collect();
        return Err(ModelFailure::TensorShape {
            name: name(),
            found: entry.shape.clone(),
            expected,
        });
    }
    let ty = match entry.ty {
        TensorType::Known(ty) => ty,
        TensorType::Unknown(id) => return Err(ModelFailure::TensorType { name: name(), id }),
    };
    let n_in = shape.first().copied().unwrap_or(1);
    let row_bytes = ty.row_bytes(u64::from(n_in)).ok_or_else(|| ModelFailure::TensorRow {
        name: name(),
        n_in: u64::from(n_in),
        ty: ty.name(),
    })?;
    let n_rows = shape.iter().skip(1).try_fold(1u32, |n, &dim| n.checked_mul(dim));
    let too_large = |what| ModelFailure::TensorSize { name: name(), what };
    Ok(Tensor {
        index: u32::try_from(index).map_err(|_| too_large("the directory has too many tensors"))?,
        ty,
        n_in,
        n_rows: n_rows.ok_or_else(|| too_large("it has more rows than 32 bits count"))?,
        row_bytes: u32::try_from(row_bytes)
            .map_err(|_| too_large("a row has more bytes than 32 bits count"))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(shape: &[u64]) -> Header {
        let ty = TensorType::Known(GgmlType::F16);
        let entry = TensorEntry {
            name: "t".to_owned(),
            ty,
            shape: shape.to_vec(),
            file: 0,
            offset: 0,
            n_bytes: 0,
        };
        Header { tensors: vec![entry], ..Header::default() }
    }

    #[test]
    fn trailing_ones_do_not_count() {
        for (found, wanted, fits) in [
            (&[8, 3][..], &[8, 3][..], true),
            (&[8, 3, 1, 1], &[8, 3], true),
            (&[8, 1], &[8], true),
            (&[8, 1], &[8, 1], true),
            (&[1], &[1], true),
            (&[8, 3, 2], &[8, 3], false),
            (&[8], &[8, 3], false),
            (&[8], &[8, 1], true),
            (&[], &[8], false),
        ] {
            let header = header(found);
            let tensor = Tensors::new(&header).require("t", wanted);
            assert_eq!(tensor.is_ok(), fits, "{found:?} as {wanted:?}");
        }
    }

    #[test]
    fn what_nobody_asked_for_is_named() {
        let header = header(&[8]);
        let mut tensors = Tensors::new(&header);
        assert!(matches!(
            tensors.check_all_asked("llama"),
            Err(ModelFailure::UnknownTensor { .. })
        ));
        assert!(tensors.require("t", &[8]).is_ok());
        assert!(tensors.check_all_asked("llama").is_ok());
        assert!(matches!(tensors.require("u", &[8]), Err(ModelFailure::MissingTensor { .. })));
    }
}
