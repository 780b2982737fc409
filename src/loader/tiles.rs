//! Finding the tile that a pass asks for: among the residents, in the ring, or among the rows that the pass itself named.

use super::directory::internal;
use super::order::{row_too_long, rows_at_a_time};
use super::ring::Asked;
use super::rows::{self, Found};
use super::slot::{Rows, Slot};
use super::slots::Span;
use super::{From, Loader, Tile, index_u32};
use crate::error::Result;
use crate::model::{Phase, Use};
use crate::planner::EMBED_ROWS;

/// Rows of one use, all resident or none.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    use_index: usize,
    u: Use,
    first_row: u32,
    n_rows: u32,
}

impl Loader {
    /// The tile, if it is there or a synchronous source brings it.
    pub(super) fn find(
        &mut self,
        use_index: usize,
        first_row: u32,
        n_rows: u32,
    ) -> Result<Option<Tile>> {
        let known = self.directory.uses.get(use_index).copied().filter(|u| {
            let end = u64::from(first_row) + u64::from(n_rows);
            n_rows > 0
                && first_row >= u.first_row
                && end <= u64::from(u.first_row) + u64::from(u.n_rows)
        });
        let Some(u) = known else {
            return Err(internal(format!(
                "{n_rows} rows from row {first_row} on are not of use {use_index}"
            )));
        };
        let run = self.directory.run_of(u.tensor).map(|i| (i, self.directory.runs[i]));
        let mut wanted = Wanted { use_index, u, first_row, n_rows };
        match run {
            Some((i, run))
                if first_row >= run.first_row && first_row - run.first_row < run.n_rows =>
            {
                return self.resident_tile(i, wanted);
            }
            Some((_, run)) if first_row < run.first_row => {
                wanted.n_rows = n_rows.min(run.first_row - first_row);
            }
            _ => {}
        }
        if u.deferred { self.named_tile(wanted) } else { self.ring_tile(wanted) }
    }

    fn resident_tile(&mut self, run: usize, wanted: Wanted) -> Result<Option<Tile>> {
        let Wanted { use_index, u, first_row, n_rows } = wanted;
        let tile =
            |(n_rows, span)| Tile { use_index, first_row, n_rows, span, from: From::Resident };
        if let Some(found) = self.residents.rows_from(run, first_row, n_rows) {
            return Ok(Some(tile(found)));
        }
        if u.deferred && u.phase == Phase::Embed {
            // One row now is better than waiting for a piece of the table.
            return self.named_tile(Wanted { n_rows: 1, ..wanted });
        }
        let chunk = self.residents.chunk_of(run, first_row);
        if let Some(e) = self.residents.take_error(Some(chunk)) {
            return Err(e);
        }
        self.start_chunk(Some(chunk));
        self.settle();
        if let Some(e) = self.residents.take_error(Some(chunk)) {
            return Err(e);
        }
        Ok(self.residents.rows_from(run, first_row, n_rows).map(tile))
    }

    fn ring_tile(&mut self, wanted: Wanted) -> Result<Option<Tile>> {
        let Wanted { use_index, first_row, n_rows, u } = wanted;
        let row = (index_u32(use_index), first_row);
        let mut may_start = true;
        loop {
            let Self { slots, io, n_ring, .. } = self;
            let close = |slot| io.slots.close(slot);
            let (asked, first_time) = self.ring.ask(row, &mut slots[..*n_ring], close)?;
            if first_time && matches!(asked, Asked::Ready(..)) {
                self.stats.prefetch_hits += 1;
            } else if first_time {
                self.stats.prefetch_misses += 1;
            }
            match asked {
                Asked::Ready(slot, piece) => {
                    let skip = first_row - piece.first_row;
                    let n_rows = n_rows.min(piece.n_rows - skip);
                    let row_bytes = u.row_bytes as usize;
                    let start = piece.at as usize + skip as usize * row_bytes;
                    let span = Span { region: slot, start, len: n_rows as usize * row_bytes };
                    let from = From::Ring { pass: self.pass };
                    return Ok(Some(Tile { use_index, first_row, n_rows, span, from }));
                }
                Asked::NotStarted if may_start => {
                    self.start_next(true);
                    self.settle();
                    may_start = false;
                }
                _ => return Ok(None),
            }
        }
    }

