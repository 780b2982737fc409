//! The sampler as a whole: the chain's statistics against its definition, goldens that browsers check too, refusals.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small numbers of the tests' own"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "fixtures are files; the reference uses other functions on purpose"
)]

use serde_json::{Value, json};
use sluice::error::ErrorKind;
use sluice::sampler::{DryBreakers, Sampler, SamplerConfig, SplitBreaker, TokenLogprob};

use crate::allocations::measure;

/// Tokens in order of id with the probability of each.
type Distribution = Vec<f64>;

/// The documented chain for a window of tokens that were accepted, without DRY, XTC and mirostat.
fn naive_chain(config: &SamplerConfig, logits: &[f32], accepted: &[u32]) -> Distribution {
    let mut x: Vec<f64> = logits.iter().map(|&l| f64::from(l)).collect();
    for &(token, bias) in &config.logit_bias {
        x[token as usize] += f64::from(bias);
    }
    for token in 0..x.len() {
        let count = accepted.iter().filter(|&&t| t as usize == token).count() as f64;
        if count > 0.0 {
            let r = f64::from(config.repeat_penalty);
            x[token] = if x[token] > 0.0 { x[token] / r } else { x[token] * r };
            x[token] -=
                count * f64::from(config.frequency_penalty) + f64::from(config.presence_penalty);
        }
    }
    let mut order: Vec<usize> = (0..x.len()).filter(|&t| x[t] > f64::NEG_INFINITY).collect();
    order.sort_by(|&a, &b| x[b].total_cmp(&x[a]).then(a.cmp(&b)));
    if config.top_k > 0 {
        order.truncate(config.top_k as usize);
    }
    let p = softmax(&x, &order, 1.0);
    let mean: f64 = order.iter().map(|&t| -p[t] * p[t].ln()).sum();
    let mut typical = order.clone();
    typical.sort_by_key(|&t| ((-p[t].ln() - mean).abs() * 1e9) as u64);
    typical.truncate(run(&typical, &p, config.typical_p));
    order.retain(|t| typical.contains(t));
    let p = softmax(&x, &order, 1.0);
    order.truncate(run(&order, &p, config.top_p));
    let p = softmax(&x, &order, 1.0);
    let likeliest = p[order[0]];
    order.retain(|&t| p[t] >= likeliest * f64::from(config.min_p));
    softmax(&x, &order, f64::from(config.temperature))
}

/// Length of the shortest run of `order` that has at least the mass `share`.
fn run(order: &[usize], p: &[f64], share: f32) -> usize {
    if share >= 1.0 {
        return order.len();
    }
    let mut mass = 0.0;
    let n = order.iter().position(|&t| {
        mass += p[t];
        mass >= f64::from(share)
    });
    n.map_or(order.len(), |n| n + 1)
}

#[allow(
    clippy::disallowed_methods,
    reason = "the reference is independent of the functions it checks"
)]
fn softmax(x: &[f64], kept: &[usize], temperature: f64) -> Distribution {
    let mut p = vec![0.0; x.len()];
    kept.iter().for_each(|&t| p[t] = (x[t] / temperature).exp());
    let sum: f64 = p.iter().sum();
    p.iter().map(|p| p / sum).collect()
}

/// Draws 40000 tokens and gives chi-square with its degrees of freedom.
fn chi_square(config: &SamplerConfig, logits: &[f32], accepted: &[u32]) -> (f64, f64) {
    let n = 40_000;
    let expected = naive_chain(config, logits, accepted);
    let mut sampler = Sampler::new(config, logits.len(), 64).unwrap();
    accepted.iter().for_each(|&t| sampler.accept(t));
    let mut counts = vec![0_u32; logits.len()];
    for _ in 0..n {
        counts[sampler.sample(logits).unwrap().id as usize] += 1;
    }
    let (mut chi2, mut cells) = (0.0, 0.0);
    for (count, p) in counts.iter().zip(&expected) {
        let mean = p * f64::from(n);
        if mean == 0.0 {
            assert_eq!(*count, 0, "{config:?} drew a token that its filters drop");
        } else {
            chi2 += (f64::from(*count) - mean) * (f64::from(*count) - mean) / mean;
            cells += 1.0;
        }
    }
    (chi2, cells - 1.0)
}

