//! The tokens of a vocabulary: one arena of bytes, where each ends, a byte of attributes each, and an index from bytes
//! to ids. It holds texts as the file spells them and knows no algorithm that uses them.

use super::hash_index::{HashIndex, NotPut, hash_bytes};
use super::invalid;
use crate::TokenId;
use crate::error::Result;

/// All tokens. 11 bytes a token beside the texts themselves.
#[derive(Debug, Default)]
pub(super) struct Vocab {
    n_vocab: usize,
    bytes: Box<[u8]>,
    ends: Box<[u32]>,
    attrs: Box<[Attrs]>,
    index: HashIndex,
    max_token_bytes: usize,
}

/// What a token is, a set of flags. None is set for what GGUF calls undefined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Attrs(u8);

impl Attrs {
    pub(super) const NORMAL: Self = Self(1);
    pub(super) const UNKNOWN: Self = Self(2);
    pub(super) const CONTROL: Self = Self(4);
    pub(super) const USER_DEFINED: Self = Self(8);
    const UNUSED: Self = Self(16);
    pub(super) const BYTE: Self = Self(32);
    /// Takes the white space before it along when it is found in a text.
    pub(super) const STRIPS_LEFT: Self = Self(64);
    /// Takes the white space after it along when it is found in a text.
    pub(super) const STRIPS_RIGHT: Self = Self(128);

    /// The flag of a GGUF token type.
    const fn of_type(ty: i32) -> Self {
        match ty {
            1 => Self::NORMAL,
            2 => Self::UNKNOWN,
            3 => Self::CONTROL,
            4 => Self::USER_DEFINED,
            5 => Self::UNUSED,
            6 => Self::BYTE,
            _ => Self(0),
        }
    }

