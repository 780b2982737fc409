//! A position in the part of a file that has been read so far. Every length is checked against what the file can hold
//! before anything is done with it.

use super::parse_error::ParseError;

/// Why reading stopped.
#[derive(Debug)]
pub(super) enum Stop {
    /// The file must be read up to this offset at least.
    Need(u64),
    /// The file is no good.
    Fail(Box<ParseError>),
}

/// Reads forward through bytes that start at offset `base` of the file.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    base: u64,
    file_bytes: Option<u64>,
}

/// A header that is longer is taken for a damaged one. The longest vocabularies of today take some 10 MB.
pub(super) const MAX_HEADER_BYTES: u64 = 256 << 20;

impl<'a> Cursor<'a> {
    pub(super) const fn new(bytes: &'a [u8], base: u64, file_bytes: Option<u64>) -> Self {
        Self { bytes, at: 0, base, file_bytes }
    }

    /// Offset in the file.
    pub(super) const fn position(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Bytes passed so far.
    pub(super) const fn passed(&self) -> usize {
        self.at
    }

    /// Bytes at hand.
    pub(super) const fn available(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) const fn file_bytes(&self) -> Option<u64> {
        self.file_bytes
    }

    /// All bytes at hand.
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// Runs `read`; if it needs more bytes than are at hand, the position goes back to where it was.
    pub(super) fn unit<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        let start = self.at;
        let result = read(self);
        if matches!(result, Err(Stop::Need(_))) {
            self.at = start;
        }
        result
    }

    /// The next `n` bytes.
    pub(super) fn take(&mut self, n: u64) -> Result<&'a [u8], Stop> {
        if n > self.available() as u64 {
            return Err(self.beyond(n));
        }
        let start = self.at;
        self.at += usize::try_from(n).unwrap_or(usize::MAX);
        Ok(&self.bytes[start..self.at])
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let Some(bytes) = self.bytes[self.at..].first_chunk::<N>() else {
            return Err(self.beyond(N as u64));
        };
        self.at += N;
        Ok(*bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Stop> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Stop> {
        self.array().map(u64::from_le_bytes)
    }

    /// A length of 64 bits and as many bytes.
    pub(super) fn string(&mut self) -> Result<&'a [u8], Stop> {
        let len = self.u64()?;
        self.take(len)
    }

    /// Checks that `declared` things of at least `min_bytes` each can follow, and are no more than `most`.
    pub(super) fn check_count(
        &self,
        what: &'static str,
        declared: u64,
        min_bytes: u64,
        most: u64,
    ) -> Result<(), Stop> {
        let end = self.file_bytes.unwrap_or(MAX_HEADER_BYTES).min(MAX_HEADER_BYTES);
        let room = (end.saturating_sub(self.position()) / min_bytes).min(most);
        if declared > room {
            return fail(ParseError::Count { what, declared, room, offset: self.position() });
        }
        Ok(())
    }

    pub(super) fn malformed<T>(&self, problem: impl Into<String>) -> Result<T, Stop> {
        fail(ParseError::Malformed { problem: problem.into(), offset: self.position() })
    }

    fn beyond(&self, n: u64) -> Stop {
        let needed = self.position().saturating_add(n);
        match self.file_bytes {
            Some(file_bytes) if needed > file_bytes => {
                ParseError::Truncated { needed, file_bytes }.into()
            }
            _ if needed > MAX_HEADER_BYTES => {
                ParseError::TooLong { needed, limit: MAX_HEADER_BYTES }.into()
            }
            _ => Stop::Need(needed),
        }
    }
}

impl From<ParseError> for Stop {
    fn from(error: ParseError) -> Self {
        Self::Fail(Box::new(error))
    }
}

/// `Err`, for the end of a function.
pub(super) fn fail<T>(error: ParseError) -> Result<T, Stop> {
    Err(error.into())
}

/// Appends `bytes`, or fails if the memory cannot be had.
pub(super) fn append(vec: &mut Vec<u8>, bytes: &[u8]) -> Result<(), Stop> {
    reserve(vec, bytes.len())?;
    vec.extend_from_slice(bytes);
    Ok(())
}

/// Room for `n` more elements, or an error instead of the end of the process.
pub(super) fn reserve<T>(vec: &mut Vec<T>, n: usize) -> Result<(), Stop> {
    let bytes = n.saturating_mul(size_of::<T>()) as u64;
    vec.try_reserve(n).map_err(|_| ParseError::Memory(bytes).into())
}