#[test]
fn the_chain_draws_what_its_definition_says() {
    let logits: Vec<f32> = (0..24).map(|i| ((i * 7) % 24) as f32 * 0.21 - 2.0).collect();
    let off = SamplerConfig {
        temperature: 1.0,
        top_k: 0,
        top_p: 1.0,
        min_p: 0.0,
        ..SamplerConfig::default()
    };
    let accepted = [3, 3, 17, 22, 3, 10];
    let configs = [
        SamplerConfig { ..off.clone() },
        SamplerConfig::default(),
        SamplerConfig { temperature: 1.7, top_k: 9, ..off.clone() },
        SamplerConfig { temperature: 0.6, top_p: 0.83, ..off.clone() },
        SamplerConfig { typical_p: 0.71, top_k: 20, top_p: 0.9, min_p: 0.11, ..off.clone() },
        SamplerConfig {
            repeat_penalty: 1.3,
            frequency_penalty: 0.4,
            presence_penalty: -0.2,
            ..off.clone()
        },
        SamplerConfig {
            logit_bias: vec![(1, 3.5), (5, f32::NEG_INFINITY), (17, -1.0)],
            min_p: 0.02,
            ..off.clone()
        },
        SamplerConfig { top_k: 5, top_p: 0.7, temperature: 2.5, frequency_penalty: 0.2, ..off },
    ];
    for (seed, config) in configs.iter().enumerate() {
        let config = SamplerConfig { seed: seed as u64, ..config.clone() };
        let (chi2, freedom) = chi_square(&config, &logits, &accepted);
        // Mean plus five standard deviations of the chi-square distribution.
        let limit = freedom + 5.0 * (2.0 * freedom).sqrt();
        assert!(chi2 <= limit, "chi-square {chi2} of {freedom} degrees of freedom: {config:?}");
    }
}

/// Logits that every platform computes alike: `step` and token mixed by integers, spread over about 12.
fn golden_logits(step: u32, n_vocab: u32) -> Vec<f32> {
    let mix = |token: u32| {
        let mut h = token.wrapping_mul(0x9e37_79b9) ^ step.wrapping_mul(0x85eb_ca6b);
        h = (h ^ (h >> 15)).wrapping_mul(0xc2b2_ae35);
        (h ^ (h >> 13)) >> 8
    };
    let cube = |x: f32| x * x * x * 12.0;
    (0..n_vocab).map(|token| cube(mix(token) as f32 / 16_777_216.0)).collect()
}

/// The tokens that `options` (keys as in JS) choose in 48 steps, each accepted.
fn golden_tokens(options: &Value, n_vocab: u32) -> Vec<u32> {
    let mut sampler = Sampler::new(&config_of(options), n_vocab as usize, 256).unwrap();
    let steps = 0..48;
    steps
        .map(|step| {
            let token = sampler.sample(&golden_logits(step / 3, n_vocab)).unwrap().id;
            sampler.accept(token);
            token
        })
        .collect()
}

fn config_of(options: &Value) -> SamplerConfig {
    let mut config = SamplerConfig::default();
    for (key, value) in options.as_object().unwrap() {
        let real = value.as_f64().unwrap_or_default() as f32;
        let whole = value.as_i64().unwrap_or_default();
        match key.as_str() {
            "temperature" => config.temperature = real,
            "topK" => config.top_k = whole,
            "topP" => config.top_p = real,
            "minP" => config.min_p = real,
            "typicalP" => config.typical_p = real,
            "repeatPenalty" => config.repeat_penalty = real,
            "frequencyPenalty" => config.frequency_penalty = real,
            "presencePenalty" => config.presence_penalty = real,
            "repeatLastN" => config.repeat_last_n = whole,
            "dryMultiplier" => config.dry_multiplier = real,
            "xtcProbability" => config.xtc_probability = real,
            "mirostat" => config.mirostat = whole,
            "seed" => config.seed = value.as_u64().unwrap(),
            other => panic!("unknown key {other}"),
        }
    }
    config
}

#[test]
fn a_seed_gives_the_golden_tokens() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/sampler/chain.json");
    let mut golden: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    for case in golden["cases"].as_array_mut().unwrap() {
        let tokens = golden_tokens(
            &case["options"],
            u32::try_from(case["nVocab"].as_u64().unwrap()).unwrap(),
        );
        if update {
            case["tokens"] = json!(tokens);
        }
        assert_eq!(case["tokens"], json!(tokens), "{}", case["options"]);
    }
    if update {
        let cases: Vec<String> =
            golden["cases"].as_array().unwrap().iter().map(Value::to_string).collect();
        let text =
            format!("{{\"about\":{},\n\"cases\":[\n{}\n]}}\n", golden["about"], cases.join(",\n"));
        std::fs::write(path, text).unwrap();
    }
}

