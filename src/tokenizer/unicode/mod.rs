//! What the splitting rules ask of a character: its general category in eight classes, and the pieces of
//! normalisation that BERT vocabularies need. It knows Unicode only.
//!
//! Tables of our own instead of a crate: they hold the Unicode version of llama.cpp, and only the eight classes.

mod table;

/// General category as far as any rule distinguishes it. `Space` is Unicode's `White_Space`, which contains all of Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Class {
    Unassigned = 0,
    Number = 1,
    Letter = 2,
    Mark = 3,
    Punctuation = 4,
    Symbol = 5,
    Space = 6,
    Control = 7,
}

impl Class {
    const ALL: [Self; 8] = [
        Self::Unassigned,
        Self::Number,
        Self::Letter,
        Self::Mark,
        Self::Punctuation,
        Self::Symbol,
        Self::Space,
        Self::Control,
    ];

    /// The class of `c`.
    pub(super) fn of(c: char) -> Self {
        let cp = c as u32;
        if cp < 128 {
            Self::ALL[ASCII[cp as usize] as usize]
        } else {
            Self::ALL[searched(cp) as usize]
        }
    }
}

/// A character and its class in four bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Classified(u32);

impl Classified {
    pub(super) fn new(c: char) -> Self {
        Self(c as u32 | (Class::of(c) as u32) << CLASS_SHIFT)
    }

    pub(super) fn code_point(self) -> u32 {
        self.0 & ((1 << CLASS_SHIFT) - 1)
    }

    /// The character if it is ASCII, else NUL: for comparing with literals.
    pub(super) fn ascii(self) -> u8 {
        u8::try_from(self.code_point()).ok().filter(u8::is_ascii).unwrap_or(0)
    }

    pub(super) fn class(self) -> Class {
        Class::ALL[(self.0 >> CLASS_SHIFT) as usize & 7]
    }

    /// Whether the class is one of `classes`, a union of [`bit`]s.
    pub(super) fn is(self, classes: u8) -> bool {
        classes >> (self.0 >> CLASS_SHIFT) & 1 == 1
    }

    /// Bytes of the character in UTF-8.
    pub(super) fn len_utf8(self) -> usize {
        match self.code_point() {
            0..0x80 => 1,
            0x80..0x800 => 2,
            0x800..0x1_0000 => 3,
            _ => 4,
        }
    }
}

/// The bit of `class` in a set of classes.
pub(super) const fn bit(class: Class) -> u8 {
    1 << class as u8
}

/// First code points of canonical decompositions: how accents are stripped.
#[derive(Debug)]
pub(super) struct Decompositions(Box<[(u32, u32)]>);

impl Decompositions {
    pub(super) fn new() -> Self {
        let mut pairs = Vec::with_capacity(table::DECOMPOSITIONS.len() / 2);
        let (mut cp, mut first, mut at) = (0, 0u32, 0);
        while at < table::DECOMPOSITIONS.len() {
            cp += varint(&mut at);
            let zigzag = varint(&mut at);
            first = first.wrapping_add(zigzag >> 1 ^ (zigzag & 1).wrapping_neg());
            pairs.push((cp, first));
        }
        Self(pairs.into_boxed_slice())
    }

    /// The first code point of what `c` decomposes to; `c` itself if it does not.
    pub(super) fn first(&self, c: char) -> char {
        let cp = c as u32;
        if (HANGUL_FIRST..=HANGUL_LAST).contains(&cp) {
            return char::from_u32(HANGUL_LEAD + (cp - HANGUL_FIRST) / HANGUL_PER_LEAD)
                .unwrap_or(c);
        }
        let found = self.0.binary_search_by_key(&cp, |pair| pair.0);
        found.ok().and_then(|i| char::from_u32(self.0[i].1)).unwrap_or(c)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.0)
    }
}

fn varint(at: &mut usize) -> u32 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = table::DECOMPOSITIONS[*at];
        *at += 1;
        value |= u32::from(byte & 0x7F) << shift;
        shift += 7;
        if byte < 0x80 {
            return value;
        }
    }
}

const fn searched(cp: u32) -> u8 {
    let (mut low, mut high) = (0, table::CLASS_RANGES.len());
    while low + 1 < high {
        let middle = low.midpoint(high);
        if table::CLASS_RANGES[middle] >> 3 <= cp {
            low = middle;
        } else {
            high = middle;
        }
    }
    (table::CLASS_RANGES[low] & 7) as u8
}

const CLASS_SHIFT: u32 = 24;

static ASCII: [u8; 128] = {
    let mut classes = [0; 128];
    let mut cp = 0;
    while cp < 128 {
        classes[cp as usize] = searched(cp);
        cp += 1;
    }
    classes
};

const HANGUL_FIRST: u32 = 0xAC00;
const HANGUL_LAST: u32 = 0xD7A3;
const HANGUL_LEAD: u32 = 0x1100;
const HANGUL_PER_LEAD: u32 = 588;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_known_characters() {
        let cases = [
            ('a', Class::Letter),
            ('É', Class::Letter),
            ('字', Class::Letter),
            ('7', Class::Number),
            ('½', Class::Number),
            ('\u{301}', Class::Mark),
            ('!', Class::Punctuation),
            ('。', Class::Punctuation),
            ('+', Class::Symbol),
            ('😀', Class::Symbol),
            ('\n', Class::Space),
            ('\u{a0}', Class::Space),
            ('\u{3000}', Class::Space),
            ('\0', Class::Control),
            ('\u{200b}', Class::Control),
            ('\u{10ffff}', Class::Unassigned),
        ];
        for (c, class) in cases {
            assert_eq!(Class::of(c), class, "{c:?}");
            assert_eq!(Classified::new(c).class(), class, "{c:?}");
        }
    }

    #[test]
    fn spaces_are_those_of_the_standard_library() {
        for c in '\0'..=char::MAX {
            assert_eq!(Class::of(c) == Class::Space, c.is_whitespace(), "{c:?}");
            assert_eq!(Classified::new(c).len_utf8(), c.len_utf8(), "{c:?}");
        }
    }

    #[test]
    fn decompositions_begin_with_the_base() {
        let table = Decompositions::new();
        for (c, base) in [
            ('é', 'e'),
            ('Ǖ', 'U'),
            ('한', 'ᄒ'),
            ('힣', 'ᄒ'),
            ('豈', '豈'),
            ('a', 'a'),
            ('ø', 'ø'),
        ] {
            assert_eq!(table.first(c), base, "{c:?}");
        }
    }
}
