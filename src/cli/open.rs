//! The options that all commands share: which model, how it is opened.

use std::path::PathBuf;
use std::rc::Rc;

use clap::ValueEnum;
use sluice::error::Result;
use sluice::runtime::native::{NativeHost, block_on, open_source};
use sluice::runtime::{
    Engine, Halted, KvType, Letters, OpenConfig, Precision, Residency, WeightSource, parse_size,
};

/// Which model, and how it is opened.
#[derive(Debug, clap::Args)]
pub(crate) struct OpenArgs {
    /// GGUF (or llmw) file; of a split model, all its files
    #[arg(required = true)]
    model: Vec<PathBuf>,
    /// Positions of the context
    #[arg(long, value_name = "N")]
    ctx: Option<u32>,
    /// Columns of a prefill chunk
    #[arg(long, value_name = "N")]
    n_batch: Option<u32>,
    /// Bytes that the engine may take: 300M, 1G (binary), 300MB, 300MiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    ram_budget: Option<u64>,
    /// Run the smallest plan where none fits the budget
    #[arg(long)]
    ram_budget_force: bool,
    /// How keys and values are kept
    #[arg(long, value_enum)]
    kv: Option<Kv>,
    /// How activations meet quantised weights
    #[arg(long, value_enum, default_value = "fast")]
    precision: PrecisionArg,
    /// How weights are kept and handed to the kernels
    #[arg(long, value_enum, default_value = "quant")]
    residency: ResidencyArg,
    /// Read through a memory map
    #[arg(long)]
    mmap: bool,
    /// Threads that compute; they change no bit
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: u32,
    /// One slot, no reading ahead
    #[arg(long)]
    no_async: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kv {
    F32,
    F16,
    #[value(name = "q8_0")]
    Q8_0,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ResidencyArg {
    Quant,
    F32,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PrecisionArg {
    Fast,
    Exact,
}

impl OpenArgs {
    /// Opens the model with `config` as the starting point.
    pub(crate) fn open(&self, config: OpenConfig, host: &NativeHost) -> Result<Engine> {
        let config = self.config(config);
        block_on(Engine::open(self.source()?, &config, host)).map_err(never_aborted)
    }

    /// The host that the command runs on.
    pub(crate) fn host(&self) -> NativeHost {
        NativeHost::with_threads(self.threads)
    }

    /// The files as a source.
    pub(crate) fn source(&self) -> Result<Rc<dyn WeightSource>> {
        open_source(&self.model, self.mmap)
    }

    /// `config` with what the command line says.
    pub(crate) fn config(&self, config: OpenConfig) -> OpenConfig {
        OpenConfig {
            budget_bytes: self.ram_budget,
            force: self.ram_budget_force,
            n_ctx: self.ctx,
            n_batch: self.n_batch,
            kv: self.kv.map(|kv| match kv {
                Kv::F32 => KvType::F32,
                Kv::F16 => KvType::F16,
                Kv::Q8_0 => KvType::Q8_0,
            }),
            precision: match self.precision {
                PrecisionArg::Fast => Precision::Fast,
                PrecisionArg::Exact => Precision::Exact,
            },
            residency: match self.residency {
                ResidencyArg::Quant => Residency::Quantized,
                ResidencyArg::F32 => Residency::F32,
            },
            prefetch: !self.no_async,
            n_threads: self.threads,
            ..config
        }
    }

    /// Whether a budget was given.
    pub(crate) fn has_budget(&self) -> bool {
        self.ram_budget.is_some()
    }
}

/// The native host never aborts, so what is left is the error.
pub(crate) fn never_aborted(halted: Halted) -> sluice::error::Error {
    match halted {
        Halted::Failed(error) => error,
        Halted::Aborted => {
            sluice::error::Error::new(sluice::error::ErrorKind::Internal, "the run was aborted")
        }
    }
}

fn size(text: &str) -> core::result::Result<u64, String> {
    parse_size("ram-budget", text, Letters::Binary).map_err(|error| error.to_string())
}
