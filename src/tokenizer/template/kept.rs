//! Bounds for values that a template keeps under a name. Sets in a loop can nest lists, or chain lists that are not made yet, thousands
//! deep, and everything that walks through them, dropping included, takes stack for each level. So what is set goes through filters
//! of our own: it is made at once, no deeper than a bound, and holds nothing that could hold it in turn.

use minijinja::value::ValueKind;
use minijinja::{Environment, Error, ErrorKind, State, Value};

/// Behind what is set.
pub(super) const KEPT: &str = "__kept";
/// Behind what is set in a namespace, which must not hold another one: it could be itself.
pub(super) const HELD: &str = "__held";

/// Adds the filters.
pub(super) fn add_to(environment: &mut Environment<'_>) {
    environment
        .add_filter(KEPT, |state: &mut State<'_, '_>, value: Value| kept(state, value, false));
    environment
        .add_filter(HELD, |state: &mut State<'_, '_>, value: Value| kept(state, value, true));
}

/// `source`, the inside of a tag, with a filter behind what it sets.
pub(super) fn with_filter(source: &str) -> Option<String> {
    source.trim_start_matches(is_sign).strip_prefix("set")?.strip_prefix(char::is_whitespace)?;
    let (target, value) = source.split_once('=')?;
    if target.contains('|') {
        return None; // a block with a filter that has arguments
    }
    let filter = if target.contains('.') { HELD } else { KEPT };
    let end = value.trim_end_matches(is_sign).len();
    let (value, signs) = value.split_at(end);
    Some(format!("{target}= ({})|{filter} {}", value.trim_start(), signs.trim_start()))
}

/// White space, and the signs of a tag that are about it.
pub(super) fn is_sign(c: char) -> bool {
    c.is_whitespace() || c == '-' || c == '+'
}

fn kept(state: &State<'_, '_>, value: Value, is_held: bool) -> Result<Value, Error> {
    let mut walk = Walk { state, is_held, unpaid: 0 };
    let made = walk.made(&value, MAX_DEPTH)?;
    Ok(made.unwrap_or(value))
}

struct Walk<'s, 'a, 'b> {
    state: &'s State<'a, 'b>,
    is_held: bool,
    /// Items seen that no fuel was taken for.
    unpaid: u64,
}

impl Walk<'_, '_, '_> {
    /// `value` with all its lists made, or nothing if they are.
    fn made(&mut self, value: &Value, depth: usize) -> Result<Option<Value>, Error> {
        let kind = value.kind();
        if is_a("::Macro", value)
            || is_a("::Loop", value)
            || (self.is_held && is_a("::Namespace", value))
        {
            return Err(refused("a macro, a loop or a namespace cannot be set to a name"));
        }
        if !matches!(kind, ValueKind::Seq | ValueKind::Map | ValueKind::Iterable) {
            return Ok(None);
        }
        let Some(depth) = depth.checked_sub(1) else {
            return Err(refused("a value is nested too deeply to be kept"));
        };
        match kind {
            ValueKind::Map => self.map(value, depth),
            _ => self.list(value, kind == ValueKind::Iterable, depth),
        }
    }

    fn list(&mut self, value: &Value, is_new: bool, depth: usize) -> Result<Option<Value>, Error> {
        let mut items: Option<Vec<Value>> = is_new.then(Vec::new);
        for (index, item) in value.try_iter()?.enumerate() {
            self.pay(is_new)?;
            let made = self.made(&item, depth)?;
            if made.is_some() && items.is_none() {
                items = Some(value.try_iter()?.take(index).collect());
            }
            if let Some(items) = &mut items {
                items.push(made.unwrap_or(item));
            }
        }
        Ok(items.map(Value::from))
    }

    fn map(&mut self, value: &Value, depth: usize) -> Result<Option<Value>, Error> {
        let mut pairs = Vec::new();
        let mut is_new = false;
        for key in value.try_iter()? {
            self.pay(false)?;
            let item = value.get_item(&key)?;
            self.made(&key, depth)?;
            let made = self.made(&item, depth)?;
            is_new |= made.is_some();
            pairs.push((key, made.unwrap_or(item)));
        }
        match (is_new, is_a("::Namespace", value)) {
            (false, _) => Ok(None),
            (true, false) => Ok(Some(Value::from_pairs(pairs))),
            (true, true) => Err(refused("a namespace begins with a list that is not made yet")),
        }
    }

    /// An item that is looked at costs little, one that is copied as much as an instruction.
    fn pay(&mut self, is_copied: bool) -> Result<(), Error> {
        self.unpaid += if is_copied { ITEMS_PER_FUEL } else { 1 };
        if self.unpaid < ITEMS_PER_FUEL {
            return Ok(());
        }
        let fuel = core::mem::take(&mut self.unpaid) / ITEMS_PER_FUEL;
        self.state.consume_fuel(fuel)
    }
}

/// Whether the value is an object of this type of the engine's.
fn is_a(type_name: &str, value: &Value) -> bool {
    value.as_object().is_some_and(|object| object.type_name().ends_with(type_name))
}

fn refused(what: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, what)
}

const ITEMS_PER_FUEL: u64 = 64;

/// Lists in one another, each of which takes stack.
const MAX_DEPTH: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_has_a_filter_and_nothing_else() {
        for (source, expected) in [
            ("- set x = a if b else c -", Some("- set x = (a if b else c)|__kept -")),
            (" set ns.a=[1] ", Some(" set ns.a= ([1])|__held ")),
            (" set a, b = 1, '=' ", Some(" set a, b = (1, '=')|__kept ")),
            (" set x ", None),
            (" set x | default(a=1) ", None),
            (" settle = 1 ", None),
            (" if a == 1 ", None),
        ] {
            assert_eq!(with_filter(source).as_deref(), expected, "{source}");
        }
    }
}
