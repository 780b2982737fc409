//! Chat templates: a conversation → the ids that a model was trained to see, by the Jinja template in its file or a fallback.
//!
//! Templates are untrusted programs: they run with fuel, which bounds time and memory, and without access to anything.
//! Control tokens are recognised in what the template itself writes, never in what a message says (`stand_ins`).
//! `docs/chat.md` says how it differs from Python's Jinja.

mod clock;
mod fallbacks;
mod json;
mod kept;
mod lists;
mod messages;
mod operands;
mod python;
mod source;
mod stand_ins;

pub use clock::LocalTime;
pub use json::Json;

use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Value};

use super::Tokenizer;
use super::partition::{Fragment, partition};
use super::special::ALWAYS_SHOWN;
use crate::TokenId;
use crate::error::{ErrorKind, Result};
use crate::gguf::Metadata;
use source::Source;
use stand_ins::{Markers, StandIns};

/// What a template is given.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    /// Messages as OpenAI shapes them: objects with a `role` and a `content` of text or text parts; other keys are passed on.
    pub messages: Vec<Json>,
    /// Definitions of tools, passed on as they are.
    pub tools: Option<Json>,
    /// A template in place of the file's: Jinja, or the name of a fallback.
    pub template: Option<String>,
    /// More variables of the template.
    pub arguments: Vec<(String, Json)>,
    /// Whether the answer's beginning is written too, so that the model answers.
    pub add_generation_prompt: bool,
    /// What `strftime_now` tells.
    pub now: LocalTime,
}

/// A conversation as the model sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedChat {
    /// The text.
    pub text: String,
    /// Its ids, BOS included where the model wants it.
    pub ids: Vec<TokenId>,
}

/// Where the template comes from that conversations are rendered with unless they bring one: `file`, or the name of a
/// fallback; `None` if there is neither.
#[must_use]
pub fn template_name(metadata: &Metadata, tokenizer: &Tokenizer) -> Option<&'static str> {
    source::name(metadata, tokenizer)
}

impl Tokenizer {
    /// Renders `conversation` with the template of `metadata`, a fallback or its own, and encodes it.
    ///
    /// # Errors
    /// `invalid_option` for messages that are no messages, for those that the template refuses, or when there is no template;
    /// `invalid_model` or `unsupported_model` for a template that cannot be run.
    pub fn render_chat(
        &self,
        metadata: &Metadata,
        conversation: &Conversation,
    ) -> Result<RenderedChat> {
        let source = Source::find(metadata, self, conversation)?;
        let messages = messages::checked(&conversation.messages)?;
        let template = Json::Text(source.text.clone());
        let mut arguments = conversation.arguments.clone();
        arguments.push(("tools".to_owned(), conversation.tools.clone().unwrap_or(Json::Null)));
        let mut stand_ins = StandIns::new(
            messages.iter().chain(arguments.iter().map(|(_, value)| value)).chain([&template]),
        );
        let markers = Markers::of(&self.vocab);
        let mut guard = |text: &str| stand_ins.guard(&markers, text);
        let messages: Vec<Value> =
            messages.iter().map(|m| Value::from(&messages::guarded(m, &mut guard))).collect();
        let arguments: Vec<(String, Value)> = arguments
            .into_iter()
            .map(|(name, value)| (name, Value::from(&value.map_texts(&mut guard))))
            .collect();
        stand_ins.check()?;

        let stand_ins = Arc::new(stand_ins);
        let variables = self
            .special_texts()
            .map(|(name, text)| (name.to_owned(), Value::from(text)))
            .chain(arguments)
            .chain([
                ("messages".to_owned(), Value::from(messages)),
                ("documents".to_owned(), Value::from(())),
                (
                    "add_generation_prompt".to_owned(),
                    Value::from(conversation.add_generation_prompt),
                ),
            ]);
        let text = source.render(variables.collect(), conversation.now, &stand_ins)?;
        let ids = self.encode_rendered(&text, &stand_ins)?;
        Ok(RenderedChat { text: stand_ins.restore(&text).unwrap_or(text), ids })
    }

