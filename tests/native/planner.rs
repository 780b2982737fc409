//! The planner's promises, on shapes of real models and on random ones.

use std::collections::{BTreeMap, BTreeSet};

use sluice::error::{Detail, ErrorKind};
use sluice::gguf::{FilePart, Header, TensorEntry, TensorType};
use sluice::model::{KvType, Phase, Use};
use sluice::planner::{
    EMBED_ROWS, Experts, LedgerItem, Limits, PAGE_BYTES, Plan, REGION_BYTES, Request, Session,
    SessionBytes, Wishes, plan,
};
use sluice::quant::GgmlType;

/// A model as the planner sees one.
#[derive(Debug, Clone)]
struct Shape {
    header: Header,
    uses: Vec<Use>,
    experts: Option<Experts>,
    fixed: Vec<LedgerItem>,
    js_bytes: u64,
    kv_bytes_per_position: u64,
    vectors: u64,
    n_vocab: u64,
    scratch_per_column: u64,
}

/// What a layer is made of; rows and columns in elements.
#[derive(Debug, Clone)]
struct Spec {
    n_layer: u64,
    n_embd: u64,
    n_ff: u64,
    q: u64,
    kv: u64,
    n_vocab: u64,
    tied: bool,
    types: Vec<GgmlType>,
    head: GgmlType,
    experts: Option<Experts>,
    /// Layer i has a feed-forward network of `n_ff` times this in quarters.
    uneven: Vec<u64>,
    n_files: u64,
}

impl Shape {
    fn of(spec: &Spec) -> Self {
        let mut shape = Self {
            header: Header::default(),
            uses: Vec::new(),
            experts: spec.experts,
            fixed: vec![
                LedgerItem { name: "code", bytes: 1_800_000 },
                LedgerItem { name: "stacks", bytes: 1 << 20 },
                LedgerItem { name: "vocabulary", bytes: 40 * spec.n_vocab },
            ],
            js_bytes: 300_000,
            kv_bytes_per_position: spec.n_layer * spec.kv * 2 * 2,
            vectors: 4 * spec.n_embd * (2 * spec.n_layer + 1),
            n_vocab: spec.n_vocab,
            scratch_per_column: 4 * (4 * spec.n_embd + 3 * spec.n_ff + 2 * spec.q),
        };
        let table = shape.tensor("token_embd.weight", spec.head, spec.n_embd, spec.n_vocab, 0);
        let head = if spec.tied {
            table
        } else {
            shape.tensor("output.weight", spec.head, spec.n_embd, spec.n_vocab, 0)
        };
        shape.add(table, Phase::Embed, true);
        for layer in 0..spec.n_layer {
            let file = layer * spec.n_files / spec.n_layer;
            shape.layer(spec, layer, u32::try_from(file).unwrap());
        }
        shape.add(head, Phase::Head, false);
        shape.place();
        shape
    }

    fn layer(&mut self, spec: &Spec, layer: u64, file: u32) {
        let phase = Phase::Layer(u32::try_from(layer).unwrap());
        let at = usize::try_from(layer).unwrap();
        let ty = spec.types[at % spec.types.len()];
        let n_ff = spec.n_ff * spec.uneven[at % spec.uneven.len()] / 4;
        let n_ff = n_ff.next_multiple_of(ty.block_elements() as u64);
        let n_experts = spec.experts.map_or(1, |e| u64::from(e.n));
        let deferred = spec.experts.is_some();
        let parts = [
            ("attn_norm", GgmlType::F32, spec.n_embd, 1, None),
            ("attn_q", ty, spec.n_embd, spec.q, Some(false)),
            ("attn_k", ty, spec.n_embd, spec.kv, Some(false)),
            ("attn_v", ty, spec.n_embd, spec.kv, Some(false)),
            ("attn_output", ty, spec.q, spec.n_embd, Some(false)),
            ("ffn_norm", GgmlType::F32, spec.n_embd, 1, None),
            ("ffn_gate", ty, spec.n_embd, n_ff * n_experts, Some(deferred)),
            ("ffn_up", ty, spec.n_embd, n_ff * n_experts, Some(deferred)),
            ("ffn_down", ty, n_ff, spec.n_embd * n_experts, Some(deferred)),
        ];
        for (name, ty, n_cols, n_rows, weight) in parts {
            let i = self.tensor(&format!("blk.{layer}.{name}.weight"), ty, n_cols, n_rows, file);
            match weight {
                Some(deferred) => self.add(i, phase, deferred),
                None => self.add(i, Phase::Open, false),
            }
        }
    }

