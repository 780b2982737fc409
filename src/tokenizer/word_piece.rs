//! WordPiece, as BERT vocabularies need it: the text is normalised and cut into words and punctuation marks, and each
//! word into the longest tokens from the left. Tokens that begin a word begin with U+2581 in GGUF files.

use super::merge::NONE;
use super::spm::UNDERLINE;
use super::unicode::{Class, Decompositions};
use super::vocab::Vocab;
use crate::TokenId;
use crate::error::Result;
use crate::gguf::Metadata;

/// What WordPiece needs beside the vocabulary.
#[derive(Debug)]
pub(super) struct WordPiece {
    lowercase: bool,
    /// Present where accents are stripped.
    decompositions: Option<Decompositions>,
}

impl WordPiece {
    /// # Errors
    /// If the metadata has something else than a bool where it says how to normalise.
    pub(super) fn new(metadata: &Metadata) -> Result<Self> {
        let lowercase = metadata.get_bool(LOWERCASE)?.unwrap_or(true);
        let strip_accents = metadata.get_bool(STRIP_ACCENTS)?.unwrap_or(lowercase);
        Ok(Self { lowercase, decompositions: strip_accents.then(Decompositions::new) })
    }

    /// Appends the tokens of `text`; `unknown` for a word that no tokens spell.
    pub(super) fn encode(
        &self,
        vocab: &Vocab,
        text: &str,
        unknown: Option<TokenId>,
        out: &mut Vec<TokenId>,
    ) {
        let mut word = String::from(UNDERLINE);
        let mut finish = |word: &mut String| {
            if word.len() > UNDERLINE.len() {
                encode_word(vocab, word.as_bytes(), unknown, out);
                word.truncate(UNDERLINE.len());
            }
        };
        for c in text.chars() {
            let c = self.decompositions.as_ref().map_or(c, |table| table.first(c));
            match Class::of(c) {
                Class::Space => finish(&mut word),
                Class::Control => {}
                Class::Mark if self.decompositions.is_some() => {}
                _ if matches!(c, '\0' | char::REPLACEMENT_CHARACTER) => {}
                class => {
                    let small =
                        if self.lowercase { c.to_lowercase().next().unwrap_or(c) } else { c };
                    if stands_alone(c, class) {
                        finish(&mut word);
                        word.push(small);
                        finish(&mut word);
                    } else {
                        word.push(small);
                    }
                }
            }
        }
        finish(&mut word);
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.decompositions.as_ref().map_or(0, Decompositions::memory_bytes)
    }
}

fn encode_word(vocab: &Vocab, word: &[u8], unknown: Option<TokenId>, out: &mut Vec<TokenId>) {
    let n_before = out.len();
    let mut at = 0;
    while at < word.len() {
        let longest = word.len().min(at + vocab.max_token_bytes().min(MAX_PIECE_BYTES));
        let found =
            (at + 1..=longest).rev().find_map(|end| Some((end, vocab.find(&word[at..end])?)));
        let Some((end, id)) = found else {
            out.truncate(n_before);
            out.extend(unknown.filter(|id| *id != NONE));
            return;
        };
        out.push(id);
        at = end;
    }
}

/// Punctuation marks and ideographs are words of their own.
fn stands_alone(c: char, class: Class) -> bool {
    class == Class::Punctuation
        || (class == Class::Symbol && c.is_ascii())
        || IDEOGRAPHS.iter().any(|(first, last)| (*first..=*last).contains(&c))
}

/// Longer tokens are never looked for, so that a word costs what its length says whatever a file holds. BERT's own tokenizer cuts
/// no word of more than 100 characters: a longer token is part of no text that a model has seen.
const MAX_PIECE_BYTES: usize = 100 * 4 + UNDERLINE.len();

pub(super) const LOWERCASE: &str = "tokenizer.ggml.normalizer.lowercase";
const STRIP_ACCENTS: &str = "tokenizer.ggml.normalizer.strip_accents";

/// As in the Rust tokenizers that BERT models were made with, which leave out U+2B820 to U+2B91F.
const IDEOGRAPHS: [(char, char); 8] = [
    ('\u{3400}', '\u{4DBF}'),
    ('\u{4E00}', '\u{9FFF}'),
    ('\u{F900}', '\u{FAFF}'),
    ('\u{20000}', '\u{2A6DF}'),
    ('\u{2A700}', '\u{2B73F}'),
    ('\u{2B740}', '\u{2B81F}'),
    ('\u{2B920}', '\u{2CEAF}'),
    ('\u{2F800}', '\u{2FA1F}'),
];
