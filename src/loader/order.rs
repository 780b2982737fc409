//! The order of reading: uses → the tiles that one pass takes → the reads that fetch them. Pure; it knows no memory.
//!
//! A *piece* is a tile's worth: whole rows of one use that fit a slot. A *read* is an unbroken run of pieces in the order of
//! use whose bytes lie together in the file, in whichever order: the slot is free again when the last of them has been used,
//! so one slot is enough for any order.

use crate::error::Result;
use crate::model::{Phase, Use};
use crate::source::FileRange;

use super::directory::{Directory, internal};

/// The streamed part of a pass.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// In the order of use.
    pub(super) pieces: Box<[Piece]>,
    /// In the order of use.
    pub(super) reads: Box<[Read]>,
    /// The first read of the output head, which a pass may leave out; all behind it are of the head too.
    pub(super) head_read: u32,
}

/// Rows of one use that one read brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) use_index: u32,
    pub(super) first_row: u32,
    pub(super) n_rows: u32,
    /// Where in the slot the first row starts.
    pub(super) at: u32,
}

/// Adjacent bytes of a file that fill one slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Read {
    pub(super) offset: u64,
    pub(super) len: u32,
    pub(super) file: u32,
    /// Its pieces go on to the next read's first.
    pub(super) first_piece: u32,
}

impl Order {
    /// # Errors
    /// `internal` when a row does not fit a slot or the head is not last: the planner and the model see to both.
    pub(super) fn new(directory: &Directory, slot_bytes: usize) -> Result<Self> {
        let stops = split_uses(directory, slot_bytes)?;
        let mut order = Self::default();
        let mut pieces = Vec::with_capacity(stops.len());
        let mut reads = Vec::new();
        let mut head_read = None;
        let mut i = 0;
        while i < stops.len() {
            let in_head = stops[i].phase == Phase::Head;
            if in_head && head_read.is_none() {
                head_read = Some(number(reads.len())?);
            } else if !in_head && head_read.is_some() {
                return Err(internal("a use of a layer comes after the output head".to_owned()));
            }
            let (n, hull) = together(&stops[i..], slot_bytes);
            let first_piece = number(pieces.len())?;
            reads.push(Read {
                offset: hull.offset,
                len: number(hull.len)?,
                file: hull.file,
                first_piece,
            });
            for stop in &stops[i..i + n] {
                let at = usize::try_from(stop.range.offset - hull.offset).unwrap_or(usize::MAX);
                pieces.push(Piece { at: number(at)?, ..stop.piece });
            }
            i += n;
        }
        order.head_read = head_read.map_or_else(|| number(reads.len()), Ok)?;
        order.pieces = pieces.into();
        order.reads = reads.into();
        Ok(order)
    }

    /// Pieces from here on belong to the read after `read`.
    pub(super) fn end_of_read(&self, read: u32) -> u32 {
        match self.reads.get(read as usize + 1) {
            Some(next) => next.first_piece,
            None => u32::try_from(self.pieces.len()).unwrap_or(u32::MAX),
        }
    }

    /// How many reads a pass with or without the head makes.
    pub(super) fn n_reads(&self, head: bool) -> u32 {
        if head { u32::try_from(self.reads.len()).unwrap_or(u32::MAX) } else { self.head_read }
    }

    /// How many pieces a pass with or without the head takes.
    pub(super) fn n_pieces(&self, head: bool) -> u32 {
        match self.n_reads(head) {
            0 => 0,
            n => self.end_of_read(n - 1),
        }
    }
}

impl Read {
    pub(super) fn range(&self) -> FileRange {
        FileRange { file: self.file, offset: self.offset, len: self.len as usize }
    }
}

