//! What a caller can get wrong at `generate`; the same engine answers afterwards.

use sluice::runtime::{GenerateConfig, Prompt, SamplerConfig};

use super::assert_says;
use super::attempt::{Attempt, answer, greedy};

/// A wrong call.
pub(super) struct Call {
    /// What is wrong, word for word as in the table of `docs/errors.md`.
    pub(super) what: &'static str,
    /// The code that it gives.
    pub(super) code: &'static str,
    says: &'static [&'static str],
    prompt: fn() -> Prompt,
    spoil: fn(&mut GenerateConfig),
}

#[test]
fn each_is_refused_and_the_engine_answers_afterwards() {
    let mut engine = Attempt::sound().open().expect("a sound model");
    let expected = answer(&mut engine, &sound(), &greedy()).expect("an answer");
    for Call { what, code, says, prompt, spoil } in CALLS {
        let mut config = greedy();
        spoil(&mut config);
        let error = answer(&mut engine, &prompt(), &config)
            .err()
            .unwrap_or_else(|| panic!("{what}: accepted"));
        assert_says(what, &error, code, says);
        let after = answer(&mut engine, &sound(), &greedy()).expect("an answer");
        assert_eq!(after, expected, "after {what}");
    }
}

fn sound() -> Prompt {
    Prompt::Ids(vec![1, 2, 3])
}

type Spoil = fn(&mut SamplerConfig);

#[test]
fn every_sampling_value_out_of_range_is_refused_by_its_name() {
    let cases: &[(&str, Spoil)] = &[
        ("temperature", |s| s.temperature = f32::NAN),
        ("temperature", |s| s.temperature = f32::INFINITY),
        ("topK", |s| s.top_k = -1),
        ("topP", |s| s.top_p = 1.1),
        ("topP", |s| s.top_p = f32::NAN),
        ("minP", |s| s.min_p = -0.1),
        ("typicalP", |s| s.typical_p = 2.0),
        ("repeatPenalty", |s| s.repeat_penalty = 0.0),
        ("repeatPenalty", |s| s.repeat_penalty = -1.0),
        ("frequencyPenalty", |s| s.frequency_penalty = f32::NAN),
        ("presencePenalty", |s| s.presence_penalty = f32::INFINITY),
        ("repeatLastN", |s| s.repeat_last_n = -2),
        ("dryMultiplier", |s| s.dry_multiplier = -1.0),
        ("dryBase", |s| s.dry_base = 0.5),
        ("dryAllowedLength", |s| s.dry_allowed_length = -1),
        ("dryLastN", |s| s.dry_last_n = -2),
        ("mirostat", |s| s.mirostat = 1),
        ("mirostatTau", |s| s.mirostat_tau = 0.0),
        ("mirostatEta", |s| s.mirostat_eta = 1.5),
        ("xtcProbability", |s| s.xtc_probability = 1.5),
        ("xtcThreshold", |s| s.xtc_threshold = -0.5),
        ("logitBias", |s| s.logit_bias = vec![(1, f32::NAN)]),
        ("logitBias", |s| s.logit_bias = vec![(1, f32::INFINITY)]),
        ("logprobs", |s| s.logprobs = Some(101)),
    ];
    let mut engine = Attempt::sound().open().expect("a sound model");
    for (key, spoil) in cases {
        let mut config = greedy();
        spoil(&mut config.sampler);
        let error = answer(&mut engine, &sound(), &config).expect_err(key);
        assert_says(key, &error, "invalid_option", &[&format!("`{key}`"), "it must be"]);
    }
    answer(&mut engine, &sound(), &greedy()).expect("an answer");
}

pub(super) const CALLS: &[Call] = &[
    Call {
        what: "an empty prompt",
        code: "invalid_option",
        says: &["the prompt is empty", "give some text"],
        prompt: || Prompt::Text(String::new()),
        spoil: |_| {},
    },
    Call {
        what: "a prompt of no ids",
        code: "invalid_option",
        says: &["the prompt is empty"],
        prompt: || Prompt::Ids(Vec::new()),
        spoil: |_| {},
    },
    Call {
        what: "an id that the vocabulary has not",
        code: "invalid_option",
        says: &["token id 96", "vocabulary of 96 tokens"],
        prompt: || Prompt::Ids(vec![1, 96]),
        spoil: |_| {},
    },
    Call {
        what: "the largest id there can be",
        code: "invalid_option",
        says: &["token id 4294967295"],
        prompt: || Prompt::Ids(vec![u32::MAX]),
        spoil: |_| {},
    },
    Call {
        what: "a prompt longer than the context",
        code: "context_full",
        says: &["needs 33 positions", "the context has 32", "shorten it", "larger 'context'"],
        prompt: || Prompt::Ids(vec![1; 33]),
        spoil: |_| {},
    },
    Call {
        what: "a prompt that goes on past the context",
        code: "context_full",
        says: &["needs 36 positions", "the context has 32"],
        prompt: || Prompt::Ids(vec![1; 32]),
        spoil: |c| c.resume = true,
    },
    Call {
        what: "text for a vocabulary of bare ids",
        code: "misuse",
        says: &["ids"],
        prompt: || Prompt::Text("hello".to_owned()),
        spoil: |_| {},
    },
    Call {
        what: "an empty stop string",
        code: "invalid_option",
        says: &["'stop'", "an empty string", "leave it out"],
        prompt: sound,
        spoil: |c| c.stop = vec!["END".to_owned(), String::new()],
    },
    Call {
        what: "a sampling value out of range",
        code: "invalid_option",
        says: &["`topP` is 1.5", "between 0 and 1"],
        prompt: sound,
        spoil: |c| c.sampler.top_p = 1.5,
    },
    Call {
        what: "a bias of NaN",
        code: "invalid_option",
        says: &["`logitBias` is NaN for token 7", "finite numbers"],
        prompt: sound,
        spoil: |c| c.sampler.logit_bias = vec![(7, f32::NAN)],
    },
    Call {
        what: "a bias for an id that the vocabulary has not",
        code: "invalid_option",
        says: &["logitBias", "96"],
        prompt: sound,
        spoil: |c| c.sampler.logit_bias = vec![(96, 1.0)],
    },
    Call {
        what: "more log-probabilities than are reported",
        code: "invalid_option",
        says: &["`logprobs` is 101", "at most 100"],
        prompt: sound,
        spoil: |c| c.sampler.logprobs = Some(101),
    },
];
