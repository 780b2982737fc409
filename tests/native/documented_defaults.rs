//! The defaults that docs/sampling.md names are those of the sampler.

use std::collections::BTreeMap;
use std::path::Path;

use sluice::runtime::{GenerateConfig, SamplerConfig};

#[test]
fn the_page_of_sampling_names_the_defaults_of_the_sampler() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/sampling.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut documented = BTreeMap::new();
    for line in page.lines() {
        let cells: Vec<_> = line.split(" | ").collect();
        let [name, default, _, _] = cells[..] else { continue };
        let Some(name) = name.strip_prefix("| `").and_then(|name| name.strip_suffix('`')) else {
            continue;
        };
        let default = default.split(' ').next().unwrap();
        documented.insert(name.to_owned(), default.to_owned());
    }
    let d = SamplerConfig::default();
    let numbers = [
        ("repeatPenalty", d.repeat_penalty.to_string()),
        ("frequencyPenalty", d.frequency_penalty.to_string()),
        ("presencePenalty", d.presence_penalty.to_string()),
        ("repeatLastN", d.repeat_last_n.to_string()),
        ("dryMultiplier", d.dry_multiplier.to_string()),
        ("dryBase", d.dry_base.to_string()),
        ("dryAllowedLength", d.dry_allowed_length.to_string()),
        ("dryLastN", d.dry_last_n.to_string()),
        ("topK", d.top_k.to_string()),
        ("typicalP", d.typical_p.to_string()),
        ("topP", d.top_p.to_string()),
        ("minP", d.min_p.to_string()),
        ("xtcProbability", d.xtc_probability.to_string()),
        ("xtcThreshold", d.xtc_threshold.to_string()),
        ("temperature", d.temperature.to_string()),
        ("mirostat", d.mirostat.to_string()),
        ("mirostatTau", d.mirostat_tau.to_string()),
        ("mirostatEta", d.mirostat_eta.to_string()),
    ];
    for (name, default) in numbers {
        assert_eq!(documented.remove(name), Some(default), "the default of {name}");
    }
    assert!(d.logit_bias.is_empty() && d.logprobs.is_none(), "`none` on the page");
    assert_eq!(GenerateConfig::default().dry_breakers, ["\n", ":", "\"", "*"]);
    let others: Vec<_> = documented.into_keys().collect();
    assert_eq!(others, ["dryBreakers", "logitBias", "logprobs", "seed"]);
}
