//! Rows that the pass names: embedding rows and experts.

use std::rc::Rc;

use sluice::error::Result;
use sluice::loader::Loader;
use sluice::model::Phase;
use sluice::source::{Delivery, Fault, FaultySource};

use super::deadline::in_time;
use super::fake_model::{FakeModel, Taken};

const N_EXPERTS: u32 = 6;
const EXPERT_ROWS: u32 = 24;

/// Two layers of attention, a router and experts whose rows the router names.
fn with_experts() -> FakeModel {
    let mut model = FakeModel::default();
    let embed = model.tensor("token_embd.weight", 0, 0, 32, 50);
    model.takes(embed, Phase::Embed, true);
    for layer in 0..2 {
        let mut add = |name: &str, file, n_rows| {
            model.tensor(&format!("blk.{layer}.{name}.weight"), file, 0, 32, n_rows)
        };
        let attention = add("attn_q", 0, 32);
        let router = add("ffn_gate_inp", 0, N_EXPERTS);
        let up = add("ffn_up_exps", 1, N_EXPERTS * EXPERT_ROWS);
        let down = add("ffn_down_exps", 1, N_EXPERTS * EXPERT_ROWS);
        for (tensor, deferred) in [(attention, false), (router, false), (up, true), (down, true)] {
            model.takes(tensor, Phase::Layer(layer), deferred);
        }
    }
    let output = model.tensor("output.weight", 1, 0, 32, 50);
    model.takes(output, Phase::Head, false);
    model
}

async fn pass(
    model: &FakeModel,
    loader: &mut Loader,
    tokens: &[u32],
    experts: &[u32],
) -> Result<Vec<Taken>> {
    loader.begin_pass(true, tokens);
    let mut taken = Vec::new();
    for (use_index, u) in model.uses.iter().enumerate() {
        match u.phase {
            Phase::Embed => {
                for token in tokens {
                    model.take(loader, use_index, *token, 1, &mut taken).await?;
                }
            }
            _ if u.deferred => {
                for expert in experts {
                    model
                        .take(loader, use_index, expert * EXPERT_ROWS, EXPERT_ROWS, &mut taken)
                        .await?;
                }
            }
            _ => model.take(loader, use_index, 0, u.n_rows, &mut taken).await?,
        }
    }
    Ok(taken)
}

#[test]
fn experts_come_in_any_order_through_any_ring() {
    let model = with_experts();
    let up = model.header.find("blk.0.ffn_up_exps.weight").unwrap() as u32;
    let residents = [model.run(up, 20, 50)];
    for n_slots in 1..=6 {
        for slot_bytes in [34, 100, 400, 2000] {
            for residents in [&[][..], &residents[..]] {
                let plan = model.plan(n_slots, slot_bytes, residents);
                let delivery = Delivery::Shuffled { seed: slot_bytes ^ u64::from(n_slots) };
                let source = Rc::new(FaultySource::new(model.files.clone(), delivery, &[]));
                let mut loader = model.loader(&plan, source);
                for experts in [[4, 1], [1, 4], [5, 0], [2, 2]] {
                    in_time(pass(&model, &mut loader, &[7, 49], &experts)).unwrap();
                }
            }
        }
    }
}

#[test]
fn only_the_experts_that_are_named_are_read() {
    let model = with_experts();
    let source = Rc::new(FaultySource::new(model.files.clone(), Delivery::AtOnce, &[]));
    let mut loader = model.loader(&model.plan(3, 400, &[]), source.clone());
    in_time(pass(&model, &mut loader, &[1], &[3])).unwrap();
    let mut n_rows = 0;
    for u in model.uses.iter().filter(|u| u.deferred && u.phase != Phase::Embed) {
        let entry = &model.header.tensors[u.tensor as usize];
        let place = entry.offset..entry.offset + entry.n_bytes;
        for request in source.log().iter().filter(|r| r.file == 1 && place.contains(&r.offset)) {
            let first_row = (request.offset - entry.offset) / u64::from(u.row_bytes);
            assert_eq!(first_row as u32 / EXPERT_ROWS, 3, "another expert was read");
            n_rows += request.len as u32 / u.row_bytes;
        }
    }
    assert_eq!(n_rows, 4 * EXPERT_ROWS);
}

#[test]
fn a_failing_expert_is_an_error_and_then_its_bytes() {
    let model = with_experts();
    let up = model.header.tensor("blk.1.ffn_up_exps.weight").unwrap();
    let offset = up.offset + 2 * u64::from(EXPERT_ROWS) * 34 + 100;
    for n_slots in 1..=4 {
        let fault = Fault::FailAtByte { file: 1, offset, times: 1 };
        let source = Rc::new(FaultySource::new(
            model.files.clone(),
            Delivery::Shuffled { seed: 4 },
            &[fault],
        ));
        let mut loader = model.loader(&model.plan(n_slots, 200, &[]), source);
        let e = in_time(pass(&model, &mut loader, &[1], &[2, 0])).unwrap_err();
        assert!(e.message().contains("blk.1.ffn_up_exps.weight"), "{e}");
        loader.abandon_pass();
        in_time(pass(&model, &mut loader, &[1], &[2, 0])).unwrap();
    }
}

#[test]
fn the_rows_of_a_chunk_are_read_together_and_each_once() {
    let model = with_experts();
    let tokens: Vec<u32> = (0..20).chain([3, 3, 4]).collect();
    let source = Rc::new(FaultySource::new(model.files.clone(), Delivery::Held, &[]));
    let plan = sluice::planner::Plan { n_batch: 64, ..model.plan(1, 2000, &[]) };
    let mut loader = model.loader(&plan, source.clone());
    loader.begin_pass(true, &tokens);
    assert!(loader.tile(0, 0, 1).unwrap().is_none(), "nothing was delivered yet");
    let n_rows = source.log().iter().filter(|r| r.len == 34 && r.file == 0).count();
    assert_eq!(n_rows, 20);
}

#[test]
fn rows_of_a_table_that_is_still_being_read_do_not_wait_for_it() {
    let model = FakeModel::small();
    let source = Rc::new(FaultySource::new(model.files.clone(), Delivery::Held, &[]));
    let mut loader = model.loader(&model.plan(0, 0, &model.all_resident()), source.clone());
    loader.begin_pass(true, &[40]);
    assert!(loader.tile(0, 40, 1).unwrap().is_none(), "nothing was delivered yet");
    let newest = source.n_held() - 1;
    assert!(source.finish(newest), "the row is under way");
    let tile = loader.tile(0, 40, 1).unwrap().expect("the row is there before the table");
    assert_eq!(*loader.bytes(&tile), *model.rows(0, 40, 1));
    loader.release(tile);
}
