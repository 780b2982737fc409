//! How a text is cut before BPE merges it: one rule for every value of `tokenizer.ggml.pre` that llama.cpp knows. A
//! rule is a list of steps, each applied to the pieces of the one before; merging never crosses a piece.
//!
//! It knows characters and pieces, no tokens.

mod rules;
mod set;
mod step;
mod words;

pub(super) use rules::{Rule, Spelling};

use super::unicode::Classified;
use step::Step;

impl Rule {
    /// Calls `emit` with every piece of `text`, in order; together they are the text.
    pub(super) fn split<'a>(
        &self,
        text: &'a str,
        room: &mut SplitRoom,
        mut emit: impl FnMut(&'a str),
    ) {
        room.classified.clear();
        room.classified.extend(text.chars().map(Classified::new));
        let mut rest = text;
        cut(self.steps, &room.classified, &mut |piece| {
            let (piece, after) = rest.split_at(piece.iter().map(|c| c.len_utf8()).sum());
            rest = after;
            emit(piece);
        });
    }
}

/// Room for the characters of one text, used again for the next.
#[derive(Debug, Default)]
pub(super) struct SplitRoom {
    classified: Vec<Classified>,
}

fn cut(steps: &[Step], text: &[Classified], emit: &mut dyn FnMut(&[Classified])) {
    if text.is_empty() {
        return;
    }
    match steps {
        [] => emit(text),
        [step, rest @ ..] => step.cut(text, &mut |start, end| cut(rest, &text[start..end], emit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(rule: Rule, text: &str) -> Vec<&str> {
        let mut pieces = Vec::new();
        rule.split(text, &mut SplitRoom::default(), |piece| pieces.push(piece));
        pieces
    }

    #[test]
    fn every_name_has_one_rule_that_loses_nothing() {
        let text = " It's 1234567 o'CLOCK,\r\n\t«天气» \u{3000}हिन्दी é\u{301}!\n\n  <x>  IMGIMGABZ \0\u{10ffff} ";
        let mut names: Vec<&str> = Rule::names().collect();
        for name in &names {
            let pieces = pieces(Rule::named(name).unwrap(), text);
            assert_eq!(pieces.concat(), text, "{name}");
            assert!(pieces.iter().all(|piece| !piece.is_empty()), "{name}");
        }
        names.sort_unstable();
        let n_names = names.len();
        names.dedup();
        assert_eq!(names.len(), n_names, "a name is listed twice");
        assert!(Rule::named("").is_none() && Rule::named("gpt").is_none());
    }

    #[test]
    fn rules_of_files_that_spell_text_as_it_is() {
        let gemma4 = Rule::named("gemma4").unwrap();
        assert_eq!(pieces(gemma4, "a▁b\n\n\nc"), ["a▁b", "\n\n\n", "c"]);
        let whitespace = Rule::named("whitespace").unwrap();
        assert_eq!(pieces(whitespace, "a  b\u{3000}c"), ["a", "  ", "b", "\u{3000}", "c"]);
    }
}
