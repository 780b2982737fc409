//! DRY's breakers: from texts to the tokens that hold them.

use crate::TokenId;
use crate::error::{Error, ErrorKind, Result};

/// What no repeated sequence goes across.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DryBreakers {
    /// Tokens that are breakers by themselves, in order of id.
    pub tokens: Vec<TokenId>,
    /// Breakers of several tokens.
    pub split: Vec<SplitBreaker>,
}

/// A breaker that begins at the end of one token and goes on in others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SplitBreaker {
    /// Any of these comes first; in order of id.
    pub heads: Vec<TokenId>,
    /// Then all of these.
    pub tail: Vec<TokenId>,
}

/// What the texts are looked for in.
#[allow(missing_debug_implementations, reason = "it holds closures and lives for one call")]
pub struct Pieces<'a> {
    /// Tokens of the vocabulary.
    pub n_vocab: u32,
    /// The bytes of a token.
    pub bytes: &'a dyn Fn(TokenId) -> Vec<u8>,
    /// The tokens of a text.
    pub encode: &'a dyn Fn(&str) -> Result<Vec<TokenId>>,
}

impl DryBreakers {
    /// The breakers for `texts`. A token that contains a text is a breaker by itself; one that ends with a beginning of it is
    /// one when the tokens of the rest follow.
    ///
    /// # Errors
    /// `invalid_option` for a text that is empty or longer than 40 characters; what encoding says.
    pub fn of_texts(texts: &[String], pieces: &Pieces<'_>) -> Result<Self> {
        if texts.iter().any(String::is_empty) {
            let message = "`dryBreakers` holds an empty text; leave it out";
            return Err(refused(message.to_owned()));
        }
        let lengths = texts.iter().map(|text| text.chars().count());
        if let Some(n) = lengths.max().filter(|n| *n > MAX_CHARS) {
            let message =
                format!("`dryBreakers` holds a text of {n} characters; at most {MAX_CHARS}");
            return Err(refused(message));
        }
        let mut beginnings: Vec<(&str, SplitBreaker)> = Vec::new();
        for text in texts {
            for (at, _) in text.char_indices().skip(1) {
                let (begin, rest) = text.split_at(at);
                let tail = (pieces.encode)(rest)?;
                beginnings.push((begin, SplitBreaker { heads: Vec::new(), tail }));
            }
        }
        let mut tokens = Vec::new();
        for token in 0..pieces.n_vocab {
            let bytes = (pieces.bytes)(token);
            if texts.iter().any(|text| contains(&bytes, text.as_bytes())) {
                tokens.push(token);
                continue;
            }
            for (_, breaker) in beginnings.iter_mut().filter(|b| bytes.ends_with(b.0.as_bytes())) {
                breaker.heads.push(token);
            }
        }
        let split = beginnings.into_iter().map(|b| b.1).filter(|b| !b.heads.is_empty());
        Ok(Self { tokens, split: split.collect() })
    }

    /// All ids that it names.
    pub(crate) fn ids(&self) -> impl Iterator<Item = TokenId> {
        let split = self.split.iter().flat_map(|b| b.heads.iter().chain(&b.tail));
        self.tokens.iter().chain(split).copied()
    }
}

/// Each beginning of a text is looked for in every token, and each rest is encoded. llama.cpp cuts longer texts off here.
const MAX_CHARS: usize = 40;

fn refused(message: String) -> Error {
    Error::new(ErrorKind::InvalidOption, message).with("key", "dryBreakers")
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}
