//! A vocabulary of the real count whose tokens are made up: every text can be encoded, and merges and pieces are as long and as
//! many as a real one's, so that it takes the memory of a real one.

use std::collections::BTreeSet;

use sluice::gguf::{Array, Metadata, Value};

use super::blocks::Random;
use super::shapes::{Shape, Vocabulary};

/// Adds the vocabulary of `shape`.
pub(super) fn describe(shape: &Shape, metadata: &mut Metadata) {
    let n = shape.n_vocab as usize;
    match shape.vocabulary {
        Vocabulary::Bpe { pre, n_merges } => describe_bpe(pre, n, n_merges, metadata),
        Vocabulary::Spm => describe_spm(&["<unk>", "<s>", "</s>"], [1, 2, 0], true, n, metadata),
        Vocabulary::GemmaSpm => {
            describe_spm(&["<pad>", "<eos>", "<bos>", "<unk>"], [2, 1, 3], false, n, metadata);
        }
    }
}

fn describe_bpe(pre: &str, n: usize, n_merges: usize, metadata: &mut Metadata) {
    let letters: Vec<String> = byte_letters().map(String::from).collect();
    let n_control = 3;
    let mut joined = Joined::new('\u{120}', n - letters.len() - n_control);
    joined.split_otherwise(n_merges);
    let control = ["<|endoftext|>", "<|begin|>", "<|end|>"].map(str::to_owned);
    let tokens = letters.iter().chain(&joined.tokens).chain(&control);
    let types =
        core::iter::repeat_n(NORMAL, n - n_control).chain(core::iter::repeat_n(CONTROL, n_control));
    let id = |at: usize| Value::U32(u32::try_from(n - n_control + at).unwrap_or(0));
    set(metadata, "model", text("gpt2"));
    set(metadata, "pre", text(pre));
    set(metadata, "tokens", Value::Array(Array::strings(tokens)));
    set(metadata, "token_type", Value::Array(Array::I32(types.collect())));
    set(metadata, "merges", Value::Array(Array::strings(&joined.merges)));
    set(metadata, "bos_token_id", id(1));
    set(metadata, "eos_token_id", id(2));
    set(metadata, "add_bos_token", Value::Bool(pre == "llama-bpe"));
}

/// `control` come first; `ids` are those of BOS, EOS and the unknown token among them.
fn describe_spm(
    control: &[&str],
    ids: [u32; 3],
    space_prefix: bool,
    n: usize,
    metadata: &mut Metadata,
) {
    let bytes = (0..=255).map(|b| format!("<0x{b:02X}>"));
    let letters: Vec<String> =
        core::iter::once('\u{2581}').chain('!'..='~').map(String::from).collect();
    let n_first = control.len() + 256 + letters.len();
    let joined = Joined::new('\u{2581}', n - n_first);
    // Pieces made first are joined first: scores fall.
    let n_pieces = letters.len() + joined.tokens.len();
    let tokens = control.iter().map(|c| (*c).to_owned()).chain(bytes);
    let tokens = tokens.chain(joined.tokens).chain(letters);
    #[allow(clippy::cast_precision_loss, reason = "scores are whole numbers below 2^24")]
    let scores = (0..n_pieces).map(|i| -(i as f32));
    let scores = core::iter::repeat_n(0.0, control.len() + 256).chain(scores);
    let mut types: Vec<i32> =
        control.iter().map(|c| if *c == "<unk>" { UNKNOWN } else { CONTROL }).collect();
    types.extend(core::iter::repeat_n(BYTE, 256).chain(core::iter::repeat_n(NORMAL, n_pieces)));
    set(metadata, "model", text("llama"));
    set(metadata, "pre", text("default"));
    set(metadata, "tokens", Value::Array(Array::strings(tokens)));
    set(metadata, "scores", Value::Array(Array::F32(scores.collect())));
    set(metadata, "token_type", Value::Array(Array::I32(types)));
    for (key, id) in ["bos_token_id", "eos_token_id", "unknown_token_id"].iter().zip(ids) {
        set(metadata, key, Value::U32(id));
    }
    set(metadata, "add_bos_token", Value::Bool(true));
    set(metadata, "add_space_prefix", Value::Bool(space_prefix));
}

/// Tokens that are two earlier tokens joined, and the merges that make them.
struct Joined {
    tokens: Vec<String>,
    merges: Vec<String>,
}

impl Joined {
    /// `n` tokens of small letters and of `space`, as the vocabulary writes one.
    fn new(space: char, n: usize) -> Self {
        let mut random = Random(0);
        let mut all: Vec<String> =
            core::iter::once(space).chain('a'..='z').map(String::from).collect();
        let n_letters = all.len();
        let mut seen: BTreeSet<String> = all.iter().cloned().collect();
        let mut merges = Vec::with_capacity(n);
        let mut pairs = 0..n_letters * n_letters;
        while merges.len() < n {
            // All pairs of letters, then any token with one of the first, short ones.
            let (a, b) = match pairs.next() {
                Some(pair) => (&all[pair / n_letters], &all[pair % n_letters]),
                None => {
                    let mut pick = |among: usize| {
                        &all[usize::try_from(random.next() % among as u64).unwrap_or(0)]
                    };
                    (pick(all.len()), pick(all.len().min(SHORT_TOKENS)))
                }
            };
            if a.len() + b.len() > LONGEST_TOKEN {
                continue;
            }
            let token = format!("{a}{b}");
            if !seen.contains(&token) {
                merges.push(format!("{a} {b}"));
                seen.insert(token.clone());
                all.push(token);
            }
        }
        Self { tokens: all.split_off(n_letters), merges }
    }

    /// Adds merges, up to `n` in all, that make the same tokens of other parts: real vocabularies have them.
    fn split_otherwise(&mut self, n: usize) {
        let known: BTreeSet<&str> = self.tokens.iter().map(String::as_str).collect();
        let made: BTreeSet<String> = self.merges.iter().cloned().collect();
        for token in &self.tokens {
            let places = token.char_indices().map(|c| c.0).skip(2);
            for (a, b) in places.map(|at| token.split_at(at)) {
                let merge = format!("{a} {b}");
                let is_new = known.contains(a) && known.contains(b) && !made.contains(&merge);
                if is_new && self.merges.len() < n {
                    self.merges.push(merge);
                }
            }
        }
    }
}

/// The letters that byte-level vocabularies write bytes with: printable ones as they are, the others from U+0100 on.
fn byte_letters() -> impl Iterator<Item = char> {
    let mut next = 0x100;
    (0..=255_u8).map(move |byte| match byte {
        b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff => char::from(byte),
        _ => {
            let letter = char::from_u32(next).unwrap_or('\u{fffd}');
            next += 1;
            letter
        }
    })
}

fn set(metadata: &mut Metadata, key: &str, value: Value) {
    metadata.insert(format!("tokenizer.ggml.{key}"), value);
}

fn text(s: &str) -> Value {
    Value::String(s.as_bytes().into())
}

const NORMAL: i32 = 1;
const UNKNOWN: i32 = 2;
const CONTROL: i32 = 3;
const BYTE: i32 = 6;
/// Longer than nearly all real tokens; the mean comes out near a real vocabulary's 7 bytes.
const LONGEST_TOKEN: usize = 9;
const SHORT_TOKENS: usize = 1000;
