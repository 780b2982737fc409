//! The options of sampling, one for each in `docs/sampling.md`; their defaults and ranges are the sampler's.

use sluice::TokenId;
use sluice::runtime::GenerateConfig;

/// How tokens are chosen.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Sampling (docs/sampling.md)")]
pub(crate) struct SamplingArgs {
    /// Always take the likeliest token
    #[arg(long, conflicts_with = "temperature")]
    greedy: bool,
    /// Start of the random numbers
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Divide the distances between logits by this; 0 is greedy
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    temperature: Option<f32>,
    /// Keep the k likeliest tokens; 0 keeps all
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    top_k: Option<i64>,
    /// Keep the likeliest tokens that together reach this probability
    #[arg(long, value_name = "P")]
    top_p: Option<f32>,
    /// Drop tokens with less than this share of the likeliest one's probability
    #[arg(long, value_name = "P")]
    min_p: Option<f32>,
    /// Keep the tokens of typical surprise that together reach this probability
    #[arg(long, value_name = "P")]
    typical_p: Option<f32>,
    /// Divide (or multiply) the logits of tokens that came up lately by this
    #[arg(long, value_name = "X")]
    repeat_penalty: Option<f32>,
    /// Subtract this from a logit for each time its token came up lately
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    frequency_penalty: Option<f32>,
    /// Subtract this from the logits of tokens that came up lately
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    presence_penalty: Option<f32>,
    /// How far back "lately" reaches; -1 is the whole context
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    repeat_last_n: Option<i64>,
    /// Strength of DRY, the penalty on going on with a repeated sequence; 0 is off
    #[arg(long, value_name = "X")]
    dry_multiplier: Option<f32>,
    /// DRY's growth with each token of the sequence
    #[arg(long, value_name = "X")]
    dry_base: Option<f32>,
    /// The longest sequence that DRY lets pass
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    dry_allowed_length: Option<i64>,
    /// How far back DRY looks; -1 is the whole context
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    dry_last_n: Option<i64>,
    /// Text that no repeated sequence goes across (may be given several times)
    #[arg(long, value_name = "TEXT")]
    dry_breakers: Vec<String>,
    /// How often the likeliest tokens are dropped (XTC)
    #[arg(long, value_name = "P")]
    xtc_probability: Option<f32>,
    /// The probability from which on XTC drops tokens
    #[arg(long, value_name = "P")]
    xtc_threshold: Option<f32>,
    /// 2: hold the surprise of tokens near a target, instead of dropping tokens by the filters above
    #[arg(long, value_name = "N")]
    mirostat: Option<i64>,
    /// Mirostat's target in bits
    #[arg(long, value_name = "X")]
    mirostat_tau: Option<f32>,
    /// How fast mirostat follows
    #[arg(long, value_name = "X")]
    mirostat_eta: Option<f32>,
    /// Add to the logit of a token, as ID=X; ID=-inf bans it (may be given several times)
    #[arg(long, value_name = "ID=X", value_parser = bias)]
    logit_bias: Vec<(TokenId, f32)>,
}

impl SamplingArgs {
    /// `config` with what the command line says.
    pub(crate) fn apply(&self, mut config: GenerateConfig) -> GenerateConfig {
        let s = &mut config.sampler;
        set(&mut s.seed, self.seed);
        set(&mut s.temperature, if self.greedy { Some(0.0) } else { self.temperature });
        set(&mut s.top_k, self.top_k);
        set(&mut s.top_p, self.top_p);
        set(&mut s.min_p, self.min_p);
        set(&mut s.typical_p, self.typical_p);
        set(&mut s.repeat_penalty, self.repeat_penalty);
        set(&mut s.frequency_penalty, self.frequency_penalty);
        set(&mut s.presence_penalty, self.presence_penalty);
        set(&mut s.repeat_last_n, self.repeat_last_n);
        set(&mut s.dry_multiplier, self.dry_multiplier);
        set(&mut s.dry_base, self.dry_base);
        set(&mut s.dry_allowed_length, self.dry_allowed_length);
        set(&mut s.dry_last_n, self.dry_last_n);
        set(&mut s.xtc_probability, self.xtc_probability);
        set(&mut s.xtc_threshold, self.xtc_threshold);
        set(&mut s.mirostat, self.mirostat);
        set(&mut s.mirostat_tau, self.mirostat_tau);
        set(&mut s.mirostat_eta, self.mirostat_eta);
        s.logit_bias.clone_from(&self.logit_bias);
        if !self.dry_breakers.is_empty() {
            config.dry_breakers.clone_from(&self.dry_breakers);
        }
        config
    }
}

fn set<T>(place: &mut T, given: Option<T>) {
    if let Some(value) = given {
        *place = value;
    }
}

fn bias(text: &str) -> Result<(TokenId, f32), String> {
    let pair = text.split_once('=').and_then(|(id, x)| Some((id.parse().ok()?, x.parse().ok()?)));
    pair.ok_or_else(|| "write ID=X, such as 13=-1.5 or 13=-inf".to_owned())
}
