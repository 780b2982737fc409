//! Split models: one GGUF in several files. Part 1 holds the metadata; every part holds a directory of its own tensors.
//! After joining, tensors are addressed by file and offset, and nobody else knows of parts.

use super::directory::duplicate;
use super::parse_error::ParseError;
use super::{Header, Metadata, Value};
use crate::error::Result;

/// What a part says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    /// Which part, from 0.
    pub part: u32,
    /// Parts of the model.
    pub n_parts: u32,
    /// Tensors of all parts, where it is said.
    pub n_tensors: Option<u32>,
}

impl Split {
    /// What `header` says of its place in a split; `None` if the file is a whole model.
    ///
    /// # Errors
    /// If the keys have impossible values.
    pub fn of(header: &Header) -> Result<Option<Self>> {
        let n_parts = header.metadata.get_u32("split.count")?.unwrap_or(0);
        if n_parts < 2 {
            return Ok(None);
        }
        let part = header.metadata.require_u32("split.no")?;
        if part >= n_parts {
            return refuse(format!(
                "a file says that it is part {} of {n_parts}",
                u64::from(part) + 1
            ));
        }
        Ok(Some(Self { part, n_parts, n_tensors: header.metadata.get_u32("split.tensors.count")? }))
    }
}

/// One header for all files of a model, given the header of each, in any order. File `i` of the result is the file of
/// `headers[i]`; metadata is the first part's, tensors are in the order of the parts.
///
/// # Errors
/// `invalid_model` if a part is missing or there twice, if the parts are not of one model, or if the vocabulary is
/// not in the first part.
pub fn join(headers: Vec<Header>) -> Result<Header> {
    let splits: Vec<Option<Split>> = headers.iter().map(Split::of).collect::<Result<_>>()?;
    let Some(first) = splits.first().copied() else { return refuse("no file is given") };
    let mut headers: Vec<(u32, Header)> = (0..).zip(headers).collect();
    match first {
        None if headers.len() == 1 => Ok(headers.remove(0).1),
        None => {
            refuse(format!("{} files are given, but the first is a whole model", headers.len()))
        }
        Some(first) => {
            let order = order(&splits, first)?;
            join_in_order(&mut headers, &order, first.n_tensors)
        }
    }
}

/// Index of the file that holds each part.
fn order(splits: &[Option<Split>], first: Split) -> Result<Vec<usize>> {
    let n_parts = first.n_parts;
    let mut order = vec![None; splits.len()];
    for (file, split) in splits.iter().enumerate() {
        let Some(split) = split else { return refuse("a whole model is among the parts") };
        if (split.n_parts, split.n_tensors) != (n_parts, first.n_tensors) {
            let said = |s: Split| {
                let tensors = s.n_tensors.map_or(String::new(), |n| format!(" with {n} tensors"));
                format!("{} parts{tensors}", s.n_parts)
            };
            return refuse(format!(
                "the parts are of different models: one is of {}, another of {}",
                said(first),
                said(*split)
            ));
        }
        let Some(place) = order.get_mut(split.part as usize) else { continue };
        if place.replace(file).is_some() {
            return refuse(format!("part {} of {n_parts} is given twice", split.part + 1));
        }
    }
    let found: Vec<usize> = order.into_iter().flatten().collect();
    if found.len() != n_parts as usize || found.len() != splits.len() {
        let missing = (0..n_parts).find(|part| !splits.iter().flatten().any(|s| s.part == *part));
        let which = missing
            .map_or(String::new(), |part| format!(" (part {} is missing)", u64::from(part) + 1));
        return refuse(format!(
            "{} of {n_parts} parts are given{which}: all are needed",
            splits.len()
        ));
    }
    Ok(found)
}

fn join_in_order(
    headers: &mut [(u32, Header)],
    order: &[usize],
    n_tensors: Option<u32>,
) -> Result<Header> {
    let mut joined = Header::default();
    for (part, file) in order.iter().enumerate() {
        let (file, header) = &mut headers[*file];
        let metadata = core::mem::take(&mut header.metadata);
        if part == 0 {
            joined.metadata = metadata;
        } else {
            check_vocabulary(&joined.metadata, &metadata, part)?;
        }
        joined.tensors.extend(header.tensors.drain(..).map(|mut tensor| {
            tensor.file = *file;
            tensor
        }));
    }
    joined.files = headers.iter_mut().flat_map(|(_, header)| header.files.drain(..)).collect();
    if let Some(name) = duplicate(&joined.tensors) {
        return refuse(format!("tensor '{name}' is in two parts"));
    }
    match n_tensors {
        Some(n) if n as usize != joined.tensors.len() => {
            refuse(format!("the parts hold {} tensors, {n} are declared", joined.tensors.len()))
        }
        _ => Ok(joined),
    }
}

/// Some old tools spread the vocabulary over the parts.
fn check_vocabulary(first: &Metadata, other: &Metadata, part: usize) -> Result<()> {
    let strayed = other.iter().find(|(key, value)| {
        key.starts_with("tokenizer.")
            && matches!(value, Value::Array(_))
            && first.get(key) != Some(value)
    });
    match strayed {
        Some((key, _)) => refuse(format!(
            "'{key}' is in part {} and not in the first: the vocabulary must be whole in the first part; split the \
             model again with current tools",
            part + 1
        )),
        None => Ok(()),
    }
}

/// The names of all parts, given the name (or path, or address without query) of one: `NAME-00001-of-00003.gguf`.
/// `None` if it is not such a name.
#[must_use]
pub fn sibling_names(name: &str) -> Option<Vec<String>> {
    let (rest, extension) = name.rsplit_once('.')?;
    let (rest, count) = rest.rsplit_once("-of-")?;
    let (stem, part) = rest.rsplit_once('-')?;
    let number = |digits: &str| {
        let is_number = digits.len() == 5 && digits.bytes().all(|b| b.is_ascii_digit());
        is_number.then(|| digits.parse::<u32>().ok()).flatten()
    };
    let (part, count) = (number(part)?, number(count)?);
    (1..=count)
        .contains(&part)
        .then(|| (1..=count).map(|i| format!("{stem}-{i:05}-of-{count:05}.{extension}")).collect())
}

fn refuse<T>(problem: impl Into<String>) -> Result<T> {
    Err(ParseError::Split(problem.into()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_named_after_each_other() {
        let names = sibling_names("https://host/m-00002-of-00003.gguf").unwrap();
        assert_eq!(names[0], "https://host/m-00001-of-00003.gguf");
        assert_eq!(names[2], "https://host/m-00003-of-00003.gguf");
        for other in [
            "m.gguf",
            "m-0001-of-0003.gguf",
            "m-00004-of-00003.gguf",
            "m-00000-of-00003.gguf",
            "m-of-n.gguf",
        ] {
            assert_eq!(sibling_names(other), None, "{other}");
        }
    }
}
