//! Text ↔ token ids, as llama.cpp does it: byte-level BPE with every rule that `tokenizer.ggml.pre` names,
//! SentencePiece's BPE with scores and byte fallback, WordPiece, and vocabularies of bare ids. It reads metadata only.
//!
//! A vocabulary is a few flat arrays: one arena of bytes, offsets, and indices of numbers. Encoding costs n log n for
//! any text.
//!
//! The rules are scanners of our own over a table of character classes: all of them together with the tables are a
//! sixteenth of what the `fancy-regex` crate adds to a wasm module, and several times faster; `regex` has no look-ahead,
//! and no engine has the quirks of llama.cpp's rules. The table is ours because crates follow newer versions of Unicode,
//! which cut text elsewhere. `docs/tokenizer.md` has the figures and says where decoding differs from llama.cpp.

mod bpe;
mod byte_level;
mod detokenizer;
mod hash_index;
mod load;
mod merge;
mod merges;
mod partition;
mod pre;
mod special;
mod spm;
mod template;
mod unicode;
mod vocab;
mod word_piece;

pub use detokenizer::Detokenizer;
pub use special::SpecialIds;
pub use template::{Conversation, Json, LocalTime, RenderedChat, template_name};

use crate::TokenId;
use crate::error::{Error, ErrorKind, Result};
use bpe::Bpe;
use partition::{Fragment, SpecialLengths, partition};
use pre::Spelling;
use spm::Spm;
use vocab::{Attrs, Vocab};
use word_piece::WordPiece;

/// A vocabulary and its algorithm.
#[derive(Debug)]
pub struct Tokenizer {
    vocab: Vocab,
    algorithm: Algorithm,
    special: SpecialIds,
    /// Ids that end generation, in order.
    ends: Box<[TokenId]>,
    add_bos: bool,
    add_eos: bool,
    add_sep: bool,
    /// What to look for in a text whose special tokens are tokens, and in one where they are text.
    lengths_all: SpecialLengths,
    lengths_user_defined: SpecialLengths,
    max_token_bytes: usize,
}

#[derive(Debug)]
enum Algorithm {
    None,
    Bpe(Bpe),
    Spm(Spm),
    WordPiece(WordPiece),
}

/// The longest text that is encoded at once: offsets are 32 bits, and a space may become three bytes.
pub const MAX_TEXT_BYTES: usize = 1 << 30;

impl Tokenizer {
    /// The ids of `text`. `add_special`: with BOS, EOS or separators as the vocabulary asks. `parse_special`: the texts of
    /// control tokens become their ids; else they are text like any other.
    ///
    /// While it runs it needs up to 50 bytes of memory a byte of text.
    ///
    /// # Errors
    /// If the vocabulary has no texts, or the text is longer than [`MAX_TEXT_BYTES`].
    pub fn encode(
        &self,
        text: &str,
        add_special: bool,
        parse_special: bool,
    ) -> Result<Vec<TokenId>> {
        self.check_encodable(text)?;
        let mut ids = Vec::new();
        let is_encoder = matches!(self.algorithm, Algorithm::WordPiece(_));
        if add_special && (self.add_bos || is_encoder) {
            ids.extend(self.special.bos);
        }
        let lengths = if parse_special { &self.lengths_all } else { &self.lengths_user_defined };
        let mut after_special = true;
        partition(&self.vocab, lengths, text, |fragment| match fragment {
            Fragment::Token(id) => {
                ids.push(id);
                after_special = true;
            }
            Fragment::Text(text) => {
                self.encode_fragment(text, after_special, &mut ids);
                after_special = false;
            }
        });
        if add_special && is_encoder {
            ids.extend(self.special.sep);
        } else if add_special && self.add_eos {
            ids.extend(self.special.eos);
        }
        Ok(ids)
    }

    /// The bytes of `ids` in a row. `show_special`: control tokens come out as their texts; else they are left out. The
    /// space that [`Tokenizer::encode`] puts before a text is taken away again.
    #[must_use]
    pub fn decode(&self, ids: &[TokenId], show_special: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        let shown = |id: &&TokenId| show_special || !self.is_hidden(**id);
        for id in ids.iter().filter(shown) {
            self.append_token(*id, show_special, &mut bytes);
        }
        let first = ids.iter().find(shown).map(|id| self.token_bytes(*id)).unwrap_or_default();
        if self.adds_space_prefix() && first.starts_with(b" ") {
            bytes.remove(0);
        }
        bytes
    }

