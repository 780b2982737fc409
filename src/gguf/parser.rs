//! GGUF, versions 2 and 3: preamble, metadata, tensor directory. The parser keeps what it has understood between calls
//! and stops at the first entry that is not whole. Source: the GGUF specification in ggml's docs.

use super::arrays::ArrayParser;
use super::cursor::{Cursor, Stop, append, fail, reserve};
use super::directory;
use super::parse_error::ParseError;
use super::{Header, Metadata, TensorEntry, TensorType, Value};
use crate::quant::GgmlType;

/// A GGUF header that is being read.
#[derive(Debug, Default)]
pub(super) struct GgufParser {
    counts: Option<Counts>,
    metadata: Metadata,
    /// The array that is being read, with its key.
    open: Option<(String, ArrayParser)>,
    tensors: Vec<TensorEntry>,
}

#[derive(Debug, Clone, Copy)]
struct Counts {
    n_tensors: u64,
    n_entries: u64,
}

/// The shortest entry: an empty key, a type and one byte.
const MIN_ENTRY_BYTES: u64 = 8 + 4 + 1;
/// The shortest tensor: an empty name, no dimensions, type and offset.
const MIN_TENSOR_BYTES: u64 = 8 + 4 + 4 + 8;
/// Far above any real file, and few enough to stay small in memory.
const MAX_ENTRIES: u64 = 1 << 16;
const MAX_TENSORS: u64 = 1 << 18;
const MAX_DIMS: u32 = 4;

impl GgufParser {
    /// Reads on; gives the header when it is whole. On [`Stop::Need`] the cursor stands at the first byte that is not
    /// understood yet.
    pub(super) fn advance(&mut self, cursor: &mut Cursor<'_>) -> Result<Header, Stop> {
        let counts = match self.counts {
            Some(counts) => counts,
            None => *self.counts.insert(cursor.unit(preamble)?),
        };
        loop {
            if let Some((_, array)) = &mut self.open {
                let value = Value::Array(array.advance(cursor)?);
                if let Some((key, _)) = self.open.take() {
                    self.metadata.insert(key, value);
                }
            } else if (self.metadata.len() as u64) < counts.n_entries {
                cursor.unit(|cursor| self.entry(cursor))?;
            } else if (self.tensors.len() as u64) < counts.n_tensors {
                let tensor = cursor.unit(tensor)?;
                reserve(&mut self.tensors, 1)?;
                self.tensors.push(tensor);
            } else {
                return self.finish(cursor);
            }
        }
    }

    /// Where the parser stands, for messages.
    pub(super) fn place(&self) -> String {
        let Some(counts) = self.counts else { return "GGUF header".to_owned() };
        let entry = self.metadata.len() as u64;
        if let Some((key, _)) = &self.open {
            format!("GGUF metadata '{key}'")
        } else if entry < counts.n_entries {
            format!("GGUF metadata entry {} of {}", entry + 1, counts.n_entries)
        } else if (self.tensors.len() as u64) < counts.n_tensors {
            format!("GGUF tensor {} of {}", self.tensors.len() + 1, counts.n_tensors)
        } else {
            "GGUF tensors".to_owned()
        }
    }

