//! Every filter against its definition, written out naively in f64 with another library's functions.
#![allow(
    clippy::disallowed_methods,
    reason = "the reference is independent of the functions it checks"
)]
#![allow(clippy::cast_possible_truncation, reason = "small numbers of the test's own")]

use super::breakers::{DryBreakers, Pieces, SplitBreaker};
use super::candidates::{Candidate, Candidates};
use super::config::SamplerConfig;
use super::dry::Dry;
use super::filters;
use super::history::History;
use super::mirostat::MirostatState;
use super::rng::Rng;
use crate::TokenId;

/// Tokens with their probabilities, likeliest first, lower ids first among equals.
type Reference = Vec<(TokenId, f64)>;

fn set_of(logits: &[f32]) -> Candidates {
    let mut c = Candidates::with_items(Vec::with_capacity(logits.len()));
    logits.iter().zip(0..).for_each(|(&l, t)| c.push(l, t));
    c
}

fn reference_of(logits: &[f32]) -> Reference {
    let sum: f64 = logits.iter().map(|&l| f64::from(l).exp()).sum();
    let mut r: Reference =
        logits.iter().zip(0..).map(|(&l, t)| (t, f64::from(l).exp() / sum)).collect();
    r.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    r
}

/// Ids left, in order of id.
fn ids(c: &Candidates) -> Vec<TokenId> {
    let mut ids: Vec<_> = c.as_slice().iter().map(|c: &Candidate| c.token).collect();
    ids.sort_unstable();
    ids
}

fn sorted_ids(kept: &[(TokenId, f64)]) -> Vec<TokenId> {
    let mut ids: Vec<_> = kept.iter().map(|r| r.0).collect();
    ids.sort_unstable();
    ids
}

/// The shortest run with at least the share `p`.
fn shortest(r: &[(TokenId, f64)], p: f64) -> Vec<TokenId> {
    let mut mass = 0.0;
    let n = r.iter().position(|x| {
        mass += x.1;
        mass >= p
    });
    sorted_ids(&r[..n.map_or(r.len(), |n| n + 1)])
}

/// Small distributions: flat, peaked, with ties, of one token, and some large enough for partial sorts.
fn distributions() -> Vec<Vec<f32>> {
    let mut rng = Rng::new(7);
    (0..400)
        .map(|i| {
            let n = if i % 10 == 0 { 300 } else { 1 + i % 13 };
            let spread = [0.1, 1.0, 4.0, 12.0][i % 4];
            let steps = if i % 3 == 0 { 4.0 } else { 1024.0 };
            (0..n).map(|_| ((rng.unit() * steps).floor() / steps * spread) as f32).collect()
        })
        .collect()
}

#[test]
fn top_k_keeps_the_k_likeliest() {
    for logits in distributions() {
        for k in [0, 1, 2, 5, 100] {
            let mut c = set_of(&logits);
            filters::top_k(&mut c, k);
            let r = reference_of(&logits);
            let n = if k == 0 { r.len() } else { k.min(r.len()) };
            assert_eq!(ids(&c), sorted_ids(&r[..n]), "k {k} of {logits:?}");
        }
    }
}

#[test]
fn top_p_keeps_the_shortest_run_with_its_mass() {
    for logits in distributions() {
        for p in [0.0, 0.137_f32, 0.513, 0.951, 1.0] {
            let mut c = set_of(&logits);
            filters::top_p(&mut c, p);
            let r = reference_of(&logits);
            let expected = if p == 1.0 { sorted_ids(&r) } else { shortest(&r, f64::from(p)) };
            assert_eq!(ids(&c), expected, "p {p} of {logits:?}");
        }
    }
}

#[test]
fn min_p_keeps_a_share_of_the_likeliest() {
    for logits in distributions() {
        for p in [0.0, 0.051_f32, 0.33, 1.0] {
            let mut c = set_of(&logits);
            filters::min_p(&mut c, p);
            let r = reference_of(&logits);
            let kept: Reference =
                r.iter().copied().filter(|x| x.1 >= f64::from(p) * r[0].1).collect();
            assert_eq!(ids(&c), sorted_ids(&kept), "p {p} of {logits:?}");
        }
    }
}

