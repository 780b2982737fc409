//! The family of rules that began with GPT-4's and Llama 3's: words with a character before them, short groups of
//! digits, punctuation with the line ends after it, white space. One scanner, and what varies as data.

use super::super::unicode::Classified;
use super::set::{HAN, LETTER, LETTERS, MARK, NUMBER, NUMBERS, PUNCTUATION, SPACE, SYMBOL, Set};

/// What varies in the family.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words {
    /// Where `'s`, `'re` and so on are taken.
    pub(super) contractions: Contractions,
    /// What a word is.
    pub(super) word: Word,
    /// Classes that never stand before a word as its first character; line ends never do.
    pub(super) never_before: u8,
    /// Whether an ASCII punctuation mark is taken with the ASCII letters after it.
    pub(super) ascii_words: bool,
    /// Digits taken at once; 0 where the rule has no numbers.
    pub(super) max_digits: usize,
    /// The punctuation that is taken as a run, a space before it included.
    pub(super) marks: Set,
    /// What is taken along after such a run.
    pub(super) tail: Tail,
    /// How white space with line ends is cut.
    pub(super) lines: Lines,
    /// How other white space is cut.
    pub(super) spaces: Spaces,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contractions {
    None,
    /// On their own, before anything else.
    Apart,
    /// With the word before them.
    AfterWord,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Word {
    /// A run of these classes.
    Plain(u8),
    /// Of these classes, capitals and then small letters; all but ASCII letters count as both.
    Cased(u8),
    /// Letters with the marks on them, across single spaces.
    Spaced,
    /// Letters but Han ideographs; those are runs of their own.
    NoHan,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    None,
    LineEnd,
    LineEnds,
    LineEndsAndSlashes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    /// White space up to the last line end of the run.
    Together,
    /// Each line end.
    Single,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spaces {
    /// All but the one before a word.
    Run,
    /// Likewise, in pieces of the powers of two from 512 down.
    Powers,
}

/// Llama 3's own.
pub(super) const LLAMA3: Words = Words {
    contractions: Contractions::Apart,
    word: Word::Plain(LETTER),
    never_before: LETTER | NUMBER,
    ascii_words: false,
    max_digits: 3,
    marks: Set::of_classes(SPACE | LETTER | NUMBER).negated(),
    tail: Tail::LineEnds,
    lines: Lines::Together,
    spaces: Spaces::Run,
};

/// DeepSeek 3's; numbers are cut before.
pub(super) const DEEPSEEK3: Words = Words {
    contractions: Contractions::None,
    word: Word::Plain(LETTER | MARK),
    never_before: LETTER | PUNCTUATION | SYMBOL,
    ascii_words: true,
    max_digits: 0,
    marks: Set::of_classes(PUNCTUATION | SYMBOL),
    ..LLAMA3
};

impl Words {
    /// Calls `emit(start, end)` for the pieces of `text`, in order and without gaps.
    pub(super) fn cut(&self, text: &[Classified], emit: &mut dyn FnMut(usize, usize)) {
        let (mut at, mut gap) = (0, 0);
        while at < text.len() {
            let length = self.match_at(text, at);
            if length == 0 {
                at += 1;
                continue;
            }
            if gap < at {
                emit(gap, at);
            }
            let spaces = if self.spaces == Spaces::Powers { plain_spaces(text, at) } else { 0 };
            if spaces > 1 {
                at = cut_powers(text, at, spaces, emit);
            } else {
                emit(at, at + length);
                at += length;
            }
            gap = at;
        }
        if gap < at {
            emit(gap, at);
        }
    }

    /// Characters of the piece that begins at `at`; 0 if none does.
    fn match_at(&self, text: &[Classified], at: usize) -> usize {
        let c = text[at];
        if self.contractions == Contractions::Apart {
            let length = contraction(text, at, Case::Ignored);
            if length > 0 {
                return length;
            }
        }
        if self.ascii_words && c.ascii().is_ascii_punctuation() {
            let letters =
                text[at + 1..].iter().take_while(|c| c.ascii().is_ascii_alphabetic()).count();
            if letters > 0 {
                return 1 + letters;
            }
        }
        if matches!(self.word, Word::NoHan) && HAN.contains(c) {
            return HAN.run(text, at, usize::MAX);
        }
        let word = self.word_at(text, at);
        if word > 0 {
            let after = self.contractions == Contractions::AfterWord;
            return word + if after { contraction(text, at + word, Case::Ignored) } else { 0 };
        }
        if c.is(NUMBER) && self.max_digits > 0 {
            return NUMBERS.run(text, at, self.max_digits);
        }
        let space = usize::from(c.ascii() == b' ');
        let marks = self.marks.run(text, at + space, usize::MAX);
        if marks > 0 {
            return space + marks + self.tail.run(text, at + space + marks);
        }
        self.spaces_at(text, at)
    }

    fn word_at(&self, text: &[Classified], at: usize) -> usize {
        let c = text[at];
        let before = usize::from(!is_line_end(c) && !c.is(self.never_before));
        // The optional character before a word is taken if a word can follow, else the word may begin with it.
        let with_and_without = |length: &dyn Fn(usize) -> usize| {
            let with = if before == 1 { length(at + 1) } else { 0 };
            if with > 0 { 1 + with } else { length(at) }
        };
        match self.word {
            Word::Plain(classes) => {
                with_and_without(&|from| Set::of_classes(classes).run(text, from, usize::MAX))
            }
            Word::Spaced => with_and_without(&|from| spaced_word(text, from)),
            Word::NoHan => with_and_without(&|from| {
                text[from..].iter().take_while(|c| c.is(LETTER) && !HAN.contains(**c)).count()
            }),
            Word::Cased(classes) => {
                let mixed = with_and_without(&|from| mixed_case_word(text, from, classes));
                if mixed > 0 {
                    mixed
                } else {
                    with_and_without(&|from| capitals(text, from, classes))
                }
            }
        }
    }

    fn spaces_at(&self, text: &[Classified], at: usize) -> usize {
        if self.lines == Lines::Single && is_line_end(text[at]) {
            return 1;
        }
        let run = text[at..].iter().take_while(|c| c.is(SPACE)).count();
        if self.lines == Lines::Together
            && let Some(last) = text[at..at + run].iter().rposition(|c| is_line_end(*c))
        {
            return last + 1;
        }
        all_but_one_before_a_word(text, at, run)
    }
}

impl Tail {
    fn run(self, text: &[Classified], at: usize) -> usize {
        let ends = |max, slashes: bool| {
            let wanted = |c: &&Classified| is_line_end(**c) || slashes && c.ascii() == b'/';
            text[at..].iter().take(max).take_while(wanted).count()
        };
        match self {
            Self::None => 0,
            Self::LineEnd => ends(1, false),
            Self::LineEnds => ends(usize::MAX, false),
            Self::LineEndsAndSlashes => ends(usize::MAX, true),
        }
    }
}

/// GPT-2's rule: contractions in small letters; letters, digits or other marks with a space before them; white space.
pub(super) fn gpt2_at(text: &[Classified], at: usize) -> usize {
    let length = contraction(text, at, Case::Small);
    if length > 0 {
        return length;
    }
    let space = usize::from(text[at].ascii() == b' ');
    for set in [LETTERS, NUMBERS, Set::of_classes(SPACE | LETTER | NUMBER).negated()] {
        let run = set.run(text, at + space, usize::MAX);
        if run > 0 {
            return space + run;
        }
    }
    let run = text[at..].iter().take_while(|c| c.is(SPACE)).count();
    all_but_one_before_a_word(text, at, run)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Small,
    Ignored,
}

/// Characters of `'s`, `'t`, `'m`, `'d`, `'re`, `'ve` or `'ll` at `at`.
fn contraction(text: &[Classified], at: usize, case: Case) -> usize {
    let ascii = |i: usize| text.get(i).map_or(0, |c| c.ascii());
    if ascii(at) != b'\'' {
        return 0;
    }
    let letter = |i| if case == Case::Ignored { ascii(i).to_ascii_lowercase() } else { ascii(i) };
    match (letter(at + 1), letter(at + 2)) {
        (b's' | b't' | b'm' | b'd', _) => 2,
        (b'r' | b'v', b'e') | (b'l', b'l') => 3,
        _ => 0,
    }
}

/// Letters, each with its marks, and single spaces where a letter follows.
fn spaced_word(text: &[Classified], from: usize) -> usize {
    let is = |i: usize, classes| text.get(i).is_some_and(|c| c.is(classes));
    if !is(from, LETTER) {
        return 0;
    }
    let mut at = from + 1;
    loop {
        if is(at, LETTER | MARK) {
            at += 1;
        } else if is(at + 1, LETTER) && text[at].ascii() == b' ' {
            at += 2;
        } else {
            return at - from;
        }
    }
}

/// Capitals and then at least one small letter. Without an ASCII small letter after the capitals, the last of them that
/// counts as both ends the word.
fn mixed_case_word(text: &[Classified], from: usize, classes: u8) -> usize {
    let capitals = capitals(text, from, classes);
    let small = |c: &Classified| c.is(classes) && !c.ascii().is_ascii_uppercase();
    let after = text[from + capitals..].iter().take_while(|c| small(c)).count();
    if after > 0 {
        return capitals + after;
    }
    text[from..from + capitals].iter().rposition(small).map_or(0, |last| last + 1)
}

fn capitals(text: &[Classified], from: usize, classes: u8) -> usize {
    let capital = |c: &&Classified| c.is(classes) && !c.ascii().is_ascii_lowercase();
    text[from..].iter().take_while(capital).count()
}

/// How much of `run` white spaces at `at` is one piece: the last belongs to what follows, if something does.
fn all_but_one_before_a_word(text: &[Classified], at: usize, run: usize) -> usize {
    let is_followed = at + run < text.len();
    if run > 1 && is_followed { run - 1 } else { run }
}

/// White spaces at `at`, if there is no line end among them.
fn plain_spaces(text: &[Classified], at: usize) -> usize {
    let run = text[at..].iter().take_while(|c| c.is(SPACE)).count();
    if text[at..at + run].iter().any(|c| is_line_end(*c)) { 0 } else { run }
}

/// Cuts a run of white spaces into powers of two; leaves the last one where something follows. Returns where it stopped.
fn cut_powers(
    text: &[Classified],
    at: usize,
    run: usize,
    emit: &mut dyn FnMut(usize, usize),
) -> usize {
    let (mut at, end) = (at, at + all_but_one_before_a_word(text, at, run));
    for piece in [512, 256, 128, 64, 32, 16, 8, 4, 2, 1] {
        while end - at >= piece {
            emit(at, at + piece);
            at += piece;
        }
    }
    at
}

fn is_line_end(c: Classified) -> bool {
    matches!(c.ascii(), b'\r' | b'\n')
}
