//! The alphabet of byte-level vocabularies (GPT-2's): every byte as a printable character, so that a token's text is
//! valid UTF-8. Printable bytes of Latin-1 stand for themselves, the others for U+0100 onwards in order.

use std::io::Write as _;

/// The character that stands for `byte`.
pub(super) fn char_of(byte: u8) -> char {
    let offset = match byte {
        0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF => return byte as char,
        0x00..=0x20 => byte,
        0x7F..=0xA0 => byte - 0x7F + 0x21,
        0xAD => 0x43,
    };
    char::from_u32(0x100 + u32::from(offset)).unwrap_or_default()
}

/// The byte that `c` stands for.
pub(super) fn byte_of(c: char) -> Option<u8> {
    let low = u8::try_from(c as u32 & 0xFF).unwrap_or(0);
    match c as u32 {
        0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF => Some(low),
        0x100..=0x120 => Some(low),
        0x121..=0x142 => Some(low - 0x21 + 0x7F),
        0x143 => Some(0xAD),
        _ => None,
    }
}

/// Appends `bytes` in the alphabet.
pub(super) fn spell(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        let mut utf8 = [0; 2];
        out.extend_from_slice(char_of(*byte).encode_utf8(&mut utf8).as_bytes());
    }
}

/// Appends the bytes that `text` spells. A character outside the alphabet comes out as llama.cpp marks it,
/// but for a text of more than 256 bytes, whose marks do not repeat it.
pub(super) fn unspell(text: &[u8], out: &mut Vec<u8>) {
    for chunk in text.utf8_chunks() {
        let broken = chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER);
        for c in chunk.valid().chars().chain(broken) {
            match byte_of(c) {
                Some(byte) => out.push(byte),
                None => mark_unknown(c, text, out),
            }
        }
    }
}

fn mark_unknown(c: char, text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"[UNK_BYTE_0x");
    let mut utf8 = [0; 4];
    for byte in c.encode_utf8(&mut utf8).bytes() {
        let _ = write!(out, "{byte:02x}"); // a Vec takes all
    }
    if text.len() <= MAX_REPEATED_BYTES {
        out.extend_from_slice(text);
    }
    out.push(b']');
}

/// The longest text that a mark repeats: a text of nothing but unknown characters is repeated for each of them.
const MAX_REPEATED_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_one_character() {
        for byte in 0..=u8::MAX {
            assert_eq!(byte_of(char_of(byte)), Some(byte), "byte {byte:#x}");
        }
        assert_eq!(
            (char_of(b' '), char_of(b'\n'), char_of(0xAD), char_of(0xA0)),
            ('Ġ', 'Ċ', 'Ń', 'ł')
        );
        assert_eq!((byte_of(' '), byte_of('\u{144}'), byte_of('😀')), (None, None, None));
    }

    #[test]
    fn spelling_goes_there_and_back() {
        let bytes: Vec<u8> = (0..=u8::MAX).collect();
        let (mut text, mut back) = (Vec::new(), Vec::new());
        spell(&bytes, &mut text);
        unspell(&text, &mut back);
        assert_eq!(back, bytes);
    }

    #[test]
    fn characters_outside_the_alphabet_are_marked() {
        let mut out = Vec::new();
        unspell("a｜".as_bytes(), &mut out);
        assert_eq!(out, "a[UNK_BYTE_0xefbd9ca｜]".as_bytes());
    }

    #[test]
    fn marks_of_a_long_text_grow_with_its_length_only() {
        let text = "｜".repeat(10_000);
        let mut out = Vec::new();
        unspell(text.as_bytes(), &mut out);
        assert_eq!(out, "[UNK_BYTE_0xefbd9c]".repeat(10_000).as_bytes());
    }
}
