//! What counts as a message: a role that is one word, and text.

use super::json::Json;
use crate::error::{Error, ErrorKind, Result};

/// The messages with text parts joined, as templates expect a content.
///
/// # Errors
/// `invalid_option` naming the message and what is wrong with it.
pub(super) fn checked(messages: &[Json]) -> Result<Vec<Json>> {
    if messages.is_empty() {
        return Err(wrong("there are no messages; give at least one".to_owned()));
    }
    messages.iter().enumerate().map(|(index, message)| check(index, message)).collect()
}

/// The message with everything but its role guarded: what a caller wrote.
pub(super) fn guarded(message: &Json, guard: &mut impl FnMut(&str) -> String) -> Json {
    let Json::Object(fields) = message else { return message.map_texts(guard) };
    let guarded = |(key, value): &(String, Json)| {
        let value = if key == ROLE { value.clone() } else { value.map_texts(guard) };
        (key.clone(), value)
    };
    Json::Object(fields.iter().map(guarded).collect())
}

fn check(index: usize, message: &Json) -> Result<Json> {
    let Json::Object(fields) = message else {
        return Err(wrong(format!("message {index} is {message}; it must be an object")));
    };
    let role = message.get(ROLE).and_then(Json::text).unwrap_or_default();
    let is_word = |text: &str| {
        text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
            && (1..=64).contains(&text.len())
    };
    if !is_word(role) {
        return Err(wrong(format!(
            "message {index} needs a 'role' of one word, such as 'user', 'assistant' or 'system'"
        )));
    }
    let field = |(key, value): &(String, Json)| {
        let value = if key == CONTENT { content(index, value)? } else { value.clone() };
        Ok((key.clone(), value))
    };
    let fields = fields.iter().map(field).collect::<Result<Vec<_>>>()?;
    let message = Json::Object(fields);
    let is_silent = matches!(message.get(CONTENT), None | Some(Json::Null));
    // Only an assistant may say nothing: it calls tools, or was cut short.
    let may_be = message.get("tool_calls").is_some()
        || (role == "assistant" && message.get(CONTENT).is_some());
    if is_silent && !may_be {
        return Err(wrong(format!("message {index} has no 'content'")));
    }
    Ok(message)
}

/// A text; parts of text are joined by line feeds.
fn content(index: usize, content: &Json) -> Result<Json> {
    match content {
        Json::Text(_) | Json::Null => Ok(content.clone()),
        Json::List(parts) => {
            let texts = parts.iter().map(|part| text_part(index, part));
            Ok(Json::Text(texts.collect::<Result<Vec<_>>>()?.join("\n")))
        }
        other => Err(wrong(format!(
            "the content of message {index} is {other}; it must be a text or a list of text parts"
        ))),
    }
}

fn text_part(index: usize, part: &Json) -> Result<&str> {
    let kind = part.get("type").and_then(Json::text);
    match (kind, part.get("text").and_then(Json::text)) {
        (Some("text"), Some(text)) => Ok(text),
        _ => Err(wrong(format!(
            "the content of message {index} has a part of type '{}'; models here read text only",
            kind.unwrap_or_default()
        ))),
    }
}

fn wrong(message: String) -> Error {
    Error::new(ErrorKind::InvalidOption, message).with("key", "messages")
}

const ROLE: &str = "role";
const CONTENT: &str = "content";
