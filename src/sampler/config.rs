//! What a caller may wish of the sampler, its defaults, and the check of their ranges. Messages spell the keys as JS does.

use super::breakers::DryBreakers;
use crate::TokenId;
use crate::error::{Error, ErrorKind, Result};

/// How tokens are chosen. `Default` is the documented default of every key.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplerConfig {
    /// Divides the differences between logits; 0 or less takes the likeliest token.
    pub temperature: f32,
    /// Keeps the k likeliest tokens; 0 keeps all.
    pub top_k: i64,
    /// Keeps the likeliest tokens that together have this probability; 1 keeps all.
    pub top_p: f32,
    /// Drops tokens with less than this share of the likeliest token's probability; 0 keeps all.
    pub min_p: f32,
    /// Keeps the tokens of the most typical surprise that together have this probability; 1 keeps all.
    pub typical_p: f32,
    /// Divides positive and multiplies other logits of tokens in the window; 1 changes nothing.
    pub repeat_penalty: f32,
    /// Subtracted from a token's logit for each time it is in the window.
    pub frequency_penalty: f32,
    /// Subtracted once from the logit of a token in the window.
    pub presence_penalty: f32,
    /// Tokens in the window of the three penalties; -1 is the whole context.
    pub repeat_last_n: i64,
    /// Strength of DRY, the penalty on continuing a repeated sequence; 0 turns it off.
    pub dry_multiplier: f32,
    /// DRY's growth with each further token of the repeated sequence.
    pub dry_base: f32,
    /// The longest repeated sequence that DRY lets pass.
    pub dry_allowed_length: i64,
    /// Tokens that DRY looks back; -1 is the whole context.
    pub dry_last_n: i64,
    /// What no repeated sequence goes across.
    pub dry_breakers: DryBreakers,
    /// The probability that XTC is applied to a token at all; 0 turns it off.
    pub xtc_probability: f32,
    /// XTC drops all tokens of at least this probability but the least likely of them; more than 0.5 turns it off.
    pub xtc_threshold: f32,
    /// 2 replaces the filters that drop tokens by mirostat 2, which holds the surprise of the chosen tokens near a target.
    pub mirostat: i64,
    /// Mirostat's target in bits.
    pub mirostat_tau: f32,
    /// How fast mirostat's limit follows.
    pub mirostat_eta: f32,
    /// Added to the logits of single tokens; negative infinity bans one.
    pub logit_bias: Vec<(TokenId, f32)>,
    /// The random numbers' seed.
    pub seed: u64,
    /// Asks for log-probabilities: of the chosen token and of this many likeliest ones.
    pub logprobs: Option<u32>,
}

impl Default for SamplerConfig {
    fn default() -> Self {
        Self {
            temperature: 0.8,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.05,
            typical_p: 1.0,
            repeat_penalty: 1.0,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            repeat_last_n: 64,
            dry_multiplier: 0.0,
            dry_base: 1.75,
            dry_allowed_length: 2,
            dry_last_n: -1,
            dry_breakers: DryBreakers::default(),
            xtc_probability: 0.0,
            xtc_threshold: 0.1,
            mirostat: 0,
            mirostat_tau: 5.0,
            mirostat_eta: 0.1,
            logit_bias: Vec::new(),
            seed: 0,
            logprobs: None,
        }
    }
}

impl SamplerConfig {
    /// The likeliest token at every step, whatever the seed.
    #[must_use]
    pub fn greedy() -> Self {
        Self { temperature: 0.0, ..Self::default() }
    }

    /// Refuses values that mean nothing.
    ///
    /// # Errors
    /// `invalid_option` naming the key and what it may be.
    pub fn validate(&self) -> Result<()> {
        let finite = "a finite number";
        number("temperature", self.temperature, true, "a finite number (0 or less is greedy)")?;
        count("topK", self.top_k, 0, "0 (all) or more")?;
        share("topP", self.top_p)?;
        share("minP", self.min_p)?;
        share("typicalP", self.typical_p)?;
        number("repeatPenalty", self.repeat_penalty, self.repeat_penalty > 0.0, "more than 0")?;
        number("frequencyPenalty", self.frequency_penalty, true, finite)?;
        number("presencePenalty", self.presence_penalty, true, finite)?;
        count("repeatLastN", self.repeat_last_n, -1, "-1 (the whole context), 0 (off) or more")?;
        number(
            "dryMultiplier",
            self.dry_multiplier,
            self.dry_multiplier >= 0.0,
            "0 (off) or more",
        )?;
        number("dryBase", self.dry_base, self.dry_base >= 1.0, "1 or more")?;
        count("dryAllowedLength", self.dry_allowed_length, 0, "0 or more")?;
        count("dryLastN", self.dry_last_n, -1, "-1 (the whole context), 0 (off) or more")?;
        share("xtcProbability", self.xtc_probability)?;
        share("xtcThreshold", self.xtc_threshold)?;
        if self.mirostat != 0 && self.mirostat != 2 {
            return Err(refused("mirostat", &self.mirostat.to_string(), "0 (off) or 2"));
        }
        number("mirostatTau", self.mirostat_tau, self.mirostat_tau > 0.0, "more than 0")?;
        share("mirostatEta", self.mirostat_eta)?;
        for (token, bias) in &self.logit_bias {
            if bias.is_nan() || *bias == f32::INFINITY {
                let value = format!("{bias} for token {token}");
                return Err(refused("logitBias", &value, "finite numbers or -Infinity (a ban)"));
            }
        }
        match self.logprobs {
            Some(n) if n > MAX_LOGPROBS => {
                Err(refused("logprobs", &n.to_string(), &format!("at most {MAX_LOGPROBS}")))
            }
            _ => Ok(()),
        }
    }
}

/// The most alternatives whose log-probabilities are reported.
pub(crate) const MAX_LOGPROBS: u32 = 100;

fn share(key: &'static str, value: f32) -> Result<()> {
    number(key, value, (0.0..=1.0).contains(&value), "between 0 and 1")
}

fn number(key: &'static str, value: f32, in_range: bool, allowed: &str) -> Result<()> {
    if value.is_finite() && in_range {
        return Ok(());
    }
    Err(refused(key, &value.to_string(), allowed))
}

fn count(key: &'static str, value: i64, least: i64, allowed: &str) -> Result<()> {
    if value >= least {
        return Ok(());
    }
    Err(refused(key, &value.to_string(), allowed))
}

fn refused(key: &'static str, value: &str, allowed: &str) -> Error {
    Error::new(ErrorKind::InvalidOption, format!("`{key}` is {value}; it must be {allowed}"))
        .with("key", key)
}
