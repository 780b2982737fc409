//! The planner's promises, on shapes of real models and on random ones.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]
#![allow(clippy::disallowed_methods, reason = "a native test may look at the clock")]

mod measured;
mod models;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sluice::error::{Detail, ErrorKind};
use sluice::model::{KvType, Phase};
use sluice::planner::{EMBED_ROWS, Limits, PAGE_BYTES, Plan, Wishes};

use models::{PlannedModel, Random, Spec, llama_8b, mixture, smollm2};

fn detail(error: &sluice::error::Error, name: &str) -> u64 {
    match error.details().iter().find(|d| d.0 == name) {
        Some((_, Detail::Number(n))) => *n,
        other => panic!("{name} of {error}: {other:?}"),
    }
}

fn floor_of(model: &PlannedModel, wishes: Wishes) -> u64 {
    model.plan(0, Wishes { force: true, ..wishes }).unwrap().floor_bytes
}

#[test]
fn every_plan_keeps_to_its_budget_and_every_floor_is_exact() {
    let mut random = Random(1);
    for case in 0..400 {
        let model = PlannedModel::of(&random.spec());
        let wishes = random.wishes();
        let floor = floor_of(&model, wishes);
        assert_eq!(floor % PAGE_BYTES, 0, "case {case}: the floor is in pages");
        let at_floor = model.plan(floor, wishes).unwrap();
        model.check(&at_floor, floor);
        assert!(!at_floor.forced, "case {case}: the floor fits");
        let error = model.plan(floor - PAGE_BYTES, wishes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory, "case {case}: {error}");
        assert_eq!(detail(&error, "needed_bytes"), floor, "case {case}: {error}");
        assert_eq!(detail(&error, "available_bytes"), floor - PAGE_BYTES, "case {case}: {error}");
        for _ in 0..30 {
            let budget = floor + random.below(60_000_000);
            let plan = model.plan(budget, wishes).unwrap();
            model.check(&plan, budget);
            assert_eq!(
                plan.floor_bytes, floor,
                "case {case}: the floor does not depend on the budget"
            );
            assert_eq!(
                wishes.n_ctx.unwrap_or(plan.n_ctx),
                plan.n_ctx,
                "case {case}: context as asked"
            );
            assert_eq!(
                wishes.n_batch.unwrap_or(plan.n_batch),
                plan.n_batch,
                "case {case}: chunk as asked"
            );
            if plan.n_slots > 0 {
                assert_eq!(
                    wishes.n_slots.unwrap_or(plan.n_slots),
                    plan.n_slots,
                    "case {case}: slots as asked"
                );
                assert_eq!(
                    wishes.slot_bytes.unwrap_or(plan.slot_bytes),
                    plan.slot_bytes,
                    "case {case}: slot as asked"
                );
            }
        }
    }
}

