//! Byte-pair encoding: a text is cut by the vocabulary's rule, and in each piece the tokens of bytes (of characters,
//! where tokens spell text as it is) merge by rank.

use super::byte_level;
use super::merge::{Merger, NONE, Symbol};
use super::merges::Merges;
use super::pre::{Rule, Spelling, SplitRoom};
use super::spm::underline_spaces;
use super::vocab::Vocab;
use crate::TokenId;

/// What BPE needs beside the vocabulary.
#[derive(Debug)]
pub(super) struct Bpe {
    merges: Merges,
    rule: Rule,
    words: Words,
    /// The token of each byte, or [`NONE`]: the start of merging where tokens spell bytes, the last resort elsewhere.
    bytes: Box<[TokenId; 256]>,
}

/// What is merged at once, before the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Words {
    /// The text as it is.
    All,
    /// What white space separates; that itself is dropped.
    Apart { lowercase: bool },
}

/// Room for one text, used again for the next.
#[derive(Debug, Default)]
struct Room {
    split: SplitRoom,
    merger: Merger,
    spelled: Vec<u8>,
}

impl Bpe {
    pub(super) fn new(vocab: &Vocab, merges: Merges, rule: Rule, words: Words) -> Self {
        let token_of = |byte: u8| match rule.spelling {
            Spelling::Bytes => {
                let mut utf8 = [0; 2];
                vocab.find(byte_level::char_of(byte).encode_utf8(&mut utf8).as_bytes())
            }
            Spelling::Plain | Spelling::Underlined => vocab.find_hex_byte(byte),
        };
        let mut bytes = Box::new([NONE; 256]);
        for (byte, id) in (0..=u8::MAX).zip(bytes.iter_mut()) {
            *id = token_of(byte).unwrap_or(NONE);
        }
        Self { merges, rule, words, bytes }
    }

    pub(super) fn spelling(&self) -> Spelling {
        self.rule.spelling
    }

    /// Appends the tokens of `text`.
    pub(super) fn encode(&self, vocab: &Vocab, text: &str, out: &mut Vec<TokenId>) {
        let mut room = Room::default();
        let Words::Apart { lowercase } = self.words else {
            self.encode_words(vocab, text, &mut room, out);
            return;
        };
        for word in text.split_whitespace() {
            if lowercase {
                let small: String = word.chars().filter_map(|c| c.to_lowercase().next()).collect();
                self.encode_words(vocab, &small, &mut room, out);
            } else {
                self.encode_words(vocab, word, &mut room, out);
            }
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.merges.memory_bytes() + size_of_val(&*self.bytes)
    }

    fn encode_words(&self, vocab: &Vocab, text: &str, room: &mut Room, out: &mut Vec<TokenId>) {
        let mut underlined = String::new();
        let text = if self.rule.spelling == Spelling::Underlined {
            underline_spaces(text, &mut underlined);
            &underlined
        } else {
            text
        };
        let Room { split, merger, spelled } = room;
        self.rule.split(text, split, |piece| self.encode_piece(vocab, piece, merger, spelled, out));
    }

    fn encode_piece(
        &self,
        vocab: &Vocab,
        piece: &str,
        merger: &mut Merger,
        spelled: &mut Vec<u8>,
        out: &mut Vec<TokenId>,
    ) {
        if let Some(id) = self.whole_piece(vocab, piece, spelled) {
            out.push(id);
            return;
        }
        let offset = |at: usize| u32::try_from(at).unwrap_or(NONE);
        if self.rule.spelling == Spelling::Bytes {
            merger.begin(piece.len());
            for (at, byte) in piece.bytes().enumerate() {
                merger.push(offset(at), self.bytes[byte as usize]);
            }
        } else {
            merger.begin(piece.chars().count());
            let mut utf8 = [0; 4];
            for (at, c) in piece.char_indices() {
                let id = vocab.find(c.encode_utf8(&mut utf8).as_bytes());
                merger.push(offset(at), id.unwrap_or(NONE));
            }
        }
        let merged = |left: &Symbol, right: &Symbol, _| self.merges.find(left.id, right.id);
        merger.run(offset(piece.len()), merged, |symbol, end| {
            if symbol.id != NONE {
                out.push(symbol.id);
            } else if self.rule.spelling != Spelling::Bytes {
                let bytes = &piece.as_bytes()[symbol.start as usize..end as usize];
                out.extend(
                    bytes.iter().map(|byte| self.bytes[*byte as usize]).filter(|id| *id != NONE),
                );
            }
        });
    }

    /// The token that `piece` is, where the rule asks for that before merging.
    fn whole_piece(&self, vocab: &Vocab, piece: &str, spelled: &mut Vec<u8>) -> Option<TokenId> {
        match self.rule.spelling {
            Spelling::Bytes if self.rule.whole_pieces && piece.len() <= vocab.max_token_bytes() => {
                spelled.clear();
                byte_level::spell(piece.as_bytes(), spelled);
                vocab.find(spelled)
            }
            // Runs of line feeds have no merges in Gemma's vocabularies.
            Spelling::Underlined if self.rule.always_bos && piece.starts_with('\n') => {
                vocab.find(piece.as_bytes())
            }
            _ => None,
        }
    }
}
