//! What the loader really allocates for a plan, against the plan's ledger.

use std::rc::Rc;
use std::task::Waker;

use sluice::loader::{Loader, LoaderConfig};
use sluice::planner::{PAGE_BYTES, Plan, Wishes};
use sluice::source::{Completion, Places, ReadRequest, WeightSource};

use super::models::{PlannedModel, Random, llama_8b, mixture, smollm2};
use crate::allocations::measure;

/// Files of which nothing is read.
#[derive(Debug)]
struct Unread {
    n_files: u32,
}

impl WeightSource for Unread {
    fn n_files(&self) -> u32 {
        self.n_files
    }

    fn file_bytes(&self, _file: u32) -> Option<u64> {
        None
    }

    fn submit(&self, _request: ReadRequest, _places: &Rc<dyn Places>) {}

    fn poll(&self) -> Option<Completion> {
        None
    }

    fn wake_on_completion(&self, _waker: &Waker) {}

    fn cancel_all(&self) {}
}

fn check(model: &PlannedModel, plan: &Plan) {
    let source = Rc::new(Unread { n_files: u32::try_from(model.header.files.len()).unwrap() });
    let new = || Loader::new(&model.header, &model.uses, plan, source, LoaderConfig::default());
    let (loader, allocated) = measure(new);
    drop(loader.unwrap());
    let items = ["loader", "embeddingRows", "ring", "residents"];
    let priced: u64 = items.iter().map(|name| plan.ledger_bytes(name)).sum();
    let peak = allocated.peak_bytes as u64;
    assert!(
        peak <= priced,
        "{peak} bytes allocated, {priced} priced, {} slots of {}",
        plan.n_slots,
        plan.slot_bytes
    );
    // Prices that are far too high would be a waste of the budget.
    let spare = 20 * PAGE_BYTES + plan.ledger_bytes("loader") + priced / 20;
    assert!(priced <= peak + spare, "{peak} bytes allocated, {priced} priced");
}

#[test]
fn the_loader_takes_no_more_than_its_ledger() {
    let mut random = Random(3);
    let mut specs: Vec<_> = (0..12).map(|_| random.spec()).collect();
    specs.extend([smollm2(), mixture()]);
    for spec in specs {
        let model = PlannedModel::of(&spec);
        for wishes in [Wishes::default(), random.wishes()] {
            let floor = model.plan(0, Wishes { force: true, ..wishes }).unwrap().floor_bytes;
            for more in [0, 3_000_000, 40_000_000] {
                check(&model, &model.plan(floor + more, wishes).unwrap());
            }
        }
    }
    let model = PlannedModel::of(&llama_8b());
    for slot_bytes in [None, Some(16 << 10), Some(256 << 10), Some(8 << 20)] {
        let wishes = Wishes { slot_bytes, n_ctx: Some(512), ..Wishes::default() };
        check(&model, &model.plan(200_000_000, wishes).unwrap());
    }
}
