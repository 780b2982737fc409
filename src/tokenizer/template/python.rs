//! What `transformers` adds to Jinja, and what Python's values do that minijinja's do not: `tojson`, `raise_exception`,
//! `strftime_now`, methods of strings.

use std::sync::Arc;

use minijinja::value::{Kwargs, Rest, ValueKind, from_args};
use minijinja::{Environment, Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat;

use super::clock::LocalTime;
use super::lists;
use super::stand_ins::StandIns;

/// Adds it all to `environment`.
pub(super) fn add_to(environment: &mut Environment<'_>, now: LocalTime, stand_ins: Arc<StandIns>) {
    environment.set_unknown_method_callback(method);
    lists::add_to(environment);
    environment.add_filter(
        "tojson",
        move |state: &mut State<'_, '_>, value: Value, args: Rest<Value>, kwargs: Kwargs| {
            let layout = Layout::read(&args, &kwargs)?;
            let mut writer = Writer { out: String::new(), layout, stand_ins: &stand_ins };
            writer.value(state, &value, 0)?;
            Ok(writer.out)
        },
    );
    environment.add_test("iterable", |value: &Value| is_iterable(value));
    environment.add_test("sequence", |value: &Value| {
        is_iterable(value) && value.kind() != ValueKind::Iterable
    });
    environment.add_function("raise_exception", |message: Value| -> Result<Value, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, format!("{RAISED}{message}")))
    });
    environment.add_function("strftime_now", move |format: &str| {
        now.format(format).ok_or_else(|| {
            let message = format!("'{format}' has a directive that strftime_now does not know");
            Error::new(ErrorKind::InvalidOperation, message)
        })
    });
}

/// As Python sees it: a text and something undefined are, nothing is not.
fn is_iterable(value: &Value) -> bool {
    use ValueKind::{Iterable, Map, Seq, String, Undefined};
    matches!(value.kind(), String | Seq | Map | Iterable | Undefined)
}

/// What an exception of the template's own begins with.
pub(super) const RAISED: &str = "raised: ";

/// Methods that Python's strings have beyond those of `pycompat`.
fn method(
    state: &mut State<'_, '_>,
    value: &Value,
    name: &str,
    args: &[Value],
) -> Result<Value, Error> {
    for walked in args.iter().chain([value]) {
        lists::pay_for_lists(state, walked)?;
    }
    let Some(text) = value.as_str() else {
        return pycompat::unknown_method_callback(state, value, name, args);
    };
    pay_for_walk(state, text, name, args)?;
    match name {
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(args)?;
            Ok(text.strip_prefix(prefix).unwrap_or(text).into())
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(args)?;
            Ok(text.strip_suffix(suffix).unwrap_or(text).into())
        }
        "partition" | "rpartition" => {
            let (separator,): (&str,) = from_args(args)?;
            let cut = if name == "partition" {
                text.split_once(separator)
            } else {
                text.rsplit_once(separator)
            };
            let parts = match (cut, name) {
                (Some((before, after)), _) => vec![before, separator, after],
                (None, "partition") => vec![text, "", ""],
                (None, _) => vec!["", "", text],
            };
            Ok(parts.into_iter().map(Value::from).collect())
        }
        "rsplit" => {
            let (separator, most): (&str, Option<usize>) = from_args(args)?;
            let most = most.map_or(usize::MAX, |n| n.saturating_add(1));
            let mut pieces: Vec<&str> = text.rsplitn(most, separator).collect();
            pieces.reverse();
            Ok(pieces.into_iter().map(Value::from).collect())
        }
        "casefold" => {
            let () = from_args(args)?;
            Ok(text.to_lowercase().into())
        }
        _ => pycompat::unknown_method_callback(state, value, name, args),
    }
}

/// What a method reads of its text is paid for, like what filters read.
fn pay_for_walk(
    state: &State<'_, '_>,
    text: &str,
    name: &str,
    args: &[Value],
) -> Result<(), Error> {
    let set = || args.first().and_then(Value::as_str).map_or(1, str::len);
    let n_bytes = match name {
        // They read no more than what they look for.
        "startswith" | "endswith" | "removeprefix" | "removesuffix" => 0,
        // Each character is looked up in a set of them.
        "strip" | "lstrip" | "rstrip" => text.len().saturating_mul(set()),
        _ => text.len(),
    };
    state.consume_fuel(n_bytes as u64 / 64)
}

/// The arguments of Python's `json.dumps` that `transformers` passes on.
#[derive(Debug, Default)]
struct Layout {
    ascii: bool,
    indent: Option<String>,
    separators: Option<(String, String)>,
    sorted: bool,
}

impl Layout {
    fn read(args: &[Value], kwargs: &Kwargs) -> Result<Self, Error> {
        let given = |place: usize, name: &str| -> Result<Option<Value>, Error> {
            let named: Option<Value> = kwargs.get(name)?;
            Ok(args.get(place).cloned().or(named).filter(|value| !value.is_none()))
        };
        let ascii = given(0, "ensure_ascii")?.is_some_and(|value| value.is_true());
        let indent = match given(1, "indent")? {
            Some(value) if value.kind() == ValueKind::String => Some(value.to_string()),
            Some(value) => Some(" ".repeat(usize::try_from(value)?.min(MAX_INDENT))),
            None => None,
        };
        let separators = match given(2, "separators")? {
            Some(value) => {
                let both = |i: usize| value.get_item(&Value::from(i)).map(|item| item.to_string());
                Some((both(0)?, both(1)?))
            }
            None => None,
        };
        let sorted = given(3, "sort_keys")?.is_some_and(|value| value.is_true());
        kwargs.assert_all_used()?;
        Ok(Self { ascii, indent, separators, sorted })
    }
}

