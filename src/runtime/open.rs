//! Opening: header → model → plan → loader and state → norms and biases → residents. Nothing is taken before the plan says so.

use core::cell::RefCell;
use std::borrow::Cow;
use std::rc::Rc;

use super::config::{OpenConfig, Residency};
use super::host::{Host, OpenProgress, Outcome, checkpoint, or_abort};
use super::profile::LayerTimes;
use super::stats::{BUILD, Stats};
use super::stop::StopFilter;
use super::{Engine, budget};
use crate::error::{Error, ErrorKind, Result};
use crate::gguf::{Header, HeaderReader, join};
use crate::loader::{Loader, LoaderConfig, dequantized_directory, read_range, read_ranges};
use crate::model::{Model, ModelConfig, Phase, Shape, State};
use crate::source::{FileRange, WeightSource};
use crate::tokenizer::Tokenizer;

impl Engine {
    /// Opens the model behind `source`: afterwards all residents are in memory and decoding allocates nothing.
    ///
    /// # Errors
    /// `invalid_model`, `unsupported_model`, `out_of_memory` (with what it would take), `source_failed`, `invalid_option`.
    pub async fn open(
        source: Rc<dyn WeightSource>,
        config: &OpenConfig,
        host: &dyn Host,
    ) -> Outcome<Self> {
        let started = host.now_ms();
        config.validate()?;
        let mut header = read_header(&source, host).await?;
        let tokenizer = Tokenizer::take_from(&mut header.metadata)?;
        let model_config = ModelConfig { precision: config.precision, kv: config.kv_type() };
        let computed = computed_header(&header, &model_config, config.residency)?;
        let mut model = Model::new(&computed, &model_config)?;
        let plan = budget::plan_for(&computed, &model, &tokenizer, config, &*source)?;

        let n_logits = if config.all_logits { plan.n_batch } else { 1 };
        let shape = Shape { n_ctx: plan.n_ctx, n_batch: plan.n_batch, n_logits };
        let state = State::new(&model, &shape)?;
        read_vectors(&source, &header, &mut model, host).await?;
        let loading = LoaderConfig { prefetch: config.prefetch };
        let loader = Loader::new(&header, model.uses(), &plan, source, loading)?;

        let n_layer = model.hparams().n_layer as usize;
        let stats = Stats {
            kv_bytes: plan.ledger_bytes("kv"),
            context_max: plan.n_ctx,
            budget_bytes: plan.budget_bytes,
            build: BUILD,
            threads: 1,
            ..Stats::default()
        };
        let mut engine = Self {
            header,
            model,
            state,
            loader,
            tokenizer,
            stats,
            history: reserve(plan.n_ctx as usize)?,
            times: vec![LayerTimes::default(); n_layer + 2],
            first_logits: Vec::new(),
            stop: StopFilter::new(&[]),
            all_logits: config.all_logits,
            plan,
        };
        engine.load_residents(host).await?;
        engine.stats.load_ms = host.now_ms() - started;
        Ok(engine)
    }

    async fn load_residents(&mut self, host: &dyn Host) -> Outcome<()> {
        while !self.loader.poll_residents()? {
            let progress = self.loader.resident_progress();
            let (loaded_bytes, total_bytes) = (progress.loaded_bytes, progress.total_bytes);
            host.opening(&OpenProgress { loaded_bytes, total_bytes });
            or_abort(self.loader.wait(), host).await?;
            checkpoint(host).await?;
        }
        self.see_loader();
        self.stats.see_memory(host.memory_bytes());
        let total_bytes = self.loader.resident_progress().total_bytes;
        host.opening(&OpenProgress { loaded_bytes: total_bytes, total_bytes });
        Ok(())
    }
}

/// The directory as the kernels see it: the stored one, or the one in which the matrices are f32.
pub(super) fn computed_header<'a>(
    stored: &'a Header,
    config: &ModelConfig,
    residency: Residency,
) -> Result<Cow<'a, Header>> {
    Ok(match residency {
        Residency::Quantized => Cow::Borrowed(stored),
        Residency::F32 => {
            let tensors = dequantized_directory(stored, Model::new(stored, config)?.uses())?;
            Cow::Owned(Header { tensors, ..stored.clone() })
        }
    })
}

/// Reads and joins the headers of all files, in pieces that grow; tensor data is never touched.
///
/// # Errors
/// `source_failed`, `invalid_model`, `unsupported_model`.
pub(super) async fn read_header(source: &Rc<dyn WeightSource>, host: &dyn Host) -> Outcome<Header> {
    let mut headers = Vec::new();
    for file in 0..source.n_files() {
        let mut reader = HeaderReader::new(source.file_bytes(file));
        headers.push(loop {
            let wanted = reader.wanted();
            let bytes = if wanted.is_empty() {
                Vec::new()
            } else {
                let len = memory_size(wanted.end - wanted.start)?;
                or_abort(read_range(source, file, wanted.start, len), host).await??
            };
            if let Some(header) = reader.push(bytes)? {
                break header;
            }
        });
    }
    Ok(join(headers)?)
}

/// The vocabulary alone, for tools that encode and decode text.
///
/// # Errors
/// As for opening a model.
pub async fn read_tokenizer(source: Rc<dyn WeightSource>, host: &dyn Host) -> Outcome<Tokenizer> {
    let mut header = read_header(&source, host).await?;
    Ok(Tokenizer::take_from(&mut header.metadata)?)
}

/// Reads norms, biases and factors into the model.
async fn read_vectors(
    source: &Rc<dyn WeightSource>,
    header: &Header,
    model: &mut Model,
    host: &dyn Host,
) -> Outcome<()> {
    let mut ranges = Vec::new();
    let mut indices = Vec::new();
    for (index, used) in model.uses().iter().enumerate() {
        if used.phase == Phase::Open {
            let tensor = &header.tensors[used.tensor as usize];
            let skipped = u64::from(used.first_row) * u64::from(used.row_bytes);
            let (offset, len) = (tensor.offset + skipped, memory_size(used.bytes())?);
            ranges.push(FileRange { file: tensor.file, offset, len });
            indices.push(index);
        }
    }
    let model = RefCell::new(model);
    let each = |i: usize, bytes: Vec<u8>| model.borrow_mut().set_vector(indices[i], &bytes);
    or_abort(read_ranges(source, &ranges, each), host).await??;
    Ok(())
}

/// The one conversion from a size in a file to a size in memory.
fn memory_size(bytes: u64) -> Result<usize> {
    usize::try_from(bytes).map_err(|_| {
        let message = format!("{bytes} bytes do not fit the memory of this machine");
        Error::new(ErrorKind::OutOfMemory, message).with("needed_bytes", bytes)
    })
}

fn reserve<T>(n: usize) -> Result<Vec<T>> {
    let mut list = Vec::new();
    list.try_reserve_exact(n).map_err(|_| {
        Error::new(ErrorKind::OutOfMemory, format!("memory for {n} positions cannot be had"))
    })?;
    Ok(list)
}
