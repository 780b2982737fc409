//! Reading LLMW: the same facts under the same keys as the model's GGUF would give.

use super::super::cursor::{Cursor, Stop, fail};
use super::super::parse_error::ParseError;
use super::super::{Header, Metadata, TensorEntry, TensorType, Value, directory};
use super::{ALIGNMENT, VERSION, keys};
use crate::quant::GgmlType;

const MIN_ENTRY_BYTES: u64 = 4 + 1 + 4;
const MIN_TENSOR_BYTES: u64 = 4 + 4 + 4 + 8 + 8;
const MAX_ENTRIES: u64 = 1 << 12;
const MAX_TENSORS: u64 = 1 << 16;
const MAX_DIMS: u32 = 4;

/// The header, from the first byte of the file on.
pub(in crate::gguf) fn parse(cursor: &mut Cursor<'_>) -> Result<Header, Stop> {
    cursor.array::<4>()?;
    let version = cursor.u32()?;
    if version != VERSION {
        return cursor.malformed(format!("version {version} of LLMW (only {VERSION} is read)"));
    }
    let (n_entries, n_tensors) = (cursor.u32()?, cursor.u32()?);
    cursor.check_count("metadata entries", n_entries.into(), MIN_ENTRY_BYTES, MAX_ENTRIES)?;
    cursor.check_count("tensors", n_tensors.into(), MIN_TENSOR_BYTES, MAX_TENSORS)?;

    let mut entries = Vec::new();
    for _ in 0..n_entries {
        entries.push(entry(cursor)?);
    }
    let mut header = Header { metadata: long_keys(entries)?, ..Header::default() };
    for _ in 0..n_tensors {
        header.tensors.push(tensor(cursor)?);
    }
    let header_end = cursor.position();
    let data_offset = header_end.next_multiple_of(ALIGNMENT);
    directory::check(&mut header, header_end, data_offset, cursor.file_bytes())?;
    imply(&mut header);
    Ok(header)
}

fn entry<'a>(cursor: &mut Cursor<'a>) -> Result<(&'a str, Value), Stop> {
    let key = text(cursor)?;
    if key.is_empty() {
        return cursor.malformed("an empty metadata key");
    }
    let [ty] = cursor.array()?;
    let value = match ty {
        0 => Value::I64(i64::from_le_bytes(cursor.array()?)),
        1 => Value::F64(f64::from_le_bytes(cursor.array()?)),
        _ => Value::String(text(cursor)?.as_bytes().into()),
    };
    Ok((key, value))
}

fn tensor(cursor: &mut Cursor<'_>) -> Result<TensorEntry, Stop> {
    let name = text(cursor)?;
    let id = cursor.u32()?;
    let ty = GgmlType::from_id(id).map_or(TensorType::Unknown(id), TensorType::Known);
    let n_dims = cursor.u32()?;
    if n_dims > MAX_DIMS {
        return cursor
            .malformed(format!("tensor '{name}' has {n_dims} dimensions, more than {MAX_DIMS}"));
    }
    let mut shape = Vec::new();
    for _ in 0..n_dims {
        shape.push(cursor.u64()?);
    }
    shape.reverse();
    let (offset, n_bytes) = (cursor.u64()?, cursor.u64()?);
    let entry = directory::entry(name, ty, shape, offset)?;
    if matches!(ty, TensorType::Known(_)) && entry.n_bytes != n_bytes {
        let problem =
            format!("has {n_bytes} bytes by the directory, {} by its dimensions", entry.n_bytes);
        return fail(ParseError::Tensor { tensor: entry.name, problem });
    }
    Ok(entry)
}

fn text<'a>(cursor: &mut Cursor<'a>) -> Result<&'a str, Stop> {
    let len = cursor.u32()?;
    let bytes = cursor.take(len.into())?;
    core::str::from_utf8(bytes)
        .or_else(|_| cursor.malformed(format!("'{}' is not UTF-8", bytes.escape_ascii())))
}

fn long_keys(entries: Vec<(&str, Value)>) -> Result<Metadata, Stop> {
    let mut architecture = String::new();
    if let Some((_, Value::String(name))) =
        entries.iter().find(|(key, _)| *key == keys::ARCHITECTURE)
    {
        architecture = String::from_utf8_lossy(name).into_owned();
    }
    let mut metadata = Metadata::default();
    for (key, value) in entries {
        let (long, is_fraction) = keys::long(key, &architecture);
        if metadata.insert(long, narrow(value, is_fraction)).is_some() {
            return fail(ParseError::Key {
                key: key.to_owned(),
                problem: "stands there twice".to_owned(),
            });
        }
    }
    Ok(metadata)
}

/// GGUF writers use 32 bits for what fits them.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::float_cmp,
    reason = "fractions are rounded to f32 as GGUF's are; any other value narrows only if nothing is lost"
)]
fn narrow(value: Value, is_fraction: bool) -> Value {
    match value {
        Value::I64(v) if is_fraction => Value::F32(v as f32),
        Value::I64(v) => u32::try_from(v).map_or(Value::I64(v), Value::U32),
        Value::F64(v) if is_fraction || f64::from(v as f32) == v => Value::F32(v as f32),
        other => other,
    }
}

/// What the format leaves unsaid: there is no vocabulary, its size is the rows of the embedding, and the heads of K and
/// V are of one size.
fn imply(header: &mut Header) {
    let n_vocab = header.tensor("token_embd.weight").map(TensorEntry::n_rows);
    let metadata = &mut header.metadata;
    if metadata.get("tokenizer.ggml.model").is_none() {
        metadata.insert("tokenizer.ggml.model", Value::String(b"none".as_slice().into()));
    }
    let Ok(Some(architecture)) =
        metadata.get_str("general.architecture").map(|a| a.map(str::to_owned))
    else {
        return;
    };
    let n_vocab = n_vocab.and_then(|n| u32::try_from(n).ok()).map(Value::U32);
    let key_length = metadata.get(&format!("{architecture}.attention.key_length")).cloned();
    for (suffix, value) in [("vocab_size", n_vocab), ("attention.value_length", key_length)] {
        let key = format!("{architecture}.{suffix}");
        if let (None, Some(value)) = (metadata.get(&key), value) {
            metadata.insert(key, value);
        }
    }
}
