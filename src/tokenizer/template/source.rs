//! Which template it is: the caller's, the file's (with one of its own for tools, in some), or a fallback; and what its
//! failures mean.

use super::fallbacks;
use super::python::RAISED;
use super::{Conversation, Json};
use crate::error::{Error, ErrorKind, Result};
use crate::gguf::Metadata;
use crate::tokenizer::Tokenizer;

/// A template and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    /// Jinja.
    pub(super) text: String,
    /// Whose: `option`, `file`, or the name of a fallback.
    pub(super) from: &'static str,
}

impl Source {
    /// The template for `conversation`.
    pub(super) fn find(
        metadata: &Metadata,
        tokenizer: &Tokenizer,
        conversation: &Conversation,
    ) -> Result<Self> {
        if let Some(wanted) = &conversation.template {
            return match fallbacks::named(wanted) {
                Some(fallback) => Ok(fallback.into()),
                None if wanted.contains('{') => Ok(Self { text: wanted.clone(), from: OPTION }),
                None => {
                    let names = fallbacks::names();
                    let what = "is no template in Jinja and no name of one; there are";
                    let message = format!("option 'template': '{wanted}' {what}: {names}");
                    Err(Error::new(ErrorKind::InvalidOption, message).with("key", "template"))
                }
            };
        }
        let for_tools = matches!(&conversation.tools, Some(Json::List(tools)) if !tools.is_empty());
        let for_tools = if for_tools { metadata.get_str(TOOL_TEMPLATE)? } else { None };
        if let Some(text) = for_tools.or(metadata.get_str(TEMPLATE)?) {
            return Ok(Self { text: text.to_owned(), from: FILE });
        }
        fitting(tokenizer).map(Self::from).ok_or_else(|| {
            let message = format!(
                "the file has no chat template ('{TEMPLATE}'), and its vocabulary does not say which would fit: give one as \
                 option 'template', in Jinja or by name ({})",
                fallbacks::names()
            );
            Error::new(ErrorKind::InvalidOption, message).with("key", "template")
        })
    }

    /// What it means that running the template failed.
    pub(super) fn failed(&self, error: &minijinja::Error) -> Error {
        use minijinja::ErrorKind as Kind;
        let detail = error.detail().unwrap_or_default();
        if let Some(said) = detail.strip_prefix(RAISED) {
            let message = format!("the chat template refuses the conversation: {said}");
            return Error::new(ErrorKind::InvalidOption, message).with("key", "messages");
        }
        let (kind, what) = match error.kind() {
            Kind::OutOfFuel => {
                (ErrorKind::InvalidModel, "it runs without end, or builds too large a text".into())
            }
            Kind::SyntaxError
            | Kind::UnknownFilter
            | Kind::UnknownTest
            | Kind::UnknownFunction
            | Kind::UnknownMethod => (ErrorKind::UnsupportedModel, error.to_string()),
            _ => (ErrorKind::InvalidModel, error.to_string()),
        };
        let line = error.line().map_or_else(String::new, |line| format!(" (line {line})"));
        self.refused(kind, &format!("{what}{line}"))
    }

    /// The error of `kind` for a template that `what` is wrong with.
    pub(super) fn refused(&self, kind: ErrorKind, what: &str) -> Error {
        let (kind, whose, key) = match self.from {
            OPTION => (ErrorKind::InvalidOption, "of option 'template'".to_owned(), "template"),
            FILE => (kind, "of the file".to_owned(), TEMPLATE),
            name => (kind, format!("'{name}'"), "template"),
        };
        let message = format!("the chat template {whose} cannot render this conversation: {what}");
        Error::new(kind, message).with("key", key)
    }
}

impl From<&'static fallbacks::Fallback> for Source {
    fn from(fallback: &'static fallbacks::Fallback) -> Self {
        Self { text: fallback.source.to_owned(), from: fallback.name }
    }
}

/// `file`, the name of the fallback that fits, or nothing.
pub(super) fn name(metadata: &Metadata, tokenizer: &Tokenizer) -> Option<&'static str> {
    match metadata.get_str(TEMPLATE) {
        Ok(Some(_)) => Some(FILE),
        _ => fitting(tokenizer).map(|fallback| fallback.name),
    }
}

fn fitting(tokenizer: &Tokenizer) -> Option<&'static fallbacks::Fallback> {
    fallbacks::fitting(|token| tokenizer.vocab.find(token.as_bytes()).is_some())
}

/// `{% generation %}` marks what the assistant wrote, for training; here it means nothing. Its block is kept, as one that is
/// always taken.
pub(super) fn without_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("{%") {
        let (before, tag) = rest.split_at(at + 2);
        out.push_str(before);
        let inside = &tag[..tag.find("%}").unwrap_or(tag.len())];
        let word = inside.trim_matches(|c: char| c.is_whitespace() || c == '-' || c == '+');
        let replaced = match word {
            "generation" => inside.replace(word, "if true"),
            "endgeneration" => inside.replace(word, "endif"),
            _ => inside.to_owned(),
        };
        out.push_str(&replaced);
        rest = &tag[inside.len()..];
    }
    out.push_str(rest);
    out
}

const TEMPLATE: &str = "tokenizer.chat_template";
const TOOL_TEMPLATE: &str = "tokenizer.chat_template.tool_use";
const FILE: &str = "file";
const OPTION: &str = "option";
