//! Finding special tokens in a text, the longest first, as llama.cpp partitions: each token in order of falling length
//! takes all its occurrences, from left to right, in what the longer ones have left.
//!
//! Every position keeps only its longest candidate in a heap and falls back to a shorter one when that is taken, so the
//! cost is n log n whatever the text repeats.

use core::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::vocab::{Attrs, Vocab};
use crate::TokenId;

/// A piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fragment<'a> {
    Text(&'a str),
    Token(TokenId),
}

/// How long the special tokens are that begin with a byte: what to look for at a position.
#[derive(Debug, Default)]
pub(super) struct SpecialLengths {
    /// `lengths[first[b]..first[b + 1]]` belong to byte `b`, the longest first.
    first: Box<[u32]>,
    lengths: Box<[u32]>,
    wanted: Attrs,
    unwanted: Attrs,
}

impl SpecialLengths {
    /// Those of the tokens of `vocab` that have a flag of `wanted` and none of `unwanted`.
    pub(super) fn new(vocab: &Vocab, wanted: Attrs, unwanted: Attrs) -> Self {
        let mut lengths = Self { wanted, unwanted, ..Self::default() };
        let mut found: Vec<(u8, Reverse<u32>)> = Vec::new();
        for id in vocab.ids().filter(|id| lengths.wants(vocab.attrs(*id))) {
            if let [first, ..] = vocab.text(id) {
                found.push((
                    *first,
                    Reverse(u32::try_from(vocab.text(id).len()).unwrap_or(u32::MAX)),
                ));
            }
        }
        found.sort_unstable();
        found.dedup();
        let before = |byte: usize| found.partition_point(|(first, _)| usize::from(*first) < byte);
        lengths.first =
            (0..=256).map(|byte| u32::try_from(before(byte)).unwrap_or(u32::MAX)).collect();
        lengths.lengths = found.iter().map(|(_, length)| length.0).collect();
        lengths
    }

    fn wants(&self, attrs: Attrs) -> bool {
        attrs.any(self.wanted) && !attrs.any(self.unwanted)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.first) + size_of_val(&*self.lengths)
    }

    /// The longest special token below `limit` bytes that begins at `at`.
    fn longest_at(&self, vocab: &Vocab, text: &str, at: usize, limit: usize) -> Option<Candidate> {
        let byte = usize::from(text.as_bytes()[at]);
        let lengths = &self.lengths[self.first[byte] as usize..self.first[byte + 1] as usize];
        lengths.iter().filter(|length| (**length as usize) < limit).find_map(|length| {
            let found = text.get(at..at + *length as usize)?;
            let id = vocab.find(found.as_bytes()).filter(|id| self.wants(vocab.attrs(*id)))?;
            Some(Candidate { length: *length, id: Reverse(id), at: Reverse(at) })
        })
    }
}

/// Ordered by what is taken first: the longest; of those the lowest id; of one token's occurrences the leftmost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    length: u32,
    id: Reverse<TokenId>,
    at: Reverse<usize>,
}

/// An occurrence under its start: where it ends and what it is, the white space that it takes along included.
type Taken = BTreeMap<usize, (usize, TokenId)>;

/// Cuts `text` at the special tokens that `lengths` was made for. Pieces of text are not empty.
pub(super) fn partition<'a>(
    vocab: &Vocab,
    lengths: &SpecialLengths,
    text: &'a str,
    mut emit: impl FnMut(Fragment<'a>),
) {
    let mut at = 0;
    for (start, (end, id)) in occurrences(vocab, lengths, text) {
        if at < start {
            emit(Fragment::Text(&text[at..start]));
        }
        emit(Fragment::Token(id));
        at = end;
    }
    if at < text.len() {
        emit(Fragment::Text(&text[at..]));
    }
}