#[test]
fn typical_p_keeps_what_is_nearest_to_the_mean_surprise() {
    for logits in distributions() {
        for p in [0.113_f32, 0.497, 0.921, 1.0] {
            let mut c = set_of(&logits);
            filters::typical_p(&mut c, p);
            let mut r = reference_of(&logits);
            let mean: f64 = r.iter().map(|x| -x.1 * x.1.ln()).sum();
            // Rounded, so that tokens of one probability are at one distance in both.
            let distance = |x: &(TokenId, f64)| ((-x.1.ln() - mean).abs() * 1e9).round();
            r.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
            let expected = if p == 1.0 { sorted_ids(&r) } else { shortest(&r, f64::from(p)) };
            assert_eq!(ids(&c), expected, "p {p} of {logits:?}");
        }
    }
}

#[test]
fn xtc_drops_all_above_the_threshold_but_the_least_likely() {
    for logits in distributions() {
        for threshold in [0.011_f32, 0.109, 0.31, 0.5, 0.51] {
            let mut c = set_of(&logits);
            filters::xtc(&mut c, 1.0, threshold, &mut Rng::new(1));
            let r = reference_of(&logits);
            let above = r.iter().filter(|x| x.1 >= f64::from(threshold)).count();
            let dropped = if threshold > 0.5 { 0 } else { above.saturating_sub(1) };
            assert_eq!(ids(&c), sorted_ids(&r[dropped..]), "threshold {threshold} of {logits:?}");
        }
    }
}

#[test]
fn xtc_is_applied_as_often_as_it_says() {
    let mut rng = Rng::new(3);
    let n = (0..10_000).filter(|_| {
        let mut c = set_of(&[2.0, 1.9, 0.0]);
        filters::xtc(&mut c, 0.3, 0.2, &mut rng);
        c.len() < 3
    });
    let n = n.count();
    assert!((2800..3200).contains(&n), "applied {n} times of 10000 at 0.3");
}

#[test]
fn temperature_divides_the_differences() {
    let logits = [3.0_f32, -1.0, 2.5];
    for t in [1e-30_f32, 0.25, 1.0, 3.0, 1e30] {
        let mut c = set_of(&logits);
        filters::temperature(&mut c, t);
        let expected = reference_of(&logits.map(|l| ((l - 3.0) / t).max(-700.0)));
        let weights = c.weights();
        for c in c.as_slice() {
            let p = weights.of(c) as f64 / weights.total as f64;
            let q = expected.iter().find(|r| r.0 == c.token).unwrap().1;
            assert!((p - q).abs() < 1e-7, "token {} at {t}: {p}, not {q}", c.token);
        }
    }
}

#[test]
fn draws_follow_the_weights_exactly() {
    let mut c = set_of(&[0.0, 1.0, -2.0, 1.0]);
    let (mut rng, mut counts) = (Rng::new(11), [0_u32; 4]);
    for _ in 0..100_000 {
        let i = c.draw(&mut rng);
        counts[c.as_slice()[i].token as usize] += 1;
    }
    let reference = reference_of(&[0.0, 1.0, -2.0, 1.0]);
    let chi2: f64 = reference
        .iter()
        .map(|r| (f64::from(counts[r.0 as usize]) - 1e5 * r.1).powi(2) / (1e5 * r.1))
        .sum();
    assert!(chi2 < 21.1, "chi-square {chi2} with 3 degrees of freedom");
}

#[test]
fn dry_counts_the_longest_repeat_of_each_token() {
    let mut rng = Rng::new(5);
    for case in 0..300_u32 {
        let tokens: Vec<TokenId> = (0..rng.below(40)).map(|_| rng.below(4) as TokenId).collect();
        let breakers = match case % 3 {
            0 => vec![],
            1 => vec![vec![3]],
            _ => vec![vec![3, 2], vec![1, 1, 1]],
        };
        let config = SamplerConfig {
            dry_multiplier: 0.5,
            dry_breakers: of_sequences(&breakers),
            ..SamplerConfig::default()
        };
        let mut dry = Dry::new(&config, 32).unwrap().unwrap();
        let mut history = History::new(32).unwrap();
        tokens.iter().for_each(|&t| history.push(t));
        let window = &tokens[tokens.len().saturating_sub(32)..];
        assert_eq!(
            dry.penalties(&history),
            naive_dry(window, &breakers),
            "{window:?} {breakers:?}"
        );
    }
}

/// Breakers that are these sequences of tokens.
fn of_sequences(sequences: &[Vec<TokenId>]) -> DryBreakers {
    let mut breakers = DryBreakers::default();
    for sequence in sequences {
        match sequence.as_slice() {
            [token] => breakers.tokens.push(*token),
            [head, tail @ ..] => {
                breakers.split.push(SplitBreaker { heads: vec![*head], tail: tail.to_vec() });
            }
            [] => {}
        }
    }
    breakers
}

