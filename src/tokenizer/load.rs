//! Metadata → tokenizer: reads the arrays once, checks that they fit each other, and applies the defaults that each
//! kind of vocabulary has in llama.cpp.

use super::bpe::{Bpe, Words};
use super::merges::{MERGES, Merges};
use super::partition::SpecialLengths;
use super::pre::{Rule, Spelling};
use super::special::{HIDDEN, SPECIAL, SpecialIds, mark_stripping_tokens};
use super::spm::{SCORES, Spm};
use super::vocab::{Attrs, TOKEN_TYPE, TOKENS, Vocab};
use super::word_piece::{LOWERCASE, WordPiece};
use super::{Algorithm, Tokenizer, invalid};
use crate::error::{Error, ErrorKind, Result};
use crate::gguf::{Array, Metadata, Strings, Value};

/// The long arrays that the tokenizer keeps as they are.
struct Arrays {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    scores: Vec<f32>,
}

/// What a kind of vocabulary does unless the file says otherwise.
struct Defaults {
    special: SpecialIds,
    add_bos: bool,
    add_sep: bool,
    always_bos: bool,
}

impl Tokenizer {
    /// Reads the vocabulary that `metadata` describes; its arrays are copied.
    ///
    /// # Errors
    /// `invalid_model` if a key is missing, of another type or does not fit the others; `unsupported_model` for a kind of
    /// vocabulary or a splitting rule that is not known. The message names the key.
    pub fn from_metadata(metadata: &Metadata) -> Result<Self> {
        let arrays = if is_nameless(metadata)? { None } else { Some(Arrays::copy(metadata)?) };
        Self::build(metadata, arrays)
    }

    /// Likewise, but takes the arrays out of `metadata`: a large vocabulary is never in memory twice.
    ///
    /// # Errors
    /// As [`Tokenizer::from_metadata`]; the arrays are gone then too.
    pub fn take_from(metadata: &mut Metadata) -> Result<Self> {
        let arrays = if is_nameless(metadata)? { None } else { Some(Arrays::take(metadata)?) };
        let tokenizer = Self::build(metadata, arrays);
        for key in [TOKEN_TYPE, MERGES] {
            metadata.remove(key);
        }
        tokenizer
    }

    fn build(metadata: &Metadata, arrays: Option<Arrays>) -> Result<Self> {
        let Some(Arrays { bytes, ends, scores }) = arrays else { return Self::nameless(metadata) };
        let types = metadata.get_i32s(TOKEN_TYPE)?;
        let mut vocab = Vocab::new(bytes, ends, types.as_deref())?;
        drop(types);
        let model = metadata.require_str(MODEL)?;
        let pre =
            if model == "gemma4" { model } else { metadata.get_str(PRE)?.unwrap_or_default() };
        let (algorithm, defaults) = match model {
            "llama" => {
                let prefix = metadata.get_bool(ADD_SPACE_PREFIX)?.unwrap_or(true);
                (Algorithm::Spm(Spm::new(&vocab, scores, prefix)?), Defaults::of_spm())
            }
            "bert" => (Algorithm::WordPiece(WordPiece::new(metadata)?), Defaults::of_bert()),
            "gpt2" | "gemma4" | "whitespace" => {
                let rule = rule_named(pre)?;
                let words = if model == "whitespace" {
                    Words::Apart {
                        lowercase: metadata.get_bool(LOWERCASE)?.unwrap_or(pre != model),
                    }
                } else {
                    Words::All
                };
                let merges = read_merges(metadata, &vocab, pre)?;
                let default_ids = model != "gemma4";
                (
                    Algorithm::Bpe(Bpe::new(&vocab, merges, rule, words)),
                    Defaults::of_bpe(&rule, default_ids),
                )
            }
            _ => return Err(unsupported(MODEL, model)),
        };
        let mut special = SpecialIds::read(metadata, &vocab, defaults.special)?;
        let ends = special.complete(metadata, &mut vocab)?;
        mark_stripping_tokens(metadata, pre, &mut vocab)?;
        let flag =
            |key, default: bool| -> Result<_> { Ok(metadata.get_bool(key)?.unwrap_or(default)) };
        let mut tokenizer = Self {
            add_bos: flag(ADD_BOS, defaults.add_bos)? || defaults.always_bos,
            add_eos: flag(ADD_EOS, false)?,
            add_sep: flag(ADD_SEP, defaults.add_sep)?,
            lengths_all: SpecialLengths::new(&vocab, SPECIAL, Attrs::default()),
            lengths_user_defined: SpecialLengths::new(&vocab, Attrs::USER_DEFINED, HIDDEN),
            vocab,
            algorithm,
            special,
            ends,
            max_token_bytes: 0,
        };
        tokenizer.special.nl = tokenizer.line_feed();
        tokenizer.max_token_bytes = tokenizer.longest_token();
        tokenizer.check_added()?;
        Ok(tokenizer)
    }

