//! Writes model files: head, directory, tensors with their padding, piece by piece into a sink. It holds no tensor data.

use super::{Array, Format, Metadata, Strings, Value, llmw};
use crate::error::{Error, ErrorKind, Result};
use crate::quant::GgmlType;

/// A tensor that is going to be written.
#[derive(Debug, Clone, Copy)]
pub struct TensorSpec<'a> {
    /// GGUF name.
    pub name: &'a str,
    /// Number format.
    pub ty: GgmlType,
    /// Sizes in ggml's order: the length of a row first.
    pub shape: &'a [u64],
}

/// A file that is being written. The sink takes its bytes in order.
#[derive(Debug)]
pub struct ModelWriter<S> {
    sink: S,
    position: u64,
    /// First byte and end of each tensor that is not complete, last one first.
    places: Vec<(u64, u64)>,
    alignment: u64,
}

const ZEROS: [u8; 256] = [0; 256];
const GGUF_VERSION: u32 = 3;
const MAX_ALIGNMENT: u64 = 1 << 16;

impl<S: FnMut(&[u8]) -> Result<()>> ModelWriter<S> {
    /// Writes the head of the file: `metadata` and the directory of `tensors`, whose data must follow in that order.
    ///
    /// # Errors
    /// `misuse` if a tensor's rows are no whole blocks or the format cannot hold a value; what the sink says.
    pub fn new(
        format: Format,
        metadata: &Metadata,
        tensors: &[TensorSpec<'_>],
        sink: S,
    ) -> Result<Self> {
        let sizes: Vec<u64> = tensors.iter().map(TensorSpec::n_bytes).collect::<Result<_>>()?;
        let (alignment, head) = match format {
            Format::Gguf => {
                let alignment = metadata.get_u64("general.alignment")?.unwrap_or(32);
                if !alignment.is_power_of_two() || alignment > MAX_ALIGNMENT {
                    let message = format!("an alignment of {alignment} is not written");
                    return Err(Error::new(ErrorKind::Misuse, message));
                }
                (alignment, gguf_head(metadata, tensors, &sizes, alignment))
            }
            Format::Llmw => (llmw::ALIGNMENT, llmw::head(metadata, tensors, &sizes)?),
        };
        let mut places = Vec::new();
        let mut offset = head.len() as u64;
        for n_bytes in sizes {
            offset = offset.next_multiple_of(alignment);
            places.push((offset, offset + n_bytes));
            offset += n_bytes;
        }
        places.reverse();
        let mut writer = Self { sink, position: 0, places, alignment };
        writer.emit(&head)?;
        Ok(writer)
    }

    /// Bytes of the finished file.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        let end = self.places.first().map_or(self.position, |(_, end)| *end);
        end.next_multiple_of(self.alignment)
    }

    /// Writes the next bytes of tensor data. A piece may hold parts of several tensors, without padding.
    ///
    /// # Errors
    /// `misuse` if the tensors have no room for so many; what the sink says.
    pub fn write(&mut self, mut data: &[u8]) -> Result<()> {
        while !data.is_empty() {
            let Some((start, end)) = self.places.last().copied() else {
                return Err(Error::new(
                    ErrorKind::Misuse,
                    format!("{} bytes after the last tensor", data.len()),
                ));
            };
            self.pad(start)?;
            let n = usize::try_from(end - self.position)
                .map_or(data.len(), |left| left.min(data.len()));
            let (now, later) = data.split_at(n);
            self.emit(now)?;
            data = later;
            if self.position == end {
                self.places.pop();
            }
        }
        Ok(())
    }

    /// Pads the end of the file.
    ///
    /// # Errors
    /// `misuse` if a tensor is not complete; what the sink says.
    pub fn finish(mut self) -> Result<()> {
        if let Some((_, end)) = self.places.first() {
            let message =
                format!("the tensors end at byte {end}, only {} are written", self.position);
            return Err(Error::new(ErrorKind::Misuse, message));
        }
        self.pad(self.position.next_multiple_of(self.alignment))
    }

    fn pad(&mut self, until: u64) -> Result<()> {
        while self.position < until {
            let n =
                usize::try_from(until - self.position).map_or(ZEROS.len(), |n| n.min(ZEROS.len()));
            self.emit(&ZEROS[..n])?;
        }
        Ok(())
    }

    fn emit(&mut self, bytes: &[u8]) -> Result<()> {
        self.position += bytes.len() as u64;
        (self.sink)(bytes)
    }
}

impl TensorSpec<'_> {
    /// Stored bytes of the whole tensor.
    ///
    /// # Errors
    /// `misuse` if its rows are no whole blocks, or the size overflows.
    pub fn n_bytes(&self) -> Result<u64> {
        let row_bytes = self.ty.row_bytes(self.shape.first().copied().unwrap_or(1));
        let n_rows = self.shape.iter().skip(1).try_fold(1u64, |n, dim| n.checked_mul(*dim));
        let n_bytes =
            row_bytes.zip(n_rows).and_then(|(row, n)| row.checked_mul(n)).filter(|n| *n > 0);
        n_bytes.ok_or_else(|| {
            let message = format!(
                "tensor '{}' of type {} cannot have the shape {:?}",
                self.name, self.ty, self.shape
            );
            Error::new(ErrorKind::Misuse, message).with("tensor", self.name)
        })
    }
}