    /// The bytes of one token, control tokens as their texts; a part of a character, it may be. Empty for an unused token
    /// and for an id outside the vocabulary.
    #[must_use]
    pub fn token_bytes(&self, id: TokenId) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.append_token(id, true, &mut bytes);
        bytes
    }

    /// Whether `id` ends generation.
    #[must_use]
    pub fn is_eog(&self, id: TokenId) -> bool {
        self.ends.binary_search(&id).is_ok()
    }

    /// The ids that end generation, in order.
    #[must_use]
    pub fn eog_ids(&self) -> &[TokenId] {
        &self.ends
    }

    /// Whether `id` is a control token: a marker, not text.
    #[must_use]
    pub fn is_control(&self, id: TokenId) -> bool {
        self.vocab.attrs(id).any(Attrs::CONTROL)
    }

    /// Whether `id` is left out of what people read: control tokens and the unknown one.
    #[must_use]
    pub fn is_hidden(&self, id: TokenId) -> bool {
        self.vocab.attrs(id).any(special::HIDDEN)
    }

    /// The ids with a role.
    #[must_use]
    pub fn special_ids(&self) -> SpecialIds {
        self.special
    }

    /// Whether a text begins with BOS.
    #[must_use]
    pub fn add_bos(&self) -> bool {
        self.add_bos
    }

    /// Whether a text ends with EOS.
    #[must_use]
    pub fn add_eos(&self) -> bool {
        self.add_eos
    }

    /// Whether the texts of an encoder are separated.
    #[must_use]
    pub fn add_sep(&self) -> bool {
        self.add_sep
    }

    /// How many tokens; ids are below.
    #[must_use]
    pub fn n_vocab(&self) -> usize {
        self.vocab.len()
    }

    /// Whether there are texts to the ids.
    #[must_use]
    pub fn has_texts(&self) -> bool {
        !matches!(self.algorithm, Algorithm::None)
    }

    /// The most bytes that one token stands for. A character that a byte-level vocabulary has no byte for comes out as a mark, which
    /// is longer than what the file spells.
    #[must_use]
    pub fn max_token_bytes(&self) -> usize {
        self.max_token_bytes
    }

    /// Tokens that a text of `n_bytes` becomes at the least, if no special token is looked for in it: what is known without encoding
    /// it. 0 where texts are cleaned first.
    #[must_use]
    pub fn least_tokens(&self, n_bytes: usize) -> usize {
        match &self.algorithm {
            Algorithm::None | Algorithm::WordPiece(_) => 0,
            Algorithm::Bpe(_) | Algorithm::Spm(_) => {
                n_bytes.checked_div(self.max_token_bytes).unwrap_or(0)
            }
        }
    }

    /// All bytes that it holds in memory, itself included.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let algorithm = match &self.algorithm {
            Algorithm::None => 0,
            Algorithm::Bpe(bpe) => bpe.memory_bytes(),
            Algorithm::Spm(spm) => spm.memory_bytes(),
            Algorithm::WordPiece(word_piece) => word_piece.memory_bytes(),
        };
        size_of::<Self>()
            + self.vocab.memory_bytes()
            + algorithm
            + size_of_val(&*self.ends)
            + self.lengths_all.memory_bytes()
            + self.lengths_user_defined.memory_bytes()
    }

    /// Refuses texts that cannot be encoded at all.
    fn check_encodable(&self, text: &str) -> Result<()> {
        if matches!(self.algorithm, Algorithm::None) {
            let message = "this model has no vocabulary: it takes token ids, not text";
            return Err(Error::new(ErrorKind::Misuse, message));
        }
        if text.len() > MAX_TEXT_BYTES {
            let message = format!("a text of {} bytes is longer than {MAX_TEXT_BYTES}", text.len());
            return Err(Error::new(ErrorKind::InvalidOption, message));
        }
        Ok(())
    }

    fn adds_space_prefix(&self) -> bool {
        matches!(&self.algorithm, Algorithm::Spm(spm) if spm.add_space_prefix)
    }

    fn encode_fragment(&self, text: &str, after_special: bool, ids: &mut Vec<TokenId>) {
        let unknown = self.special.unk;
        match &self.algorithm {
            Algorithm::None => {}
            Algorithm::Bpe(bpe) => bpe.encode(&self.vocab, text, ids),
            Algorithm::Spm(spm) => spm.encode(&self.vocab, text, after_special, unknown, ids),
            Algorithm::WordPiece(word_piece) => word_piece.encode(&self.vocab, text, unknown, ids),
        }
    }

    /// Appends the bytes of one token; nothing for a control token unless `show_special`.
    fn append_token(&self, id: TokenId, show_special: bool, out: &mut Vec<u8>) {
        let (text, attrs) = (self.vocab.text(id), self.vocab.attrs(id));
        if self.is_hidden(id) && !show_special {
            return;
        }
        if attrs.any(special::SPECIAL) {
            out.extend_from_slice(text);
        } else if attrs.any(Attrs::NORMAL) {
            match &self.algorithm {
                Algorithm::Bpe(bpe) if bpe.spelling() == Spelling::Bytes => {
                    byte_level::unspell(text, out);
                }
                Algorithm::Bpe(bpe) if bpe.spelling() == Spelling::Plain => {
                    out.extend_from_slice(text);
                }
                _ => spm::append_with_spaces(text, out),
            }
        } else if attrs.any(Attrs::BYTE) {
            out.extend(hex_byte(text));
        }
    }
}

/// The byte that a text like `<0x0A>` stands for.
fn hex_byte(text: &[u8]) -> Option<u8> {
    let digits = core::str::from_utf8(text.get(3..5)?).ok()?;
    u8::from_str_radix(digits, 16).ok()
}

/// An error that names a metadata key and what is wrong under it.
fn invalid(key: &str, what: impl core::fmt::Display) -> Error {
    Error::new(ErrorKind::InvalidModel, format!("metadata key '{key}' {what}")).with("key", key)
}
