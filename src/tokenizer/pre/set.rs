//! Sets of characters as the rules spell them: classes, and ranges beside them.

use super::super::unicode::{Class, Classified, bit};

/// Characters of some classes or within some ranges, or all others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Set {
    classes: u8,
    ranges: &'static [(char, char)],
    negated: bool,
}

impl Set {
    pub(super) const fn of_classes(classes: u8) -> Self {
        Self { classes, ranges: &[], negated: false }
    }

    /// Characters within `ranges`, which are in order.
    pub(super) const fn of_ranges(ranges: &'static [(char, char)]) -> Self {
        Self { classes: 0, ranges, negated: false }
    }

    pub(super) const fn and_ranges(self, ranges: &'static [(char, char)]) -> Self {
        Self { ranges, ..self }
    }

    pub(super) const fn negated(self) -> Self {
        Self { negated: true, ..self }
    }

    /// White space beyond ASCII is in no range: llama.cpp's rules see a control character in its place.
    pub(super) fn contains(&self, c: Classified) -> bool {
        let listed = || {
            let cp = c.code_point();
            let at = self.ranges.partition_point(|(_, last)| (*last as u32) < cp);
            self.ranges.get(at).is_some_and(|(first, _)| *first as u32 <= cp)
                && (cp < 128 || c.class() != Class::Space)
        };
        (c.is(self.classes) || listed()) != self.negated
    }

    /// How many characters of `text` from `at` on are in the set, at most `max`.
    pub(super) fn run(&self, text: &[Classified], at: usize, max: usize) -> usize {
        text[at..].iter().take(max).take_while(|c| self.contains(**c)).count()
    }
}

pub(super) const NUMBER: u8 = bit(Class::Number);
pub(super) const LETTER: u8 = bit(Class::Letter);
pub(super) const MARK: u8 = bit(Class::Mark);
pub(super) const PUNCTUATION: u8 = bit(Class::Punctuation);
pub(super) const SYMBOL: u8 = bit(Class::Symbol);
pub(super) const SPACE: u8 = bit(Class::Space);

pub(super) const NUMBERS: Set = Set::of_classes(NUMBER);
pub(super) const LETTERS: Set = Set::of_classes(LETTER);
pub(super) const PUNCTUATIONS: Set = Set::of_classes(PUNCTUATION);
pub(super) const NOT_SPACES: Set = Set::of_classes(SPACE).negated();
pub(super) const LINE_FEEDS: Set = Set::of_ranges(&[('\n', '\n')]);
pub(super) const NOT_LINE_FEEDS: Set = LINE_FEEDS.negated();
pub(super) const LINE_ENDS: Set = Set::of_ranges(&[('\n', '\n'), ('\r', '\r')]);

/// Ideographs and kana, as DeepSeek's rules list them.
pub(super) const IDEOGRAPHS_AND_KANA: Set =
    Set::of_ranges(&[('\u{3040}', '\u{30FF}'), ('\u{4E00}', '\u{9FA5}')]);
/// All from U+0800 to the last ideograph of Unicode 1, and Hangul, as DeepSeek's first rules list them.
pub(super) const EASTERN_SCRIPTS: Set =
    Set::of_ranges(&[('\u{0800}', '\u{9FA5}'), ('\u{AC00}', '\u{D7FF}')]);

pub(super) const HANGUL: Set =
    Set::of_ranges(&[('\u{3131}', '\u{318E}'), ('\u{AC00}', '\u{D7A3}')]);
pub(super) const BOPOMOFO: Set = Set::of_ranges(&[('\u{3105}', '\u{312F}')]);
pub(super) const EASTERN_PUNCTUATION: Set = Set::of_ranges(&[
    ('—', '—'),
    ('‘', '’'),
    ('“', '”'),
    ('…', '…'),
    ('\u{3001}', '\u{303F}'),
    ('\u{FE30}', '\u{FE4F}'),
    ('！', '！'),
    ('，', '，'),
    ('：', '；'),
]);

/// Scripts that AFMoE's rules keep apart from words. Its last range begins at U+8C48 in llama.cpp, not at the
/// compatibility ideograph U+F900 of the same look, and so takes in all that lies between.
pub(super) const ASIAN_SCRIPTS: Set = Set::of_ranges(&[
    ('\u{0E40}', '\u{0EFF}'),
    ('\u{1000}', '\u{109F}'),
    ('\u{1100}', '\u{11FF}'),
    ('\u{1780}', '\u{17FF}'),
    ('\u{2F00}', '\u{2FDF}'),
    ('\u{3040}', '\u{30FF}'),
    ('\u{3400}', '\u{4DBF}'),
    ('\u{4E00}', '\u{FAFF}'),
    ('\u{FF65}', '\u{FF9F}'),
]);

/// Han ideographs as Kimi's rules count them.
pub(super) const HAN: Set = Set::of_ranges(&[
    ('\u{3400}', '\u{4DBF}'),
    ('\u{4E00}', '\u{9FFF}'),
    ('\u{F900}', '\u{FAFF}'),
    ('\u{20000}', '\u{2A6DF}'),
    ('\u{2A700}', '\u{2EBEF}'),
    ('\u{2F800}', '\u{2FA1F}'),
]);

