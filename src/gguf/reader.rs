//! Reads a header piece by piece: says which bytes of the file it wants next, takes them, and keeps only the facts. It
//! does no reading itself, so that every source can feed it.

use core::ops::Range;

use super::cursor::{Cursor, Stop, append};
use super::parse_error::ParseError;
use super::parser::GgufParser;
use super::{Format, Header, llmw};
use crate::error::{Error, ErrorKind, Result};

/// A header of one file that is being read, in pieces that grow.
///
/// ```
/// # fn read(_: std::ops::Range<u64>) -> Vec<u8> { Vec::new() }
/// # fn open(file_bytes: Option<u64>) -> sluice::error::Result<sluice::gguf::Header> {
/// let mut reader = sluice::gguf::HeaderReader::new(file_bytes);
/// loop {
///     let bytes = read(reader.wanted());
///     if let Some(header) = reader.push(&bytes)? {
///         return Ok(header);
///     }
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct HeaderReader {
    file_bytes: Option<u64>,
    /// Bytes that are not understood yet: the beginning of an entry.
    tail: Vec<u8>,
    /// Offset of the tail in the file.
    base: u64,
    wanted: Range<u64>,
    piece: u64,
    parser: Parser,
}

#[derive(Debug)]
enum Parser {
    Start,
    Gguf(Box<GgufParser>),
    Llmw,
    Done,
}

const FIRST_PIECE: u64 = 512 << 10;
const LARGEST_PIECE: u64 = 2 << 20;
const BORDER_BYTES: usize = 64 << 10;

impl HeaderReader {
    /// A reader at the start of a file. With `file_bytes`, the size of the file, a file that is cut off is found out.
    #[must_use]
    pub fn new(file_bytes: Option<u64>) -> Self {
        let wanted = 0..FIRST_PIECE.min(file_bytes.unwrap_or(u64::MAX));
        Self {
            file_bytes,
            tail: Vec::new(),
            base: 0,
            wanted,
            piece: FIRST_PIECE,
            parser: Parser::Start,
        }
    }

    /// The bytes of the file to push next. Fewer may be pushed, but they start where this starts.
    #[must_use]
    pub fn wanted(&self) -> Range<u64> {
        self.wanted.clone()
    }

    /// Takes the next bytes of the file; none at all mean that the file has ended. Gives the header when it is whole.
    ///
    /// # Errors
    /// `invalid_model` or `unsupported_model`, with what is wrong and where; the reader is of no use then.
    pub fn push(&mut self, bytes: impl AsRef<[u8]>) -> Result<Option<Header>> {
        if matches!(self.parser, Parser::Done) {
            return Err(Error::new(ErrorKind::Misuse, "the header has been read already"));
        }
        let bytes = bytes.as_ref();
        let end = self.base + (self.tail.len() + bytes.len()) as u64;
        match self.advance(bytes) {
            Ok(header) => {
                self.parser = Parser::Done;
                Ok(Some(header))
            }
            Err(Stop::Need(needed)) if bytes.is_empty() => {
                Err(ParseError::Truncated { needed, file_bytes: end }.at(&self.parser.place()))
            }
            Err(Stop::Need(needed)) => {
                self.piece = (2 * self.piece).min(LARGEST_PIECE);
                let until = needed.max(end.saturating_add(self.piece));
                self.wanted = end..until.min(self.file_bytes.unwrap_or(u64::MAX));
                Ok(None)
            }
            Err(Stop::Fail(error)) => Err(error.at(&self.parser.place())),
        }
    }

    /// Understands `piece`. The entry across its border with the tail is read from a small copy, so that a piece is
    /// not held twice; only an entry that is longer than the copy is kept with all that follows it.
    fn advance(&mut self, mut piece: &[u8]) -> core::result::Result<Header, Stop> {
        let n_tail = self.tail.len();
        if n_tail > 0 {
            let (border, rest) = piece.split_at(piece.len().min(BORDER_BYTES));
            append(&mut self.tail, border)?;
            let (result, passed) = self.parser.run(&self.tail, self.base, self.file_bytes);
            let Err(Stop::Need(_)) = result else { return result };
            if passed < n_tail {
                self.base += passed as u64;
                self.tail.drain(..passed);
                append(&mut self.tail, rest)?;
                let (result, passed) = self.parser.run(&self.tail, self.base, self.file_bytes);
                self.base += passed as u64;
                self.tail.drain(..passed);
                return result;
            }
            self.base += passed as u64;
            self.tail.clear();
            piece = &piece[passed - n_tail..];
        }
        let (result, passed) = self.parser.run(piece, self.base, self.file_bytes);
        self.base += passed as u64;
        append(&mut self.tail, &piece[passed..])?;
        result
    }
}

impl Header {
    /// The header of a file whose bytes are all at hand.
    ///
    /// # Errors
    /// As [`HeaderReader::push`].
    pub fn parse(file: &[u8]) -> Result<Self> {
        let (mut parser, file_bytes) = (Parser::Start, file.len() as u64);
        match parser.run(file, 0, Some(file_bytes)).0 {
            Ok(header) => Ok(header),
            Err(Stop::Fail(error)) => Err(error.at(&parser.place())),
            Err(Stop::Need(needed)) => {
                Err(ParseError::Truncated { needed, file_bytes }.at(&parser.place()))
            }
        }
    }
}

impl Parser {
    /// Understands what it can of `bytes`, which start at offset `base`; also says how many bytes that were.
    fn run(
        &mut self,
        bytes: &[u8],
        base: u64,
        file_bytes: Option<u64>,
    ) -> (core::result::Result<Header, Stop>, usize) {
        let mut cursor = Cursor::new(bytes, base, file_bytes);
        let result = self.advance(&mut cursor);
        (result, cursor.passed())
    }

    fn advance(&mut self, cursor: &mut Cursor<'_>) -> core::result::Result<Header, Stop> {
        if matches!(self, Self::Start) {
            if cursor.file_bytes() != Some(0) {
                cursor.clone().array::<4>()?;
            }
            *self = match Format::of(cursor.rest())? {
                Format::Gguf => Self::Gguf(Box::default()),
                Format::Llmw => Self::Llmw,
            };
        }
        match self {
            Self::Gguf(parser) => parser.advance(cursor),
            _ => cursor.unit(llmw::parse),
        }
    }

    fn place(&self) -> String {
        match self {
            Self::Gguf(parser) => parser.place(),
            Self::Llmw => "LLMW header".to_owned(),
            Self::Start | Self::Done => String::new(),
        }
    }
}
