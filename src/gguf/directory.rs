//! What must hold of a tensor directory, whichever format wrote it: sizes and places that do not overflow, overlap or
//! pass the end of the file, and no name twice.

use super::cursor::{Stop, fail};
use super::parse_error::ParseError;
use super::{FilePart, Header, TensorEntry, TensorType};

/// An entry of a single file with its size worked out.
pub(super) fn entry(
    name: &str,
    ty: TensorType,
    shape: Vec<u64>,
    offset: u64,
) -> Result<TensorEntry, Stop> {
    let problem = match size(name, ty, &shape) {
        Ok(n_bytes) => {
            return Ok(TensorEntry { name: name.to_owned(), ty, shape, file: 0, offset, n_bytes });
        }
        Err(problem) => problem,
    };
    fail(ParseError::Tensor { tensor: name.to_owned(), problem })
}

/// Checks all tensors of a single file against each other and against the file, and adds the file.
pub(super) fn check(
    header: &mut Header,
    header_end: u64,
    data_offset: u64,
    file_bytes: Option<u64>,
) -> Result<(), Stop> {
    let tensors = &header.tensors;
    if let Some(name) = duplicate(tensors) {
        return fail(ParseError::Tensor {
            tensor: name.to_owned(),
            problem: "stands in the directory twice".to_owned(),
        });
    }
    let mut order: Vec<&TensorEntry> = tensors.iter().collect();
    order.sort_unstable_by_key(|t| (t.offset, t.n_bytes));
    let (mut end, mut before) = (data_offset, None);
    for tensor in order {
        if let (Some(before), true) = (before, tensor.offset < end) {
            let problem = format!("overlaps with tensor '{before}'");
            return fail(ParseError::Tensor { tensor: tensor.name.clone(), problem });
        }
        if tensor.offset < data_offset {
            let problem = format!("lies at byte {}, inside the header", tensor.offset);
            return fail(ParseError::Tensor { tensor: tensor.name.clone(), problem });
        }
        end = match tensor.offset.checked_add(tensor.n_bytes) {
            Some(end) => end,
            None => return fail(overflow(tensor)),
        };
        if let Some(file_bytes) = file_bytes.filter(|bytes| end > *bytes) {
            let problem = format!(
                "ends at byte {end}, the file has {file_bytes} bytes: it is cut off, or the directory is damaged"
            );
            return fail(ParseError::Tensor { tensor: tensor.name.clone(), problem });
        }
        before = Some(&tensor.name);
    }
    let min_bytes = if tensors.is_empty() { header_end } else { end };
    header.files = vec![FilePart { data_offset, min_bytes }];
    Ok(())
}

/// A name that occurs twice.
pub(super) fn duplicate(tensors: &[TensorEntry]) -> Option<&str> {
    let mut names: Vec<&str> = tensors.iter().map(|t| t.name.as_str()).collect();
    names.sort_unstable();
    names.array_windows().find(|[a, b]| a == b).map(|[a, _]| *a)
}

pub(super) fn overflow(tensor: &TensorEntry) -> ParseError {
    let problem = format!("has the impossible offset {:#x}", tensor.offset);
    ParseError::Tensor { tensor: tensor.name.clone(), problem }
}

/// Stored bytes of a tensor, 0 of a type that is not known; or what is wrong with it.
fn size(name: &str, ty: TensorType, shape: &[u64]) -> Result<u64, String> {
    if name.is_empty() {
        return Err("has no name".to_owned());
    }
    if shape.contains(&0) {
        return Err(format!("has a dimension of 0: {shape:?}"));
    }
    let n_elements =
        shape.iter().try_fold(1u64, |n, dim| n.checked_mul(*dim)).filter(|n| *n <= i64::MAX as u64);
    let Some(n_elements) = n_elements else {
        return Err(format!("has impossible dimensions: {shape:?}"));
    };
    let TensorType::Known(ty) = ty else { return Ok(0) };
    let n_cols = shape.first().copied().unwrap_or(1);
    let Some(row_bytes) = ty.row_bytes(n_cols) else {
        let block = ty.block_elements();
        return Err(format!(
            "has rows of {n_cols} elements, no multiple of {ty}'s block of {block}"
        ));
    };
    let n_bytes = row_bytes.checked_mul(n_elements / n_cols).filter(|n| *n <= i64::MAX as u64);
    n_bytes.ok_or_else(|| format!("has impossible dimensions: {shape:?}"))
}
