//! Writing the head of an LLMW file: preamble, metadata under short keys, directory.

use super::super::write::TensorSpec;
use super::super::{Metadata, Value};
use super::{ALIGNMENT, VERSION, keys};
use crate::error::{Error, ErrorKind, Result};

/// The head of a file, without the padding before the data; `sizes[i]` are the bytes of tensor `i`. The places of the
/// tensors follow from it: each on the next boundary after the one before.
pub(in crate::gguf) fn head(
    metadata: &Metadata,
    tensors: &[TensorSpec<'_>],
    sizes: &[u64],
) -> Result<Vec<u8>> {
    let architecture = metadata.get_str("general.architecture")?.unwrap_or_default();
    let mut entries: Vec<(&str, &Value)> = metadata
        .iter()
        .filter(|(key, value)| !implied(key, value))
        .map(|(key, value)| (keys::short(key, architecture), value))
        .collect();
    entries.sort_unstable_by_key(|(key, _)| *key);

    let mut head = b"LLMW".to_vec();
    head.extend(VERSION.to_le_bytes());
    head.extend(length(entries.len())?);
    head.extend(length(tensors.len())?);
    for (key, value) in entries {
        text(&mut head, key.as_bytes())?;
        write_value(&mut head, key, value)?;
    }
    let directory_bytes: usize =
        tensors.iter().map(|t| 4 + t.name.len() + 4 + 4 + 8 * t.shape.len() + 8 + 8).sum();
    let mut offset = ((head.len() + directory_bytes) as u64).next_multiple_of(ALIGNMENT);
    for (tensor, n_bytes) in tensors.iter().zip(sizes) {
        text(&mut head, tensor.name.as_bytes())?;
        head.extend(tensor.ty.id().to_le_bytes());
        head.extend(length(tensor.shape.len())?);
        for dim in tensor.shape.iter().rev() {
            head.extend(dim.to_le_bytes());
        }
        head.extend(offset.to_le_bytes());
        head.extend(n_bytes.to_le_bytes());
        offset = (offset + n_bytes).next_multiple_of(ALIGNMENT);
    }
    Ok(head)
}

/// What a reader adds by itself, or what means nothing in this format.
fn implied(key: &str, value: &Value) -> bool {
    key == "general.alignment"
        || key == "tokenizer.ggml.model"
            && matches!(value, Value::String(model) if **model == *b"none")
}

fn write_value(head: &mut Vec<u8>, key: &str, value: &Value) -> Result<()> {
    let integer: i64 = match value {
        Value::String(bytes) => {
            head.push(2);
            return text(head, bytes);
        }
        Value::F32(v) => return fraction(head, f64::from(*v)),
        Value::F64(v) => return fraction(head, *v),
        Value::U8(v) => (*v).into(),
        Value::I8(v) => (*v).into(),
        Value::U16(v) => (*v).into(),
        Value::I16(v) => (*v).into(),
        Value::U32(v) => (*v).into(),
        Value::I32(v) => (*v).into(),
        Value::I64(v) => *v,
        Value::U64(v) => i64::try_from(*v).map_err(|_| cannot_hold(key, value))?,
        Value::Bool(_) | Value::Array(_) => return Err(cannot_hold(key, value)),
    };
    head.push(0);
    head.extend(integer.to_le_bytes());
    Ok(())
}

#[allow(clippy::unnecessary_wraps, reason = "the last step of write_value")]
fn fraction(head: &mut Vec<u8>, value: f64) -> Result<()> {
    head.push(1);
    head.extend(value.to_le_bytes());
    Ok(())
}

fn text(head: &mut Vec<u8>, bytes: &[u8]) -> Result<()> {
    head.extend(length(bytes.len())?);
    head.extend(bytes);
    Ok(())
}

fn length(n: usize) -> Result<[u8; 4]> {
    let n = u32::try_from(n)
        .map_err(|_| Error::new(ErrorKind::Misuse, format!("LLMW cannot hold a length of {n}")))?;
    Ok(n.to_le_bytes())
}

fn cannot_hold(key: &str, value: &Value) -> Error {
    Error::new(ErrorKind::Misuse, format!("LLMW cannot hold '{key}', {}", value.type_name()))
        .with("key", key)
}
