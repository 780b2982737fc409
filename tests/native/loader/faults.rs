//! Every fault ends in the right bytes or in an error that names tensor and range; nothing hangs, and the loader works on.

use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use sluice::error::{Detail, Error, ErrorKind};
use sluice::loader::Loader;
use sluice::planner::ResidentRun;
use sluice::source::{Delivery, Fault, FaultySource};

use super::deadline::{in_time, poll_once};
use super::fake_model::FakeModel;

const NAMED: [u32; 3] = [12, 0, 96];

/// Rings and residents that differ in who reads what when.
fn set_ups(model: &FakeModel) -> Vec<(u32, Vec<ResidentRun>)> {
    let head = model.uses.last().unwrap().tensor;
    let some = vec![model.run(head, 10, 40), model.run(3, 5, 1), model.run(4, 0, 16)];
    vec![(1, vec![]), (2, vec![]), (5, some), (0, model.all_resident())]
}

fn loader(model: &FakeModel, set_up: &(u32, Vec<ResidentRun>), source: Rc<FaultySource>) -> Loader {
    model.loader(&model.plan(set_up.0, 1500, &set_up.1), source)
}

/// Three whole passes, each tried again after an error; the errors on the way.
fn three_passes(model: &FakeModel, loader: &mut Loader) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut n_done = 0;
    while n_done < 3 {
        match in_time(model.pass(loader, true, &NAMED)) {
            Ok(_) => n_done += 1,
            Err(e) => {
                errors.push(e);
                loader.abandon_pass();
            }
        }
        assert!(errors.len() < 10, "it fails again and again: {errors:?}");
    }
    errors
}

fn n_reads(model: &FakeModel, set_up: &(u32, Vec<ResidentRun>), delivery: Delivery) -> u64 {
    let source = Rc::new(FaultySource::new(model.files.clone(), delivery, &[]));
    three_passes(model, &mut loader(model, set_up, source.clone()));
    source.log().len() as u64
}

fn assert_named(e: &Error) {
    assert_eq!(e.kind(), ErrorKind::SourceFailed, "{e}");
    for name in ["tensor", "file", "offset", "length"] {
        assert!(e.details().iter().any(|d| d.0 == name), "no {name} in {:?}", e.details());
    }
    let Some((_, Detail::Text(tensor))) = e.details().iter().find(|d| d.0 == "tensor") else {
        panic!("{e}")
    };
    assert!(e.message().contains(tensor), "{e}");
}

#[test]
fn a_read_that_fails_is_one_error_and_then_the_right_bytes() {
    let model = FakeModel::small();
    for set_up in set_ups(&model) {
        for delivery in [Delivery::AtOnce, Delivery::Soon, Delivery::Shuffled { seed: 3 }] {
            for read in 0..n_reads(&model, &set_up, delivery) {
                for fault in [Fault::FailRead { read }, Fault::ShortRead { read, len: 20 }] {
                    let source =
                        Rc::new(FaultySource::new(model.files.clone(), delivery, &[fault]));
                    let errors = three_passes(&model, &mut loader(&model, &set_up, source));
                    assert!(errors.len() <= 1, "{fault:?} was told more than once: {errors:?}");
                    errors.iter().for_each(assert_named);
                }
            }
        }
    }
}

#[test]
fn a_bad_byte_on_the_medium_fails_as_often_as_it_is_read() {
    let model = FakeModel::small();
    for set_up in set_ups(&model) {
        for offset in (0..model.files[0].len() as u64).step_by(997) {
            for times in 1..=2 {
                let fault = Fault::FailAtByte { file: 0, offset, times };
                let delivery = Delivery::Shuffled { seed: offset };
                let source = Rc::new(FaultySource::new(model.files.clone(), delivery, &[fault]));
                let errors = three_passes(&model, &mut loader(&model, &set_up, source));
                assert!(errors.len() <= times as usize, "{fault:?}: {errors:?}");
                errors.iter().for_each(assert_named);
            }
        }
    }
}

#[test]
fn several_bad_places_are_told_one_after_the_other() {
    let model = FakeModel::small();
    for set_up in set_ups(&model) {
        for delivery in [Delivery::AtOnce, Delivery::Soon, Delivery::Shuffled { seed: 8 }] {
            let fault = |tensor: usize| {
                let offset = model.header.tensors[tensor].offset + 150;
                Fault::FailAtByte { file: 0, offset, times: 2 }
            };
            let source =
                FaultySource::new(model.files.clone(), delivery, &[fault(3), fault(5), fault(7)]);
            let errors = three_passes(&model, &mut loader(&model, &set_up, Rc::new(source)));
            assert!((1..=6).contains(&errors.len()), "{errors:?}");
            errors.iter().for_each(assert_named);
        }
    }
}