/// Writes JSON as Python does.
struct Writer<'a> {
    out: String,
    layout: Layout,
    stand_ins: &'a StandIns,
}

impl Writer<'_> {
    fn value(&mut self, state: &State<'_, '_>, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(refused("a value that is nested too deeply"));
        }
        let before = self.out.len();
        match value.kind() {
            ValueKind::None => self.out.push_str("null"),
            ValueKind::Bool => self.out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => self.number(value),
            ValueKind::String => self.text(value.as_str().unwrap_or_default()),
            ValueKind::Seq | ValueKind::Iterable => {
                let items = collected(state, value)?;
                self.group(b"[]", depth, &items, |writer, item| {
                    writer.value(state, item, depth + 1)
                })?;
            }
            ValueKind::Map => {
                let mut keys = collected(state, value)?;
                if self.layout.sorted {
                    keys.sort();
                }
                self.group(b"{}", depth, &keys, |writer, key| {
                    writer.key(key)?;
                    let colon = writer.layout.separators.as_ref().map(|(_, colon)| colon.clone());
                    writer.out.push_str(colon.as_deref().unwrap_or(": "));
                    writer.value(state, &value.get_item(key)?, depth + 1)
                })?;
            }
            other => return Err(refused(&format!("{other}"))),
        }
        // What is written is paid for as other work is, so that nothing is written for nothing.
        state.consume_fuel(((self.out.len() - before) / 64) as u64 + 1)
    }

    fn group(
        &mut self,
        brackets: &[u8; 2],
        depth: usize,
        items: &[Value],
        mut each: impl FnMut(&mut Self, &Value) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.out.push(char::from(brackets[0]));
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                let comma = self.layout.separators.as_ref().map(|(comma, _)| comma.clone());
                let usual = if self.layout.indent.is_some() { "," } else { ", " };
                self.out.push_str(comma.as_deref().unwrap_or(usual));
            }
            self.new_line(depth + 1);
            each(self, item)?;
        }
        if !items.is_empty() {
            self.new_line(depth);
        }
        self.out.push(char::from(brackets[1]));
        Ok(())
    }

    fn new_line(&mut self, depth: usize) {
        if let Some(indent) = &self.layout.indent {
            self.out.push('\n');
            for _ in 0..depth {
                self.out.push_str(indent);
            }
        }
    }

    fn key(&mut self, key: &Value) -> Result<(), Error> {
        match key.kind() {
            ValueKind::String => self.text(key.as_str().unwrap_or_default()),
            ValueKind::None => self.out.push_str("\"null\""),
            ValueKind::Bool => {
                self.out.push_str(if key.is_true() { "\"true\"" } else { "\"false\"" });
            }
            ValueKind::Number => {
                self.out.push('"');
                self.number(key);
                self.out.push('"');
            }
            other => return Err(refused(&format!("a key that is {other}"))),
        }
        Ok(())
    }

    fn number(&mut self, number: &Value) {
        if number.is_integer() {
            self.out.push_str(&number.to_string());
            return;
        }
        match f64::try_from(number.clone()) {
            Ok(x) if x.is_nan() => self.out.push_str("NaN"),
            Ok(x) if x.is_infinite() => {
                self.out.push_str(if x > 0.0 { "Infinity" } else { "-Infinity" });
            }
            Ok(x) => self.out.push_str(&python_float(x)),
            Err(_) => self.out.push_str(&number.to_string()),
        }
    }

    fn text(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                c if c < ' ' => self.escape(c),
                c if self.layout.ascii && !c.is_ascii() => match self.stand_ins.original(c) {
                    Some(original) if original.is_ascii() => self.out.push(c),
                    original => self.escape(original.unwrap_or(c)),
                },
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }

    fn escape(&mut self, c: char) {
        for unit in c.encode_utf16(&mut [0; 2]) {
            self.out.push_str(&format!("\\u{unit:04x}"));
        }
    }
}

/// The items of a list, or the keys of a map, each paid for: sums of lists are longer than the memory they take.
fn collected(state: &State<'_, '_>, value: &Value) -> Result<Vec<Value>, Error> {
    let paid = |item| state.consume_fuel(1).map(|()| item);
    value.try_iter()?.map(paid).collect()
}

/// Python's `repr` of a finite float.
fn python_float(x: f64) -> String {
    let size = x.abs();
    if size != 0.0 && !(1e-4..1e16).contains(&size) {
        let text = format!("{x:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    format!("{x:?}")
}

fn refused(what: &str) -> Error {
    Error::new(ErrorKind::BadSerialization, format!("tojson cannot write {what}"))
}

const MAX_DEPTH: usize = 64;
const MAX_INDENT: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_pythons() {
        for (x, expected) in [
            (0.1, "0.1"),
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (1e16, "1e+16"),
            (123_456_789_012_345.0, "123456789012345.0"),
            (1.5e-5, "1.5e-05"),
            (1e-4, "0.0001"),
            (2.5e300, "2.5e+300"),
        ] {
            assert_eq!(python_float(x), expected);
        }
    }
}
