//! Residency `f32`: rows are kept and handed out dequantised. Whoever wants it builds model and plan from a directory in
//! which the matrices are F32, and gives the loader the stored one; the loader sees the difference in the rows' bytes.

use super::directory::Directory;
use super::slots::{Slots, Span};
use crate::error::{Error, ErrorKind, Result};
use crate::gguf::{Header, TensorEntry, TensorType};
use crate::model::{Phase, Use};
use crate::quant::{GgmlType, dequantize_row};

/// The tensor directory with every tensor that a pass takes (not the vectors that the model keeps) as if it were stored in
/// F32. Places in the file stay those of the stored tensors.
///
/// # Errors
/// `unsupported_model` when a tensor's format is unknown or its size in F32 overflows.
pub fn dequantized_directory(header: &Header, uses: &[Use]) -> Result<Vec<TensorEntry>> {
    let mut tensors = header.tensors.clone();
    for u in uses.iter().filter(|u| u.phase != Phase::Open) {
        let Some(tensor) = tensors.get_mut(u.tensor as usize) else { continue };
        let n_elements = tensor.n_cols().checked_mul(tensor.n_rows());
        let n_bytes = n_elements.and_then(|n| n.checked_mul(4));
        let (TensorType::Known(_), Some(n_bytes)) = (tensor.ty, n_bytes) else {
            let message = format!("{} cannot be dequantised", tensor.name);
            return Err(Error::new(ErrorKind::UnsupportedModel, message)
                .with("tensor", tensor.name.as_str()));
        };
        tensor.ty = TensorType::Known(GgmlType::F32);
        tensor.n_bytes = n_bytes;
    }
    Ok(tensors)
}

/// The part of `span` that a read of `len` stored bytes fills: its end, so that the rows can grow from the front.
pub(super) fn read_into(span: Span, len: usize) -> Span {
    Span { start: span.start + (span.len - len), len, ..span }
}

/// Turns the stored rows at the end of `span` into f32 rows that fill it. Row i ends, dequantised, before stored row i + 1
/// begins; where it meets its own stored bytes, `row` keeps a copy.
pub(super) fn grow(
    slots: &Slots,
    span: Span,
    directory: &Directory,
    tensor: u32,
    row: &mut [u8],
) -> Result<()> {
    let Some((ty, stored_bytes)) = directory.dequantised(tensor) else { return Ok(()) };
    let row_bytes = directory.row_bytes(tensor) as usize;
    let row = &mut row[..stored_bytes];
    slots.change(span, |bytes| {
        let n_rows = span.len / row_bytes;
        let mut stored = span.len - n_rows * stored_bytes;
        for i in 0..n_rows {
            row.copy_from_slice(&bytes[stored..stored + stored_bytes]);
            dequantize_row(
                ty,
                row,
                bytemuck::cast_slice_mut(&mut bytes[i * row_bytes..(i + 1) * row_bytes]),
            );
            stored += stored_bytes;
        }
    })
}