#[test]
fn temperature_zero_takes_the_likeliest_and_the_lowest_of_equals() {
    let mut logits = golden_logits(5, 1000);
    (logits[801], logits[77], logits[500]) = (30.0, 30.0, 30.0);
    for temperature in [0.0, -1.0] {
        let config = SamplerConfig { temperature, ..SamplerConfig::default() };
        let mut sampler = Sampler::new(&config, 1000, 16).unwrap();
        assert_eq!(sampler.sample(&logits).unwrap().id, 77, "temperature {temperature}");
    }
    let config =
        SamplerConfig { logit_bias: vec![(77, f32::NEG_INFINITY)], ..SamplerConfig::greedy() };
    let mut sampler = Sampler::new(&config, 1000, 16).unwrap();
    assert_eq!(sampler.sample(&logits).unwrap().id, 500, "a banned token is never chosen");
    let config = SamplerConfig { repeat_penalty: 1.5, repeat_last_n: 2, ..SamplerConfig::greedy() };
    let mut sampler = Sampler::new(&config, 1000, 16).unwrap();
    let tokens: Vec<u32> = (0..6)
        .map(|_| {
            let token = sampler.sample(&logits).unwrap().id;
            sampler.accept(token);
            token
        })
        .collect();
    assert_eq!(tokens, [77, 500, 801, 77, 500, 801], "a window of two tokens");
}

#[test]
fn the_order_of_equal_logits_does_not_depend_on_how_they_are_collected() {
    let logits: Vec<f32> = (0..5000).map(|i| (i % 5) as f32).collect();
    for top_k in [1, 3, 40, 1000, 2500, 4999] {
        let config = SamplerConfig {
            top_k,
            top_p: 1.0,
            min_p: 0.0,
            temperature: 50.0,
            ..SamplerConfig::default()
        };
        let mut sampler = Sampler::new(&config, 5000, 16).unwrap();
        let mut order: Vec<u32> = (0..5000).collect();
        order.sort_by_key(|&t| (4 - t % 5, t));
        for _ in 0..300 {
            let token = sampler.sample(&logits).unwrap().id;
            let rank = order.iter().position(|&t| t == token).unwrap();
            assert!((rank as i64) < top_k, "top-k {top_k} drew the token of rank {rank}");
        }
    }
}

#[test]
fn log_probabilities_are_of_the_unfiltered_distribution() {
    let logits = golden_logits(1, 500);
    let all: Vec<usize> = (0..500).collect();
    let x: Vec<f64> = logits.iter().map(|&l| f64::from(l)).collect();
    let p = softmax(&x, &all, 1.0);
    let config = SamplerConfig {
        temperature: 3.0,
        top_k: 4,
        logit_bias: vec![(3, 100.0)],
        logprobs: Some(5),
        ..SamplerConfig::default()
    };
    let mut sampler = Sampler::new(&config, 500, 16).unwrap();
    let sample = sampler.sample(&logits).unwrap();
    assert_eq!(sample.id, 3, "the bias decides");
    assert!(
        (f64::from(sample.logprob.unwrap()) - ln(p[3])).abs() < 1e-5,
        "{sample:?}, not {}",
        ln(p[3])
    );
    let mut order = all;
    order.sort_by(|&a, &b| x[b].total_cmp(&x[a]));
    let top: &[TokenLogprob] = sampler.top_logprobs();
    assert_eq!(
        top.iter().map(|t| t.token as usize).collect::<Vec<_>>(),
        order[..5],
        "the five likeliest in order"
    );
    for t in top {
        assert!((f64::from(t.logprob) - ln(p[t.token as usize])).abs() < 1e-5, "{t:?}");
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the reference is independent of the functions it checks"
)]
fn ln(x: f64) -> f64 {
    x.ln()
}

#[test]
fn logits_that_are_not_finite_are_an_error() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -f32::NAN] {
        let mut logits = golden_logits(1, 100);
        logits[42] = bad;
        for config in [SamplerConfig::default(), SamplerConfig::greedy()] {
            let error = Sampler::new(&config, 100, 16).unwrap().sample(&logits).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidModel, "{error}");
            assert!(error.message().contains("token 42"), "{error}");
        }
    }
}

#[test]
fn extreme_but_finite_values_give_a_token() {
    let logits = [f32::MAX, f32::MIN, 0.0, -0.0, f32::MIN_POSITIVE, 3e38, -3e38];
    let off = SamplerConfig { top_k: 0, top_p: 1.0, min_p: 0.0, ..SamplerConfig::default() };
    let configs = [
        off.clone(),
        SamplerConfig { temperature: 1e-38, ..off.clone() },
        SamplerConfig { temperature: 3e38, ..off.clone() },
        SamplerConfig {
            repeat_penalty: 1e-38,
            frequency_penalty: 3e38,
            presence_penalty: -3e38,
            ..off.clone()
        },
        SamplerConfig {
            dry_multiplier: 3e38,
            dry_base: 3e38,
            dry_allowed_length: 0,
            ..off.clone()
        },
        SamplerConfig { logit_bias: vec![(0, 3e38), (0, 3e38), (1, -3e38)], ..off.clone() },
        SamplerConfig { mirostat: 2, mirostat_tau: 3e38, mirostat_eta: 1.0, ..off.clone() },
        SamplerConfig {
            typical_p: 0.0,
            top_p: 0.0,
            min_p: 1.0,
            xtc_probability: 1.0,
            xtc_threshold: 0.0,
            ..off
        },
    ];
    for config in configs {
        let mut sampler = Sampler::new(&config, logits.len(), 16).unwrap();
        for _ in 0..50 {
            let token = sampler.sample(&logits).unwrap().id;
            sampler.accept(token);
        }
    }
}