    fn entry(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Stop> {
        let key = text(cursor, "metadata key")?;
        if key.is_empty() {
            return cursor.malformed("an empty metadata key");
        }
        if self.metadata.get(key).is_some() {
            return fail(ParseError::Key {
                key: key.to_owned(),
                problem: "stands there twice".to_owned(),
            });
        }
        let ty = cursor.u32()?;
        let value = match ty {
            0 => Value::U8(u8::from_le_bytes(cursor.array()?)),
            1 => Value::I8(i8::from_le_bytes(cursor.array()?)),
            2 => Value::U16(u16::from_le_bytes(cursor.array()?)),
            3 => Value::I16(i16::from_le_bytes(cursor.array()?)),
            4 => Value::U32(cursor.u32()?),
            5 => Value::I32(i32::from_le_bytes(cursor.array()?)),
            6 => Value::F32(f32::from_le_bytes(cursor.array()?)),
            7 => match cursor.array()? {
                [0] => Value::Bool(false),
                [1] => Value::Bool(true),
                [other] => return cursor.malformed(format!("'{key}' has a bool of {other}")),
            },
            8 => Value::String(owned(cursor.string()?)?),
            9 => {
                self.open = Some((key.to_owned(), ArrayParser::begin(cursor)?));
                return Ok(());
            }
            10 => Value::U64(cursor.u64()?),
            11 => Value::I64(i64::from_le_bytes(cursor.array()?)),
            12 => Value::F64(f64::from_le_bytes(cursor.array()?)),
            _ => return cursor.malformed(format!("'{key}' has the unknown value type {ty}")),
        };
        self.metadata.insert(key, value);
        Ok(())
    }

    fn finish(&mut self, cursor: &Cursor<'_>) -> Result<Header, Stop> {
        let alignment = match self.metadata.get_u64("general.alignment") {
            Ok(alignment) => alignment.unwrap_or(32),
            Err(e) => return cursor.malformed(e.message()),
        };
        if !alignment.is_power_of_two() || alignment > u64::from(u32::MAX) {
            let problem = format!("is {alignment}, which is no power of two below 2^32");
            return fail(ParseError::Key { key: "general.alignment".to_owned(), problem });
        }
        let mut header = Header {
            metadata: core::mem::take(&mut self.metadata),
            tensors: Vec::new(),
            files: Vec::new(),
        };
        header.tensors = core::mem::take(&mut self.tensors);
        // Nothing is left to read: what is wrong from here on is wrong with the directory as a whole.
        self.counts = Some(Counts { n_tensors: 0, n_entries: 0 });
        let data_offset = cursor.position().next_multiple_of(alignment);
        for tensor in &mut header.tensors {
            if !tensor.offset.is_multiple_of(alignment) {
                let problem =
                    format!("lies at {}, not on a multiple of {alignment} bytes", tensor.offset);
                return fail(ParseError::Tensor { tensor: tensor.name.clone(), problem });
            }
            tensor.offset = match tensor.offset.checked_add(data_offset) {
                Some(offset) => offset,
                None => return fail(directory::overflow(tensor)),
            };
        }
        directory::check(&mut header, cursor.position(), data_offset, cursor.file_bytes())?;
        Ok(header)
    }
}

fn preamble(cursor: &mut Cursor<'_>) -> Result<Counts, Stop> {
    cursor.array::<4>()?;
    match cursor.u32()? {
        2 | 3 => {}
        version if version != 0 && version.trailing_zeros() >= 16 => {
            return fail(ParseError::BigEndian(version));
        }
        version => return fail(ParseError::Version(version)),
    }
    let (n_tensors, n_entries) = (cursor.u64()?, cursor.u64()?);
    cursor.check_count("tensors", n_tensors, MIN_TENSOR_BYTES, MAX_TENSORS)?;
    cursor.check_count("metadata entries", n_entries, MIN_ENTRY_BYTES, MAX_ENTRIES)?;
    Ok(Counts { n_tensors, n_entries })
}

/// A tensor whose offset is still relative to the data.
fn tensor(cursor: &mut Cursor<'_>) -> Result<TensorEntry, Stop> {
    let name = text(cursor, "tensor name")?;
    let n_dims = cursor.u32()?;
    if n_dims > MAX_DIMS {
        return cursor
            .malformed(format!("tensor '{name}' has {n_dims} dimensions, more than {MAX_DIMS}"));
    }
    let mut shape = Vec::new();
    for _ in 0..n_dims {
        shape.push(cursor.u64()?);
    }
    let id = cursor.u32()?;
    let ty = GgmlType::from_id(id).map_or(TensorType::Unknown(id), TensorType::Known);
    let offset = cursor.u64()?;
    directory::entry(name, ty, shape, offset)
}

fn owned(bytes: &[u8]) -> Result<Box<[u8]>, Stop> {
    let mut copy = Vec::new();
    append(&mut copy, bytes)?;
    Ok(copy.into_boxed_slice())
}

fn text<'a>(cursor: &mut Cursor<'a>, what: &str) -> Result<&'a str, Stop> {
    let bytes = cursor.string()?;
    match core::str::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(_) => {
            cursor.malformed(format!("a {what} that is not UTF-8 ('{}')", bytes.escape_ascii()))
        }
    }
}