    /// A vocabulary of as many ids as the architecture says.
    fn nameless(metadata: &Metadata) -> Result<Self> {
        let architecture = metadata.get_str("general.architecture")?.unwrap_or_default();
        let n_vocab = metadata.get_u32(&format!("{architecture}.vocab_size"))?.unwrap_or(0);
        Ok(Self {
            vocab: Vocab::nameless(n_vocab as usize),
            algorithm: Algorithm::None,
            special: SpecialIds::default(),
            ends: Box::default(),
            add_bos: false,
            add_eos: false,
            add_sep: false,
            lengths_all: SpecialLengths::default(),
            lengths_user_defined: SpecialLengths::default(),
            max_token_bytes: 0,
        })
    }
}

impl Tokenizer {
    /// Bytes of the longest token as text. Only a byte-level spelling, with its marks, can be shorter than what it spells.
    fn longest_token(&self) -> usize {
        let spelled = self.vocab.max_token_bytes();
        if !matches!(&self.algorithm, Algorithm::Bpe(bpe) if bpe.spelling() == Spelling::Bytes) {
            return spelled;
        }
        let mut bytes = Vec::with_capacity(spelled);
        let lengths = self.vocab.ids().map(|id| {
            bytes.clear();
            self.append_token(id, true, &mut bytes);
            bytes.len()
        });
        lengths.max().unwrap_or(0)
    }

    /// What a line feed becomes.
    fn line_feed(&self) -> Option<crate::TokenId> {
        match &self.algorithm {
            Algorithm::Spm(spm) => spm.byte(b'\n'),
            Algorithm::WordPiece(_) => None,
            Algorithm::None | Algorithm::Bpe(_) => {
                let mut ids = Vec::new();
                self.encode_fragment("\n", false, &mut ids);
                ids.first().copied()
            }
        }
        .or(self.special.pad)
    }

    /// What is to be added to texts must exist.
    fn check_added(&self) -> Result<()> {
        let is_encoder = matches!(self.algorithm, Algorithm::WordPiece(_));
        let needed = [
            (self.add_bos || is_encoder, self.special.bos, ADD_BOS, "bos_token_id"),
            (self.add_eos && !is_encoder, self.special.eos, ADD_EOS, "eos_token_id"),
            (is_encoder, self.special.sep, ADD_SEP, "seperator_token_id"),
        ];
        for (is_needed, id, key, role) in needed {
            if is_needed && id.is_none() {
                return Err(invalid(
                    key,
                    format!("asks for a token that 'tokenizer.ggml.{role}' does not name"),
                ));
            }
        }
        Ok(())
    }
}

impl Arrays {
    fn copy(metadata: &Metadata) -> Result<Self> {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        let texts = require_tokens(metadata)?;
        bytes.reserve_exact(texts.iter().map(<[u8]>::len).sum());
        ends.reserve_exact(texts.len());
        for text in texts.iter() {
            bytes.extend_from_slice(text);
            ends.push(
                u32::try_from(bytes.len()).map_err(|_| invalid(TOKENS, "is longer than 4 GB"))?,
            );
        }
        Ok(Self { bytes, ends, scores: scores(metadata)? })
    }