    /// The union of both.
    pub(super) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The flags of `self` that `other` lacks.
    pub(super) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether they share a flag.
    pub(super) const fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl Vocab {
    /// Tokens from an arena (token `i` is `bytes[ends[i-1]..ends[i]]`) and their GGUF types; all normal without types.
    ///
    /// # Errors
    /// If there are too many tokens, fewer types than tokens, or two tokens of one text.
    pub(super) fn new(bytes: Vec<u8>, ends: Vec<u32>, types: Option<&[i32]>) -> Result<Self> {
        let n_vocab = ends.len();
        if n_vocab > HashIndex::MAX_ENTRIES {
            return Err(invalid(
                TOKENS,
                format!("has {n_vocab} tokens, more than {}", HashIndex::MAX_ENTRIES),
            ));
        }
        if types.is_some_and(|types| types.len() < n_vocab) {
            let n_types = types.map_or(0, <[i32]>::len);
            return Err(invalid(TOKEN_TYPE, format!("has {n_types} entries for {n_vocab} tokens")));
        }
        let (bytes, ends) = name_empty_tokens(bytes, ends);
        let attrs = match types {
            Some(types) => types[..n_vocab].iter().map(|ty| Attrs::of_type(*ty)).collect(),
            None => vec![Attrs::NORMAL; n_vocab].into(),
        };
        let (bytes, ends) = (bytes.into(), ends.into());
        let mut vocab = Self { n_vocab, bytes, ends, attrs, ..Self::default() };
        vocab.build_index()?;
        Ok(vocab)
    }

    /// A vocabulary of ids without texts. It takes no memory: `n_vocab` is a number that a file may make up.
    pub(super) fn nameless(n_vocab: usize) -> Self {
        Self { n_vocab, ..Self::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.n_vocab
    }

    /// Bytes of the longest token.
    pub(super) fn max_token_bytes(&self) -> usize {
        self.max_token_bytes
    }

    /// The token's text as the file spells it; empty for an id past the end.
    pub(super) fn text(&self, id: TokenId) -> &[u8] {
        let i = id as usize;
        let Some(end) = self.ends.get(i) else { return &[] };
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        self.bytes.get(start as usize..*end as usize).unwrap_or(&[])
    }

    pub(super) fn attrs(&self, id: TokenId) -> Attrs {
        self.attrs.get(id as usize).copied().unwrap_or_default()
    }

    pub(super) fn set_attrs(&mut self, id: TokenId, attrs: Attrs) {
        if let Some(slot) = self.attrs.get_mut(id as usize) {
            *slot = attrs;
        }
    }

    /// The id of the token with this text.
    pub(super) fn find(&self, text: &[u8]) -> Option<TokenId> {
        if text.len() > self.max_token_bytes {
            return None;
        }
        self.index.find(hash_bytes(text), |id| self.text(id) == text)
    }

    /// The id of the token that stands for `byte` where bytes are spelled `<0x0A>`.
    pub(super) fn find_hex_byte(&self, byte: u8) -> Option<TokenId> {
        let digit = |d: u8| b"0123456789ABCDEF"[d as usize];
        self.find(&[b'<', b'0', b'x', digit(byte >> 4), digit(byte & 15), b'>'])
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = TokenId> + use<> {
        (0..self.n_vocab).map(id_of)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.bytes)
            + size_of_val(&*self.ends)
            + size_of_val(&*self.attrs)
            + self.index.memory_bytes()
    }

    fn build_index(&mut self) -> Result<()> {
        let mut index = HashIndex::with_room_for(self.len());
        for id in self.ids() {
            let text = self.text(id);
            let put = index.insert(hash_bytes(text), id, |other| self.text(other) == text);
            put.map_err(|why| match why {
                NotPut::Same(other) => {
                    let text = String::from_utf8_lossy(text);
                    invalid(TOKENS, format!("has '{text}' twice, as {other} and as {id}"))
                }
                NotPut::Crowded => invalid(TOKENS, "is made of tokens with equal hashes"),
            })?;
            self.max_token_bytes = self.max_token_bytes.max(text.len());
        }
        self.index = index;
        Ok(())
    }
}

/// Empty texts cannot be told apart: they become `[EMPTY_5]` and so on, as in llama.cpp.
fn name_empty_tokens(bytes: Vec<u8>, ends: Vec<u32>) -> (Vec<u8>, Vec<u32>) {
    let starts = || core::iter::once(0).chain(ends.iter().copied());
    if starts().zip(&ends).all(|(start, end)| start < *end) {
        return (bytes, ends);
    }
    let (mut named, mut named_ends) =
        (Vec::with_capacity(bytes.len()), Vec::with_capacity(ends.len()));
    for (i, (start, end)) in starts().zip(&ends).enumerate() {
        if start < *end {
            named.extend_from_slice(&bytes[start as usize..*end as usize]);
        } else {
            named.extend_from_slice(format!("[EMPTY_{i}]").as_bytes());
        }
        named_ends.push(u32::try_from(named.len()).unwrap_or(u32::MAX));
    }
    (named, named_ends)
}

/// A position in the vocabulary as an id: [`Vocab::new`] bounds them far below 2^32.
fn id_of(i: usize) -> TokenId {
    TokenId::try_from(i).unwrap_or(TokenId::MAX)
}

pub(super) const TOKENS: &str = "tokenizer.ggml.tokens";
pub(super) const TOKEN_TYPE: &str = "tokenizer.ggml.token_type";

#[cfg(test)]
mod tests {
    use super::super::hash_index::crowded;
    use super::*;

    fn vocab(texts: &[&str]) -> Result<Vocab> {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for text in texts {
            bytes.extend_from_slice(text.as_bytes());
            ends.push(u32::try_from(bytes.len()).unwrap());
        }
        Vocab::new(bytes, ends, None)
    }

    #[test]
    fn texts_and_ids_find_each_other() {
        let vocab = vocab(&["a", "bc", "", "<0x0A>", "é"]).unwrap();
        for (id, text) in ["a", "bc", "[EMPTY_2]", "<0x0A>", "é"].iter().enumerate() {
            assert_eq!(vocab.find(text.as_bytes()), Some(id_of(id)), "{text}");
            assert_eq!(vocab.text(id_of(id)), text.as_bytes(), "{text}");
        }
        assert_eq!(
            (vocab.find(b""), vocab.find(b"b"), vocab.find(b"longer than any")),
            (None, None, None)
        );
        assert_eq!((vocab.find_hex_byte(10), vocab.find_hex_byte(11)), (Some(3), None));
        assert_eq!((vocab.text(5), vocab.max_token_bytes()), (&b""[..], 9));
    }

    #[test]
    fn texts_made_to_share_a_hash_are_refused_early() {
        let texts = crowded::texts(200_000);
        let ends = (1..=200_000).map(|n| 8 * n).collect();
        let e = Vocab::new(texts.concat(), ends, None).unwrap_err();
        assert_eq!(e.code(), "invalid_model");
        assert_eq!(
            e.message(),
            "metadata key 'tokenizer.ggml.tokens' is made of tokens with equal hashes"
        );
    }

    #[test]
    fn one_text_twice_is_refused() {
        let e = vocab(&["a", "b", "a"]).unwrap_err();
        assert_eq!(e.code(), "invalid_model");
        assert_eq!(
            e.message(),
            "metadata key 'tokenizer.ggml.tokens' has 'a' twice, as 0 and as 2"
        );
    }
}
