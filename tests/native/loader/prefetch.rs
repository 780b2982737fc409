//! How far and in what pieces the loader reads ahead.

use std::pin::pin;
use std::rc::Rc;

use sluice::loader::{Loader, LoaderConfig, SlotState};
use sluice::model::Phase;
use sluice::source::{Delivery, FaultySource, MemorySource, ReadRequest};

use super::deadline::{in_time, poll_once};
use super::fake_model::FakeModel;
use crate::allocations::measure;

const ROWS: [u32; 1] = [3];

#[test]
fn reading_wraps_from_the_end_of_a_pass_into_the_next() {
    let model = FakeModel::small();
    for n_slots in 2..=8 {
        let source = Rc::new(FaultySource::new(model.files.clone(), Delivery::Soon, &[]));
        let mut loader = model.loader(&model.plan(n_slots, 1500, &[]), source.clone());
        in_time(model.pass(&mut loader, true, &ROWS)).unwrap();
        let first = source.log().iter().find(|r| is_streamed(r)).copied().unwrap();
        let again =
            source.log().iter().filter(|r| r.offset == first.offset && r.len == first.len).count();
        assert_eq!(again, 2, "the first read of the next pass starts within this one");
        let before = loader.stats();
        for _ in 0..3 {
            in_time(model.pass(&mut loader, true, &ROWS)).unwrap();
        }
        let after = loader.stats();
        assert_eq!(after.prefetch_misses, before.prefetch_misses, "{n_slots} slots");
        assert!(after.prefetch_hits > before.prefetch_hits, "{n_slots} slots");
    }
}

#[test]
fn without_prefetch_every_tile_is_read_when_it_is_asked_for() {
    let model = FakeModel::small();
    let plan = model.plan(1, 600, &[]);
    let source =
        Rc::new(FaultySource::new(model.files.clone(), Delivery::Shuffled { seed: 1 }, &[]));
    let config = LoaderConfig { prefetch: false };
    let mut loader =
        Loader::new(&model.header, &model.uses, &plan, source.clone(), config).unwrap();
    let taken = in_time(model.pass(&mut loader, true, &ROWS)).unwrap();
    assert_eq!(source.n_held(), 0, "something was read ahead");
    let stats = loader.stats();
    assert_eq!(
        stats.prefetch_hits + stats.prefetch_misses,
        taken.len() as u64 - 1,
        "one row is not of the ring"
    );
    assert!(stats.prefetch_misses >= source.log().len() as u64 - 1, "every read was waited for");
}

#[test]
fn a_source_that_reads_at_once_reads_a_tile_when_it_is_asked_for() {
    let model = FakeModel::small();
    let source = Rc::new(FaultySource::new(model.files.clone(), Delivery::AtOnce, &[]));
    let mut loader = model.loader(&model.plan(4, 1500, &[]), source.clone());
    loader.begin_pass(true, &ROWS);
    assert!(source.log().is_empty(), "nothing was asked for");
    in_time(model.pass(&mut loader, true, &ROWS)).unwrap();
    assert_eq!(
        loader.slots().filter(|s| s.state != SlotState::Free).count(),
        0,
        "one slot is enough"
    );
}

#[test]
fn as_many_reads_are_under_way_as_there_are_slots() {
    let model = FakeModel::small();
    for n_slots in 1..=8 {
        let source = Rc::new(FaultySource::new(model.files.clone(), Delivery::Held, &[]));
        let mut loader = model.loader(&model.plan(n_slots, 1500, &[]), source.clone());
        loader.begin_pass(true, &[]);
        assert_eq!(source.n_held(), n_slots as usize);
        assert_eq!(loader.stats().reads_in_flight, n_slots);
        assert!(loader.slots().all(|s| s.state == SlotState::Reading && s.bytes > 0));
        let mut pass = pin!(model.pass(&mut loader, true, &ROWS));
        while poll_once(pass.as_mut()).is_pending() {
            assert!(source.n_held() <= n_slots as usize + ROWS.len(), "more reads than slots");
            assert!(source.finish(source.n_held() - 1), "it waits for nothing");
        }
    }
}

#[test]
fn a_chunk_without_logits_reads_nothing_of_the_head() {
    let model = FakeModel::small();
    let head = model.header.tensors[0].offset
        ..model.header.tensors[0].offset + model.header.tensors[0].n_bytes;
    let source = Rc::new(FaultySource::new(model.files.clone(), Delivery::Soon, &[]));
    let mut loader = model.loader(&model.plan(4, 1500, &[]), source.clone());
    for _ in 0..3 {
        in_time(model.pass(&mut loader, false, &ROWS)).unwrap();
    }
    assert!(source.log().iter().filter(|r| is_streamed(r)).all(|r| !head.contains(&r.offset)));
    let misses = loader.stats().prefetch_misses;
    in_time(model.pass(&mut loader, true, &ROWS)).unwrap();
    assert_eq!(
        loader.stats().prefetch_misses,
        misses,
        "the head is read ahead as soon as it is wanted"
    );
}

