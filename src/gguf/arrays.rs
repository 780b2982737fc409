//! Metadata arrays, read as far as the bytes go and taken up again when there are more.

use super::Array;
use super::cursor::{Cursor, Stop, append, fail, reserve};
use super::parse_error::ParseError;

/// An array that is being read, with the arrays it is nested in.
#[derive(Debug)]
pub(super) struct ArrayParser {
    /// Outermost first; never empty while the array is open.
    open: Vec<Open>,
}

#[derive(Debug)]
struct Open {
    array: Array,
    /// Elements still to come.
    remaining: u64,
}

/// Arrays in arrays in arrays…: no writer goes beyond two.
const MAX_DEPTH: usize = 8;

/// Elements for which room is made before they have been seen: one allocation for a vocabulary of the usual sizes.
const ROOM_AHEAD: u64 = 1 << 18;

/// Room for a string before it has been seen: tokens and merges of real vocabularies take 6 to 10 bytes.
const USUAL_STRING_BYTES: usize = 8;

impl ArrayParser {
    /// Reads element type and count.
    pub(super) fn begin(cursor: &mut Cursor<'_>) -> Result<Self, Stop> {
        Ok(Self { open: vec![Open::begin(cursor)?] })
    }

    /// Reads on; gives the array when it is whole.
    pub(super) fn advance(&mut self, cursor: &mut Cursor<'_>) -> Result<Array, Stop> {
        loop {
            let depth = self.open.len();
            let Some(top) = self.open.last_mut() else {
                return cursor.malformed("no array is open");
            };
            if top.remaining > 0 {
                if !matches!(top.array, Array::Arrays(_)) {
                    top.fill(cursor)?;
                } else if depth == MAX_DEPTH {
                    return cursor
                        .malformed(format!("arrays are nested more than {MAX_DEPTH} deep"));
                } else {
                    let inner = cursor.unit(Open::begin)?;
                    self.open.push(inner);
                }
                continue;
            }
            let Some(Open { mut array, .. }) = self.open.pop() else { continue };
            if let Array::Strings { bytes, .. } = &mut array {
                bytes.shrink_to_fit();
            }
            match self.open.last_mut() {
                None => return Ok(array),
                Some(Open { array: Array::Arrays(outer), remaining }) => {
                    reserve(outer, 1)?;
                    outer.push(array);
                    *remaining -= 1;
                }
                Some(_) => {
                    return cursor.malformed("an array stands inside an array of something else");
                }
            }
        }
    }
}

impl Open {
    fn begin(cursor: &mut Cursor<'_>) -> Result<Self, Stop> {
        let ty = cursor.u32()?;
        let remaining = cursor.u64()?;
        let (array, min_bytes) = match ty {
            0 => (Array::U8(Vec::new()), 1),
            1 => (Array::I8(Vec::new()), 1),
            2 => (Array::U16(Vec::new()), 2),
            3 => (Array::I16(Vec::new()), 2),
            4 => (Array::U32(Vec::new()), 4),
            5 => (Array::I32(Vec::new()), 4),
            6 => (Array::F32(Vec::new()), 4),
            7 => (Array::Bool(Vec::new()), 1),
            8 => (Array::Strings { bytes: Vec::new(), ends: Vec::new() }, 8),
            9 => (Array::Arrays(Vec::new()), 12),
            10 => (Array::U64(Vec::new()), 8),
            11 => (Array::I64(Vec::new()), 8),
            12 => (Array::F64(Vec::new()), 8),
            _ => return cursor.malformed(format!("array elements of the unknown type {ty}")),
        };
        cursor.check_count("array elements", remaining, min_bytes, u64::from(u32::MAX))?;
        Ok(Self { array, remaining })
    }

    /// Takes as many elements as are at hand, at least one.
    fn fill(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Stop> {
        let left = &mut self.remaining;
        match &mut self.array {
            Array::U8(v) => numbers(v, left, cursor, u8::from_le_bytes),
            Array::I8(v) => numbers(v, left, cursor, i8::from_le_bytes),
            Array::U16(v) => numbers(v, left, cursor, u16::from_le_bytes),
            Array::I16(v) => numbers(v, left, cursor, i16::from_le_bytes),
            Array::U32(v) => numbers(v, left, cursor, u32::from_le_bytes),
            Array::I32(v) => numbers(v, left, cursor, i32::from_le_bytes),
            Array::F32(v) => numbers(v, left, cursor, f32::from_le_bytes),
            Array::U64(v) => numbers(v, left, cursor, u64::from_le_bytes),
            Array::I64(v) => numbers(v, left, cursor, i64::from_le_bytes),
            Array::F64(v) => numbers(v, left, cursor, f64::from_le_bytes),
            Array::Bool(v) => bools(v, left, cursor),
            Array::Strings { bytes, ends } => strings(bytes, ends, left, cursor),
            Array::Arrays(_) => cursor.malformed("an array is taken for a number"),
        }
    }
}

fn numbers<T, const N: usize>(
    out: &mut Vec<T>,
    left: &mut u64,
    cursor: &mut Cursor<'_>,
    convert: fn([u8; N]) -> T,
) -> Result<(), Stop> {
    if out.is_empty() {
        reserve(out, room_ahead(*left))?;
    }
    let n = ((cursor.available() / N) as u64).min(*left).max(1);
    let (values, _) = cursor.take(n * N as u64)?.as_chunks::<N>();
    reserve(out, values.len())?;
    out.extend(values.iter().map(|bytes| convert(*bytes)));
    *left -= n;
    Ok(())
}

fn bools(out: &mut Vec<bool>, left: &mut u64, cursor: &mut Cursor<'_>) -> Result<(), Stop> {
    let (start, mut seen) = (cursor.position(), Vec::new());
    numbers(&mut seen, left, cursor, u8::from_le_bytes)?;
    if let Some(bad) = seen.iter().find(|b| **b > 1) {
        return fail(ParseError::Malformed {
            problem: format!("a bool of {bad} in the array"),
            offset: start,
        });
    }
    reserve(out, seen.len())?;
    out.extend(seen.iter().map(|b| *b == 1));
    Ok(())
}

fn strings(
    bytes: &mut Vec<u8>,
    ends: &mut Vec<u32>,
    left: &mut u64,
    cursor: &mut Cursor<'_>,
) -> Result<(), Stop> {
    if ends.is_empty() {
        let room = room_ahead(*left);
        reserve(ends, room)?;
        reserve(bytes, room * USUAL_STRING_BYTES)?;
    }
    while *left > 0 {
        let string = cursor.unit(Cursor::string)?;
        append(bytes, string)?;
        reserve(ends, 1)?;
        // The cursor bounds the header far below 4 GiB.
        ends.push(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        *left -= 1;
    }
    Ok(())
}

fn room_ahead(count: u64) -> usize {
    usize::try_from(count.min(ROOM_AHEAD)).unwrap_or(0)
}