#[test]
fn a_wish_for_billions_of_slots_is_refused_at_once() {
    let wishes = Wishes { n_slots: Some(u32::MAX), ..Wishes::default() };
    let started = Instant::now();
    for _ in 0..100 {
        let error = PlannedModel::of(&smollm2()).plan(1 << 25, wishes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
    }
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
}

#[test]
fn more_budget_keeps_the_same_rows_and_more() {
    let mut random = Random(2);
    let mut specs: Vec<Spec> = (0..60).map(|_| random.spec()).collect();
    specs.extend([smollm2(), mixture()]);
    let mut n_compared = 0;
    for spec in specs {
        let model = PlannedModel::of(&spec);
        let floor = floor_of(&model, Wishes::default());
        let mut last: BTreeMap<(u32, u32, u32, u64), Plan> = BTreeMap::new();
        let step =
            (model.header.tensors.iter().map(|t| t.n_bytes).sum::<u64>() * 2 + 200_000_000) / 400;
        for i in 0..400 {
            let plan = model.plan(floor + i * step, Wishes::default()).unwrap();
            let key = (plan.n_ctx, plan.n_batch, plan.n_slots, plan.slot_bytes);
            if let Some(less) = last.get(&key) {
                n_compared += usize::from(plan.resident_bytes > less.resident_bytes);
                for run in &less.residents {
                    let now = plan
                        .residents
                        .iter()
                        .find(|r| r.tensor == run.tensor)
                        .map_or(0, |r| r.n_rows);
                    assert!(
                        now >= run.n_rows,
                        "{spec:?}: rows of tensor {} are given up",
                        run.tensor
                    );
                }
            }
            last.insert(key, plan);
        }
    }
    assert!(n_compared > 1000, "only {n_compared} plans keep more than another of the same shape");
}

#[test]
fn what_the_host_takes_is_taken_from_residents_and_from_nothing_else() {
    let mut random = Random(5);
    let mut n_fewer = 0;
    for case in 0..200 {
        let model = PlannedModel::of(&random.spec());
        let wishes = random.wishes();
        let budget = floor_of(&model, wishes) + random.below(60_000_000);
        let host_bytes = random.below(20_000_000);
        let limits = Limits { budget_bytes: Some(budget), ..Limits::default() };
        let without = model.plan_within(limits, wishes).unwrap();
        let plan = model.plan_within(Limits { host_bytes, ..limits }, wishes).unwrap();
        model.check(&plan, budget);
        let shape = |plan: &Plan| (plan.n_ctx, plan.n_batch, plan.slot_bytes, plan.floor_bytes);
        assert_eq!(shape(&plan), shape(&without), "case {case}: only residents and slots give way");
        assert!(
            plan.n_slots <= without.n_slots && plan.n_slots >= without.n_slots.min(2),
            "case {case}"
        );
        let whole = host_bytes.next_multiple_of(PAGE_BYTES);
        assert!(plan.ledger_bytes("host") <= whole, "case {case}: never more than it takes");
        if plan.n_slots > 0 && plan.resident_bytes > 0 {
            assert_eq!(
                plan.ledger_bytes("host"),
                whole,
                "case {case}: all of it before a resident"
            );
            n_fewer += usize::from(plan.resident_bytes < without.resident_bytes);
        }
        if without.n_slots == 0 {
            assert_eq!(
                plan.residents, without.residents,
                "case {case}: what fits whole stays whole"
            );
        }
    }
    assert!(n_fewer > 20, "only {n_fewer} plans kept less");
}

#[test]
fn depth_costs_keys_and_values_and_norms_only() {
    let tiny =
        Spec { n_layer: 6, n_embd: 256, n_ff: 768, q: 256, kv: 256, n_vocab: 2000, ..smollm2() };
    for (spec, kv) in [(tiny, 6 * 1024), (smollm2(), 46_080 / 2), (llama_8b(), 131_072)] {
        let deep = Spec { n_layer: 4 * spec.n_layer, ..spec.clone() };
        let (a, b) = (PlannedModel::of(&spec), PlannedModel::of(&deep));
        let wishes = Wishes { n_ctx: Some(512), force: true, ..Wishes::default() };
        let grown = floor_of(&b, wishes) - floor_of(&a, wishes);
        let expected = 3 * kv * 512 + (b.vectors - a.vectors);
        // The order of reading 128 wide layers is longer than what is allowed for every model.
        let loader = |model: &PlannedModel| {
            let plan = model.plan(0, wishes).unwrap();
            plan.ledger_bytes("loader") + plan.ledger_bytes("ring")
        };
        let directory = loader(&b) - loader(&a);
        assert!(
            directory == 0 || spec.n_embd == 4096 && directory < 3 << 20,
            "the loader keeps {directory} bytes more"
        );
        let other = grown.abs_diff(expected + directory);
        assert!(
            other < 2 * PAGE_BYTES,
            "floors differ by {grown}, keys, values and norms by {expected}"
        );
    }
}

#[test]
fn short_of_memory_residents_go_first_then_context_then_chunk_then_slots() {
    for spec in [smollm2(), mixture(), llama_8b()] {
        let model = PlannedModel::of(&spec);
        let full = if spec.experts.is_some() { 4 } else { 2 };
        let floor = floor_of(&model, Wishes::default());
        let mut last: Option<Plan> = None;
        for i in 0..3000 {
            let plan = model.plan(floor + i * 131_072, Wishes::default()).unwrap();
            if plan.n_slots == 0 {
                break;
            }
            if let Some(less) = last {
                let rank = |p: &Plan| {
                    (p.n_slots.min(full), p.n_batch >= 16, p.slot_bytes, p.n_batch, p.n_ctx)
                };
                assert!(
                    rank(&less) <= rank(&plan),
                    "{:?} with less memory, {:?} with more",
                    rank(&less),
                    rank(&plan)
                );
                if less.n_ctx < plan.n_ctx && less.n_batch == plan.n_batch {
                    assert!(less.n_slots >= full, "slots are there before a longer context is");
                }
            }
            last = Some(plan);
        }
        assert!(last.unwrap().n_slots >= full, "a second slot is worth more than residents");
    }
}

#[test]
fn a_model_that_fits_is_resident_and_nothing_more_is_taken() {
    for spec in [smollm2(), mixture(), Spec { tied: false, ..smollm2() }] {
        let model = PlannedModel::of(&spec);
        let wishes = Wishes { n_ctx: Some(1024), ..Wishes::default() };
        let plan = model.plan(4 << 30, wishes).unwrap();
        model.check(&plan, 4 << 30);
        assert_eq!((plan.n_slots, plan.ledger_bytes("ring")), (0, 0), "no ring");
        assert_eq!(plan.streamed_bytes_per_token, 0, "nothing is read again");
        let again = model.plan(plan.total_bytes, wishes).unwrap();
        assert_eq!(Plan { budget_bytes: 4 << 30, ..again }, plan, "the plan fits what it says");
        let less = model.plan(plan.total_bytes - PAGE_BYTES, wishes).unwrap();
        assert!(less.streamed_bytes_per_token > 0, "one page less is not enough");
    }
}

#[test]
fn an_embedding_table_is_kept_after_everything_else() {
    let model = PlannedModel::of(&Spec { tied: false, ..smollm2() });
    let wishes = Wishes { n_ctx: Some(1024), ..Wishes::default() };
    let all = model.plan(4 << 30, wishes).unwrap();
    let less = model.plan(all.total_bytes - PAGE_BYTES, wishes).unwrap();
    assert_eq!(less.n_slots, 0, "a pass needs nothing but the row");
    let table = model.header.find("token_embd.weight").unwrap();
    assert!(less.residents.iter().all(|r| r.tensor as usize != table), "single rows are read");
    assert_eq!(
        less.streamed_bytes_per_token,
        u64::from(model.uses[0].row_bytes),
        "one row a token"
    );
    assert!(
        less.ledger_bytes("embeddingRows")
            >= EMBED_ROWS as u64 * u64::from(model.uses[0].row_bytes),
        "places for rows"
    );
    let refused = Wishes { streaming: false, ..wishes };
    let error = model.plan(all.total_bytes - (4 << 20), refused).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
    assert!(detail(&error, "needed_bytes") > all.total_bytes - (4 << 20), "{error}");
    let kept = model.plan(all.total_bytes, refused).unwrap();
    assert_eq!(kept.residents, all.residents, "where nothing may be read again all stays");
}

#[test]
fn residents_are_spread_over_the_pass() {
    for spec in [smollm2(), llama_8b()] {
        let model = PlannedModel::of(&spec);
        let total = model.plan(1 << 40, Wishes::default()).unwrap().weight_bytes;
        let floor = floor_of(&model, Wishes::default());
        for tenth in 1..10 {
            let wishes = Wishes { n_ctx: Some(512), n_batch: Some(16), ..Wishes::default() };
            let plan = model.plan(floor + total * tenth / 10, wishes).unwrap();
            let share = plan.resident_bytes as f64 / total as f64;
            let (mut passed, mut kept, mut worst) = (0.0, 0.0, 0.0_f64);
            for u in model.uses.iter().filter(|u| matches!(u.phase, Phase::Layer(_) | Phase::Head))
            {
                passed += u.bytes() as f64;
                kept += plan
                    .residents
                    .iter()
                    .find(|r| r.tensor == u.tensor)
                    .map_or(0.0, |r| r.bytes() as f64);
                worst = worst.max((kept - share * passed).abs());
            }
            let limit = 0.03 * total as f64 + 2.0 * plan.slot_bytes as f64;
            assert!(worst < limit, "{tenth}/10: {worst} bytes off an even spread, allowed {limit}");
        }
    }
}

#[test]
fn the_floors_that_were_promised() {
    let wishes = Wishes { n_ctx: Some(512), ..Wishes::default() };
    let floor = floor_of(&PlannedModel::of(&smollm2()), wishes);
    assert!(floor <= 32_000_000, "SmolLM2: {floor}");
    let floor = floor_of(&PlannedModel::of(&llama_8b()), wishes);
    assert!(floor <= 144_000_000, "8B: {floor}");
}

#[test]
fn without_a_budget_a_quarter_of_the_device_counts() {
    let model = PlannedModel::of(&llama_8b());
    let plan = model.plan_within(Limits::default(), Wishes::default()).unwrap();
    assert_eq!(plan.budget_bytes, 1 << 30, "4 GiB are assumed");
    let limits = Limits { device_bytes: Some(16 << 30), ..Limits::default() };
    let plan = model.plan_within(limits, Wishes::default()).unwrap();
    assert_eq!(plan.budget_bytes, 4 << 30, "a quarter of 16 GiB");
    let max_linear_bytes = Some((1 << 30) - 1);
    let plan = model.plan_within(Limits { max_linear_bytes, ..limits }, Wishes::default()).unwrap();
    model.check(&plan, 4 << 30);
    assert!(plan.linear_bytes < 1 << 30, "a linear memory holds no more");
}

#[test]
fn force_runs_the_smallest_plan_and_says_so() {
    let model = PlannedModel::of(&llama_8b());
    let wishes = Wishes { n_ctx: Some(512), ..Wishes::default() };
    let floor = floor_of(&model, wishes);
    let plan = model.plan(floor / 2, Wishes { force: true, ..wishes }).unwrap();
    assert!(plan.forced && plan.report().contains("forced"), "it says so");
    assert_eq!(
        (plan.total_bytes, plan.n_batch, plan.resident_bytes),
        (floor, 1, 0),
        "the smallest there is"
    );
    let fits = model.plan(floor * 2, Wishes { force: true, ..wishes }).unwrap();
    assert_eq!(
        fits,
        model.plan(floor * 2, wishes).unwrap(),
        "force changes nothing where a plan fits"
    );
    let limits = Limits {
        budget_bytes: Some(floor),
        max_linear_bytes: Some(floor / 2),
        ..Limits::default()
    };
    let error = model.plan_within(limits, Wishes { force: true, ..wishes }).unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::OutOfMemory,
        "no memory can be made larger than it can be: {error}"
    );
}

