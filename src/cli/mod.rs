//! Argument parsing and dispatch of the native command.

mod inspect;
mod logits;
mod make_model;
mod open;
mod run;
mod sampling;
mod tokenize;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use sluice::error::Error;

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

/// The kinds of failure of the terminal itself.
fn io_error(what: &str, error: &std::io::Error) -> Error {
    Error::new(sluice::error::ErrorKind::SourceFailed, format!("{what}: {error}"))
}

/// Prints one line of output.
#[allow(clippy::print_stdout, reason = "the command's own output")]
fn say(line: &str) {
    println!("{line}");
}
