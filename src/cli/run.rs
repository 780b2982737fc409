//! `sluice run`: a prompt in, text out as it comes.

use std::ops::ControlFlow;

use serde::Serialize;
use sluice::TokenId;
use sluice::error::{Error, ErrorKind, Result};
use sluice::runtime::native::block_on;
use sluice::runtime::{GenerateConfig, OpenConfig, PassProfile, ProfileSink, Prompt, Stats};

use super::open::{OpenArgs, never_aborted};
use super::sampling::SamplingArgs;

/// Arguments of `sluice run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    open: OpenArgs,
    /// The prompt
    #[arg(short, long, value_name = "TEXT", conflicts_with = "ids")]
    prompt: Option<String>,
    /// The prompt as token ids, separated by commas
    #[arg(long, value_delimiter = ',')]
    ids: Option<Vec<TokenId>>,
    /// New tokens at most
    #[arg(short, long, value_name = "N", default_value_t = 64)]
    n: u32,
    /// Find special tokens written out in the prompt
    #[arg(long)]
    parse_special: bool,
    /// Go on past end-of-generation tokens
    #[arg(long)]
    ignore_eog: bool,
    #[command(flatten)]
    sampling: SamplingArgs,
    /// End at this text (may be given several times)
    #[arg(long)]
    stop: Vec<String>,
    /// Print where the time of each pass goes
    #[arg(long)]
    profile: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    ids: Vec<TokenId>,
    text: String,
    finish_reason: &'static str,
    stats: &'a Stats,
}

/// Generates.
pub(crate) fn run(args: &Args) -> Result<()> {
    let prompt = args.prompt()?;
    let host = args.open.host();
    let mut engine = args.open.open(OpenConfig::default(), &host)?;
    if args.open.has_budget() && !args.json {
        let _ = super::say(engine.plan().report().trim_end())?;
    }
    let (mut ids, mut text) = (Vec::new(), String::new());
    let mut printed = Ok(ControlFlow::Continue(()));
    let mut printer = Printer;
    let sink = args.profile.then_some(&mut printer as &mut dyn ProfileSink);
    let finish =
        block_on(engine.generate(&prompt, &args.config(), &host, sink, &mut |chunk, _| {
            if let Some(sample) = chunk.token {
                ids.push(sample.id);
            }
            text.push_str(chunk.text);
            if !args.json {
                printed = super::show(chunk.text);
            }
            match printed {
                Ok(flow) => flow,
                Err(_) => ControlFlow::Break(()),
            }
        }))
        .map_err(never_aborted)?;
    let _ = printed?;
    let _ = if args.json {
        let finish_reason = finish.stopped_by.reason().name();
        super::say(&to_json(&Report { ids, text, finish_reason, stats: engine.stats() })?)?
    } else {
        super::say("")?
    };
    Ok(())
}

impl Args {
    fn prompt(&self) -> Result<Prompt> {
        match (&self.prompt, &self.ids) {
            (Some(text), _) => Ok(Prompt::Text(text.clone())),
            (None, Some(ids)) => Ok(Prompt::Ids(ids.clone())),
            (None, None) => Err(Error::new(
                ErrorKind::InvalidOption,
                "give a prompt with -p TEXT or --ids 1,2,3",
            )),
        }
    }

    fn config(&self) -> GenerateConfig {
        let config = GenerateConfig {
            max_tokens: self.n,
            stop: self.stop.clone(),
            ignore_eog: self.ignore_eog,
            parse_special: self.parse_special,
            ..GenerateConfig::default()
        };
        self.sampling.apply(config)
    }
}

/// Prints the profile of each pass to standard error.
struct Printer;

impl ProfileSink for Printer {
    #[allow(clippy::print_stderr, reason = "the profile goes beside the text")]
    fn pass(&mut self, profile: &PassProfile<'_>) {
        let kind = if profile.prefill { "prefill" } else { "decode" };
        eprintln!(
            "{kind} pos {} tokens {} memory {}",
            profile.pos, profile.n_tokens, profile.memory_bytes
        );
        for (layer, times) in profile.layers.iter().enumerate() {
            eprintln!(
                "  {layer:>3} load {:>8.3} ms compute {:>8.3} ms",
                times.load_ms, times.compute_ms
            );
        }
    }
}

/// One JSON object on one line.
pub(crate) fn to_json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| Error::new(ErrorKind::Internal, format!("cannot write JSON: {error}")))
}
