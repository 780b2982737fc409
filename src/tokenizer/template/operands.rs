//! Finds the operands of `+`, `*` and `~` in a template's source, and what it sets, and writes a filter behind each. It knows tokens and
//! brackets, and nothing of what they mean: filters bind closer than operators, so the expression stays what it was. On the way
//! it refuses expressions that are deeper than the stack would bear, chains included: `1+1+…` nests to the left.

use super::kept::{self, is_sign};

/// Behind the operands of `+`.
pub(super) const TERM: &str = "__term";
/// Behind those of `*`.
pub(super) const FACTOR: &str = "__factor";
/// Behind those of `~`.
pub(super) const WRITTEN: &str = "__written";

/// `source` with the filters; `None` for one that is too deep.
pub(super) fn with_filters(source: &str) -> Option<String> {
    let (mut n_elifs, mut n_open) = (0_usize, 0_usize);
    let mut out = String::with_capacity(source.len() + source.len() / 8);
    let mut rest = source;
    while let Some(at) = rest.find('{') {
        let close = match rest.as_bytes().get(at + 1) {
            Some(b'#') => "#}",
            Some(b'%') => "%}",
            Some(b'{') => "}}",
            _ => "",
        };
        let (before, inside) = rest.split_at(at + 1 + usize::from(!close.is_empty()));
        out.push_str(before);
        let end = match close {
            "" => 0,
            "#}" => copied(inside.find(close), inside, &mut out),
            _ => {
                let start = out.len();
                let end = Tag::new(inside, close).copy_to(&mut out)?;
                if close == "%}" {
                    if let Some(tag) = kept::with_filter(&out[start..]) {
                        out.truncate(start);
                        out.push_str(&tag);
                    }
                    let inside = inside[..end].trim_start_matches(is_sign);
                    let word = &inside[..token_len(inside, inside.chars().next().unwrap_or(' '))];
                    // Each is an `if` in the one before it.
                    n_elifs += usize::from(word == "elif");
                    let opens = BLOCKS.contains(&word) || (word == "set" && !inside.contains('='));
                    n_open += usize::from(opens);
                    n_open = n_open.saturating_sub(usize::from(word.starts_with("end")));
                    if n_open > MAX_BLOCKS {
                        return None;
                    }
                }
                end
            }
        };
        rest = &inside[end..];
        if close == "%}" && inside[..end].trim_matches(is_sign) == "raw" {
            rest = &rest[copied(rest.find("endraw"), rest, &mut out)..];
        }
    }
    out.push_str(rest);
    (n_elifs <= MAX_ELIFS).then_some(out)
}

/// Copies `text` up to `end`, or all of it.
fn copied(end: Option<usize>, text: &str, out: &mut String) -> usize {
    let end = end.unwrap_or(text.len());
    out.push_str(&text[..end]);
    end
}

/// The inside of a tag, token by token.
#[derive(Debug)]
struct Tag<'a> {
    text: &'a str,
    close: &'static str,
    at: usize,
    /// For the tag, and for each bracket that is open in it: the filter that the operator before the operand under way asks for.
    before: Vec<Option<&'static str>>,
    /// Likewise: operators since the last comma. Their sum is a bound for the depth of the expression under way.
    operators: Vec<usize>,
    /// Whether the last token ends an operand that may be a list.
    operand: bool,
    /// Whether the last token begins an argument.
    argument: bool,
}

impl<'a> Tag<'a> {
    fn new(text: &'a str, close: &'static str) -> Self {
        Self {
            text,
            close,
            at: 0,
            before: vec![None],
            operators: vec![0],
            operand: false,
            argument: false,
        }
    }

    /// Copies up to the end of the tag; gives where that is, or nothing if it is too deep.
    fn copy_to(mut self, out: &mut String) -> Option<usize> {
        while let Some(c) = self.text[self.at..].chars().next() {
            let rest = &self.text[self.at..];
            let ends = self.before.len() == 1 && rest.starts_with(self.close);
            let token = if ends { "" } else { &rest[..token_len(rest, c)] };
            if !c.is_whitespace() && !self.goes_on(token) {
                self.end_operand(token, out);
            }
            if ends {
                break;
            }
            out.push_str(token);
            if !c.is_whitespace() {
                self.see(token);
                self.count(token);
                if self.before.len() > MAX_BRACKETS
                    || self.operators.iter().sum::<usize>() > MAX_OPERATORS
                {
                    return None;
                }
            }
            self.at += token.len();
        }
        Some(self.at)
    }

    /// Counts what nests one operand in another.
    fn count(&mut self, token: &str) {
        let Some(operators) = self.operators.last_mut() else { return };
        match token {
            "," | ":" => *operators = 0,
            "(" | "[" | "{" => {
                *operators += 1;
                self.operators.push(0);
            }
            ")" | "]" | "}" => {
                if self.operators.len() > 1 {
                    self.operators.pop();
                }
            }
            _ if token.starts_with(['\'', '"']) => {}
            _ if token.starts_with(is_word) && !KEYWORDS.contains(&token) => {}
            _ => *operators += 1,
        }
    }

    /// Whether the token belongs to the operand before it: an attribute, an index, a call, a filter.
    fn goes_on(&self, token: &str) -> bool {
        matches!(token, "." | "[" | "(" | "|") || self.is_name()
    }