    fn tensor(&mut self, name: &str, ty: GgmlType, n_cols: u64, n_rows: u64, file: u32) -> usize {
        let n_bytes = ty.row_bytes(n_cols).unwrap() * n_rows;
        let ty = TensorType::Known(ty);
        let entry = TensorEntry {
            name: name.to_owned(),
            ty,
            shape: vec![n_cols, n_rows],
            file,
            offset: 0,
            n_bytes,
        };
        self.header.tensors.push(entry);
        self.header.tensors.len() - 1
    }

    fn add(&mut self, tensor: usize, phase: Phase, deferred: bool) {
        let entry = &self.header.tensors[tensor];
        let n_rows = entry.n_rows();
        self.uses.push(Use {
            tensor: u32::try_from(tensor).unwrap(),
            first_row: 0,
            n_rows: u32::try_from(n_rows).unwrap(),
            row_bytes: u32::try_from(entry.n_bytes / n_rows).unwrap(),
            phase,
            deferred,
        });
    }

    /// Offsets in the order of the directory, aligned as GGUF does.
    fn place(&mut self) {
        let mut ends: BTreeMap<u32, u64> = BTreeMap::new();
        for t in &mut self.header.tensors {
            let end = ends.entry(t.file).or_insert(4096);
            t.offset = *end;
            *end = (*end + t.n_bytes).next_multiple_of(32);
        }
        self.header.files =
            ends.values().map(|end| FilePart { data_offset: 4096, min_bytes: *end }).collect();
    }

    fn plan(&self, budget: u64, wishes: Wishes) -> sluice::error::Result<Plan> {
        self.plan_within(Limits { budget_bytes: Some(budget), ..Limits::default() }, wishes)
    }

    fn plan_within(&self, limits: Limits, wishes: Wishes) -> sluice::error::Result<Plan> {
        let request = Request {
            header: &self.header,
            uses: &self.uses,
            experts: self.experts,
            n_ctx_train: 8192,
            fixed: &self.fixed,
            js_buffer_bytes: self.js_bytes,
            limits,
            wishes,
        };
        plan(&request, &|session| self.price(session))
    }

    fn price(&self, s: Session) -> SessionBytes {
        SessionBytes {
            vectors: self.vectors,
            kv: self.kv_bytes_per_position * u64::from(s.n_ctx),
            scratch: self.scratch_per_column * u64::from(s.n_batch) + 16 * u64::from(s.n_ctx),
            logits: 4 * self.n_vocab * u64::from(s.n_logits),
            session: 8 * self.n_vocab + 40 * u64::from(s.n_ctx),
        }
    }

    /// Everything that holds of every plan.
    fn check(&self, plan: &Plan, budget: u64) {
        assert!(
            plan.total_bytes <= budget || plan.forced,
            "total {} of budget {budget}",
            plan.total_bytes
        );
        let sum: u64 = plan.ledger.iter().map(|item| item.bytes).sum();
        assert_eq!(sum, plan.total_bytes, "the ledger's sum");
        assert_eq!(plan.linear_bytes % PAGE_BYTES, 0, "linear memory in pages");
        assert_eq!(plan.total_bytes % PAGE_BYTES, 0, "total in pages");
        assert_eq!(
            plan.total_bytes - plan.linear_bytes,
            plan.ledger_bytes("jsBuffers"),
            "linear memory and JS buffers"
        );
        let names: BTreeSet<&str> = plan.ledger.iter().map(|item| item.name).collect();
        assert_eq!(names.len(), plan.ledger.len(), "every item has its own name");
        let session = Session { n_ctx: plan.n_ctx, n_batch: plan.n_batch, n_logits: plan.n_logits };
        assert_eq!(
            plan.ledger_bytes("kv"),
            self.price(session).kv,
            "the session is priced at its size"
        );
        self.check_residents(plan);
        self.check_streaming(plan);
    }