    fn take(metadata: &mut Metadata) -> Result<Self> {
        require_tokens(metadata)?;
        let scores = match metadata.get_f32s(SCORES) {
            Ok(Some(std::borrow::Cow::Borrowed(_))) => match metadata.remove(SCORES) {
                Some(Value::Array(Array::F32(scores))) => scores,
                _ => Vec::new(),
            },
            _ => scores(metadata)?,
        };
        let (bytes, ends) = match metadata.remove(TOKENS) {
            Some(Value::Array(Array::Strings { bytes, ends })) => (bytes, ends),
            _ => (Vec::new(), Vec::new()),
        };
        Ok(Self { bytes, ends, scores })
    }
}

impl Defaults {
    fn of_spm() -> Self {
        let special =
            SpecialIds { bos: Some(1), eos: Some(2), unk: Some(0), ..SpecialIds::default() };
        Self { special, add_bos: true, add_sep: false, always_bos: false }
    }

    fn of_bert() -> Self {
        let special = SpecialIds {
            bos: Some(101),
            unk: Some(100),
            sep: Some(102),
            pad: Some(0),
            ..SpecialIds::default()
        };
        Self { special, add_bos: true, add_sep: true, always_bos: false }
    }

    fn of_bpe(rule: &Rule, default_ids: bool) -> Self {
        let eos = default_ids.then_some(11);
        let special =
            SpecialIds { bos: eos.filter(|_| rule.has_bos), eos, ..SpecialIds::default() };
        Self { special, add_bos: rule.add_bos, add_sep: rule.add_sep, always_bos: rule.always_bos }
    }
}

fn is_nameless(metadata: &Metadata) -> Result<bool> {
    Ok(matches!(metadata.require_str(MODEL)?, "none" | "no_vocab"))
}

fn require_tokens(metadata: &Metadata) -> Result<Strings<'_>> {
    metadata.get_strings(TOKENS)?.ok_or_else(|| invalid(TOKENS, "is missing"))
}

/// Scores are floats, or whole numbers in some files.
fn scores(metadata: &Metadata) -> Result<Vec<f32>> {
    if let Some(Value::Array(Array::I32(scores))) = metadata.get(SCORES) {
        #[allow(clippy::cast_precision_loss, reason = "llama.cpp rounds them to f32 as well")]
        return Ok(scores.iter().map(|score| *score as f32).collect());
    }
    Ok(metadata.get_f32s(SCORES)?.unwrap_or_default().into_owned())
}

fn rule_named(pre: &str) -> Result<Rule> {
    let name = if pre.is_empty() { "default" } else { pre };
    Rule::named(name).ok_or_else(|| unsupported(PRE, pre))
}

/// Kimi's files have no merges.
fn read_merges(metadata: &Metadata, vocab: &Vocab, pre: &str) -> Result<Merges> {
    match metadata.get_strings(MERGES)? {
        Some(lines) => Merges::new(lines, vocab),
        None if pre == "kimi-k2" => Ok(Merges::default()),
        None => Err(invalid(
            MERGES,
            "is missing: a file that was split again with old tools has lost it",
        )),
    }
}

fn unsupported(key: &str, value: &str) -> Error {
    let message = format!("metadata key '{key}' names '{value}', which is not supported");
    Error::new(ErrorKind::UnsupportedModel, message).with("key", key)
}

const MODEL: &str = "tokenizer.ggml.model";
const PRE: &str = "tokenizer.ggml.pre";
const ADD_BOS: &str = "tokenizer.ggml.add_bos_token";
const ADD_EOS: &str = "tokenizer.ggml.add_eos_token";
const ADD_SEP: &str = "tokenizer.ggml.add_sep_token";
const ADD_SPACE_PREFIX: &str = "tokenizer.ggml.add_space_prefix";
