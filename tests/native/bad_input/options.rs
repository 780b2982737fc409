//! Options of `open` that no model, or not this one, can be opened with.

use sluice::model::KvType;

use super::{Case, refuse_all};

#[test]
fn each_is_refused_and_the_next_open_works() {
    refuse_all(CASES);
}

pub(super) const CASES: &[Case] = &[
    Case {
        what: "a context of 0",
        code: "invalid_option",
        says: &["'context'", "at least 1 position"],
        spoil: |a| a.config.n_ctx = Some(0),
    },
    Case {
        what: "a batch of 0",
        code: "invalid_option",
        says: &["'batch'", "at least 1 token"],
        spoil: |a| a.config.n_batch = Some(0),
    },
    Case {
        what: "slots of 0",
        code: "invalid_option",
        says: &["`slots` is 0", "at least 1"],
        spoil: |a| a.config.n_slots = Some(0),
    },
    Case {
        what: "slots shorter than a row",
        code: "invalid_option",
        says: &["`slotBytes` is 1", "at least 384"],
        spoil: |a| a.config.slot_bytes = Some(1),
    },
    Case {
        what: "a budget that is too small",
        code: "out_of_memory",
        says: &["the model needs at least", "the budget is 70000", "raise `memory` to"],
        spoil: |a| a.config.budget_bytes = Some(70_000),
    },
    Case {
        what: "a budget of 0",
        code: "out_of_memory",
        says: &["the model needs at least", "raise `memory` to"],
        spoil: |a| a.config.budget_bytes = Some(0),
    },
    Case {
        what: "a context that does not fit the budget",
        code: "out_of_memory",
        says: &["for a context of", "raise `memory` to", "ask for a smaller `context`"],
        spoil: |a| a.config.n_ctx = Some(u32::MAX),
    },
    Case {
        what: "keys and values as q8_0 where heads are no whole blocks",
        code: "invalid_option",
        says: &["q8_0", "16", "choose f16 or f32"],
        spoil: |a| a.config.kv = Some(KvType::Q8_0),
    },
];