    fn check_residents(&self, plan: &Plan) {
        let region = |bytes: u64| bytes.next_multiple_of(64) + REGION_BYTES;
        let ring: u64 = (0..plan.n_slots).map(|_| region(plan.slot_bytes)).sum();
        assert_eq!(plan.ledger_bytes("ring"), ring, "the ring's memory");
        let runs = plan.residents.iter().map(|r| region(r.bytes()));
        assert_eq!(plan.ledger_bytes("residents"), runs.sum::<u64>(), "the residents' memory");
        assert_eq!(
            plan.resident_bytes,
            plan.residents.iter().map(|r| r.bytes()).sum::<u64>(),
            "resident bytes"
        );
        let mut seen = BTreeSet::new();
        let mut last = 0;
        for run in &plan.residents {
            assert!(seen.insert(run.tensor), "one run per tensor");
            let whole = |u: &Use| u.tensor == run.tensor && u.phase != Phase::Embed;
            let used = self.uses.iter().position(whole).unwrap_or(0);
            assert!(used >= last, "in the order of use");
            last = used;
            let entry = &self.header.tensors[run.tensor as usize];
            let end = u64::from(run.first_row + run.n_rows);
            assert!(run.n_rows > 0 && end <= entry.n_rows(), "rows of {}", entry.name);
            assert_eq!(
                u64::from(run.row_bytes) * entry.n_rows(),
                entry.n_bytes,
                "row size of {}",
                entry.name
            );
        }
    }

    fn check_streaming(&self, plan: &Plan) {
        let mut streamed = 0;
        for u in self.uses.iter().filter(|u| u.phase != Phase::Open) {
            let run = plan.residents.iter().find(|r| r.tensor == u.tensor);
            let rows = u64::from(u.n_rows - run.map_or(0, |r| r.n_rows));
            let row_bytes = u64::from(u.row_bytes);
            streamed += match (u.phase, u.deferred, self.experts) {
                (Phase::Embed, ..) => rows.min(1) * row_bytes,
                (_, true, Some(e)) => rows * row_bytes / u64::from(e.n) * u64::from(e.n_used),
                _ => rows * row_bytes,
            };
            if rows > 0 && u.phase != Phase::Embed {
                assert!(plan.n_slots > 0 && plan.slot_bytes >= row_bytes, "a row fits a slot");
            }
        }
        assert_eq!(plan.streamed_bytes_per_token, streamed, "streamed bytes per token");
    }
}

fn smollm2() -> Spec {
    Spec {
        n_layer: 30,
        n_embd: 576,
        n_ff: 1536,
        q: 576,
        kv: 192,
        n_vocab: 49_152,
        tied: true,
        types: vec![GgmlType::Q4_1],
        head: GgmlType::Q8_0,
        experts: None,
        uneven: vec![4],
        n_files: 1,
    }
}

fn llama_8b() -> Spec {
    Spec {
        n_layer: 32,
        n_embd: 4096,
        n_ff: 14_336,
        q: 4096,
        kv: 1024,
        n_vocab: 128_256,
        tied: false,
        types: vec![GgmlType::Q4_K, GgmlType::Q4_K, GgmlType::Q6_K],
        head: GgmlType::Q6_K,
        experts: None,
        uneven: vec![4],
        n_files: 1,
    }
}

fn mixture() -> Spec {
    Spec {
        experts: Some(Experts { n: 8, n_used: 2 }),
        n_layer: 8,
        n_ff: 3584,
        n_embd: 1024,
        q: 1024,
        kv: 256,
        ..llama_8b()
    }
}