fn gguf_head(
    metadata: &Metadata,
    tensors: &[TensorSpec<'_>],
    sizes: &[u64],
    alignment: u64,
) -> Vec<u8> {
    let mut head = b"GGUF".to_vec();
    head.extend(GGUF_VERSION.to_le_bytes());
    length(&mut head, tensors.len());
    length(&mut head, metadata.len());
    for (key, value) in metadata.iter() {
        text(&mut head, key.as_bytes());
        head.extend(type_id(value).to_le_bytes());
        write_value(&mut head, value);
    }
    let mut offset = 0u64;
    for (tensor, n_bytes) in tensors.iter().zip(sizes) {
        text(&mut head, tensor.name.as_bytes());
        let n_dims = u32::try_from(tensor.shape.len()).unwrap_or(u32::MAX);
        head.extend(n_dims.to_le_bytes());
        head.extend(tensor.shape.iter().flat_map(|dim| dim.to_le_bytes()));
        head.extend(tensor.ty.id().to_le_bytes());
        head.extend(offset.to_le_bytes());
        offset = (offset + n_bytes).next_multiple_of(alignment);
    }
    head.resize(head.len().next_multiple_of(usize::try_from(alignment).unwrap_or(1)), 0);
    head
}

fn type_id(value: &Value) -> u32 {
    match value {
        Value::U8(_) => 0,
        Value::I8(_) => 1,
        Value::U16(_) => 2,
        Value::I16(_) => 3,
        Value::U32(_) => 4,
        Value::I32(_) => 5,
        Value::F32(_) => 6,
        Value::Bool(_) => 7,
        Value::String(_) => 8,
        Value::Array(_) => 9,
        Value::U64(_) => 10,
        Value::I64(_) => 11,
        Value::F64(_) => 12,
    }
}

fn write_value(head: &mut Vec<u8>, value: &Value) {
    match value {
        Value::U8(v) => head.extend(v.to_le_bytes()),
        Value::I8(v) => head.extend(v.to_le_bytes()),
        Value::U16(v) => head.extend(v.to_le_bytes()),
        Value::I16(v) => head.extend(v.to_le_bytes()),
        Value::U32(v) => head.extend(v.to_le_bytes()),
        Value::I32(v) => head.extend(v.to_le_bytes()),
        Value::F32(v) => head.extend(v.to_le_bytes()),
        Value::Bool(v) => head.push(u8::from(*v)),
        Value::String(v) => text(head, v),
        Value::Array(v) => write_array(head, v),
        Value::U64(v) => head.extend(v.to_le_bytes()),
        Value::I64(v) => head.extend(v.to_le_bytes()),
        Value::F64(v) => head.extend(v.to_le_bytes()),
    }
}

fn write_array(head: &mut Vec<u8>, array: &Array) {
    fn elements<T: Copy, const N: usize>(
        head: &mut Vec<u8>,
        id: u32,
        values: &[T],
        bytes: fn(T) -> [u8; N],
    ) {
        head.extend(id.to_le_bytes());
        length(head, values.len());
        head.extend(values.iter().flat_map(|v| bytes(*v)));
    }
    match array {
        Array::U8(v) => elements(head, 0, v, u8::to_le_bytes),
        Array::I8(v) => elements(head, 1, v, i8::to_le_bytes),
        Array::U16(v) => elements(head, 2, v, u16::to_le_bytes),
        Array::I16(v) => elements(head, 3, v, i16::to_le_bytes),
        Array::U32(v) => elements(head, 4, v, u32::to_le_bytes),
        Array::I32(v) => elements(head, 5, v, i32::to_le_bytes),
        Array::F32(v) => elements(head, 6, v, f32::to_le_bytes),
        Array::Bool(v) => elements(head, 7, v, |b| [u8::from(b)]),
        Array::Strings { bytes, ends } => {
            head.extend(8u32.to_le_bytes());
            length(head, ends.len());
            Strings::new(bytes, ends).iter().for_each(|s| text(head, s));
        }
        Array::Arrays(v) => {
            head.extend(9u32.to_le_bytes());
            length(head, v.len());
            v.iter().for_each(|inner| write_array(head, inner));
        }
        Array::U64(v) => elements(head, 10, v, u64::to_le_bytes),
        Array::I64(v) => elements(head, 11, v, i64::to_le_bytes),
        Array::F64(v) => elements(head, 12, v, f64::to_le_bytes),
    }
}

fn text(head: &mut Vec<u8>, bytes: &[u8]) {
    length(head, bytes.len());
    head.extend(bytes);
}

fn length(head: &mut Vec<u8>, n: usize) {
    head.extend((n as u64).to_le_bytes());
}
