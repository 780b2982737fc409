//! Models as the planner sees them: shapes of real ones and random ones, and what holds of every plan for them.

use std::collections::{BTreeMap, BTreeSet};

use sluice::gguf::{FilePart, Header, TensorEntry, TensorType};
use sluice::model::{ModelMemory, Phase, Shape, Use};
use sluice::planner::{
    Experts, LedgerItem, Limits, PAGE_BYTES, Plan, REGION_BYTES, Request, SessionBytes, Wishes,
    plan,
};
use sluice::quant::GgmlType;

/// A model as the planner sees one.
#[derive(Debug, Clone)]
pub(super) struct PlannedModel {
    pub(super) header: Header,
    pub(super) uses: Vec<Use>,
    pub(super) experts: Option<Experts>,
    pub(super) fixed: Vec<LedgerItem>,
    pub(super) js_bytes: u64,
    pub(super) kv_bytes_per_position: u64,
    pub(super) vectors: u64,
    pub(super) n_vocab: u64,
    pub(super) scratch_per_column: u64,
}

/// What a layer is made of; rows and columns in elements.
#[derive(Debug, Clone)]
pub(super) struct Spec {
    pub(super) n_layer: u64,
    pub(super) n_embd: u64,
    pub(super) n_ff: u64,
    pub(super) q: u64,
    pub(super) kv: u64,
    pub(super) n_vocab: u64,
    pub(super) tied: bool,
    pub(super) types: Vec<GgmlType>,
    pub(super) head: GgmlType,
    pub(super) experts: Option<Experts>,
    /// Layer i has a feed-forward network of `n_ff` times this in quarters.
    pub(super) uneven: Vec<u64>,
    pub(super) n_files: u64,
}

impl PlannedModel {
    pub(super) fn of(spec: &Spec) -> Self {
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

    pub(super) fn plan(&self, budget: u64, wishes: Wishes) -> sluice::error::Result<Plan> {
        self.plan_within(Limits { budget_bytes: Some(budget), ..Limits::default() }, wishes)
    }

    pub(super) fn plan_within(
        &self,
        limits: Limits,
        wishes: Wishes,
    ) -> sluice::error::Result<Plan> {
        let request = Request {
            header: &self.header,
            uses: &self.uses,
            experts: self.experts,
            whole_texts: false,
            n_ctx_train: 8192,
            fixed: &self.fixed,
            js_buffer_bytes: self.js_bytes,
            limits,
            wishes,
        };
        plan(&request, &|shape| self.price(shape))
    }

    fn price(&self, s: &Shape) -> SessionBytes {
        SessionBytes {
            model: ModelMemory {
                vectors_bytes: self.vectors,
                kv_bytes: self.kv_bytes_per_position * u64::from(s.n_ctx),
                scratch_bytes: self.scratch_per_column * u64::from(s.n_batch)
                    + 16 * u64::from(s.n_ctx),
                logits_bytes: 4 * self.n_vocab * u64::from(s.n_logits),
            },
            session_bytes: 8 * self.n_vocab + 40 * u64::from(s.n_ctx),
        }
    }

    /// Everything that holds of every plan.
    pub(super) fn check(&self, plan: &Plan, budget: u64) {
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
            plan.ledger_bytes("jsBuffers") + plan.ledger_bytes("host"),
            "linear memory, JS buffers and what the host takes"
        );
        let names: BTreeSet<&str> = plan.ledger.iter().map(|item| item.name).collect();
        assert_eq!(names.len(), plan.ledger.len(), "every item has its own name");
        let session = Shape { n_ctx: plan.n_ctx, n_batch: plan.n_batch, n_logits: plan.n_logits };
        assert_eq!(
            plan.ledger_bytes("kv"),
            self.price(&session).model.kv_bytes,
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

pub(super) fn smollm2() -> Spec {
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

pub(super) fn llama_8b() -> Spec {
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

pub(super) fn mixture() -> Spec {
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
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[usize::try_from(self.below(choices.len() as u64)).unwrap()].clone()
    }

    pub(super) fn spec(&mut self) -> Spec {
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

    pub(super) fn wishes(&mut self) -> Wishes {
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