/// A small generator of our own: the same cases on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[usize::try_from(self.below(choices.len() as u64)).unwrap()].clone()
    }

    fn spec(&mut self) -> Spec {
        let types = [GgmlType::Q4_0, GgmlType::Q8_0, GgmlType::F16, GgmlType::Q4_K, GgmlType::Q6_K];
        Spec {
            n_layer: 1 + self.below(14),
            n_embd: 256 * (1 + self.below(6)),
            n_ff: 256 * (1 + self.below(20)),
            q: 256 * (1 + self.below(4)),
            kv: 256,
            n_vocab: 100 + self.below(30_000),
            tied: self.below(2) == 0,
            types: (0..1 + self.below(4)).map(|_| self.of(&types)).collect(),
            head: self.of(&types),
            experts: if self.below(4) == 0 { Some(Experts { n: 4, n_used: 2 }) } else { None },
            uneven: (0..1 + self.below(3)).map(|_| 1 + self.below(8)).collect(),
            n_files: 1 + self.below(2),
        }
    }

    fn wishes(&mut self) -> Wishes {
        let some = |random: &mut Self, n: u64| {
            if random.below(3) == 0 {
                Some(u32::try_from(1 + random.below(n)).unwrap())
            } else {
                None
            }
        };
        Wishes {
            n_ctx: some(self, 3000),
            n_batch: some(self, 200),
            all_logits: self.below(5) == 0,
            prefetch: self.below(4) > 0,
            n_slots: some(self, 5),
            slot_bytes: if self.below(4) == 0 { Some(1 << (17 + self.below(7))) } else { None },
            ..Wishes::default()
        }
    }
}

fn detail(error: &sluice::error::Error, name: &str) -> u64 {
    match error.details().iter().find(|d| d.0 == name) {
        Some((_, Detail::Number(n))) => *n,
        other => panic!("{name} of {error}: {other:?}"),
    }
}

fn floor_of(shape: &Shape, wishes: Wishes) -> u64 {
    shape.plan(0, Wishes { force: true, ..wishes }).unwrap().floor_bytes
}

