//! The short metadata keys of LLMW and the GGUF keys that mean the same, so that one model code reads both.

/// Short key, and what follows the architecture's name in the GGUF key.
const KEYS: [(&str, &str); 9] = [
    ("n_layers", "block_count"),
    ("n_heads", "attention.head_count"),
    ("n_kv_heads", "attention.head_count_kv"),
    ("dim", "embedding_length"),
    ("head_dim", "attention.key_length"),
    ("ffn_dim", "feed_forward_length"),
    ("ctx_len", "context_length"),
    ("rope_theta", "rope.freq_base"),
    ("rms_eps", "attention.layer_norm_rms_epsilon"),
];

/// The short keys whose values are fractions.
const FRACTIONS: [&str; 2] = ["rope_theta", "rms_eps"];

/// The short key of `general.architecture`.
pub(super) const ARCHITECTURE: &str = "arch";

/// The GGUF key of `short`, and whether its value is a fraction; a key that is not short stays as it is.
pub(super) fn long(short: &str, architecture: &str) -> (String, bool) {
    let key = match KEYS.iter().find(|(s, _)| *s == short) {
        Some((_, suffix)) => format!("{architecture}.{suffix}"),
        None if short == ARCHITECTURE => "general.architecture".to_owned(),
        None => short.to_owned(),
    };
    (key, FRACTIONS.contains(&short))
}

/// The short form of a GGUF key, if it has one.
pub(super) fn short<'a>(long: &'a str, architecture: &str) -> &'a str {
    if long == "general.architecture" {
        return ARCHITECTURE;
    }
    let suffix = long.strip_prefix(architecture).and_then(|rest| rest.strip_prefix('.'));
    KEYS.iter().find(|(_, s)| Some(*s) == suffix).map_or(long, |(short, _)| *short)
}
