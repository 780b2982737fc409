//! Which format a file has, by its first bytes; and what it seems to be if it is no model.

use super::parse_error::ParseError;
use crate::error::Result;

/// A format of model files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// llama.cpp's format, versions 2 and 3.
    Gguf,
    /// The toy format of tests.
    Llmw,
}

impl Format {
    /// The format of a file with these first bytes (four decide; some more make a better message).
    ///
    /// # Errors
    /// If it is neither; the message shows the bytes and says what the file seems to be.
    pub fn detect(first: &[u8]) -> Result<Self> {
        Self::of(first).map_err(Into::into)
    }

    pub(super) fn of(first: &[u8]) -> core::result::Result<Self, ParseError> {
        match first.first_chunk::<4>() {
            Some(b"GGUF") => Ok(Self::Gguf),
            Some(b"LLMW") => Ok(Self::Llmw),
            _ if first.is_empty() => Err(ParseError::Empty),
            _ => Err(ParseError::NotAModel { start: shown(first), guess: guess(first) }),
        }
    }
}

/// The first bytes, as text if they are text; always at least four of them.
fn shown(first: &[u8]) -> String {
    let end = first.len().min(48);
    let n_text = first[..end].iter().take_while(|b| matches!(b, b' '..=b'~')).count();
    let text = &first[..n_text];
    if n_text < 4.min(end) {
        let hex: Vec<String> = first.iter().take(4).map(|b| format!("{b:02x}")).collect();
        return format!("the bytes {}", hex.join(" "));
    }
    // A tag or a word says enough.
    let cut = text
        .iter()
        .skip(4)
        .position(|b| matches!(b, b'>' | b'{' | b'\n'))
        .map_or(text.len(), |i| i + 4);
    format!("'{}'…", text[..cut].escape_ascii())
}

fn guess(first: &[u8]) -> &'static str {
    let trimmed = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(first).trim_ascii_start();
    let starts = |text: &[u8]| {
        trimmed.len() >= text.len() && trimmed[..text.len()].eq_ignore_ascii_case(text)
    };
    if starts(b"<!doctype html") || starts(b"<html") || starts(b"<head") || starts(b"<!--") {
        "a web page, not a model (does the address lead to the file itself?)"
    } else if starts(b"<") {
        "markup, not a model (does the address lead to the file itself?)"
    } else if starts(b"version https://git-lfs") {
        "a Git LFS pointer, not the model that it stands for"
    } else if starts(b"{") || starts(b"[") {
        "JSON, not a model"
    } else if first.get(8) == Some(&b'{') {
        "it looks like safetensors; a GGUF file is needed"
    } else if [&b"GGML"[..], b"ggml", b"lmgg", b"fmgg", b"tjgg", b"ggjt"]
        .iter()
        .any(|magic| first.starts_with(magic))
    {
        "a format older than GGUF; convert the model again with current tools"
    } else if first.starts_with(b"FUGG") {
        "a GGUF file with its bytes swapped; only little-endian ones are read"
    } else if first.starts_with(b"PK\x03\x04") {
        "a ZIP archive (or a PyTorch file); a GGUF file is needed"
    } else if first.starts_with(b"\x1f\x8b") {
        "a gzip archive; unpack it first"
    } else {
        "neither 'GGUF' nor 'LLMW', so not a model that can be read"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(first: &[u8]) -> String {
        Format::detect(first).unwrap_err().message().to_owned()
    }

    #[test]
    fn the_first_four_bytes_decide() {
        assert_eq!(Format::detect(b"GGUF").unwrap(), Format::Gguf);
        assert_eq!(Format::detect(b"LLMW\x01").unwrap(), Format::Llmw);
        assert!(message(b"GGU").contains("'GGU'"), "{}", message(b"GGU"));
        assert!(
            message(b"\x00\x01\x02\x03")
                .contains("the bytes 00 01 02 03: neither 'GGUF' nor 'LLMW'")
        );
        assert_eq!(message(b""), "the file is empty");
    }

    #[test]
    fn what_is_no_model_is_named() {
        let page = message(b"<!DOCTYPE html>\n<html><body>Not found</body></html>");
        assert!(
            page.starts_with("the file starts with '<!DOCTYPE html'…: a web page, not a model"),
            "{page}"
        );
        assert!(message(b"\n\n  <html lang=en>").contains("a web page"), "after white space");
        assert!(message(b"{\"error\":\"gated\"}").contains("JSON"), "an answer of a hub");
        assert!(
            message(b"version https://git-lfs.github.com/spec/v1\n").contains("Git LFS pointer"),
            "a pointer file"
        );
        assert!(
            message(b"\x40\x01\0\0\0\0\0\0{\"__metadata__\"").contains("safetensors"),
            "another format"
        );
        assert!(message(b"tjgg\x03\0\0\0").contains("older than GGUF"), "the format before");
    }
}
