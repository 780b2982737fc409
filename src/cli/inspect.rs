//! `sluice inspect`: what a file is, and what it would take under a budget.

use sluice::error::Result;
use sluice::runtime::native::block_on;
use sluice::runtime::{Inspection, OpenConfig};

use super::open::{OpenArgs, never_aborted};

/// Arguments of `sluice inspect`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    open: OpenArgs,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Prints the verdict; tensor data is never read.
pub(crate) fn run(args: &Args) -> Result<()> {
    let host = args.open.host();
    let config = args.open.config(OpenConfig::default());
    let inspection =
        block_on(Inspection::read(args.open.source()?, &host)).map_err(never_aborted)?;
    let verdict = inspection.verdict(&config);
    if args.json {
        let _ = super::say(&super::run::to_json(&verdict)?)?;
        return Ok(());
    }
    let _ = super::say(&verdict.text())?;
    if let Ok(plan) = inspection.plan(&config) {
        let _ = super::say(plan.report().trim_end())?;
    }
    Ok(())
}
