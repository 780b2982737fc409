//! What the loader refuses, by name: plans, headers and files that do not belong together, and rows out of turn.

use std::rc::Rc;

use sluice::error::{Detail, Error, ErrorKind};
use sluice::loader::{Loader, LoaderConfig};
use sluice::planner::Plan;
use sluice::source::MemorySource;

use super::deadline::in_time;
use super::fake_model::FakeModel;

fn refused(model: &FakeModel, plan: &Plan) -> Error {
    let source = Rc::new(MemorySource::new(model.files.clone()));
    Loader::new(&model.header, &model.uses, plan, source, LoaderConfig::default()).unwrap_err()
}

#[test]
fn plans_that_do_not_fit_the_model() {
    let model = FakeModel::small();
    let e = refused(&model, &model.plan(2, model.longest_row() - 1, &[]));
    assert!(e.message().contains("blk.0.ffn_down.weight"), "{e}");
    let e = refused(&model, &model.plan(0, 0, &[]));
    assert!(e.message().contains("slot 0"), "{e}");
    let twice = [model.run(2, 0, 4), model.run(2, 4, 4)];
    let e = refused(&model, &model.plan(1, 1000, &twice));
    assert!(e.message().contains("two resident runs of blk.0.ffn_gate.weight"), "{e}");
    let e = refused(&model, &model.plan(1, 1000, &[model.run(2, 120, 9)]));
    assert!(e.message().contains("blk.0.ffn_gate.weight"), "{e}");
    let mut run = model.run(2, 0, 4);
    run.row_bytes += 1;
    let e = refused(&model, &model.plan(1, 1000, &[run]));
    assert!(e.message().contains("rows of blk.0.ffn_gate.weight have 68 bytes, not 69"), "{e}");
}

#[test]
fn memory_that_cannot_be_had() {
    let model = FakeModel::small();
    let e = refused(&model, &model.plan(1, 1 << 60, &[]));
    assert_eq!(e.kind(), ErrorKind::OutOfMemory, "{e}");
}

#[test]
fn files_that_are_cut_off_or_missing() {
    let mut model = FakeModel::small();
    let plan = model.plan(1, 1000, &[]);
    model.files[0].pop();
    let e = refused(&model, &plan);
    assert_eq!(e.kind(), ErrorKind::InvalidModel, "{e}");
    assert!(e.message().contains("cut off"), "{e}");
    let there = model.files[0].len() as u64;
    let details = [
        ("file", Detail::Number(0)),
        ("needed_bytes", Detail::Number(there + 1)),
        ("available_bytes", Detail::Number(there)),
    ];
    assert_eq!(e.details(), details);
    model.files.clear();
    let e = refused(&model, &plan);
    assert_eq!(e.kind(), ErrorKind::InvalidModel, "{e}");
}

#[test]
fn rows_out_of_turn() {
    let model = FakeModel::small();
    let source = Rc::new(MemorySource::new(model.files.clone()));
    let mut loader = model.loader(&model.plan(2, 1000, &[]), source);
    let head = model.uses.len() - 1;
    for (use_index, first_row, n_rows) in
        [(99, 0, 1), (1, 64, 1), (1, 60, 5), (1, 0, 0), (1, u32::MAX, u32::MAX)]
    {
        let e = loader.tile(use_index, first_row, n_rows).unwrap_err();
        assert!(e.message().contains("not of use"), "{e}");
    }
    let e = loader.tile(1, 0, 1).unwrap_err();
    assert!(e.message().contains("not ahead"), "before a pass has begun: {e}");
    loader.begin_pass(true, &[]);
    let tile = loader.tile(head, 90, 7).unwrap().expect("leaving uses out is allowed");
    loader.release(tile);
    let e = loader.tile(1, 0, 1).unwrap_err();
    assert!(e.message().contains("not ahead"), "{e}");
    in_time(model.pass(&mut loader, true, &[1])).unwrap();
}