#[test]
fn every_plan_keeps_to_its_budget_and_every_floor_is_exact() {
    let mut random = Random(1);
    for case in 0..400 {
        let shape = Shape::of(&random.spec());
        let wishes = random.wishes();
        let floor = floor_of(&shape, wishes);
        assert_eq!(floor % PAGE_BYTES, 0, "case {case}: the floor is in pages");
        let at_floor = shape.plan(floor, wishes).unwrap();
        shape.check(&at_floor, floor);
        assert!(!at_floor.forced, "case {case}: the floor fits");
        let error = shape.plan(floor - PAGE_BYTES, wishes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory, "case {case}: {error}");
        assert_eq!(detail(&error, "needed_bytes"), floor, "case {case}: {error}");
        assert_eq!(detail(&error, "available_bytes"), floor - PAGE_BYTES, "case {case}: {error}");
        for _ in 0..30 {
            let budget = floor + random.below(60_000_000);
            let plan = shape.plan(budget, wishes).unwrap();
            shape.check(&plan, budget);
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
fn more_budget_keeps_the_same_rows_and_more() {
    let mut random = Random(2);
    let mut specs: Vec<Spec> = (0..60).map(|_| random.spec()).collect();
    specs.extend([smollm2(), mixture()]);
    for spec in specs {
        let shape = Shape::of(&spec);
        let floor = floor_of(&shape, Wishes::default());
        let mut last: BTreeMap<(u32, u32, u32, u64), Plan> = BTreeMap::new();
        let step =
            (shape.header.tensors.iter().map(|t| t.n_bytes).sum::<u64>() * 2 + 200_000_000) / 400;
        for i in 0..400 {
            let plan = shape.plan(floor + i * step, Wishes::default()).unwrap();
            let key = (plan.n_ctx, plan.n_batch, plan.n_slots, plan.slot_bytes);
            if let Some(less) = last.get(&key) {
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
}

#[test]
fn depth_costs_keys_and_values_and_norms_only() {
    let tiny =
        Spec { n_layer: 6, n_embd: 256, n_ff: 768, q: 256, kv: 256, n_vocab: 2000, ..smollm2() };
    for (spec, kv) in [(tiny, 6 * 1024), (smollm2(), 46_080 / 2), (llama_8b(), 131_072)] {
        let deep = Spec { n_layer: 4 * spec.n_layer, ..spec.clone() };
        let (a, b) = (Shape::of(&spec), Shape::of(&deep));
        let wishes = Wishes { n_ctx: Some(512), force: true, ..Wishes::default() };
        let grown = floor_of(&b, wishes) - floor_of(&a, wishes);
        let expected = 3 * kv * 512 + (b.vectors - a.vectors);
        // The order of reading 128 wide layers is longer than what is allowed for every model.
        let loader = |shape: &Shape| {
            let plan = shape.plan(0, wishes).unwrap();
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
        let shape = Shape::of(&spec);
        let full = if spec.experts.is_some() { 4 } else { 2 };
        let floor = floor_of(&shape, Wishes::default());
        let mut last: Option<Plan> = None;
        for i in 0..3000 {
            let plan = shape.plan(floor + i * 131_072, Wishes::default()).unwrap();
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
        let shape = Shape::of(&spec);
        let wishes = Wishes { n_ctx: Some(1024), ..Wishes::default() };
        let plan = shape.plan(4 << 30, wishes).unwrap();
        shape.check(&plan, 4 << 30);
        assert_eq!((plan.n_slots, plan.ledger_bytes("ring")), (0, 0), "no ring");
        assert_eq!(plan.streamed_bytes_per_token, 0, "nothing is read again");
        let again = shape.plan(plan.total_bytes, wishes).unwrap();
        assert_eq!(Plan { budget_bytes: 4 << 30, ..again }, plan, "the plan fits what it says");
        let less = shape.plan(plan.total_bytes - PAGE_BYTES, wishes).unwrap();
        assert!(less.streamed_bytes_per_token > 0, "one page less is not enough");
    }
}

#[test]
fn an_embedding_table_is_kept_after_everything_else() {
    let shape = Shape::of(&Spec { tied: false, ..smollm2() });
    let wishes = Wishes { n_ctx: Some(1024), ..Wishes::default() };
    let all = shape.plan(4 << 30, wishes).unwrap();
    let less = shape.plan(all.total_bytes - PAGE_BYTES, wishes).unwrap();
    assert_eq!(less.n_slots, 0, "a pass needs nothing but the row");
    let table = shape.header.find("token_embd.weight").unwrap();
    assert!(less.residents.iter().all(|r| r.tensor as usize != table), "single rows are read");
    assert_eq!(
        less.streamed_bytes_per_token,
        u64::from(shape.uses[0].row_bytes),
        "one row a token"
    );
    assert!(
        less.ledger_bytes("embeddingRows")
            >= EMBED_ROWS as u64 * u64::from(shape.uses[0].row_bytes),
        "places for rows"
    );
    let refused = Wishes { streaming: false, ..wishes };
    let error = shape.plan(all.total_bytes - (4 << 20), refused).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
    assert!(detail(&error, "needed_bytes") > all.total_bytes - (4 << 20), "{error}");
    let kept = shape.plan(all.total_bytes, refused).unwrap();
    assert_eq!(kept.residents, all.residents, "where nothing may be read again all stays");
}

#[test]
fn residents_are_spread_over_the_pass() {
    for spec in [smollm2(), llama_8b()] {
        let shape = Shape::of(&spec);
        let total = shape.plan(1 << 40, Wishes::default()).unwrap().weight_bytes;
        let floor = floor_of(&shape, Wishes::default());
        for tenth in 1..10 {
            let wishes = Wishes { n_ctx: Some(512), n_batch: Some(16), ..Wishes::default() };
            let plan = shape.plan(floor + total * tenth / 10, wishes).unwrap();
            let share = plan.resident_bytes as f64 / total as f64;
            let (mut passed, mut kept, mut worst) = (0.0, 0.0, 0.0_f64);
            for u in shape.uses.iter().filter(|u| matches!(u.phase, Phase::Layer(_) | Phase::Head))
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
    let floor = floor_of(&Shape::of(&smollm2()), wishes);
    assert!(floor <= 32_000_000, "SmolLM2: {floor}");
    let floor = floor_of(&Shape::of(&llama_8b()), wishes);
    assert!(floor <= 144_000_000, "8B: {floor}");
}

#[test]
fn without_a_budget_a_quarter_of_the_device_counts() {
    let shape = Shape::of(&llama_8b());
    let plan = shape.plan_within(Limits::default(), Wishes::default()).unwrap();
    assert_eq!(plan.budget_bytes, 1 << 30, "4 GiB are assumed");
    let limits = Limits { device_bytes: Some(16 << 30), ..Limits::default() };
    let plan = shape.plan_within(limits, Wishes::default()).unwrap();
    assert_eq!(plan.budget_bytes, 4 << 30, "a quarter of 16 GiB");
    let max_linear_bytes = Some((1 << 30) - 1);
    let plan = shape.plan_within(Limits { max_linear_bytes, ..limits }, Wishes::default()).unwrap();
    shape.check(&plan, 4 << 30);
    assert!(plan.linear_bytes < 1 << 30, "a linear memory holds no more");
}

#[test]
fn force_runs_the_smallest_plan_and_says_so() {
    let shape = Shape::of(&llama_8b());
    let wishes = Wishes { n_ctx: Some(512), ..Wishes::default() };
    let floor = floor_of(&shape, wishes);
    let plan = shape.plan(floor / 2, Wishes { force: true, ..wishes }).unwrap();
    assert!(plan.forced && plan.report().contains("forced"), "it says so");
    assert_eq!(
        (plan.total_bytes, plan.n_batch, plan.resident_bytes),
        (floor, 1, 0),
        "the smallest there is"
    );
    let fits = shape.plan(floor * 2, Wishes { force: true, ..wishes }).unwrap();
    assert_eq!(
        fits,
        shape.plan(floor * 2, wishes).unwrap(),
        "force changes nothing where a plan fits"
    );
    let limits = Limits {
        budget_bytes: Some(floor),
        max_linear_bytes: Some(floor / 2),
        ..Limits::default()
    };
    let error = shape.plan_within(limits, Wishes { force: true, ..wishes }).unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::OutOfMemory,
        "no memory can be made larger than it can be: {error}"
    );
}

#[test]
fn wishes_that_no_model_can_grant_are_refused_by_their_name() {
    let shape = Shape::of(&smollm2());
    let d = Wishes::default();
    let cases = [
        ("context", Wishes { n_ctx: Some(0), ..d }),
        ("batch", Wishes { n_batch: Some(0), ..d }),
        ("slots", Wishes { n_slots: Some(0), ..d }),
        ("slotBytes", Wishes { slot_bytes: Some(359), ..d }),
        ("slotBytes", Wishes { slot_bytes: Some(u64::MAX), ..d }),
    ];
    for (key, wishes) in cases {
        let error = shape.plan(1 << 30, wishes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOption, "{key}: {error}");
        assert!(error.message().contains(&format!("`{key}`")), "{error}");
    }
}

#[test]
fn a_context_that_was_asked_for_is_refused_rather_than_changed() {
    let shape = Shape::of(&llama_8b());
    let wishes = Wishes { n_ctx: Some(100_000), ..Wishes::default() };
    let error = shape.plan(300_000_000, wishes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
    assert!(
        error.message().contains("`context`") && error.message().contains("`memory`"),
        "{error}"
    );
    assert!(detail(&error, "needed_bytes") > 100_000 * 131_072, "{error}");
    for kv in [KvType::F32, KvType::Q8_0] {
        let plan = shape.plan(300_000_000, Wishes { kv, ..Wishes::default() }).unwrap();
        assert_eq!(plan.kv, kv, "the budget never changes the type");
    }
}

#[test]
fn huge_prices_do_not_overflow() {
    let shape = Shape {
        kv_bytes_per_position: u64::MAX / 4096,
        js_bytes: 1 << 62,
        ..Shape::of(&smollm2())
    };
    let refused = shape.plan(u64::MAX, Wishes { n_ctx: Some(4096), ..Wishes::default() });
    assert_eq!(
        refused.err().map(|e| e.kind()),
        Some(ErrorKind::OutOfMemory),
        "refused, not wrapped"
    );
}