#[test]
fn options_out_of_range_are_refused_by_their_name() {
    let d = SamplerConfig::default;
    let split = vec![SplitBreaker { heads: vec![1], tail: vec![2, 100] }];
    let outside = DryBreakers { tokens: vec![5], split };
    let cases: Vec<(&str, SamplerConfig)> = vec![
        ("temperature", SamplerConfig { temperature: f32::NAN, ..d() }),
        ("temperature", SamplerConfig { temperature: f32::INFINITY, ..d() }),
        ("topK", SamplerConfig { top_k: -1, ..d() }),
        ("topP", SamplerConfig { top_p: 1.01, ..d() }),
        ("topP", SamplerConfig { top_p: f32::NAN, ..d() }),
        ("minP", SamplerConfig { min_p: -0.1, ..d() }),
        ("typicalP", SamplerConfig { typical_p: 2.0, ..d() }),
        ("repeatPenalty", SamplerConfig { repeat_penalty: 0.0, ..d() }),
        ("frequencyPenalty", SamplerConfig { frequency_penalty: f32::NAN, ..d() }),
        ("presencePenalty", SamplerConfig { presence_penalty: f32::INFINITY, ..d() }),
        ("repeatLastN", SamplerConfig { repeat_last_n: -2, ..d() }),
        ("dryMultiplier", SamplerConfig { dry_multiplier: -1.0, ..d() }),
        ("dryBase", SamplerConfig { dry_base: 0.5, ..d() }),
        ("dryAllowedLength", SamplerConfig { dry_allowed_length: -1, ..d() }),
        ("dryLastN", SamplerConfig { dry_last_n: -7, ..d() }),
        ("dryBreakers", SamplerConfig { dry_breakers: outside, ..d() }),
        ("xtcProbability", SamplerConfig { xtc_probability: 1.5, ..d() }),
        ("xtcThreshold", SamplerConfig { xtc_threshold: f32::NAN, ..d() }),
        ("mirostatTau", SamplerConfig { mirostat_tau: 0.0, ..d() }),
        ("mirostat", SamplerConfig { mirostat: 1, ..d() }),
        ("mirostatEta", SamplerConfig { mirostat_eta: -0.1, ..d() }),
        ("logitBias", SamplerConfig { logit_bias: vec![(1, f32::NAN)], ..d() }),
        ("logitBias", SamplerConfig { logit_bias: vec![(100, 1.0)], ..d() }),
        ("logprobs", SamplerConfig { logprobs: Some(101), ..d() }),
    ];
    for (key, config) in cases {
        let error = Sampler::new(&config, 100, 16).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOption, "{key}: {error}");
        assert!(error.message().contains(&format!("`{key}`")), "{key}: {error}");
    }
    let all = (0..100).map(|t| (t, f32::NEG_INFINITY)).collect();
    for temperature in [0.0, 1.0] {
        let config = SamplerConfig { logit_bias: Vec::clone(&all), temperature, ..d() };
        let error =
            Sampler::new(&config, 100, 16).unwrap().sample(&golden_logits(0, 100)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOption, "{error}");
    }
}

#[test]
fn a_step_allocates_nothing_and_a_sampler_no_more_than_it_says() {
    let off = SamplerConfig { top_k: 0, top_p: 0.99, min_p: 0.0, ..SamplerConfig::default() };
    let configs = [
        SamplerConfig::default(),
        SamplerConfig::greedy(),
        SamplerConfig { typical_p: 0.9, xtc_probability: 1.0, ..off.clone() },
        SamplerConfig {
            repeat_penalty: 1.1,
            repeat_last_n: -1,
            dry_multiplier: 1.0,
            ..off.clone()
        },
        SamplerConfig { mirostat: 2, logprobs: Some(20), ..off },
    ];
    for config in configs {
        let (sampler, made) = measure(|| Sampler::new(&config, 5000, 4096));
        let mut sampler = sampler.unwrap();
        let max_bytes = Sampler::max_bytes(5000, 4096);
        assert!(made.peak_bytes as u64 <= max_bytes, "{made:?} of {max_bytes} for {config:?}");
        let all: Vec<Vec<f32>> = (0..20).map(|step| golden_logits(step, 5000)).collect();
        let ((), stepped) = measure(|| {
            for logits in all.iter().cycle().take(700) {
                let id = sampler.sample(logits).unwrap().id;
                sampler.accept(id);
            }
        });
        assert_eq!(stepped.n_allocations, 0, "{config:?}");
    }
}