    fn named_tile(&mut self, wanted: Wanted) -> Result<Option<Tile>> {
        let Wanted { use_index, u, first_row, n_rows } = wanted;
        let wanted_end = first_row + n_rows;
        if matches!(self.find_rows(&u, first_row)?.1, Found::Absent) {
            self.start_named(use_index, &u, first_row, n_rows, true)?;
            self.settle();
        }
        let (first_slot, found) = self.find_rows(&u, first_row)?;
        if u.phase == Phase::Embed && !self.at_once {
            self.start_expected(use_index, &u, first_row)?;
        }
        let Found::Ready(i, held) = found else { return Ok(None) };
        let held_end = held.first_row + held.n_rows;
        if !self.at_once
            && held_end < wanted_end
            && !rows::holds(u.tensor, held_end, self.places_of(&u).1)
        {
            self.start_named(use_index, &u, held_end, wanted_end - held_end, false)?;
        }
        let n_rows = held_end.min(wanted_end) - first_row;
        let row_bytes = u.row_bytes as usize;
        let start = (first_row - held.first_row) as usize * row_bytes;
        let slot = first_slot + i;
        let span = Span { region: slot, start, len: n_rows as usize * row_bytes };
        Ok(Some(Tile { use_index, first_row, n_rows, span, from: From::Rows { slot } }))
    }

    /// Starts reading the embedding rows that the pass will ask for after `row`.
    fn start_expected(&mut self, use_index: usize, u: &Use, row: u32) -> Result<()> {
        if self.expected_use != use_index {
            (self.expected_use, self.expected_at) = (use_index, 0);
        }
        let Some(at) = self.expected[self.expected_at..].iter().position(|r| *r == row) else {
            return Ok(());
        };
        self.expected_at += at;
        for i in (self.expected_at + 1..self.expected.len()).take(EMBED_ROWS) {
            let row = self.expected[i];
            let of_use = row.checked_sub(u.first_row).is_some_and(|at| at < u.n_rows);
            let there =
                self.is_resident(u.tensor, row) || rows::holds(u.tensor, row, self.places_of(u).1);
            if of_use && !there && !self.start_named(use_index, u, row, 1, false)? {
                break;
            }
        }
        Ok(())
    }

    fn is_resident(&self, tensor: u32, row: u32) -> bool {
        self.directory.run_of(tensor).is_some_and(|i| {
            let run = self.directory.runs[i];
            let inside = row.checked_sub(run.first_row).is_some_and(|at| at < run.n_rows);
            inside && self.residents.rows_from(i, row, 1).is_some()
        })
    }

    fn find_rows(&mut self, u: &Use, row: u32) -> Result<(u32, Found)> {
        let (first_slot, places) = self.places_of(u);
        Ok((first_slot, rows::find(u.tensor, row, places)?))
    }

    /// Starts reading rows of a deferred use, as many of `n_rows` as fit a slot, if there is one for them.
    fn start_named(
        &mut self,
        use_index: usize,
        u: &Use,
        first_row: u32,
        n_rows: u32,
        demanded: bool,
    ) -> Result<bool> {
        let place_bytes =
            if u.phase == Phase::Embed { u.row_bytes as usize } else { self.slot_bytes };
        let n_rows = rows_at_a_time(n_rows, u.row_bytes, place_bytes)
            .ok_or_else(|| row_too_long(&self.directory, u, place_bytes))?;
        let rows = Rows { use_index: index_u32(use_index), tensor: u.tensor, first_row, n_rows };
        Ok(self.start_rows(rows, u, demanded))
    }

    /// The slots that may hold rows of a deferred use, and the first one's number.
    pub(super) fn places_of(&mut self, u: &Use) -> (u32, &mut [Slot]) {
        let (ring, embed) = self.slots.split_at_mut(self.n_ring);
        if u.phase == Phase::Embed { (index_u32(self.n_ring), embed) } else { (0, ring) }
    }
}
