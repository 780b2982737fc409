//! Drives a model from the bytes of its file, without planner and loader: tiles as the test cuts them.

use sluice::TokenId;
use sluice::error::Result;
use sluice::gguf::Header;
use sluice::model::{
    Fed, KvType, LogitsWanted, Model, ModelConfig, Need, Phase, Precision, Shape, State,
};

pub(super) const EXACT: ModelConfig = ModelConfig { precision: Precision::Exact, kv: KvType::F32 };
pub(super) const FAST: ModelConfig = ModelConfig { precision: Precision::Fast, kv: KvType::F16 };

/// A model file in memory with a session over it.
pub(super) struct Driver {
    file: Vec<u8>,
    header: Header,
    pub(super) model: Model,
    pub(super) state: State,
    /// Rows of each tile, over and over.
    tiles: Vec<u32>,
    n_tiles: usize,
}

/// The prompt of a fixture and what llama.cpp makes of it.
pub(super) struct Golden {
    pub(super) prompt: Vec<TokenId>,
    pub(super) n_vocab: usize,
    /// `[n_tokens, n_vocab]`
    pub(super) logits: Vec<f32>,
}

impl Driver {
    pub(super) fn open(name: &str, config: &ModelConfig, shape: &Shape) -> Self {
        Self::of_file(fixture(&format!("{name}.gguf")), config, shape)
            .unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    pub(super) fn of_file(file: Vec<u8>, config: &ModelConfig, shape: &Shape) -> Result<Self> {
        let header = Header::parse(&file)?;
        let mut model = Model::new(&header, config)?;
        for index in 0..model.uses().len() {
            let u = model.uses()[index];
            if u.phase == Phase::Open {
                model.set_vector(
                    index,
                    rows_of(&file, &header, &model, index, u.first_row, u.n_rows),
                )?;
            }
        }
        let state = State::new(&model, shape)?;
        Ok(Self { file, header, model, state, tiles: vec![u32::MAX], n_tiles: 0 })
    }

    /// The same with tiles of these rows, over and over.
    pub(super) fn with_tiles(mut self, tiles: &[u32]) -> Self {
        self.tiles = tiles.to_vec();
        self
    }

    /// A whole pass; its logits.
    pub(super) fn pass(&mut self, tokens: &[TokenId], want: LogitsWanted) -> &[f32] {
        let pos = self.state.pos();
        self.state.begin(&self.model, tokens, pos, want).unwrap();
        while self.step() {}
        self.state.logits()
    }

    /// One call of the stepper; false at the end.
    pub(super) fn step(&mut self) -> bool {
        match self.state.need(&self.model) {
            Need::Done => return false,
            Need::Compute => self.state.compute(&self.model).unwrap(),
            Need::Rows { use_index, first_row, n_rows } => {
                let n_rows = n_rows.min(self.tiles[self.n_tiles % self.tiles.len()]);
                let bytes =
                    rows_of(&self.file, &self.header, &self.model, use_index, first_row, n_rows);
                if self.state.feed(&self.model, first_row, n_rows, bytes).unwrap() == Fed::Consumed
                {
                    self.n_tiles += 1;
                }
            }
        }
        true
    }

    /// Logits of every position, in chunks of `n_chunk` tokens.
    pub(super) fn logits(&mut self, tokens: &[TokenId], n_chunk: usize) -> Vec<f32> {
        let mut all = Vec::new();
        for chunk in tokens.chunks(n_chunk) {
            all.extend_from_slice(self.pass(chunk, LogitsWanted::All));
        }
        all
    }
}

fn rows_of<'a>(
    file: &'a [u8],
    header: &Header,
    model: &Model,
    use_index: usize,
    first_row: u32,
    n_rows: u32,
) -> &'a [u8] {
    let u = &model.uses()[use_index];
    let tensor = &header.tensors[u.tensor as usize];
    let start = tensor.offset + u64::from(first_row) * u64::from(u.row_bytes);
    let end = start + u64::from(n_rows) * u64::from(u.row_bytes);
    assert!(end <= tensor.offset + tensor.n_bytes, "{}: rows inside the tensor", tensor.name);
    &file[usize::try_from(start).unwrap()..usize::try_from(end).unwrap()]
}

/// Room for the fixtures' prompts.
pub(super) fn shape(n_batch: u32) -> Shape {
    Shape { n_ctx: 256, n_batch, n_logits: n_batch }
}

pub(super) fn golden(name: &str) -> Golden {
    let facts: serde_json::Value =
        serde_json::from_slice(&fixture(&format!("{name}.json"))).unwrap();
    let ids = facts["prompt"]
        .as_array()
        .unwrap()
        .iter()
        .map(|id| u32::try_from(id.as_u64().unwrap()).unwrap());
    let logits = fixture(&format!("{name}.logits.f32"));
    Golden {
        prompt: ids.collect(),
        n_vocab: usize::try_from(facts["n_vocab"].as_u64().unwrap()).unwrap(),
        logits: logits.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
    }
}

pub(super) fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The largest difference of two runs of logits, and where.
pub(super) fn worst(got: &[f32], want: &[f32]) -> (f32, usize) {
    assert_eq!(got.len(), want.len(), "as many logits");
    let differences = got.iter().zip(want).map(|(a, b)| (a - b).abs());
    // A NaN counts as infinitely far.
    let far = differences.map(|d| if d.is_nan() { f32::INFINITY } else { d });
    far.zip(0..).fold((0.0, 0), |worst, d| if d.0 > worst.0 { d } else { worst })
}