#[test]
fn a_failure_between_two_passes_is_tried_again_in_the_second() {
    let model = FakeModel::small();
    let source = Rc::new(FaultySource::new(model.files.clone(), Delivery::Soon, &[]));
    let mut loader = model.loader(&model.plan(1, 1500, &[]), source.clone());
    let first =
        in_time(model.pass(&mut loader, true, &NAMED)).map(|_| source.log().len() as u64).unwrap();
    drop(loader);
    let fault = Fault::FailRead { read: first - 1 };
    let source = Rc::new(FaultySource::new(model.files.clone(), Delivery::Soon, &[fault]));
    let mut loader = model.loader(&model.plan(1, 1500, &[]), source.clone());
    for _ in 0..2 {
        in_time(model.pass(&mut loader, true, &NAMED)).unwrap();
    }
    let [failed, again] = [first - 1, first].map(|read| source.log()[read as usize].offset);
    assert_eq!(failed, again, "the read that failed was made again");
}

#[test]
fn wrong_bytes_change_nothing_but_themselves() {
    let model = FakeModel::small();
    let offset = model.files[0].len() as u64 / 2;
    let source = FaultySource::new(
        model.files.clone(),
        Delivery::AtOnce,
        &[Fault::WrongByte { file: 0, offset }],
    );
    let mut expected = model.clone();
    expected.files[0][offset as usize] ^= 0xFF;
    let mut loader = model.loader(&model.plan(3, 1500, &[]), Rc::new(source));
    assert!(three_passes(&expected, &mut loader).is_empty(), "wrong bytes are not a failure");
}

#[test]
fn a_read_that_never_ends_is_left_behind_by_abandoning_the_pass() {
    let model = FakeModel::small();
    for set_up in set_ups(&model) {
        for read in 0..n_reads(&model, &set_up, Delivery::AtOnce) {
            let fault = Fault::Never { read };
            let source =
                Rc::new(FaultySource::new(model.files.clone(), Delivery::AtOnce, &[fault]));
            let mut loader = loader(&model, &set_up, source);
            let mut n_stuck = 0;
            for _ in 0..4 {
                let done = poll_once(pin!(model.pass(&mut loader, true, &NAMED)));
                match done {
                    Poll::Ready(done) => drop(done.unwrap()),
                    Poll::Pending => {
                        n_stuck += 1;
                        loader.abandon_pass();
                    }
                }
            }
            assert!(n_stuck <= 1, "read {read} held up {n_stuck} passes");
            assert!(three_passes(&model, &mut loader).is_empty(), "cancelling is not a failure");
        }
    }
}

#[test]
fn a_pass_may_be_dropped_at_any_point() {
    let model = FakeModel::small();
    for set_up in set_ups(&model) {
        for n_polls in 0..60 {
            let delivery = Delivery::Shuffled { seed: n_polls };
            let source = Rc::new(FaultySource::new(model.files.clone(), delivery, &[]));
            let mut loader = loader(&model, &set_up, source);
            {
                let mut pass = pin!(model.pass(&mut loader, true, &NAMED));
                for _ in 0..n_polls {
                    if poll_once(pass.as_mut()).is_ready() {
                        break;
                    }
                }
            }
            // Even without a word to the loader, the next pass starts right.
            if n_polls % 2 == 0 {
                loader.abandon_pass();
            }
            assert!(three_passes(&model, &mut loader).is_empty(), "dropping is not a failure");
        }
    }
}

#[test]
fn late_readers_write_nothing_and_slots_wait_for_them() {
    let model = FakeModel::small();
    for seed in 0..40_usize {
        let source = Rc::new(FaultySource::new(model.files.clone(), Delivery::Held, &[]));
        let mut loader = model.loader(&model.plan(3, 1500, &[]), source.clone());
        for round in 0..4 {
            let n_ends = if round == 3 { usize::MAX } else { (seed * 7 + round * 5) % 23 };
            {
                let mut pass = pin!(model.pass(&mut loader, true, &NAMED));
                let mut done = poll_once(pass.as_mut()).is_ready();
                for i in 0..n_ends {
                    if done {
                        break;
                    }
                    // Old and new reads end in an order that has nothing to do with their age.
                    assert!(
                        source.finish((seed + i * 3) % source.n_held()),
                        "it waits, but for no read"
                    );
                    done = poll_once(pass.as_mut()).is_ready();
                }
                assert!(done || round < 3, "the last pass did not end");
            }
            if round < 3 {
                loader.abandon_pass();
            }
        }
        assert_eq!(source.late_writes(), 0, "a cancelled read wrote into a slot");
    }
}

#[test]
fn memory_outlives_the_loader_while_reads_are_under_way() {
    let model = FakeModel::small();
    let source = Rc::new(FaultySource::new(model.files.clone(), Delivery::Held, &[]));
    let mut loader =
        model.loader(&model.plan(2, 1500, &model.all_resident()[3..5]), source.clone());
    loader.begin_pass(true, &NAMED);
    assert!(loader.tile(0, 12, 1).unwrap().is_none(), "nothing was delivered yet");
    let wait = loader.wait();
    assert!(source.n_held() > 4, "ring, residents and rows are being read");
    drop(loader);
    drop(wait);
    while source.finish(0) {}
}
