//! Rows that a pass names itself, when it gets there: embedding rows by token, experts by the router. They are read on
//! demand into slots that the order does not hold, and stay there until another read needs the slot.

use super::slot::{Content, Rows, Slot, State, pick};
use crate::error::Result;

/// Which slot holds a row, and how far its read is.
#[derive(Debug)]
pub(super) enum Found {
    /// The slot and the rows it holds.
    Ready(u32, Rows),
    /// It is being read.
    Reading,
    /// No slot has it.
    Absent,
}

/// Looks for a row of a tensor.
///
/// # Errors
/// The error of its read, once.
pub(super) fn find(tensor: u32, row: u32, slots: &mut [Slot]) -> Result<Found> {
    for (i, slot) in (0u32..).zip(slots) {
        let Content::Rows(rows) = slot.content else { continue };
        if !slot.content.has(tensor, row) {
            continue;
        }
        match slot.state {
            State::Ready => {
                slot.spent = false;
                return Ok(Found::Ready(i, rows));
            }
            State::Reading => return Ok(Found::Reading),
            State::Failed(_) => {
                if let Some(e) = slot.take_error() {
                    return Err(e);
                }
            }
            State::Free | State::Draining => {}
        }
    }
    Ok(Found::Absent)
}

/// Whether a slot holds or waits for a row, well or failed.
pub(super) fn holds(tensor: u32, row: u32, slots: &[Slot]) -> bool {
    slots.iter().any(|s| s.content.has(tensor, row))
}

/// A slot for these rows, booked. `demanded`: the pass waits for them, so what nobody asked for after all may go.
pub(super) fn book(rows: Rows, slots: &mut [Slot], demanded: bool, stamp: u64) -> Option<u32> {
    let slot = pick(slots, demanded)?;
    slots[slot].book(Content::Rows(rows), stamp);
    u32::try_from(slot).ok()
}

/// Rows up to `end` have been used; a slot whose last row this is may be replaced.
pub(super) fn used(slot: &mut Slot, end: u32) {
    if let Content::Rows(rows) = slot.content {
        slot.spent |= rows.first_row + rows.n_rows <= end;
    }
}

/// Gives up what is being read for a pass that ends early; rows that are there stay useful.
pub(super) fn abandon(slots: &mut [Slot], first_slot: u32, mut close: impl FnMut(u32)) {
    for (i, slot) in (first_slot..).zip(slots) {
        let Content::Rows(_) = slot.content else { continue };
        match slot.state {
            State::Ready => slot.spent = true,
            _ => {
                if slot.give_up() {
                    close(i);
                }
            }
        }
    }
}
