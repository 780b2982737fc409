//! `sluice embed`: texts as vectors.

use sluice::error::Result;
use sluice::runtime::native::block_on;
use sluice::runtime::{EmbedConfig, OpenConfig, Pooling};

use super::open::{OpenArgs, never_aborted};

/// Arguments of `sluice embed`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    open: OpenArgs,
    /// Text to embed; may be given several times
    #[arg(short = 'p', long = "prompt", value_name = "TEXT", required = true)]
    texts: Vec<String>,
    /// How the vectors of a text's tokens become one; as the file says, or by the mean, unless given
    #[arg(long, value_enum)]
    pooling: Option<PoolingArg>,
    /// Give vectors of length 1
    #[arg(long)]
    normalize: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum PoolingArg {
    Mean,
    Last,
    Cls,
}

/// Prints a list of numbers for each text.
pub(crate) fn run(args: &Args) -> Result<()> {
    let host = args.open.host();
    let config = OpenConfig { embeddings: true, ..OpenConfig::default() };
    let mut engine = args.open.open(config, &host)?;
    let texts = args.texts.iter().map(|text| engine.embedding_ids(text));
    let texts = texts.collect::<Result<Vec<_>>>()?;
    let pooling = args.pooling.map(|pooling| match pooling {
        PoolingArg::Mean => Pooling::Mean,
        PoolingArg::Last => Pooling::Last,
        PoolingArg::Cls => Pooling::Cls,
    });
    let config = EmbedConfig { pooling, normalize: args.normalize };
    let found = block_on(engine.embed(&texts, &config, &host)).map_err(never_aborted)?;
    for vector in found.vectors.chunks_exact(found.n_embd) {
        let numbers: Vec<String> = vector.iter().map(f32::to_string).collect();
        if super::say(&format!("[{}]", numbers.join(",")))?.is_break() {
            break;
        }
    }
    Ok(())
}