#[test]
fn wishes_that_no_model_can_grant_are_refused_by_their_name() {
    let model = PlannedModel::of(&smollm2());
    let d = Wishes::default();
    let cases = [
        ("context", Wishes { n_ctx: Some(0), ..d }),
        ("batch", Wishes { n_batch: Some(0), ..d }),
        ("slots", Wishes { n_slots: Some(0), ..d }),
        ("slotBytes", Wishes { slot_bytes: Some(359), ..d }),
        ("slotBytes", Wishes { slot_bytes: Some(u64::MAX), ..d }),
    ];
    for (key, wishes) in cases {
        let error = model.plan(1 << 30, wishes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOption, "{key}: {error}");
        assert!(error.message().contains(&format!("`{key}`")), "{error}");
    }
}

#[test]
fn a_context_that_was_asked_for_is_refused_rather_than_changed() {
    let model = PlannedModel::of(&llama_8b());
    let wishes = Wishes { n_ctx: Some(100_000), ..Wishes::default() };
    let error = model.plan(300_000_000, wishes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
    assert!(
        error.message().contains("`context`") && error.message().contains("`memory`"),
        "{error}"
    );
    assert!(detail(&error, "needed_bytes") > 100_000 * 131_072, "{error}");
    for kv in [KvType::F32, KvType::Q8_0] {
        let plan = model.plan(300_000_000, Wishes { kv, ..Wishes::default() }).unwrap();
        assert_eq!(plan.kv, kv, "the budget never changes the type");
    }
}

/// A refusal names what helps and nothing else.
#[test]
fn a_refusal_says_only_what_helps() {
    let model = PlannedModel::of(&smollm2());
    let all = Wishes { streaming: false, ..Wishes::default() };
    let weights = floor_of(&model, Wishes { n_ctx: Some(1), n_batch: Some(1), ..all });
    let least = floor_of(&model, Wishes { n_ctx: Some(1), n_batch: Some(1), ..Wishes::default() });
    let (context, batch) = (Some(4096), Some(512));
    let both = Wishes { n_ctx: context, n_batch: batch, ..Wishes::default() };
    let (page, room) = (PAGE_BYTES, 8 << 20);
    let cases: &[(&str, u64, Wishes, &[&str])] = &[
        ("nothing was asked for", least - page, Wishes::default(), &["smaller model"]),
        (
            "weights that must stay",
            weights - page,
            Wishes { n_ctx: context, ..all },
            &["smaller model"],
        ),
        ("the same with room", weights, Wishes { n_ctx: context, ..all }, &["`context`"]),
        ("a context", least + room, Wishes { n_ctx: context, ..Wishes::default() }, &["`context`"]),
        ("a chunk", least + 3 * room, Wishes { n_batch: batch, ..Wishes::default() }, &["`batch`"]),
        ("neither alone", least + page, both, &["`context`", "`batch`"]),
        ("hopeless", least - page, both, &["smaller model"]),
    ];
    for (what, budget, wishes, helps) in cases {
        let error = model.plan(*budget, *wishes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{what}: {error}");
        let raise = format!("raise `memory` to {} or more", detail(&error, "needed_bytes"));
        assert!(error.message().contains(&raise), "{what}: {error}");
        for word in ["`context`", "`batch`", "smaller model"] {
            let said = error.message().contains(word);
            assert_eq!(said, helps.contains(&word), "{what}: {word} in: {error}");
        }
    }
    let limits =
        Limits { budget_bytes: Some(1 << 40), max_linear_bytes: Some(least), ..Limits::default() };
    let error = model.plan_within(limits, all).unwrap_err();
    assert!(!error.message().contains("`memory`"), "more budget does not help: {error}");
    assert!(error.message().ends_with("take a smaller model"), "{error}");
}

#[test]
fn huge_prices_do_not_overflow() {
    let model = PlannedModel {
        kv_bytes_per_position: u64::MAX / 4096,
        js_bytes: 1 << 62,
        ..PlannedModel::of(&smollm2())
    };
    let refused = model.plan(u64::MAX, Wishes { n_ctx: Some(4096), ..Wishes::default() });
    assert_eq!(
        refused.err().map(|e| e.kind()),
        Some(ErrorKind::OutOfMemory),
        "refused, not wrapped"
    );
}
