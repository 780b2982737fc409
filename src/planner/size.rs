//! Sizes as people write them: `300MB` is 300,000,000 bytes, `300MiB` is 300 times 2^20, a number is bytes.

use crate::error::{Error, ErrorKind, Result};

/// What a single letter after a number means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Letters {
    /// Nothing: options say MB or MiB.
    Refused,
    /// Binary: `300M` on the command line is 300 MiB.
    Binary,
}

/// Bytes that `text` says, for the option `key`; a fraction of a byte is dropped.
///
/// # Errors
/// `invalid_option` naming the key and how a size is written.
pub fn parse_size(key: &'static str, text: &str, letters: Letters) -> Result<u64> {
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    let bytes = factor(unit.trim_start(), letters).and_then(|factor| times(number, factor));
    bytes.ok_or_else(|| {
        let example = match letters {
            Letters::Refused => "`300MB` (300,000,000 bytes) or `300MiB` (300 times 2^20), or a number of bytes",
            Letters::Binary => "`300M` or `300MiB` (300 times 2^20), `300MB` (300,000,000 bytes), or a number of bytes",
        };
        Error::new(ErrorKind::InvalidOption, format!("`{key}` is \"{text}\"; write {example}")).with("key", key)
    })
}

fn factor(unit: &str, letters: Letters) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    let power = |prefix: &str| {
        "kmgt".find(prefix).filter(|_| prefix.len() == 1).and_then(|i| u32::try_from(i + 1).ok())
    };
    match unit.as_str() {
        "" | "b" => Some(1),
        _ if unit.ends_with("ib") => power(&unit[..unit.len() - 2]).map(|p| 1024_u64.pow(p)),
        _ if unit.ends_with('b') => power(&unit[..unit.len() - 1]).map(|p| 1000_u64.pow(p)),
        _ if letters == Letters::Binary => power(&unit).map(|p| 1024_u64.pow(p)),
        _ => None,
    }
}

/// `number`, digits with at most one point, times `factor`; exact, the fraction of a byte dropped.
fn times(number: &str, factor: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') || fraction.len() > 18 {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let parts = if fraction.is_empty() { 0 } else { fraction.parse::<u128>().ok()? };
    let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let part = u64::try_from(parts * u128::from(factor) / scale).ok()?;
    whole.checked_mul(factor)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_as_people_write_them() {
        let cases = [
            ("300MB", 300_000_000),
            ("300 MiB", 300 << 20),
            ("1.5GB", 1_500_000_000),
            ("0.5kB", 500),
            ("64KiB", 65_536),
            ("2TiB", 2 << 40),
            (" 12345 ", 12_345),
            ("12B", 12),
            ("1.0000000001kb", 1000),
        ];
        for (text, bytes) in cases {
            for letters in [Letters::Refused, Letters::Binary] {
                assert_eq!(parse_size("memory", text, letters).unwrap(), bytes, "{text}");
            }
        }
        for (text, bytes) in [("300M", 300 << 20), ("2g", 2 << 30), ("1.5K", 1536)] {
            assert_eq!(parse_size("--ram-budget", text, Letters::Binary).unwrap(), bytes, "{text}");
            assert!(parse_size("memory", text, Letters::Refused).is_err(), "{text} is ambiguous");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in [
            "",
            "MB",
            "-1MB",
            "1e9",
            "1,000",
            "1..5MB",
            "1.5.2",
            "NaN",
            "300 XB",
            "300mib b",
            "99999999999GB",
            ".5MB",
            "12ib",
        ] {
            for letters in [Letters::Refused, Letters::Binary] {
                let error = parse_size("memory", text, letters).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InvalidOption, "{text}");
                assert!(error.message().contains("`memory`"), "{error}");
            }
        }
    }
}