    /// Whether what comes now is the name of an attribute or a filter.
    fn is_name(&self) -> bool {
        let before = self.text[..self.at].trim_end();
        before.ends_with('.') || before.ends_with('|')
    }

    /// The operand before `token` is whole.
    fn end_operand(&mut self, token: &str, out: &mut String) {
        let after = match token {
            // `+%}` is about white space.
            "+" if self.text[self.at + 1..].starts_with(self.close) => None,
            "+" => Some(TERM),
            // `f(*args)` gives a call its arguments.
            "*" if !self.argument => Some(FACTOR),
            "~" => Some(WRITTEN),
            _ => None,
        };
        let before = self.before.last_mut().and_then(|filter| core::mem::replace(filter, after));
        if core::mem::take(&mut self.operand) {
            let spaces = out.split_off(out.trim_end().len());
            for filter in [before, after.filter(|_| before != after)].into_iter().flatten() {
                out.push('|');
                out.push_str(filter);
            }
            out.push_str(&spaces);
        } else if after.is_none() && starts_operand(token) {
            // `a + b`: the operator is remembered until `b` is whole.
            if let Some(filter) = self.before.last_mut() {
                *filter = before;
            }
        }
    }

    fn see(&mut self, token: &str) {
        self.argument = matches!(token, "(" | ",");
        match token {
            "(" | "[" | "{" => {
                self.before.push(None);
                self.operand = false;
            }
            ")" | "]" | "}" => {
                if self.before.len() > 1 {
                    self.before.pop();
                }
                self.operand = token != "}";
            }
            "." | "|" => {}
            _ if starts_operand(token) => self.operand = true,
            _ if token.starts_with(is_word) && self.is_name() => self.operand = true,
            _ => self.operand = false,
        }
    }
}

/// Whether it is a name, or a bracket that opens.
fn starts_operand(token: &str) -> bool {
    let is_name = token.starts_with(|c: char| c.is_alphabetic() || c == '_');
    matches!(token, "(" | "[") || (is_name && !KEYWORDS.contains(&token))
}

/// Bytes of the token at the start of `rest`: a word, a text, white space, or a sign.
fn token_len(rest: &str, first: char) -> usize {
    let until = |ends: &dyn Fn(char) -> bool| rest.find(ends).unwrap_or(rest.len());
    match first {
        _ if is_word(first) => until(&|c| !is_word(c)),
        _ if first.is_whitespace() => until(&|c| !c.is_whitespace()),
        '\'' | '"' => {
            let mut escaped = false;
            let end = rest.char_indices().skip(1).find(|&(_, c)| {
                let ends = c == first && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            end.map_or(rest.len(), |(at, _)| at + 1)
        }
        '*' if rest.starts_with("**") => 2,
        _ => first.len_utf8(),
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Words that are no operands.
const KEYWORDS: &[&str] =
    &["and", "elif", "else", "for", "if", "in", "is", "not", "or", "recursive", "set", "with"];

/// Operators that may nest in one another: chains in the wild have twenty.
const MAX_OPERATORS: usize = 200;

/// Brackets in one another; what a macro wraps an argument in, it may wrap again when it calls itself.
const MAX_BRACKETS: usize = 24;

/// Blocks in one another.
const MAX_BLOCKS: usize = 40;

/// Tags that an `end…` belongs to; `set` may be one.
const BLOCKS: &[&str] = &["autoescape", "block", "call", "filter", "for", "if", "macro", "with"];

/// Of a template: those in the wild have forty.
const MAX_ELIFS: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_stand_behind_operands_and_nowhere_else() {
        for (source, expected) in [
            ("a + b {{ a + b }}", "a + b {{ a|__term + b|__term }}"),
            (
                "{%- set x = a.b[0] + f(c, d=1) +%}",
                "{%- set x = (a.b[0]|__term + f(c, d=1)|__term)|__kept +%}",
            ),
            ("{% if a + 1 and b %}", "{% if a|__term + 1 and b %}"),
            ("{{ f(a + 1, b=c ~ 'x') }}", "{{ f(a|__term + 1, b=c|__written ~ 'x') }}"),
            ("{{ [1] * n | trim }}", "{{ [1]|__factor * n | trim|__factor }}"),
            ("{{ 'a + b' + \"c\\\" + d\" }}", "{{ 'a + b' + \"c\\\" + d\" }}"),
            ("{{ (a - b) + c if d else e }}", "{{ (a - b)|__term + c|__term if d else e }}"),
            ("{{ a + b ~ c }}", "{{ a|__term + b|__term|__written ~ c|__written }}"),
            (
                "{# a + b #}{% raw %}{{ a + b }}{% endraw %}",
                "{# a + b #}{% raw %}{{ a + b }}{% endraw %}",
            ),
            ("{{ {'a': {'b': c + d}} }}", "{{ {'a': {'b': c|__term + d|__term}} }}"),
            ("{{ f(*a, **b) * c }}", "{{ f(*a, **b)|__factor * c|__factor }}"),
            ("{{ a ** b + -c }}", "{{ a ** b|__term + -c }}"),
            ("{{ x | f(y) + z", "{{ x | f(y)|__term + z"),
            ("{ {", "{ {"),
        ] {
            assert_eq!(with_filters(source).as_deref(), Some(expected));
        }
    }
}
