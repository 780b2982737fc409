//! A model in memory that is spoilt and opened.

use std::ops::ControlFlow;
use std::rc::Rc;

use sluice::error::Error;
use sluice::gguf::{Array, Format, Header, Metadata, ModelWriter, TensorSpec, TensorType, Value};
use sluice::quant::GgmlType;
use sluice::runtime::native::{NativeHost, block_on};
use sluice::runtime::{Engine, GenerateConfig, Halted, OpenConfig, Outcome, Prompt, SamplerConfig};
use sluice::source::{MemorySource, WeightSource};

use crate::generate::fixture;

/// The sound model that most cases spoil: three layers of f32, four heads of 16 values, ids without texts.
pub(super) const LLAMA: &str = "models/llama-gqa.gguf";

/// Tokens of an answer.
const ANSWER: usize = 2;
const PROMPT: [u32; 3] = [1, 2, 3];

/// Files and options that are about to be opened.
pub(super) struct Attempt {
    pub(super) files: Vec<Vec<u8>>,
    pub(super) config: OpenConfig,
}

impl Attempt {
    /// A model that opens.
    pub(super) fn sound() -> Self {
        let config = OpenConfig { n_ctx: Some(32), n_batch: Some(8), ..OpenConfig::default() };
        Self { files: vec![read(LLAMA)], config }
    }

    /// These fixtures instead, as the files of one model.
    pub(super) fn fixtures(&mut self, names: &[&str]) {
        self.files = names.iter().map(|name| read(name)).collect();
    }

    /// These bytes instead.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.files = vec![bytes.to_vec()];
    }

    /// The one file, taken apart, changed and written again.
    pub(super) fn edit(&mut self, change: impl FnOnce(&mut Draft)) {
        let mut draft = Draft::of(&self.files[0]);
        change(&mut draft);
        self.files = vec![draft.write()];
    }

    /// The sound file with a value of its metadata replaced.
    pub(super) fn set(&mut self, key: &str, value: Value) {
        self.edit(|draft| drop(draft.metadata.insert(key, value)));
    }

    /// The sound file without a value of its metadata.
    pub(super) fn lose(&mut self, key: &str) {
        self.edit(|draft| assert!(draft.metadata.remove(key).is_some(), "{key} was there"));
    }

    pub(super) fn open(self) -> Result<Engine, Error> {
        let source: Rc<dyn WeightSource> = Rc::new(MemorySource::new(self.files));
        failed(block_on(Engine::open(source, &self.config, &NativeHost::new())))
    }

    /// Opens and answers.
    pub(super) fn assert_works(&self, when: &str) {
        let copy = Self { files: self.files.clone(), config: self.config.clone() };
        let mut engine = copy.open().unwrap_or_else(|error| panic!("{when}: {error}"));
        let ids = answer(&mut engine, &Prompt::Ids(PROMPT.to_vec()), &greedy())
            .unwrap_or_else(|error| panic!("{when}: {error}"));
        assert_eq!(ids.len(), ANSWER, "{when}");
    }
}

/// A file taken apart.
pub(super) struct Draft {
    pub(super) metadata: Metadata,
    pub(super) tensors: Vec<DraftTensor>,
}

/// One tensor with its data.
pub(super) struct DraftTensor {
    pub(super) name: String,
    pub(super) ty: GgmlType,
    pub(super) shape: Vec<u64>,
    pub(super) data: Vec<u8>,
}

impl Draft {
    fn of(file: &[u8]) -> Self {
        let header = Header::parse(file).expect("a sound header");
        let tensors = header
            .tensors
            .into_iter()
            .map(|entry| {
                let TensorType::Known(ty) = entry.ty else { panic!("{} is known", entry.name) };
                let start = entry.offset as usize;
                let data = file[start..start + entry.n_bytes as usize].to_vec();
                DraftTensor { name: entry.name, ty, shape: entry.shape, data }
            })
            .collect();
        Self { metadata: header.metadata, tensors }
    }

    fn write(&self) -> Vec<u8> {
        let specs: Vec<_> = self
            .tensors
            .iter()
            .map(|t| TensorSpec { name: &t.name, ty: t.ty, shape: &t.shape })
            .collect();
        let mut file = Vec::new();
        let mut writer = ModelWriter::new(Format::Gguf, &self.metadata, &specs, |bytes| {
            file.extend_from_slice(bytes);
            Ok(())
        })
        .expect("a head");
        self.tensors.iter().for_each(|t| writer.write(&t.data).expect("data"));
        writer.finish().expect("the end");
        file
    }

    /// The tensor named `name`.
    pub(super) fn tensor(&mut self, name: &str) -> &mut DraftTensor {
        self.tensors.iter_mut().find(|t| t.name == name).unwrap_or_else(|| panic!("{name}"))
    }

    /// Takes the tensor out.
    pub(super) fn lose(&mut self, name: &str) {
        self.tensor(name);
        self.tensors.retain(|t| t.name != name);
    }
}

impl DraftTensor {
    /// Gives it another format and shape, and zeros.
    pub(super) fn become_zeros(&mut self, ty: GgmlType, shape: &[u64]) {
        self.ty = ty;
        self.shape = shape.to_vec();
        let spec = TensorSpec { name: &self.name, ty, shape };
        self.data = vec![0; spec.n_bytes().expect("whole blocks") as usize];
    }
}

/// The bytes of a fixture.
pub(super) fn read(name: &str) -> Vec<u8> {
    std::fs::read(fixture(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The ids that `prompt` gives.
pub(super) fn answer(
    engine: &mut Engine,
    prompt: &Prompt,
    config: &GenerateConfig,
) -> Result<Vec<u32>, Error> {
    let mut ids = Vec::new();
    failed(block_on(engine.generate(
        prompt,
        config,
        &NativeHost::new(),
        None,
        &mut |chunk, _| {
            ids.extend(chunk.token.map(|sample| sample.id));
            ControlFlow::Continue(())
        },
    )))?;
    Ok(ids)
}

/// The likeliest tokens, a few.
pub(super) fn greedy() -> GenerateConfig {
    GenerateConfig {
        max_tokens: ANSWER as u32,
        sampler: SamplerConfig::greedy(),
        ignore_eog: true,
        ..GenerateConfig::default()
    }
}

fn failed<T>(outcome: Outcome<T>) -> Result<T, Error> {
    outcome.map_err(|halted| match halted {
        Halted::Failed(error) => error,
        Halted::Aborted => panic!("nobody aborts"),
    })
}

pub(super) fn text(value: &str) -> Value {
    Value::String(value.as_bytes().into())
}

pub(super) fn counts(values: &[u32]) -> Value {
    Value::Array(Array::U32(values.to_vec()))
}
