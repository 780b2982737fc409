//! One step of a rule: a pattern that cuts a stretch of text into its matches and what lies between them. Each step
//! sees only its stretch, as if the text began and ended there.

use super::super::unicode::Classified;
use super::set::{NUMBER, NUMBERS, SPACE, Set};
use super::words::{Words, gpt2_at};

/// A pattern.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// Runs of at most so many characters of the set.
    Runs(&'static Set, usize),
    /// Runs of the set, each with one space before it.
    SpacedRuns(&'static Set),
    /// Runs of the set, each with one white space of any kind before it.
    WhiteSpacedRuns(&'static Set),
    /// Runs of whichever set comes first in the list.
    AnyRuns(&'static [&'static Set]),
    /// Three ASCII digits.
    DigitTriples,
    /// Groups of three digits counted from the right. What stands before a number stays with its first group.
    DigitsFromRight,
    /// Nothing, before a multiple of three ASCII digits up to the number's end.
    BeforeDigitTriples,
    /// White space at the end.
    TrailingSpace,
    /// `<sentinel:42>`.
    Sentinels,
    /// `IMGIMG`, one to four letters from A to I, `Z`.
    ImageTokens,
    /// A tab, a line feed, four spaces or two.
    Indents,
    /// GPT-2's rule.
    Gpt2,
    /// A rule of the family of Llama 3's.
    Words(&'static Words),
}

impl Step {
    /// Calls `emit(start, end)` for the pieces of `text`, in order and without gaps.
    pub(super) fn cut(&self, text: &[Classified], emit: &mut dyn FnMut(usize, usize)) {
        match self {
            Self::Words(words) => words.cut(text, emit),
            Self::DigitsFromRight => digits_from_right(text, emit),
            Self::BeforeDigitTriples => before_digit_triples(text, emit),
            Self::TrailingSpace => {
                let kept = text.iter().rposition(|c| !c.is(SPACE)).map_or(0, |last| last + 1);
                emit(0, kept);
                emit(kept, text.len());
            }
            _ => self.cut_matches(text, emit),
        }
    }

    fn cut_matches(&self, text: &[Classified], emit: &mut dyn FnMut(usize, usize)) {
        let (mut at, mut gap) = (0, 0);
        while at < text.len() {
            let length = self.match_at(text, at);
            if length == 0 {
                at += 1;
                continue;
            }
            emit(gap, at);
            emit(at, at + length);
            at += length;
            gap = at;
        }
        emit(gap, at);
    }

    /// Characters of the match that begins at `at`; 0 if none does.
    fn match_at(&self, text: &[Classified], at: usize) -> usize {
        match self {
            Self::Runs(set, max) => set.run(text, at, *max),
            Self::SpacedRuns(set) => run_after(set, text, at, text[at].ascii() == b' '),
            Self::WhiteSpacedRuns(set) => run_after(set, text, at, text[at].is(SPACE)),
            Self::AnyRuns(sets) => sets
                .iter()
                .map(|set| set.run(text, at, usize::MAX))
                .find(|run| *run > 0)
                .unwrap_or(0),
            Self::DigitTriples if ascii_digits(text, at, 3) == 3 => 3,
            Self::Sentinels => sentinel(text, at),
            Self::ImageTokens => image_token(text, at),
            Self::Indents => indent(text, at),
            Self::Gpt2 => gpt2_at(text, at),
            _ => 0,
        }
    }
}

/// A run of `set`, with the character at `at` before it if that is a space and a run follows.
fn run_after(set: &Set, text: &[Classified], at: usize, is_space: bool) -> usize {
    let after = if is_space { set.run(text, at + 1, usize::MAX) } else { 0 };
    if after > 0 { 1 + after } else { set.run(text, at, usize::MAX) }
}

fn digits_from_right(text: &[Classified], emit: &mut dyn FnMut(usize, usize)) {
    let (mut at, mut piece) = (0, 0);
    while at < text.len() {
        let digits = NUMBERS.run(text, at, usize::MAX);
        if digits == 0 {
            at += 1;
            continue;
        }
        let end = at + digits;
        at += if digits.is_multiple_of(3) { 3 } else { digits % 3 };
        while at <= end {
            emit(piece, at);
            piece = at;
            at += 3;
        }
        at = end;
    }
    emit(piece, text.len());
}

fn before_digit_triples(text: &[Classified], emit: &mut dyn FnMut(usize, usize)) {
    let (mut at, mut piece) = (0, 0);
    while at < text.len() {
        let digits = ascii_digits(text, at, usize::MAX);
        for cut in (at..at + digits).filter(|cut| (at + digits - cut).is_multiple_of(3)) {
            emit(piece, cut);
            piece = cut;
        }
        at += digits.max(1);
    }
    emit(piece, text.len());
}

fn ascii_digits(text: &[Classified], at: usize, max: usize) -> usize {
    text[at..].iter().take(max).take_while(|c| c.is(NUMBER) && c.ascii().is_ascii_digit()).count()
}

fn sentinel(text: &[Classified], at: usize) -> usize {
    let digits_at = at + SENTINEL.len();
    if !spells(text, at, SENTINEL) {
        return 0;
    }
    let digits = ascii_digits(text, digits_at, usize::MAX);
    if digits > 0 && spells(text, digits_at + digits, b">") {
        SENTINEL.len() + digits + 1
    } else {
        0
    }
}

fn image_token(text: &[Classified], at: usize) -> usize {
    let letters_at = at + IMAGE.len();
    if !spells(text, at, IMAGE) {
        return 0;
    }
    let letters =
        text[letters_at..].iter().take(4).take_while(|c| matches!(c.ascii(), b'A'..=b'I')).count();
    if letters > 0 && spells(text, letters_at + letters, b"Z") {
        IMAGE.len() + letters + 1
    } else {
        0
    }
}

fn indent(text: &[Classified], at: usize) -> usize {
    match text[at].ascii() {
        b'\t' | b'\n' => 1,
        _ if spells(text, at, b"    ") => 4,
        _ if spells(text, at, b"  ") => 2,
        _ => 0,
    }
}

fn spells(text: &[Classified], at: usize, ascii: &[u8]) -> bool {
    text[at..].len() >= ascii.len()
        && text[at..].iter().zip(ascii).all(|(c, wanted)| c.ascii() == *wanted)
}

const SENTINEL: &[u8] = b"<sentinel:";
const IMAGE: &[u8] = b"IMGIMG";
