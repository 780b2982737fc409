//! `sluice logits`: the logits of every position of a list of ids.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use sluice::TokenId;
use sluice::error::Result;
use sluice::runtime::OpenConfig;
use sluice::runtime::native::block_on;

use super::open::{OpenArgs, never_aborted};

/// Arguments of `sluice logits`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    open: OpenArgs,
    /// Token ids, separated by commas
    #[arg(long, value_delimiter = ',', required = true)]
    ids: Vec<TokenId>,
    /// File to write: `[n_tokens, n_vocab]` f32, little-endian
    #[arg(long)]
    out: PathBuf,
}

/// Writes the file.
pub(crate) fn run(args: &Args) -> Result<()> {
    let host = args.open.host();
    let config = OpenConfig { all_logits: true, ..OpenConfig::default() };
    let mut engine = args.open.open(config, &host)?;
    #[allow(clippy::disallowed_methods, reason = "the command writes where it is told")]
    let file = File::create(&args.out);
    let fail = |error| super::cannot_write(&args.out.display().to_string(), &error);
    let mut out = BufWriter::new(file.map_err(fail)?);
    let mut written = Ok(());
    let all = u32::MAX;
    block_on(engine.logits(&args.ids, all, &host, &mut |row| {
        if written.is_ok() {
            written = row.iter().try_for_each(|value| out.write_all(&value.to_le_bytes()));
        }
    }))
    .map_err(never_aborted)?;
    written.and_then(|()| out.flush()).map_err(fail)
}
