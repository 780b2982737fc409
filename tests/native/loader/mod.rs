//! The loader against a model of nothing but rows: order, residents, prefetch, faults.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails where it panics, and its sizes are small"
)]

mod deadline;
mod deferred;
mod fake_model;
mod faults;
mod prefetch;
mod refusals;
mod residency;
mod with_model;

use std::rc::Rc;

use deadline::in_time;
use fake_model::FakeModel;
use sluice::source::{Delivery, FaultySource, MemorySource, WeightSource};

/// The same rows whatever comes in one tile: neighbouring tiles of one use joined.
fn joined(taken: &[fake_model::Taken]) -> Vec<fake_model::Taken> {
    let mut out: Vec<fake_model::Taken> = Vec::new();
    for t in taken {
        match out.last_mut() {
            Some(last)
                if last.use_index == t.use_index && last.first_row + last.n_rows == t.first_row =>
            {
                last.n_rows += t.n_rows;
            }
            _ => out.push(t.clone()),
        }
    }
    out
}

#[test]
fn every_slot_size_and_ring_yields_the_same_rows() {
    let model = FakeModel::small();
    let mut expected = None;
    for slot_bytes in [model.longest_row(), 200, 333, 1000, 4096, 20_000, 8 << 20] {
        for n_slots in 1..=8 {
            let plan = model.plan(n_slots, slot_bytes, &[]);
            let shuffled = Delivery::Shuffled { seed: slot_bytes + u64::from(n_slots) };
            let sources: [Rc<dyn WeightSource>; 2] = [
                Rc::new(MemorySource::new(model.files.clone())),
                Rc::new(FaultySource::new(model.files.clone(), shuffled, &[])),
            ];
            for source in sources {
                let mut loader = model.loader(&plan, source);
                for pass in 0..3 {
                    let head = pass != 1;
                    let taken = in_time(model.pass(&mut loader, head, &[5, 96, 5])).unwrap();
                    assert!(
                        taken
                            .iter()
                            .all(|t| model.rows(t.use_index, t.first_row, t.n_rows).len() as u64
                                <= slot_bytes)
                    );
                    if head {
                        let rows = joined(&taken);
                        assert_eq!(
                            *expected.get_or_insert_with(|| rows.clone()),
                            rows,
                            "{slot_bytes} x {n_slots}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn residents_are_read_once_and_the_rest_streams() {
    let model = FakeModel::small();
    let head = model.uses.last().unwrap().tensor;
    let partial = [model.run(head, 10, 40), model.run(3, 5, 1), model.run(4, 0, 16)];
    let all = model.all_resident();
    for (residents, n_slots) in [(&all[..], 0), (&all[..], 2), (&partial[..], 1), (&partial[..], 3)]
    {
        let plan = model.plan(n_slots, 700, residents);
        for delivery in [Delivery::AtOnce, Delivery::Soon, Delivery::Shuffled { seed: 9 }] {
            let source = Rc::new(FaultySource::new(model.files.clone(), delivery, &[]));
            let mut loader = model.loader(&plan, source.clone());
            for _ in 0..3 {
                in_time(model.pass(&mut loader, true, &[12, 0, 96])).unwrap();
            }
            let run_bytes: u64 =
                residents.iter().map(|r| u64::from(r.n_rows) * u64::from(r.row_bytes)).sum();
            assert_eq!(loader.stats().resident_bytes, run_bytes);
            assert_eq!(loader.resident_progress().loaded_bytes, run_bytes);
        }
    }
}
