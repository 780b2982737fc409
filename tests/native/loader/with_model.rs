//! The loader under real models: the same logits, bit for bit, whatever is resident and whatever streams.

use std::rc::Rc;

use sluice::TokenId;
use sluice::gguf::Header;
use sluice::loader::{Loader, LoaderConfig, dequantized_directory};
use sluice::model::{
    Fed, KvType, LogitsWanted, Model, ModelConfig, Need, Phase, Precision, Shape, State,
};
use sluice::planner::ResidentRun;
use sluice::source::{Delivery, FaultySource, MemorySource, WeightSource};

use super::deadline::in_time;
use super::fake_model::plan;
use crate::generate::fixture;

const EXACT: ModelConfig = ModelConfig { precision: Precision::Exact, kv: KvType::F32 };
const TOKENS: [TokenId; 11] = [3, 17, 5, 5, 40, 1, 22, 9, 60, 2, 31];

/// A file, and its model as one residency sees it.
struct Opened {
    file: Vec<u8>,
    /// As the file says.
    header: Header,
    model: Model,
}

impl Opened {
    fn new(name: &str, as_f32: bool) -> Self {
        #[allow(clippy::disallowed_methods, reason = "a native test reads its fixtures")]
        let file = std::fs::read(fixture(&format!("models/{name}.gguf"))).unwrap();
        let header = Header::parse(&file).unwrap();
        let mut model = Model::new(&header, &EXACT).unwrap();
        if as_f32 {
            let tensors = dequantized_directory(&header, model.uses()).unwrap();
            model = Model::new(&Header { tensors, ..header.clone() }, &EXACT).unwrap();
        }
        for index in 0..model.uses().len() {
            let u = model.uses()[index];
            if u.phase == Phase::Open {
                let start = header.tensors[u.tensor as usize].offset as usize;
                model.set_vector(index, &file[start..start + u.bytes() as usize]).unwrap();
            }
        }
        Self { file, header, model }
    }

    /// The whole of each tensor of a pass.
    fn all_resident(&self) -> Vec<ResidentRun> {
        let mut runs: Vec<ResidentRun> = Vec::new();
        for u in self.model.uses().iter().filter(|u| u.phase != Phase::Open) {
            if runs.iter().all(|r| r.tensor != u.tensor) {
                let n_rows = self.header.tensors[u.tensor as usize].n_rows() as u32;
                runs.push(ResidentRun {
                    tensor: u.tensor,
                    first_row: 0,
                    n_rows,
                    row_bytes: u.row_bytes,
                });
            }
        }
        runs
    }

    /// Part of every third tensor.
    fn some_resident(&self) -> Vec<ResidentRun> {
        let part = |r: &ResidentRun| ResidentRun {
            first_row: r.n_rows / 4,
            n_rows: r.n_rows.div_ceil(2).min(r.n_rows - r.n_rows / 4),
            ..*r
        };
        self.all_resident().iter().step_by(3).map(part).collect()
    }

    fn longest_row(&self) -> u64 {
        let rows = self.model.uses().iter().filter(|u| u.phase != Phase::Open);
        rows.map(|u| u64::from(u.row_bytes)).max().unwrap()
    }

    fn logits(
        &self,
        n_slots: u32,
        slot_bytes: u64,
        residents: &[ResidentRun],
        source: Rc<dyn WeightSource>,
        n_chunk: usize,
    ) -> Vec<f32> {
        let plan = sluice::planner::Plan { n_batch: 16, ..plan(n_slots, slot_bytes, residents) };
        let config = LoaderConfig::default();
        let mut loader =
            Loader::new(&self.header, self.model.uses(), &plan, source, config).unwrap();
        let mut state =
            State::new(&self.model, &Shape { n_ctx: 16, n_batch: 16, n_logits: 16 }).unwrap();
        let mut all = Vec::new();
        for tokens in TOKENS.chunks(n_chunk) {
            let pos = state.pos();
            state.begin(&self.model, tokens, pos, LogitsWanted::All).unwrap();
            in_time(sweep(&self.model, &mut state, &mut loader, tokens));
            all.extend_from_slice(state.logits());
        }
        all
    }
}

async fn sweep(model: &Model, state: &mut State, loader: &mut Loader, tokens: &[TokenId]) {
    loader.begin_pass(true, tokens);
    loop {
        match state.need(model) {
            Need::Done => return,
            Need::Compute => state.compute(model).unwrap(),
            Need::Rows { use_index, first_row, n_rows } => {
                let Some(tile) = loader.tile(use_index, first_row, n_rows).unwrap() else {
                    loader.wait().await;
                    continue;
                };
                let fed = {
                    let bytes = loader.bytes(&tile);
                    state.feed(model, tile.first_row(), tile.n_rows(), &bytes).unwrap()
                };
                if fed == Fed::Consumed {
                    loader.release(tile);
                }
            }
        }
    }
}

const MODELS: [&str; 6] =
    ["llama-gqa", "llama-ropefreqs-tied", "gemma3", "llama-moe", "olmoe", "phi3"];

#[test]
fn streamed_logits_are_the_resident_ones() {
    for name in MODELS {
        let opened = Opened::new(name, false);
        let memory = || Rc::new(MemorySource::new(vec![opened.file.clone()]));
        let expected = opened.logits(0, 0, &opened.all_resident(), memory(), TOKENS.len());
        let row = opened.longest_row();
        for (n_slots, slot_bytes) in [(1, row), (2, row + 7), (3, 4 * row), (8, 1 << 20)] {
            for residents in [vec![], opened.some_resident()] {
                let delivery = Delivery::Shuffled { seed: slot_bytes };
                let late = Rc::new(FaultySource::new(vec![opened.file.clone()], delivery, &[]));
                for (source, n_chunk) in [(memory() as Rc<dyn WeightSource>, 4), (late, 1)] {
                    let logits = opened.logits(n_slots, slot_bytes, &residents, source, n_chunk);
                    assert!(
                        same_bits(&logits, &expected),
                        "{name}: {n_slots} slots of {slot_bytes} bytes"
                    );
                }
            }
        }
    }
}

#[test]
fn residency_f32_gives_the_bits_of_exact() {
    for name in MODELS {
        let stored = Opened::new(name, false);
        let source = Rc::new(MemorySource::new(vec![stored.file.clone()]));
        let expected = stored.logits(0, 0, &stored.all_resident(), source, TOKENS.len());
        let opened = Opened::new(name, true);
        for (n_slots, residents) in
            [(0, opened.all_resident()), (1, vec![]), (3, opened.some_resident())]
        {
            let delivery = Delivery::Shuffled { seed: u64::from(n_slots) };
            let source = Rc::new(FaultySource::new(vec![opened.file.clone()], delivery, &[]));
            let logits = opened.logits(n_slots, 3 * opened.longest_row(), &residents, source, 4);
            assert!(same_bits(&logits, &expected), "{name}: {n_slots} slots");
        }
    }
}

fn same_bits(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}