/// The tensors of a small real model: 0.2 to 0.6 MB each, in the file by name, norms between.
fn model_of_half_megabytes() -> FakeModel {
    let mut model = FakeModel::default();
    for layer in 0..4 {
        let mut add = |name: &str, gap, n_cols, n_rows| {
            model.tensor(&format!("blk.{layer}.{name}.weight"), 0, gap, n_cols, n_rows)
        };
        let down = add("ffn_down", 2304, 1536, 576);
        let gate = add("ffn_gate", 0, 576, 1024);
        let up = add("ffn_up", 0, 576, 1024);
        let k = add("attn_k", 2304, 576, 384);
        let output = add("attn_output", 0, 576, 576);
        let q = add("attn_q", 0, 576, 576);
        let v = add("attn_v", 0, 576, 384);
        for tensor in [q, k, v, output, gate, up, down] {
            model.takes(tensor, Phase::Layer(layer), false);
        }
    }
    model
}

#[test]
fn small_tensors_share_reads_of_about_a_megabyte_and_little_is_read_in_vain() {
    let model = model_of_half_megabytes();
    let weights: u64 = model.uses.iter().map(|u| u.bytes()).sum();
    for n_slots in [1, 3] {
        let source = Rc::new(FaultySource::new(model.files.clone(), Delivery::Soon, &[]));
        let mut loader = model.loader(&model.plan(n_slots, 2 << 20, &[]), source.clone());
        in_time(model.pass(&mut loader, true, &[])).unwrap();
        drop(loader);
        let log = source.log();
        let n_small = log.iter().filter(|r| r.len < 900_000).count();
        assert_eq!(n_small, 0, "{:?}", log.iter().map(|r| r.len).collect::<Vec<_>>());
        let one_pass = &log[..log.len() - n_slots as usize];
        let bytes: u64 = one_pass.iter().map(|r| r.len as u64).sum();
        assert!(bytes <= weights + weights / 16, "{bytes} bytes were read for {weights}");
    }
}

#[test]
fn a_tensor_larger_than_a_slot_is_read_in_equal_parts() {
    let mut model = FakeModel::default();
    let tensor = model.tensor("output.weight", 0, 0, 1024, 5000);
    model.takes(tensor, Phase::Head, false);
    let source = Rc::new(FaultySource::new(model.files.clone(), Delivery::Soon, &[]));
    let mut loader = model.loader(&model.plan(2, 2 << 20, &[]), source);
    let taken = in_time(model.pass(&mut loader, true, &[])).unwrap();
    assert_eq!(taken.len(), 3);
    assert!(taken.iter().all(|t| (1600..1700).contains(&t.n_rows)), "{taken:?}");
    assert!(
        taken.iter().all(|t| t.first_row % 8 == 0),
        "tiles begin where kernels compute rows together"
    );
}

#[test]
fn a_pass_allocates_nothing() {
    let model = FakeModel::small();
    let some = model.all_resident()[2..6].to_vec();
    for (n_slots, residents) in
        [(1, &[][..]), (4, &[][..]), (3, &some[..]), (0, &model.all_resident()[..])]
    {
        let source = Rc::new(MemorySource::new(model.files.clone()));
        let mut loader = model.loader(&model.plan(n_slots, 1500, residents), source);
        for pass in 0..4 {
            let ((), allocated) = measure(|| take_all(&model, &mut loader));
            assert!(pass == 0 || allocated.n_allocations == 0, "pass {pass}: {allocated:?}");
        }
    }
}

/// A pass with a source that reads at once.
fn take_all(model: &FakeModel, loader: &mut Loader) {
    loader.begin_pass(true, &ROWS);
    for (use_index, u) in model.uses.iter().enumerate() {
        let (mut row, end) = if u.deferred { (ROWS[0], ROWS[0] + 1) } else { (0, u.n_rows) };
        while row < end {
            let tile = loader.tile(use_index, row, end - row).unwrap().unwrap();
            row += tile.n_rows();
            loader.release(tile);
        }
    }
}

/// Whether a read is of the ring: single rows of the embedding table have 68 bytes.
fn is_streamed(request: &ReadRequest) -> bool {
    request.len != 68
}
