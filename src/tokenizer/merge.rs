//! The merging of neighbours that BPE and SentencePiece share: of all mergeable neighbours the most urgent pair becomes
//! one symbol, the leftmost of equals first, until none is left. A heap keeps it at n log n for any text.
//!
//! It knows neither ranks nor scores: the caller says which neighbours merge and how urgent that is.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::TokenId;

/// A run of the text that is one token, or one character without a token.
#[derive(Debug, Clone, Copy)]
pub(super) struct Symbol {
    /// Offset of its first byte; it ends where the next begins.
    pub(super) start: u32,
    /// Its token, or [`NONE`].
    pub(super) id: TokenId,
    prev: u32,
    next: u32,
    /// Urgency of merging it with the next symbol, or [`NONE`].
    urgency: u32,
}

/// Room for the symbols of one text, used again for the next.
#[derive(Debug, Default)]
pub(super) struct Merger {
    symbols: Vec<Symbol>,
    queue: BinaryHeap<Reverse<(u32, u32)>>,
}

/// What two neighbours become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Merged {
    /// The smaller the sooner; never [`NONE`].
    pub(super) urgency: u32,
    /// The token of both together.
    pub(super) id: TokenId,
}

/// No token, no symbol, no merge.
pub(super) const NONE: u32 = u32::MAX;

impl Merger {
    /// Forgets the last text and makes room for a next one of `n_symbols`.
    pub(super) fn begin(&mut self, n_symbols: usize) {
        self.symbols.clear();
        self.symbols.reserve_exact(n_symbols);
    }

    /// Appends a symbol that starts at byte `start`.
    pub(super) fn push(&mut self, start: u32, id: TokenId) {
        let at = index(self.symbols.len());
        self.symbols.push(Symbol {
            start,
            id,
            prev: at.wrapping_sub(1),
            next: at + 1,
            urgency: NONE,
        });
    }

    /// Merges the symbols of a text that ends at byte `end`; `merged(left, right, end_of_right)` says what becomes of two
    /// neighbours. Then calls `emit(symbol, end_of_symbol)` for each that is left.
    pub(super) fn run(
        &mut self,
        end: u32,
        merged: impl Fn(&Symbol, &Symbol, u32) -> Option<Merged>,
        mut emit: impl FnMut(&Symbol, u32),
    ) {
        let Some(last) = self.symbols.last_mut() else { return };
        last.next = NONE;
        self.queue.clear();
        for left in 0..self.symbols.len() {
            self.consider(index(left), end, &merged);
        }
        while let Some(Reverse((urgency, left))) = self.queue.pop() {
            let symbol = self.symbols[left as usize];
            if symbol.urgency != urgency {
                continue; // the pair of this entry has changed since
            }
            let right = self.symbols[symbol.next as usize];
            let Some(both) = merged(&symbol, &right, self.end_of(&right, end)) else { continue };
            self.symbols[symbol.next as usize].urgency = NONE;
            self.symbols[left as usize] = Symbol { id: both.id, next: right.next, ..symbol };
            if right.next != NONE {
                self.symbols[right.next as usize].prev = left;
            }
            if symbol.prev != NONE {
                self.consider(symbol.prev, end, &merged);
            }
            self.consider(left, end, &merged);
        }
        let mut at = 0;
        while at != NONE {
            let symbol = self.symbols[at as usize];
            emit(&symbol, self.end_of(&symbol, end));
            at = symbol.next;
        }
    }

    /// Notes how urgent the pair that begins at `left` is now.
    fn consider(
        &mut self,
        left: u32,
        end: u32,
        merged: &impl Fn(&Symbol, &Symbol, u32) -> Option<Merged>,
    ) {
        let symbol = self.symbols[left as usize];
        let both = (symbol.next != NONE)
            .then(|| self.symbols[symbol.next as usize])
            .and_then(|right| merged(&symbol, &right, self.end_of(&right, end)));
        let urgency = both.map_or(NONE, |both| both.urgency);
        self.symbols[left as usize].urgency = urgency;
        if urgency != NONE {
            self.queue.push(Reverse((urgency, left)));
        }
    }

    fn end_of(&self, symbol: &Symbol, end: u32) -> u32 {
        if symbol.next == NONE { end } else { self.symbols[symbol.next as usize].start }
    }
}

/// A position among the symbols: a text has at most [`super::MAX_TEXT_BYTES`].
fn index(i: usize) -> u32 {
    u32::try_from(i).unwrap_or(NONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Merges the characters of `text` by a list of pairs, the first the most urgent.
    fn merge(text: &str, pairs: &[&str]) -> Vec<String> {
        let mut merger = Merger::default();
        for (start, _) in text.char_indices() {
            merger.push(index(start), NONE);
        }
        let mut out = Vec::new();
        let merged = |left: &Symbol, _: &Symbol, end: u32| {
            let both = &text[left.start as usize..end as usize];
            pairs
                .iter()
                .position(|p| *p == both)
                .map(|i| Merged { urgency: index(i), id: index(i) })
        };
        merger.run(index(text.len()), merged, |s, end| {
            out.push(text[s.start as usize..end as usize].to_owned());
        });
        out
    }

    #[test]
    fn the_most_urgent_pair_goes_first() {
        assert_eq!(merge("abc", &["bc", "ab"]), ["a", "bc"]);
        assert_eq!(merge("abc", &["ab", "bc"]), ["ab", "c"]);
        assert_eq!(merge("abcd", &["bc", "ab", "abc", "abcd"]), ["abcd"]);
    }

    #[test]
    fn of_equals_the_leftmost() {
        assert_eq!(merge("aaa", &["aa"]), ["aa", "a"]);
        assert_eq!(merge("aaaaa", &["aa", "aaaa"]), ["aaaa", "a"]);
    }

    #[test]
    fn nothing_to_merge() {
        assert_eq!(merge("", &["aa"]), [""; 0]);
        assert_eq!(merge("é", &["aa"]), ["é"]);
        assert_eq!(merge("ab", &[]), ["a", "b"]);
    }
}
