//! The merges of a BPE vocabulary: which two tokens become which, in order of rank. Twelve bytes a merge and an index
//! of numbers. It knows tokens by id only.

use super::hash_index::{HashIndex, NotPut, hash_pair};
use super::invalid;
use super::merge::Merged;
use super::vocab::Vocab;
use crate::TokenId;
use crate::error::Result;
use crate::gguf::Strings;

/// All merges; the rank of one is its place.
#[derive(Debug, Default)]
pub(super) struct Merges {
    merges: Box<[Merge]>,
    index: HashIndex,
}

#[derive(Debug, Clone, Copy)]
struct Merge {
    left: TokenId,
    right: TokenId,
    both: TokenId,
}

impl Merges {
    /// Reads lines of two texts with a space between them.
    ///
    /// # Errors
    /// If a line does not name two tokens that together are a token, or there are too many.
    pub(super) fn new(lines: Strings<'_>, vocab: &Vocab) -> Result<Self> {
        if lines.len() > HashIndex::MAX_ENTRIES {
            return Err(invalid(
                MERGES,
                format!("has {} entries, more than {}", lines.len(), HashIndex::MAX_ENTRIES),
            ));
        }
        let mut merges: Vec<Merge> = Vec::with_capacity(lines.len());
        let mut index = HashIndex::with_room_for(lines.len());
        let mut both = Vec::new();
        for (rank, line) in lines.iter().enumerate() {
            let merge = parse(line, vocab, &mut both).ok_or_else(|| {
                let line = String::from_utf8_lossy(line);
                invalid(
                    MERGES,
                    format!(
                        "entry {rank} '{line}' does not name two tokens that together are a token"
                    ),
                )
            })?;
            merges.push(merge);
            let rank = u32::try_from(rank).unwrap_or(u32::MAX);
            let put = index.insert(hash_pair(merge.left, merge.right), rank, |other| {
                let other = merges[other as usize];
                (other.left, other.right) == (merge.left, merge.right)
            });
            if put == Err(NotPut::Crowded) {
                return Err(invalid(MERGES, "is made of merges with equal hashes"));
            }
        }
        Ok(Self { merges: merges.into(), index })
    }

    /// What `left` and `right` become, the first of equal merges.
    pub(super) fn find(&self, left: TokenId, right: TokenId) -> Option<Merged> {
        let rank = self.index.find(hash_pair(left, right), |rank| {
            let merge = self.merges[rank as usize];
            (merge.left, merge.right) == (left, right)
        })?;
        Some(Merged { urgency: rank, id: self.merges[rank as usize].both })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.merges) + self.index.memory_bytes()
    }
}

/// The separator is the first space that is not the first byte: a token may begin with one.
fn parse(line: &[u8], vocab: &Vocab, both: &mut Vec<u8>) -> Option<Merge> {
    let space = 1 + line.get(1..)?.iter().position(|byte| *byte == b' ')?;
    let (left, right) = (&line[..space], &line[space + 1..]);
    both.clear();
    both.extend_from_slice(left);
    both.extend_from_slice(right);
    Some(Merge { left: vocab.find(left)?, right: vocab.find(right)?, both: vocab.find(both)? })
}

pub(super) const MERGES: &str = "tokenizer.ggml.merges";

#[cfg(test)]
mod tests {
    use super::*;

    const TOKENS: [&str; 6] = ["a", "b", " ", "ab", " a", "aba"];

    fn merges(lines: &[&str]) -> Result<Merges> {
        let texts = TOKENS.concat().into_bytes();
        let ends = TOKENS.iter().scan(0, |end, text| {
            *end += u32::try_from(text.len()).unwrap();
            Some(*end)
        });
        let vocab = Vocab::new(texts, ends.collect(), None).unwrap();
        let (bytes, mut ends) = (lines.concat(), Vec::new());
        for line in lines {
            ends.push(ends.last().unwrap_or(&0) + u32::try_from(line.len()).unwrap());
        }
        Merges::new(Strings::new(bytes.as_bytes(), &ends), &vocab)
    }

    #[test]
    fn ranks_follow_the_order() {
        let merges = merges(&["a b", "  a", "ab a", "a b"]).unwrap();
        assert_eq!(merges.find(0, 1), Some(Merged { urgency: 0, id: 3 }));
        assert_eq!(merges.find(2, 0), Some(Merged { urgency: 1, id: 4 }));
        assert_eq!(merges.find(3, 0), Some(Merged { urgency: 2, id: 5 }));
        assert_eq!(merges.find(1, 0), None);
        assert_eq!(merges.find(u32::MAX, 0), None);
    }

    #[test]
    fn lines_that_name_no_token_are_refused() {
        for line in ["", "a", "ab", "a x", "x a", "b a", "a b a"] {
            let e = merges(&["a b", line]).unwrap_err();
            assert_eq!(e.code(), "invalid_model", "{line}");
            assert!(
                e.message().starts_with("metadata key 'tokenizer.ggml.merges' entry 1 "),
                "{e}"
            );
        }
    }
}
