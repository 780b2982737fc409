//! Ids → text, one by one: a token may end in the middle of a character, so what is incomplete waits for the next.

use super::Tokenizer;
use crate::TokenId;

/// Turns ids into whole characters as they come. After [`Detokenizer::new`] it allocates nothing.
#[derive(Debug)]
pub struct Detokenizer {
    show_special: bool,
    strip_space: bool,
    /// Bytes that are no whole character yet, before and while a token is added.
    pending: Vec<u8>,
    text: String,
}

impl Detokenizer {
    /// For the ids of a whole text. `show_special`: whether control tokens come out as their texts.
    #[must_use]
    pub fn new(tokenizer: &Tokenizer, show_special: bool) -> Self {
        Self {
            show_special,
            strip_space: tokenizer.adds_space_prefix(),
            pending: Vec::with_capacity(max_pending_bytes(tokenizer)),
            text: String::with_capacity(Self::max_text_bytes(tokenizer)),
        }
    }

    /// The most bytes of text that come at once.
    #[must_use]
    pub fn max_text_bytes(tokenizer: &Tokenizer) -> usize {
        max_pending_bytes(tokenizer).saturating_mul(char::REPLACEMENT_CHARACTER.len_utf8())
    }

    /// The bytes that a detokenizer takes beside itself.
    #[must_use]
    pub fn memory_bytes(tokenizer: &Tokenizer) -> usize {
        max_pending_bytes(tokenizer).saturating_add(Self::max_text_bytes(tokenizer))
    }

    /// For ids that continue a text: a space at the beginning is part of it.
    #[must_use]
    pub fn continuing(tokenizer: &Tokenizer, show_special: bool) -> Self {
        Self { strip_space: false, ..Self::new(tokenizer, show_special) }
    }

    /// Adds a token: the characters that are complete with it. Bytes that cannot become one come out as U+FFFD.
    pub fn push(&mut self, tokenizer: &Tokenizer, id: TokenId) -> &str {
        let before = self.pending.len();
        tokenizer.append_token(id, self.show_special, &mut self.pending);
        if self.strip_space && (self.show_special || !tokenizer.is_hidden(id)) {
            self.strip_space = false;
            if self.pending.get(before) == Some(&b' ') {
                self.pending.remove(before);
            }
        }
        self.text.clear();
        let mut incomplete = 0;
        for chunk in self.pending.utf8_chunks() {
            self.text.push_str(chunk.valid());
            incomplete = chunk.invalid().len();
            if incomplete > 0 {
                self.text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        if incomplete > 0 && can_continue(&self.pending[self.pending.len() - incomplete..]) {
            self.text.pop();
        } else {
            incomplete = 0;
        }
        self.pending.drain(..self.pending.len() - incomplete);
        &self.text
    }

    /// Ends the text: U+FFFD if a character is left incomplete, else nothing. A next text may begin.
    pub fn flush(&mut self) -> &str {
        self.text.clear();
        if !self.pending.is_empty() {
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
        self.pending.clear();
        &self.text
    }
}

/// A token and what waits before it.
fn max_pending_bytes(tokenizer: &Tokenizer) -> usize {
    tokenizer.max_token_bytes().saturating_add(MAX_PENDING)
}

/// Whether more bytes could make a character of these, which are none and came last.
fn can_continue(bytes: &[u8]) -> bool {
    core::str::from_utf8(bytes).is_err_and(|e| e.error_len().is_none())
}

/// The most bytes that are not a whole character.
const MAX_PENDING: usize = 3;