fn occurrences(vocab: &Vocab, lengths: &SpecialLengths, text: &str) -> Taken {
    let mut taken = Taken::new();
    if lengths.lengths.is_empty() {
        return taken;
    }
    let starts = text.char_indices().map(|(at, _)| at);
    let mut candidates: BinaryHeap<Candidate> =
        starts.filter_map(|at| lengths.longest_at(vocab, text, at, usize::MAX)).collect();
    while let Some(candidate) = candidates.pop() {
        let (at, length) = (candidate.at.0, candidate.length as usize);
        let left = taken.range(..=at).next_back().map_or(0, |(_, (end, _))| *end);
        let right = taken.range(at..).next().map_or(text.len(), |(start, _)| *start);
        if at < left {
            continue;
        }
        if right < at + length {
            candidates.extend(lengths.longest_at(vocab, text, at, length));
            continue;
        }
        let id = candidate.id.0;
        let (mut start, mut end) = (at, at + length);
        if vocab.attrs(id).any(Attrs::STRIPS_LEFT) {
            start = left + text[left..start].trim_end_matches(is_space).len();
        }
        if vocab.attrs(id).any(Attrs::STRIPS_RIGHT) {
            end = right - text[end..right].trim_start_matches(is_space).len();
        }
        taken.insert(start, (end, id));
    }
    taken
}

/// C's `isspace`.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\x0b' | '\x0c' | '\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKENS: [(&str, Attrs); 8] = [
        ("a", Attrs::NORMAL),
        ("<x>", Attrs::CONTROL),
        ("<x><", Attrs::CONTROL),
        ("><xy", Attrs::USER_DEFINED),
        ("  ", Attrs::USER_DEFINED),
        ("    ", Attrs::USER_DEFINED),
        ("<l>", Attrs::CONTROL.with(Attrs::STRIPS_LEFT)),
        ("<r>", Attrs::CONTROL.with(Attrs::STRIPS_RIGHT)),
    ];
    const CONTROL_TOO: Attrs = Attrs::CONTROL.with(Attrs::USER_DEFINED);

    fn cut(text: &str, wanted: Attrs) -> String {
        let texts = TOKENS.map(|(text, _)| text).concat().into_bytes();
        let ends = TOKENS.iter().scan(0, |end, (text, _)| {
            *end += u32::try_from(text.len()).unwrap();
            Some(*end)
        });
        let mut vocab = Vocab::new(texts, ends.collect(), None).unwrap();
        for (id, (_, attrs)) in TOKENS.iter().enumerate() {
            vocab.set_attrs(u32::try_from(id).unwrap(), *attrs);
        }
        let mut out = String::new();
        partition(
            &vocab,
            &SpecialLengths::new(&vocab, wanted, Attrs::default()),
            text,
            |fragment| match fragment {
                Fragment::Text(text) => out += &format!("({text})"),
                Fragment::Token(id) => out += &format!("[{id}]"),
            },
        );
        out
    }

    #[test]
    fn longer_tokens_take_first() {
        assert_eq!(cut("a<x>b", CONTROL_TOO), "(a)[1](b)");
        assert_eq!(cut("<x><x>", CONTROL_TOO), "[2](x>)");
        assert_eq!(cut("<x><xyz", CONTROL_TOO), "[2](xyz)", "of equal length the lower id");
        assert_eq!(cut("<x<x><xyz", Attrs::USER_DEFINED), "(<x<x)[3](z)");
        assert_eq!(cut("", CONTROL_TOO), "");
        assert_eq!(cut("<x", CONTROL_TOO), "(<x)");
    }

    #[test]
    fn control_tokens_are_text_unless_wanted() {
        assert_eq!(cut("<x>  a", Attrs::USER_DEFINED), "(<x>)[4](a)");
    }

    #[test]
    fn runs_are_cut_from_the_left() {
        assert_eq!(cut("       ", CONTROL_TOO), "[5][4]( )");
        assert_eq!(cut(&" ".repeat(4000), CONTROL_TOO), "[5]".repeat(1000));
    }

    #[test]
    fn some_tokens_take_white_space_along() {
        assert_eq!(cut("a \n<l> b", CONTROL_TOO), "(a)[6]( b)");
        assert_eq!(cut("a <r>\t\n b", CONTROL_TOO), "(a )[7](b)");
        assert_eq!(cut("\n<l><r>\n", CONTROL_TOO), "[6][7]");
        assert_eq!(cut("a\n<r> <l>\nb", CONTROL_TOO), "(a\n)[7][6](\nb)");
    }
}