/// How many rows of `row_bytes` a part of `n_rows` is read at a time: as few reads as slots of `slot_bytes` allow, of
/// nearly equal size, in multiples of what kernels compute together where that costs no further read. `None` if not one fits.
pub(super) fn rows_at_a_time(n_rows: u32, row_bytes: u32, slot_bytes: usize) -> Option<u32> {
    let room = u32::try_from(slot_bytes / row_bytes as usize).unwrap_or(u32::MAX);
    if room == 0 {
        return None;
    }
    let n_reads = n_rows.div_ceil(room);
    let rows = n_rows.div_ceil(n_reads.max(1));
    let even = rows.next_multiple_of(ROWS_TOGETHER);
    Some(if even <= room { even } else { rows }.min(n_rows))
}

/// A piece with what decides whether it shares a read with its neighbours.
#[derive(Debug, Clone, Copy)]
struct Stop {
    piece: Piece,
    range: FileRange,
    phase: Phase,
    /// Rows that the pass will name come before it, and they need a slot of their own.
    fresh: bool,
    /// It grows in its slot when it has been read.
    alone: bool,
}

fn split_uses(directory: &Directory, slot_bytes: usize) -> Result<Vec<Stop>> {
    let mut stops = Vec::new();
    let mut fresh = false;
    for (use_index, u) in (0u32..).zip(&directory.uses) {
        if u.phase == Phase::Open || !directory.streams(u) {
            continue;
        }
        if u.deferred {
            // Embedding rows have places of their own.
            fresh |= u.phase != Phase::Embed;
            continue;
        }
        for (first, end) in directory.streamed_parts(u) {
            if first == end {
                continue;
            }
            let rows = rows_at_a_time(end - first, u.row_bytes, slot_bytes)
                .ok_or_else(|| row_too_long(directory, u, slot_bytes))?;
            for first_row in (first..end).step_by(rows as usize) {
                let n_rows = rows.min(end - first_row);
                let range = directory.range(u.tensor, first_row, n_rows);
                let piece = Piece { use_index, first_row, n_rows, at: 0 };
                let alone = directory.dequantised(u.tensor).is_some();
                stops.push(Stop { piece, range, phase: u.phase, fresh, alone });
                fresh = false;
            }
        }
    }
    Ok(stops)
}

pub(super) fn row_too_long(
    directory: &Directory,
    u: &Use,
    slot_bytes: usize,
) -> crate::error::Error {
    let name = directory.name(u.tensor);
    internal(format!("a row of {name} has {} bytes, a slot {slot_bytes}", u.row_bytes))
}

/// How many of the first stops one read brings, and its bytes: as many as fill a slot and waste little.
fn together(stops: &[Stop], slot_bytes: usize) -> (usize, FileRange) {
    let first = &stops[0];
    let mut best = (1, first.range);
    let (mut start, mut end) = (first.range.offset, first.range.offset);
    let mut used = 0;
    for (i, stop) in stops.iter().enumerate() {
        let head = stop.phase == Phase::Head;
        let alone = first.alone || stop.alone;
        let apart = i > 0 && (stop.fresh || alone || head != (first.phase == Phase::Head));
        used += stop.range.len as u64;
        if apart || stop.range.file != first.range.file || used > slot_bytes as u64 {
            break;
        }
        start = start.min(stop.range.offset);
        end = end.max(stop.range.offset + stop.range.len as u64);
        let hull = end - start;
        // A tensor that lies between may be used a little later, so a hull that does not pay yet is no reason to stop.
        if hull <= slot_bytes as u64 && hull - used.min(hull) <= hull / WASTE {
            let len = usize::try_from(hull).unwrap_or(usize::MAX);
            best = (i + 1, FileRange { file: stop.range.file, offset: start, len });
        }
    }
    best
}

fn number(n: usize) -> Result<u32> {
    u32::try_from(n).map_err(|_| internal(format!("{n} is too many pieces or bytes for one slot")))
}

/// Rows that kernels compute at a time.
const ROWS_TOGETHER: u32 = 8;

/// At most one byte in so many may be read without being used.
const WASTE: u64 = 16;
