//! Opening: header → model → plan → loader and state → norms and biases → residents. Nothing is taken before the plan says so.

use std::borrow::Cow;
use std::rc::Rc;

use super::config::{OpenConfig, Residency};
use super::embed::planned_state;
use super::host::{Host, Outcome, or_abort};
use super::profile::LayerTimes;
use super::stats::{BUILD, Stats};
use super::stop::StopFilter;
use super::vectors::Vectors;
use super::{Engine, budget};
use crate::error::{Error, ErrorKind, Result};
use crate::gguf::{Header, HeaderReader, join};
use crate::loader::{Loader, LoaderConfig, dequantized_directory, read_range};
use crate::model::{Model, ModelConfig, Phase, Shape, State, Use};
use crate::planner::Plan;
use crate::source::{FileRange, WeightSource};
use crate::team::Team;
use crate::tokenizer::Tokenizer;

impl Engine {
    /// Opens the model behind `source`: afterwards decoding allocates nothing, and all residents are in memory, except of a
    /// source whose bytes are still arriving: those are taken by the first pass, or by [`Engine::load_on`], as they come.
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

        let Plan { n_ctx, n_batch, n_logits, .. } = plan;
        let shape = Shape { n_ctx, n_batch, n_logits };
        let team = host.team();
        let n_threads = planned_threads(team.as_deref(), config)?;
        let embedding = planned_state(&model, &plan, config, team.as_ref())?;
        let state = State::with_team(&model, &shape, team)?;
        let arriving = source.is_arriving();
        source.will_use(&order_of_use(&header, &model));
        let mut vectors = Vectors::new(&header, &mut model, Rc::clone(&source))?;
        // A store brings them with the layer they stand beside; from a server each is a request, and many at once are faster.
        if !(arriving && source.rereads()) {
            vectors.read_all(&mut model, host).await?;
        }
        let loading = LoaderConfig { prefetch: config.prefetch };
        let loader = Loader::new(&header, model.uses(), &plan, source, loading)?;

        let stats = Stats {
            kv_bytes: plan.ledger_bytes("kv"),
            context_max: plan.n_ctx,
            budget_bytes: plan.budget_bytes,
            build: BUILD,
            threads: n_threads,
            ..Stats::default()
        };
        let mut engine = Self {
            header: Rc::new(header),
            times: vec![LayerTimes::default(); model.hparams().n_layer as usize + 2],
            model,
            state,
            loader,
            vectors,
            tokenizer: Rc::new(tokenizer),
            stats,
            history: reserve(plan.n_ctx as usize)?,
            first_logits: Vec::new(),
            stop: StopFilter::new(&[], 0),
            all_logits: config.all_logits,
            prefill: None,
            computed: None,
            embedding,
            plan,
        };
        if !arriving {
            engine.load_residents(host).await?;
        }
        host.take_memory(engine.plan.linear_bytes);
        engine.stats.see_memory(host.memory_bytes());
        engine.stats.load_ms = host.now_ms() - started;
        Ok(engine)
    }
}

/// The threads that compute: never more than memory was planned for.
fn planned_threads(team: Option<&dyn Team>, config: &OpenConfig) -> Result<u32> {
    let n_threads = team.map_or(1, Team::n_threads);
    u32::try_from(n_threads).ok().filter(|n| *n <= config.n_threads).ok_or_else(|| {
        let message = format!("{n_threads} threads for a plan for {}", config.n_threads);
        Error::new(ErrorKind::Internal, message)
    })
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

/// What a pass reads of the files, tensor by tensor in the order of use; last what it takes single rows of.
fn order_of_use(header: &Header, model: &Model) -> Vec<FileRange> {
    let whole = |u: &&Use| u.phase != Phase::Open && !(u.deferred && u.phase == Phase::Embed);
    let uses = model.uses();
    let in_order = uses.iter().filter(whole).chain(uses.iter());
    let mut seen = vec![false; header.tensors.len()];
    let mut ranges = Vec::with_capacity(header.tensors.len());
    for u in in_order {
        let tensor = u.tensor as usize;
        if !core::mem::replace(&mut seen[tensor], true) {
            let entry = &header.tensors[tensor];
            let len = usize::try_from(entry.n_bytes).unwrap_or(usize::MAX);
            ranges.push(FileRange { file: entry.file, offset: entry.offset, len });
        }
    }
    ranges
}

/// The one conversion from a size in a file to a size in memory.
pub(super) fn memory_size(bytes: u64) -> Result<usize> {
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