#[test]
fn breakers_are_found_in_the_vocabulary() {
    let vocabulary = ["a", "b", "\n", "a\n", "x: y", "en", "d", "end", "ende", "ben", "e", "n"];
    let bytes = |t: TokenId| vocabulary[t as usize].as_bytes().to_vec();
    // Letter by letter, as the vocabulary has them.
    let id = |c: char| vocabulary.iter().position(|v| *v == c.to_string()).unwrap() as TokenId;
    let encode = |text: &str| Ok(text.chars().map(id).collect());
    let pieces = Pieces { n_vocab: 12, bytes: &bytes, encode: &encode };
    let texts = |list: &[&str]| list.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>();
    let breakers = DryBreakers::of_texts(&texts(&["\n", ":"]), &pieces).unwrap();
    assert_eq!(
        breakers,
        DryBreakers { tokens: vec![2, 3, 4], split: vec![] },
        "tokens that contain one"
    );
    let breakers = DryBreakers::of_texts(&texts(&["end"]), &pieces).unwrap();
    assert_eq!(breakers.tokens, [7, 8], "tokens that contain it");
    let split = [
        SplitBreaker { heads: vec![10], tail: vec![11, 6] },
        SplitBreaker { heads: vec![5, 9], tail: vec![6] },
    ];
    assert_eq!(breakers.split, split, "tokens that end with a beginning of it");
    assert!(DryBreakers::of_texts(&texts(&["a", ""]), &pieces).is_err(), "an empty text");
    let of_length = |n| DryBreakers::of_texts(&["e".repeat(n)], &pieces);
    assert!(of_length(40).is_ok(), "the longest");
    let message = "`dryBreakers` holds a text of 41 characters; at most 40";
    assert_eq!(of_length(41).unwrap_err().message(), message);
}

/// For each token: the longest run that ends the window and also stands before an earlier place of that token.
fn naive_dry(window: &[TokenId], breakers: &[Vec<TokenId>]) -> Vec<(TokenId, f64)> {
    let ends = |b: &Vec<TokenId>| {
        (b.len()..=window.len()).filter(|&e| window[e - b.len()..e] == **b).collect()
    };
    let start = breakers.iter().flat_map(|b| -> Vec<usize> { ends(b) }).max().unwrap_or(0);
    let mut penalties = Vec::new();
    for token in 0..4 {
        let longest = (1..window.len()).filter(|&i| window[i] == token).map(|i| {
            (0..=i.min(window.len() - start))
                .filter(|&n| window[i - n..i] == window[window.len() - n..])
                .max()
                .unwrap()
        });
        match longest.max() {
            Some(n) if n >= 2 && !breakers.contains(&vec![token]) => {
                penalties
                    .push((token, f64::from(0.5_f32) * f64::from(1.75_f32).powi(n as i32 - 2)));
            }
            _ => {}
        }
    }
    penalties
}

#[test]
fn mirostat_follows_its_definition_and_meets_its_target() {
    for (tau, eta) in [(1.5_f32, 0.1_f32), (3.0, 0.2), (5.0, 0.05)] {
        let logits: Vec<f32> = (0..2000).map(|i| -0.01 * i as f32).collect();
        let reference = reference_of(&logits);
        let (mut state, mut rng) = (MirostatState::new(tau, eta), Rng::new(9));
        let (mut surprises, n) = (0.0, 4000);
        for _ in 0..n {
            let (mut c, limit) = (set_of(&logits), state.limit);
            let i = state.draw(&mut c, &mut rng);
            let kept: Reference =
                reference.iter().copied().filter(|r| -r.1.log2() <= limit).collect();
            let kept = if kept.is_empty() { reference[..1].to_vec() } else { kept };
            assert_eq!(ids(&c), sorted_ids(&kept), "limit {limit}");
            let mass: f64 = kept.iter().map(|r| r.1).sum();
            let token = c.as_slice()[i].token;
            let surprise = -(kept.iter().find(|r| r.0 == token).unwrap().1 / mass).log2();
            let next = limit - f64::from(eta) * (surprise - f64::from(tau));
            assert!(
                (state.limit - next).abs() < 1e-6,
                "limit {} after {limit}, not {next}",
                state.limit
            );
            surprises += surprise;
        }
        let mean = surprises / f64::from(n);
        assert!((mean - f64::from(tau)).abs() < 0.05, "mean surprise {mean}, target {tau}");
    }
}