/// White space and the punctuation of many scripts, as BLOOM's rules list them.
pub(super) const BLOOM_BREAKS: Set = Set::of_classes(SPACE).and_ranges(&[
    ('!', '!'),
    ('(', ')'),
    (',', ','),
    ('.', '.'),
    ('?', '?'),
    ('|', '|'),
    ('\u{060C}', '\u{060C}'),
    ('\u{06D4}', '\u{06D4}'),
    ('\u{0964}', '\u{0964}'),
    ('\u{2026}', '\u{2026}'),
    ('\u{3001}', '\u{3002}'),
    ('\u{FF0C}', '\u{FF0C}'),
]);

/// Punctuation as DeepSeek's first rules list it, Latin letters included.
pub(super) const WIDE_PUNCTUATION: Set = Set::of_ranges(&[
    ('!', '/'),
    (':', '~'),
    ('\u{2018}', '\u{201F}'),
    ('\u{3000}', '\u{3002}'),
    ('\u{FF01}', '\u{FF0F}'),
    ('\u{FF1A}', '\u{FF5E}'),
]);

/// Letters of scripts with case, as DeepSeek's first rules list them.
#[rustfmt::skip]
pub(super) const CASED_LETTERS: Set = Set::of_ranges(&[
    ('A', 'Z'), ('a', 'z'), ('\u{00B5}', '\u{00B5}'), ('\u{00C0}', '\u{00D6}'), ('\u{00D8}', '\u{00F6}'),
    ('\u{00F8}', '\u{01BA}'), ('\u{01BC}', '\u{01BF}'), ('\u{01C4}', '\u{0293}'), ('\u{0295}', '\u{02AF}'),
    ('\u{0370}', '\u{0373}'), ('\u{0376}', '\u{0377}'), ('\u{037B}', '\u{037D}'), ('\u{037F}', '\u{037F}'),
    ('\u{0386}', '\u{0386}'), ('\u{0388}', '\u{038A}'), ('\u{038C}', '\u{038C}'), ('\u{038E}', '\u{03A1}'),
    ('\u{03A3}', '\u{03F5}'), ('\u{03F7}', '\u{0481}'), ('\u{048A}', '\u{052F}'), ('\u{0531}', '\u{0556}'),
    ('\u{10A0}', '\u{10C5}'), ('\u{13A0}', '\u{13F5}'), ('\u{13F8}', '\u{13FD}'), ('\u{1C90}', '\u{1CBA}'),
    ('\u{1CBD}', '\u{1CBF}'), ('\u{1D00}', '\u{1D2B}'), ('\u{1D6B}', '\u{1D77}'), ('\u{1D79}', '\u{1D9A}'),
    ('\u{1E00}', '\u{1F15}'), ('\u{1F18}', '\u{1F1D}'), ('\u{1F20}', '\u{1F45}'), ('\u{1F48}', '\u{1F4D}'),
    ('\u{1F50}', '\u{1F57}'), ('\u{1F59}', '\u{1F59}'), ('\u{1F5B}', '\u{1F5B}'), ('\u{1F5D}', '\u{1F5D}'),
    ('\u{1F5F}', '\u{1F7D}'), ('\u{1F80}', '\u{1FB4}'), ('\u{1FB6}', '\u{1FBC}'), ('\u{1FBE}', '\u{1FBE}'),
    ('\u{1FC2}', '\u{1FC4}'), ('\u{1FC6}', '\u{1FCC}'), ('\u{1FD0}', '\u{1FD3}'), ('\u{1FD6}', '\u{1FDB}'),
    ('\u{1FE0}', '\u{1FEC}'), ('\u{1FF2}', '\u{1FF4}'), ('\u{1FF6}', '\u{1FFC}'), ('\u{2102}', '\u{2102}'),
    ('\u{2107}', '\u{2107}'), ('\u{210A}', '\u{2113}'), ('\u{2115}', '\u{2115}'), ('\u{2119}', '\u{211D}'),
    ('\u{2124}', '\u{2124}'), ('\u{2126}', '\u{2126}'), ('\u{2128}', '\u{2128}'), ('\u{212A}', '\u{212D}'),
    ('\u{212F}', '\u{2134}'), ('\u{2139}', '\u{2139}'), ('\u{213C}', '\u{213F}'), ('\u{2145}', '\u{2149}'),
    ('\u{214E}', '\u{214E}'), ('\u{2183}', '\u{2184}'), ('\u{2C00}', '\u{2C7B}'), ('\u{2C7E}', '\u{2CE4}'),
    ('\u{2CEB}', '\u{2CEE}'), ('\u{2CF2}', '\u{2CF3}'), ('\u{A640}', '\u{A66D}'), ('\u{A680}', '\u{A69B}'),
    ('\u{A722}', '\u{A76F}'), ('\u{A771}', '\u{A787}'), ('\u{A78B}', '\u{A78E}'), ('\u{AB70}', '\u{ABBF}'),
    ('\u{FB00}', '\u{FB06}'), ('\u{FB13}', '\u{FB17}'), ('\u{FF21}', '\u{FF3A}'), ('\u{FF41}', '\u{FF5A}'),
    ('\u{10400}', '\u{1044F}'), ('\u{104B0}', '\u{104D3}'), ('\u{104D8}', '\u{104FB}'), ('\u{10C80}', '\u{10CB2}'),
    ('\u{10CC0}', '\u{10CF2}'), ('\u{118A0}', '\u{118DF}'), ('\u{1E900}', '\u{1E943}'),
]);
