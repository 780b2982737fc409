//! Argument parsing and dispatch of the native command.

mod embed;
mod inspect;
mod logits;
mod make_model;
mod open;
mod run;
mod sampling;
mod tokenize;

use std::io::Write;
use std::ops::ControlFlow;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use sluice::error::{Error, ErrorKind, Result};

/// Runs large language models in the memory you choose.
#[derive(Debug, Parser)]
#[command(name = "sluice", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one, parsed once")]
enum Command {
    /// Generate text from a prompt
    Run(run::Args),
    /// Say what a model is and, with a budget, what it would take
    Inspect(inspect::Args),
    /// Encode JSON strings, one a line from standard input, into token ids
    Tokenize(tokenize::Args),
    /// Print texts as vectors, a JSON list of numbers each
    Embed(embed::Args),
    /// Write the logits of every position to a file (f32, little-endian)
    Logits(logits::Args),
    /// Write a model of a real one's size with random weights, to test memory and speed with
    MakeModel(make_model::Args),
}

/// Runs the command line; an error is one line on standard error and exit code 1.
pub(crate) fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Tokenize(args) => tokenize::run(&args),
        Command::Embed(args) => embed::run(&args),
        Command::Logits(args) => logits::run(&args),
        Command::MakeModel(args) => make_model::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

#[allow(clippy::print_stderr, reason = "the command's own error output")]
fn complain(error: &Error) {
    eprintln!("sluice: {error} [{}]", error.code());
}

/// The failure to write what the command was asked for.
fn cannot_write(place: &str, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::OutputFailed, format!("cannot write {place}: {error}"))
}

/// Prints one line of output; `Break` once nobody reads it any more.
fn say(line: &str) -> Result<ControlFlow<()>> {
    show(&format!("{line}\n"))
}

/// Prints text at once; `Break` once nobody reads it any more.
fn show(text: &str) -> Result<ControlFlow<()>> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(ControlFlow::Continue(())),
        // `sluice run … | head` is no failure of the command.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        Err(error) => Err(cannot_write("standard output", &error)),
    }
}