    /// The ids of a rendered text. Like llama.cpp it begins with BOS where the vocabulary wants that and the template did not
    /// write it.
    fn encode_rendered(&self, text: &str, stand_ins: &StandIns) -> Result<Vec<TokenId>> {
        self.check_encodable(text)?;
        let mut ids = Vec::new();
        let mut after_special = true;
        partition(&self.vocab, &self.lengths_all, text, |fragment| match fragment {
            Fragment::Token(id) => {
                ids.push(id);
                after_special = true;
            }
            Fragment::Text(text) => {
                match stand_ins.restore(text) {
                    Some(text) => self.encode_written(&text, &mut after_special, &mut ids),
                    None => self.encode_fragment(text, after_special, &mut ids),
                }
                after_special = false;
            }
        });
        if self.add_bos && self.special.bos.is_some() && ids.first() != self.special.bos.as_ref() {
            ids.splice(0..0, self.special.bos);
        }
        Ok(ids)
    }

    /// Encodes what a message says: no control token is recognised in it, nor those that llama.cpp counts as text.
    fn encode_written(&self, text: &str, after_special: &mut bool, ids: &mut Vec<TokenId>) {
        let is_marker = |id| ALWAYS_SHOWN.iter().any(|m| m.as_bytes() == self.vocab.text(id));
        let mut plain = 0..0;
        partition(&self.vocab, &self.lengths_user_defined, text, |fragment| match fragment {
            Fragment::Token(id) if !is_marker(id) => {
                self.encode_plain(&text[plain.clone()], after_special, ids);
                ids.push(id);
                plain.end += self.vocab.text(id).len();
                plain.start = plain.end;
                *after_special = true;
            }
            Fragment::Token(id) => plain.end += self.vocab.text(id).len(),
            Fragment::Text(text) => plain.end += text.len(),
        });
        self.encode_plain(&text[plain], after_special, ids);
    }

    fn encode_plain(&self, text: &str, after_special: &mut bool, ids: &mut Vec<TokenId>) {
        if !text.is_empty() {
            self.encode_fragment(text, *after_special, ids);
            *after_special = false;
        }
    }

    /// The texts of the special tokens under the names that templates know them by.
    fn special_texts(&self) -> impl Iterator<Item = (&'static str, String)> {
        let ids = self.special;
        let roles = [
            ("bos_token", ids.bos),
            ("eos_token", ids.eos),
            ("unk_token", ids.unk),
            ("sep_token", ids.sep),
            ("pad_token", ids.pad),
        ];
        roles.into_iter().filter_map(|(name, id)| {
            let text = self.vocab.text(id?);
            Some((name, core::str::from_utf8(text).ok()?.to_owned()))
        })
    }
}

impl Source {
    /// The text that the template makes of `variables`.
    fn render(
        &self,
        variables: Vec<(String, Value)>,
        now: LocalTime,
        stand_ins: &Arc<StandIns>,
    ) -> Result<String> {
        let given: usize = variables.iter().map(|(_, value)| size_of_value(value)).sum();
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(|error| self.failed(&error))?);
        environment.set_recursion_limit(RECURSIONS);
        environment.set_fuel(Some(FUEL + given as u64));
        python::add_to(&mut environment, now, Arc::clone(stand_ins));
        let text = operands::with_filters(&source::without_generation_tags(&self.text));
        let Some(text) = text else {
            let message =
                "an expression, or a chain of operators or of `elif`, is nested too deeply";
            return Err(self.refused(ErrorKind::InvalidModel, message));
        };
        let template = environment.template_from_str(&text).map_err(|e| self.failed(&e))?;
        let rendered = template.render(Value::from_pairs(variables));
        let rendered = rendered.map_err(|error| self.failed(&error))?;
        if rendered.len() > MAX_OUTPUT + 2 * given {
            let message = format!("it makes a text of {} bytes", rendered.len());
            return Err(self.refused(ErrorKind::InvalidModel, &message));
        }
        Ok(rendered)
    }
}

/// Roughly the bytes that a template can get out of a value by reading it once.
fn size_of_value(value: &Value) -> usize {
    match value.as_str() {
        Some(text) => text.len(),
        None => match value.try_iter() {
            Ok(items) => items
                .map(|item| {
                    16 + size_of_value(&value.get_item(&item).unwrap_or_default())
                        .max(size_of_value(&item))
                })
                .sum(),
            Err(_) => 8,
        },
    }
}

/// Work that a template may do for nothing, in minijinja's measure: an instruction, or 64 bytes; and so much again for each byte
/// that it is given. The templates in the wild take a twentieth of it.
const FUEL: u64 = 100_000;

/// Macros and blocks inside one another; each takes stack.
const RECURSIONS: usize = 60;

/// Bytes of text beyond twice what the messages have.
const MAX_OUTPUT: usize = 1 << 20;
