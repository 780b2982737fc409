//! `sluice tokenize`: JSON strings in, ids and the text decoded back out, one line each.

use std::io::BufRead;
use std::path::PathBuf;

use serde::Serialize;
use sluice::TokenId;
use sluice::error::{Error, ErrorKind, Result};
use sluice::runtime::native::{NativeHost, block_on, open_source};
use sluice::runtime::read_tokenizer;

use super::open::never_aborted;

/// Arguments of `sluice tokenize`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// GGUF file; one that holds a vocabulary only will do
    #[arg(required = true)]
    model: Vec<PathBuf>,
    /// Find special tokens written out in the text
    #[arg(long)]
    parse_special: bool,
    /// Leave out BOS and EOS
    #[arg(long)]
    no_bos: bool,
    /// Read one JSON string a line (the only form there is)
    #[arg(long)]
    jsonl: bool,
}

#[derive(Serialize)]
struct Line {
    ids: Vec<TokenId>,
    text: String,
}

/// Encodes standard input line by line.
pub(crate) fn run(args: &Args) -> Result<()> {
    if !args.jsonl {
        return Err(Error::new(
            ErrorKind::InvalidOption,
            "tokenize reads one JSON string a line: say --jsonl",
        ));
    }
    let source = open_source(&args.model, false)?;
    let tokenizer = block_on(read_tokenizer(source, &NativeHost::new())).map_err(never_aborted)?;
    for (index, line) in std::io::stdin().lock().lines().enumerate() {
        let line = line.map_err(|error| {
            Error::new(ErrorKind::SourceFailed, format!("cannot read standard input: {error}"))
        })?;
        if line.trim().is_empty() {
            continue;
        }
        let text: String = serde_json::from_str(&line).map_err(|error| {
            Error::new(
                ErrorKind::InvalidOption,
                format!("line {}: no JSON string: {error}", index + 1),
            )
        })?;
        let ids = tokenizer.encode(&text, !args.no_bos, args.parse_special)?;
        let text = String::from_utf8_lossy(&tokenizer.decode(&ids, true)).into_owned();
        if super::say(&super::run::to_json(&Line { ids, text })?)?.is_break() {
            break;
        }
    }
    Ok(())
}
