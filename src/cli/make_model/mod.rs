//! `sluice make-model`: a GGUF file with the tensors, formats and vocabulary size of a real model and seeded random weights, so
//! that memory and speed are tested at true size. It streams to disk: its own memory does not depend on the file's size.

mod blocks;
mod formats;
mod shapes;
mod vocabulary;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use sluice::error::{Error, ErrorKind, Result};
use sluice::gguf::{Format, Metadata, ModelWriter, TensorSpec};
use sluice::quant::GgmlType;

use blocks::BlockStream;
use formats::{Mix, Role};
use shapes::{Shape, ShapeName};

/// Arguments of `sluice make-model`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Whose tensors and vocabulary size it has
    #[arg(value_enum)]
    shape: ShapeName,
    /// Number formats of the weights, mixed as llama.cpp does
    #[arg(long, value_enum, default_value = "q4_k_m")]
    quant: Mix,
    /// Where it goes
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    /// Seed of the weights
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// So many layers instead of the model's own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    layers: Option<u32>,
    /// Zeros instead of weights, which take no room on the disk: for what depends on the header alone
    #[arg(long)]
    zeros: bool,
    /// No line of progress
    #[arg(long)]
    quiet: bool,
}

/// Writes the file.
pub(crate) fn run(args: &Args) -> Result<()> {
    let shape = Shape::of(args.shape, args.layers);
    let tensors = formats::typed(&shape, args.quant)?;
    let path = args.out.display().to_string();
    let cannot_write = |e| super::cannot_write(&path, &e);
    #[allow(clippy::disallowed_methods, reason = "a native command writes a file")]
    let file = File::create(&args.out).map_err(cannot_write)?;
    let mut file = BufWriter::with_capacity(1 << 20, file);
    let sink = |bytes: &[u8]| file.write_all(bytes).map_err(cannot_write);
    let specs: Vec<TensorSpec<'_>> = tensors.iter().map(Tensor::spec).collect();
    let mut writer = ModelWriter::new(Format::Gguf, &metadata(&shape, args.quant), &specs, sink)?;
    if args.zeros {
        let n_bytes = writer.file_bytes();
        drop(writer);
        let file = file.into_inner().map_err(|e| cannot_write(e.into_error()))?;
        return file.set_len(n_bytes).map_err(cannot_write);
    }
    write_weights(args, &tensors, &mut writer)?;
    writer.finish()?;
    file.flush().map_err(cannot_write)
}

fn write_weights<S: FnMut(&[u8]) -> Result<()>>(
    args: &Args,
    tensors: &[Tensor],
    writer: &mut ModelWriter<S>,
) -> Result<()> {
    let total = tensors.iter().map(|t| t.spec().n_bytes()).sum::<Result<u64>>()?;
    let mut progress = Progress { total, written: 0, told: 0, quiet: args.quiet };
    let mut piece = vec![0; PIECE_BYTES];
    for (seed, tensor) in (args.seed << 20..).zip(tensors) {
        let mut stream = BlockStream::new(tensor.ty, tensor.shape[0], tensor.role, seed);
        let mut left = tensor.spec().n_bytes()?;
        while left > 0 {
            let n = stream.fill(&mut piece, left);
            writer.write(&piece[..n])?;
            left -= n as u64;
            progress.add(n as u64);
        }
    }
    progress.end();
    Ok(())
}

/// A tensor of the file with what decides its values.
#[derive(Debug)]
struct Tensor {
    name: String,
    ty: GgmlType,
    /// In ggml's order.
    shape: [u64; 2],
    n_dims: usize,
    role: Role,
}

impl Tensor {
    fn spec(&self) -> TensorSpec<'_> {
        TensorSpec { name: &self.name, ty: self.ty, shape: &self.shape[..self.n_dims] }
    }
}

fn metadata(shape: &Shape, mix: Mix) -> Metadata {
    let mut metadata = Metadata::default();
    shape.describe(&mut metadata);
    vocabulary::describe(shape, &mut metadata);
    metadata.insert("general.file_type", sluice::gguf::Value::U32(mix.file_type()));
    metadata.insert("general.quantization_version", sluice::gguf::Value::U32(2));
    metadata
}

/// One line on standard error, rewritten as the file grows.
struct Progress {
    total: u64,
    written: u64,
    told: u64,
    quiet: bool,
}

impl Progress {
    #[allow(clippy::print_stderr, reason = "the command's own progress line")]
    fn add(&mut self, n: u64) {
        self.written += n;
        if !self.quiet && self.written - self.told >= self.total / 100 {
            self.told = self.written;
            eprint!("\r{} of {} MB", self.written / 1_000_000, self.total / 1_000_000);
        }
    }

    #[allow(clippy::print_stderr, reason = "the command's own progress line")]
    fn end(&self) {
        if !self.quiet {
            eprintln!("\r{} of {} MB", self.written / 1_000_000, self.total / 1_000_000);
        }
    }
}

fn misfit(tensor: &str, ty: GgmlType, n: u64) -> Error {
    Error::new(
        ErrorKind::InvalidOption,
        format!("{tensor} has rows of {n} values, which are no whole blocks of {ty}"),
    )
}

const PIECE_BYTES: usize = 1 << 20;
