//! SentencePiece's BPE: characters merge where both together are a token, the highest score first; what is no token in
//! the end is spelled in tokens of bytes.

use super::invalid;
use super::merge::{Merged, Merger, NONE, Symbol};
use super::vocab::Vocab;
use crate::TokenId;
use crate::error::Result;

/// What SentencePiece needs beside the vocabulary.
#[derive(Debug)]
pub(super) struct Spm {
    scores: Box<[f32]>,
    /// Whether a space is put before a text that stands at the beginning or after a special token.
    pub(super) add_space_prefix: bool,
    /// The token of each byte, or [`NONE`].
    bytes: Box<[TokenId; 256]>,
}

impl Spm {
    /// # Errors
    /// If there are fewer scores than tokens, or one is not a number.
    pub(super) fn new(vocab: &Vocab, scores: Vec<f32>, add_space_prefix: bool) -> Result<Self> {
        if !scores.is_empty() && scores.len() < vocab.len() {
            return Err(invalid(
                SCORES,
                format!("has {} entries for {} tokens", scores.len(), vocab.len()),
            ));
        }
        if let Some(id) = scores.iter().position(|score| score.is_nan()) {
            return Err(invalid(SCORES, format!("entry {id} is not a number")));
        }
        let mut bytes = Box::new([NONE; 256]);
        for (byte, id) in (0..=u8::MAX).zip(bytes.iter_mut()) {
            *id = vocab.find_hex_byte(byte).or_else(|| vocab.find(&[byte])).unwrap_or(NONE);
        }
        Ok(Self { scores: scores.into(), add_space_prefix, bytes })
    }

    /// Appends the tokens of `text`; `after_special` where it stands at the beginning or after a special token.
    pub(super) fn encode(
        &self,
        vocab: &Vocab,
        text: &str,
        after_special: bool,
        unknown: Option<TokenId>,
        out: &mut Vec<TokenId>,
    ) {
        let mut spelled = String::with_capacity(text.len() + UNDERLINE.len());
        if self.add_space_prefix && after_special {
            spelled += UNDERLINE;
        }
        underline_spaces(text, &mut spelled);
        let offset = |at: usize| u32::try_from(at).unwrap_or(NONE);
        let mut merger = Merger::default();
        merger.begin(spelled.chars().count());
        for (at, _) in spelled.char_indices() {
            merger.push(offset(at), NONE);
        }
        let between = |start: u32, end: u32| &spelled.as_bytes()[start as usize..end as usize];
        let merged = |left: &Symbol, _: &Symbol, end| {
            let id = vocab.find(between(left.start, end))?;
            Some(Merged { urgency: self.urgency(id), id })
        };
        merger.run(offset(spelled.len()), merged, |symbol, end| {
            let bytes = between(symbol.start, end);
            match (symbol.id != NONE).then_some(symbol.id).or_else(|| vocab.find(bytes)) {
                Some(id) => out.push(id),
                None => out.extend(bytes.iter().filter_map(|byte| self.byte(*byte).or(unknown))),
            }
        });
    }

    /// The token of a byte on its own.
    pub(super) fn byte(&self, byte: u8) -> Option<TokenId> {
        Some(self.bytes[byte as usize]).filter(|id| *id != NONE)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.scores) + size_of_val(&*self.bytes)
    }

    /// Higher scores are smaller numbers: the bits of a float order as it does once negative ones are flipped.
    fn urgency(&self, id: TokenId) -> u32 {
        let score = self.scores.get(id as usize).copied().unwrap_or(0.0) + 0.0;
        let bits = score.to_bits();
        if score < 0.0 { bits } else { !bits & SIGN_MASK }
    }
}

/// Appends `text` with U+2581 for spaces, as such vocabularies spell them.
pub(super) fn underline_spaces(text: &str, out: &mut String) {
    for (i, part) in text.split(' ').enumerate() {
        if i > 0 {
            *out += UNDERLINE;
        }
        *out += part;
    }
}

/// Appends `text` with spaces for U+2581.
pub(super) fn append_with_spaces(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let [first, after @ ..] = rest {
        if let Some(after) = rest.strip_prefix(UNDERLINE.as_bytes()) {
            out.push(b' ');
            rest = after;
        } else {
            out.push(*first);
            rest = after;
        }
    }
}

/// U+2581.
pub(super) const UNDERLINE: &str = "\u{2581}";
pub(super) const SCORES: &str = "tokenizer.ggml.scores";
const SIGN_MASK: u32 = 0x7FFF_FFFF;
