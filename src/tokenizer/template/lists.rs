//! Bounds for lists, whose items may be one long text over and over. In `minijinja` sums of lists are lazy: doubling one costs nothing
//! until something walks through it, or copies it, with more items than memory has room for. So what an operator takes is looked at
//! first, by filters of our own that are written behind the operands of the template's `+`, `*` and `~`; and the filters that write
//! a list out have it paid for before they begin.

use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, Value, filters};

use super::kept;
use super::operands::{FACTOR, TERM, WRITTEN};

/// Adds the filters, and takes away what would go around them.
pub(super) fn add_to(environment: &mut Environment<'_>) {
    kept::add_to(environment);
    environment.add_filter(TERM, |state: &mut State<'_, '_>, value: Value| {
        pay_for_items(state, &value).map(|()| value)
    });
    environment.add_filter(WRITTEN, |state: &mut State<'_, '_>, value: Value| {
        pay_for_lists(state, &value).map(|()| value)
    });
    environment.add_filter(FACTOR, |value: Value| {
        if is_list(&value) { Err(refused("lists cannot be multiplied here")) } else { Ok(value) }
    });
    // It joins lists as `+` does, and Jinja2 has none.
    environment.remove_filter("chain");
    environment.add_filter("sum", sum);
    macro_rules! paid_for {
        ($($name:literal: $filter:path;)*) => {$(
            environment.add_filter(concat!("__", $name), $filter);
            environment.add_filter(
                $name,
                |state: &mut State<'_, '_>, args: Rest<Value>| -> Result<Value, Error> {
                    args.iter().try_for_each(|value| pay_for_lists(state, value))?;
                    state.apply_filter(concat!("__", $name), &args)
                },
            );
        )*};
    }
    paid_for! {
        "capitalize": filters::capitalize;
        "escape": filters::escape;
        "e": filters::escape;
        "format": filters::format;
        "join": filters::join;
        "lines": filters::lines;
        "lower": filters::lower;
        "replace": filters::replace;
        "split": filters::split;
        "string": filters::string;
        "title": filters::title;
        "trim": filters::trim;
        "upper": filters::upper;
    }
}

/// Numbers only: texts and lists would be copied once for each item.
fn sum(
    state: &mut State<'_, '_>,
    values: Value,
    attribute: Option<&str>,
    start: Option<Value>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let start = match start {
        Some(start) => start,
        None => kwargs.get::<Option<Value>>("start")?.unwrap_or_else(|| Value::from(0)),
    };
    if !start.is_number() {
        return Err(refused("sum adds numbers here, no lists or texts"));
    }
    filters::sum(state, values, attribute, Some(start), kwargs)
}

/// A list that is going to be written out is paid for with all that is in it.
pub(super) fn pay_for_lists(state: &State<'_, '_>, value: &Value) -> Result<(), Error> {
    pay_within(state, value, MAX_DEPTH)
}

fn pay_within(state: &State<'_, '_>, value: &Value, depth: usize) -> Result<(), Error> {
    let is_map = value.kind() == ValueKind::Map;
    if !is_list(value) && !is_map {
        return Ok(());
    }
    let Some(depth) = depth.checked_sub(1) else {
        return Err(refused("a list is nested too deeply to be written"));
    };
    let pay = |item: &Value| {
        state.consume_fuel(1 + item.as_str().map_or(0, str::len) as u64 / 64)?;
        pay_within(state, item, depth)
    };
    for item in value.try_iter()? {
        pay(&item)?;
        if is_map {
            pay(&value.get_item(&item)?)?;
        }
    }
    Ok(())
}

/// Each item costs an eighth of an instruction: no sum of lists gets longer than eight times the fuel.
fn pay_for_items(state: &State<'_, '_>, value: &Value) -> Result<(), Error> {
    // What does not know its length is no sum of lists.
    let n_items = if is_list(value) { value.len().unwrap_or(0) } else { 0 };
    state.consume_fuel(n_items as u64 / 8)
}

fn is_list(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
}

fn refused(what: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, what)
}

/// Lists in one another, each of which takes stack.
const MAX_DEPTH: usize = 64;
