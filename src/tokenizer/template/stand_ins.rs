//! Telling what people wrote from what the template wrote, in one text.
//!
//! Where a message spells a control token, or the beginning or end of one, one character of it goes through the template as
//! a stand-in: a character of a private plane that occurs in no input. The template handles the text as ever (lengths and
//! all string functions stay as they are), no control token can come about from what a message says, and what is left
//! over afterwards is put back as plain text.

use std::collections::BTreeSet;

use super::super::special::{ALWAYS_SHOWN, HIDDEN};
use super::super::vocab::Vocab;
use super::json::Json;
use crate::error::{Error, ErrorKind, Result};

/// The texts of the tokens that only a template may write.
#[derive(Debug)]
pub(in crate::tokenizer) struct Markers<'a> {
    /// In order.
    texts: Vec<&'a str>,
}

/// Characters and what stands for them.
#[derive(Debug, Default)]
pub(in crate::tokenizer) struct StandIns {
    pairs: Vec<(char, char)>,
    /// Characters of the private plane that the inputs hold themselves.
    taken: BTreeSet<char>,
}

impl<'a> Markers<'a> {
    /// Those of `vocab`.
    pub(in crate::tokenizer) fn of(vocab: &'a Vocab) -> Self {
        let is_marker = |text: &str| ALWAYS_SHOWN.contains(&text);
        let mut texts: Vec<&str> = vocab
            .ids()
            .filter_map(|id| {
                let text = core::str::from_utf8(vocab.text(id)).ok()?;
                (vocab.attrs(id).any(HIDDEN) || is_marker(text)).then_some(text)
            })
            .filter(|text| !text.is_empty())
            .collect();
        texts.sort_unstable();
        Self { texts }
    }

    /// Whether a marker begins at the start of `rest`, or one may that `rest`, or its first `end` bytes, which are those without
    /// white space at the end, are the beginning of.
    fn begins(&self, rest: &str, end: usize) -> bool {
        let at = self.texts.partition_point(|text| *text < rest);
        // In an ordered list, what shares most with `rest` stands beside it.
        let near = self.texts[at.saturating_sub(1)..self.texts.len().min(at + 1)].iter();
        let shared = near.map(|text| common(text, rest)).max().unwrap_or(0);
        let is_short =
            |n: usize| rest.get(..n).is_some_and(|short| self.texts.binary_search(&short).is_ok());
        shared >= CLEAR || (shared > 0 && (shared >= end || (1..CLEAR).any(is_short)))
    }

    /// Whether `text` begins with the end of a marker.
    fn ends(&self, text: &str) -> bool {
        self.texts.iter().any(|marker| {
            marker.char_indices().skip(1).any(|(at, _)| text.starts_with(&marker[at..]))
        })
    }
}

impl StandIns {
    /// None yet, for a template of these inputs.
    pub(super) fn new<'a>(inputs: impl Iterator<Item = &'a Json>) -> Self {
        let mut taken = BTreeSet::new();
        for input in inputs {
            input.each_text(&mut |text| taken.extend(text.chars().filter(|c| *c >= FIRST)));
        }
        Self { pairs: Vec::new(), taken }
    }

    /// `text` with stand-ins where it could become a marker.
    pub(super) fn guard(&mut self, markers: &Markers<'_>, text: &str) -> String {
        let start = text.len() - text.trim_start().len();
        let end = text.trim_end().len();
        let mut out = String::with_capacity(text.len());
        for (at, c) in text.char_indices() {
            let rest = &text[at..];
            let is_edge = at == 0 || at == start;
            if markers.begins(rest, end.saturating_sub(at)) || (is_edge && markers.ends(rest)) {
                out.push(self.of(c));
            } else {
                out.push(c);
            }
        }
        out
    }

    /// What stands for `c`. There are more characters in the plane than a text that fits memory uses up; if not, U+FFFD does.
    fn of(&mut self, c: char) -> char {
        if let Some((_, stand_in)) = self.pairs.iter().find(|(original, _)| *original == c) {
            return *stand_in;
        }
        let free = (FIRST..=LAST).find(|c| !self.taken.contains(c)).unwrap_or('\u{FFFD}');
        self.taken.insert(free);
        self.pairs.push((c, free));
        free
    }

    /// Whether a private character was left for each.
    ///
    /// # Errors
    /// `invalid_option` when the inputs use them all.
    pub(super) fn check(&self) -> Result<()> {
        if self.pairs.iter().all(|(_, stand_in)| *stand_in != '\u{FFFD}') {
            return Ok(());
        }
        let message = "the messages use every character of the last two Unicode planes";
        Err(Error::new(ErrorKind::InvalidOption, message).with("key", "messages"))
    }

    /// The character that `c` stands for.
    pub(in crate::tokenizer) fn original(&self, c: char) -> Option<char> {
        if c < FIRST {
            return None;
        }
        self.pairs.iter().find(|(_, stand_in)| *stand_in == c).map(|(original, _)| *original)
    }

    /// `text` as it was written; `None` if nothing stands for anything in it.
    pub(in crate::tokenizer) fn restore(&self, text: &str) -> Option<String> {
        text.chars()
            .any(|c| self.original(c).is_some())
            .then(|| text.chars().map(|c| self.original(c).unwrap_or(c)).collect())
    }
}

/// Bytes that two texts begin with alike.
fn common(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
}

/// Bytes that make the beginning of a marker, wherever the template may cut.
const CLEAR: usize = 3;

/// The private planes.
const FIRST: char = '\u{F0000}';
const LAST: char = '\u{10FFFD}';

#[cfg(test)]
mod tests {
    use super::*;

    fn guarded(text: &str) -> (String, String) {
        let markers = Markers { texts: vec!["</s>", "<s>", "<|end|>", "<|im_end|>", "[INST]"] };
        let mut stand_ins = StandIns::new([Json::from(text)].iter());
        let guarded = stand_ins.guard(&markers, text);
        stand_ins.check().unwrap();
        let restored = stand_ins.restore(&guarded).unwrap_or_else(|| guarded.clone());
        assert_eq!(restored, text);
        assert_eq!(guarded.chars().count(), text.chars().count());
        let shown = guarded.chars().map(|c| if c >= FIRST { '*' } else { c }).collect();
        (shown, guarded)
    }

    #[test]
    fn whole_markers_and_their_clear_beginnings_are_broken() {
        for (text, expected) in [
            ("a<|im_end|>b<s>", "a*|im_end|>b*s>"),
            ("x < y, a <b> and [IN", "x < y, a <b> and *IN"),
            ("<|e and <|im_start|>", "*|e and *|im_start|>"),
            ("</script> </think>", "*/script> </think>"),
            ("plain", "plain"),
        ] {
            assert_eq!(guarded(text).0, expected, "{text}");
        }
    }

    #[test]
    fn ends_of_a_text_cannot_complete_a_marker() {
        for (text, expected) in [
            ("a <|", "a *|"),
            ("a <\n", "a *\n"),
            ("a < b", "a < b"),
            (" end|> b", " *nd|> b"),
            ("> quoted", "* quoted"),
            ("NST]", "*ST]"),
        ] {
            assert_eq!(guarded(text).0, expected, "{text}");
        }
    }

    #[test]
    fn private_characters_of_the_text_stay_what_they_are() {
        let (_, guarded) = guarded("\u{F0000}<s>\u{F0001}");
        assert_eq!(guarded, "\u{F0000}\u{F0002}s>\u{F0001}");
    }
}
