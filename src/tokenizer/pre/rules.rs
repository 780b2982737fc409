//! The table of rules by name, as llama.cpp assigns them.

use super::set::{
    ASIAN_SCRIPTS, BLOOM_BREAKS, BOPOMOFO, CASED_LETTERS, EASTERN_PUNCTUATION, EASTERN_SCRIPTS,
    HANGUL, IDEOGRAPHS_AND_KANA, LETTER, LETTERS, LINE_ENDS, LINE_FEEDS, MARK, NOT_LINE_FEEDS,
    NOT_SPACES, NUMBER, NUMBERS, PUNCTUATION, PUNCTUATIONS, SPACE, Set, WIDE_PUNCTUATION,
};
use super::step::Step;
use super::words::{Contractions, DEEPSEEK3, LLAMA3, Lines, Spaces, Tail, Word, Words};

/// What a value of `tokenizer.ggml.pre` means.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Rule {
    pub(super) steps: &'static [Step],
    /// How tokens spell text.
    pub(in super::super) spelling: Spelling,
    /// Whether a piece that is a token as a whole is not merged.
    pub(in super::super) whole_pieces: bool,
    /// Whether a text begins with BOS unless the file says otherwise.
    pub(in super::super) add_bos: bool,
    /// Whether it does so whatever the file says.
    pub(in super::super) always_bos: bool,
    /// Whether a separator is added to the texts of an encoder unless the file says otherwise.
    pub(in super::super) add_sep: bool,
    /// Whether there is a BOS unless the file says otherwise.
    pub(in super::super) has_bos: bool,
}

/// How tokens of a BPE vocabulary spell text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Spelling {
    /// In the alphabet of bytes.
    Bytes,
    /// As it is.
    Plain,
    /// As it is, with U+2581 for spaces.
    Underlined,
}

impl Rule {
    /// The rule of that name.
    pub(in super::super) fn named(name: &str) -> Option<Self> {
        RULES.iter().find(|(names, _)| names.split(' ').any(|n| n == name)).map(|(_, rule)| *rule)
    }

    /// Every name.
    #[cfg(test)]
    pub(in super::super) fn names() -> impl Iterator<Item = &'static str> {
        RULES.iter().flat_map(|(names, _)| names.split(' '))
    }

    const fn new(steps: &'static [Step]) -> Self {
        Self {
            steps,
            spelling: Spelling::Bytes,
            whole_pieces: false,
            add_bos: false,
            always_bos: false,
            add_sep: false,
            has_bos: true,
        }
    }

    const fn whole_pieces(self) -> Self {
        Self { whole_pieces: true, ..self }
    }

    const fn add_bos(self) -> Self {
        Self { add_bos: true, ..self }
    }

    const fn always_bos(self) -> Self {
        Self { always_bos: true, ..self }
    }

    const fn add_sep(self) -> Self {
        Self { add_sep: true, ..self }
    }

    const fn without_bos(self) -> Self {
        Self { has_bos: false, ..self }
    }

    const fn spelled(self, spelling: Spelling) -> Self {
        Self { spelling, ..self }
    }
}

/// Names that share a rule, and the rule.
static RULES: &[(&str, Rule)] = &[
    (
        "default",
        Rule::new(&[
            Step::Runs(&MARKS_OF_DEFAULT, ALL),
            Step::Gpt2,
            Step::Runs(&NUMBERS, ALL),
            Step::DigitTriples,
        ]),
    ),
    ("minicpm5", Rule::new(&[Step::Runs(&NUMBERS, 3), Step::Words(&LLAMA3)]).whole_pieces()),
    (
        "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
        Rule::new(&[Step::Words(&LLAMA3)]).whole_pieces().add_bos(),
    ),
    ("dbrx smaug-bpe", Rule::new(&[Step::Words(&LLAMA3)])),
    ("chatglm-bpe", Rule::new(&[Step::Words(&LLAMA3)]).without_bos()),
    ("glm4 glm5", Rule::new(&[Step::Words(&LLAMA3)]).without_bos().whole_pieces()),
    ("jais-2", Rule::new(&[Step::Words(&Words { spaces: Spaces::Powers, ..LLAMA3 })])),
    (
        "deepseek-llm",
        Rule::new(&[
            Step::Runs(&LINE_ENDS, 1),
            Step::WhiteSpacedRuns(&CASED_LETTERS),
            Step::WhiteSpacedRuns(&WIDE_PUNCTUATION),
            Step::TrailingSpace,
            Step::Runs(&EASTERN_SCRIPTS, ALL),
            Step::Runs(&NUMBERS, ALL),
        ]),
    ),
    (
        "deepseek-coder",
        Rule::new(&[
            Step::Runs(&LINE_ENDS, 1),
            Step::WhiteSpacedRuns(&LETTERS),
            Step::WhiteSpacedRuns(&PUNCTUATIONS),
            Step::Runs(&EASTERN_SCRIPTS, ALL),
            Step::Runs(&NUMBERS, 1),
        ]),
    ),
    (
        "deepseek-v3 hunyuan-dense hy_v4 joyai-llm",
        Rule::new(&[
            Step::Runs(&NUMBERS, 3),
            Step::Runs(&IDEOGRAPHS_AND_KANA, ALL),
            Step::Words(&DEEPSEEK3),
        ]),
    ),
    (
        "spark2_5",
        Rule::new(&[
            Step::Runs(&NUMBERS, 3),
            Step::Runs(&IDEOGRAPHS_AND_KANA, ALL),
            Step::Words(&Words { tail: Tail::None, lines: Lines::Single, ..DEEPSEEK3 }),
            Step::Runs(&NUMBERS, 1),
        ]),
    ),
    (
        "youtu",
        Rule::new(&[
            Step::AnyRuns(&[&HANGUL, &EASTERN_PUNCTUATION, &BOPOMOFO, &IDEOGRAPHS_AND_KANA]),
            Step::Words(&Words { max_digits: 1, ..WORDS_AND_MARKS }),
        ])
        .whole_pieces(),
    ),
    ("falcon", Rule::new(&[Step::Runs(&MARKS_OF_FALCON, ALL), Step::Gpt2, Step::DigitTriples])),
    (
        "starcoder refact command-r smollm codeshell exaone minerva-7b mellum2",
        Rule::new(&[Step::Runs(&NUMBERS, 1), Step::Gpt2]),
    ),
    (
        "gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert mpt olmo jais exaone4 \
         trillion granite-docling",
        Rule::new(&[Step::Gpt2]),
    ),
    ("jina-v1-en jina-v2-code roberta-bpe", Rule::new(&[Step::Gpt2]).add_sep()),
    (
        "qwen2 deepseek-r1-qwen kormo f2llmv2 stablelm2 megrez hunyuan solar-open bailingmoe bailingmoe2 llada-moe grok-2",
        Rule::new(&[Step::Words(&QWEN2)]),
    ),
    (
        "qwen35",
        Rule::new(&[Step::Words(&Words {
            word: Word::Plain(LETTER | MARK),
            marks: Set::of_classes(SPACE | LETTER | MARK | NUMBER).negated(),
            ..QWEN2
        })]),
    ),
    ("seed-coder", Rule::new(&[Step::Words(&Words { tail: Tail::None, ..QWEN2 })])),
    ("ufakzeka", Rule::new(&[Step::Words(&Words { contractions: Contractions::None, ..QWEN2 })])),
    ("laguna", Rule::new(&[Step::AnyRuns(&[&NOT_LINE_FEEDS, &LINE_FEEDS]), Step::Words(&QWEN2)])),
    (
        "exaone-moe",
        Rule::new(&[Step::Words(&Words { word: Word::Spaced, tail: Tail::LineEnd, ..QWEN2 })]),
    ),
    ("poro-chat bloom gpt3-finnish", Rule::new(&[Step::SpacedRuns(&NOT_BLOOM_BREAKS)])),
    ("viking", Rule::new(&[Step::SpacedRuns(&NOT_BLOOM_BREAKS), Step::Runs(&NUMBERS, 1)])),
    (
        "tekken",
        Rule::new(&[Step::Words(&Words {
            contractions: Contractions::None,
            word: Word::Cased(LETTER),
            max_digits: 1,
            ..WORDS_AND_MARKS
        })])
        .whole_pieces()
        .add_bos(),
    ),
    (
        "gpt-4o llama4 kanana2 talkie minimax-m2",
        Rule::new(&[Step::Words(&Words { word: Word::Cased(LETTER), ..WORDS_AND_MARKS })]),
    ),
    (
        "granite-embed-multi-97m",
        Rule::new(&[Step::Words(&Words { word: Word::Cased(LETTER | MARK), ..WORDS_AND_MARKS })])
            .whole_pieces(),
    ),
    ("tiny_aya cohere2moe", Rule::new(&[Step::DigitsFromRight, Step::Words(&WORDS_AND_MARKS)])),
    (
        "chameleon",
        Rule::new(&[
            Step::Sentinels,
            Step::ImageTokens,
            Step::Indents,
            Step::Runs(&NUMBERS, 1),
            Step::Runs(&MARKS_OF_CHAMELEON, 1),
            Step::Gpt2,
        ])
        .add_bos(),
    ),
    ("superbpe", Rule::new(&[Step::Runs(&NUMBERS, ALL), Step::BeforeDigitTriples])),
    (
        "kimi-k2",
        Rule::new(&[Step::Words(&Words {
            word: Word::NoHan,
            tail: Tail::LineEnds,
            ..WORDS_AND_MARKS
        })]),
    ),
    (
        "afmoe",
        Rule::new(&[
            Step::DigitsFromRight,
            Step::Runs(&ASIAN_SCRIPTS, ALL),
            Step::Words(&DEEPSEEK3),
        ]),
    ),
    (
        "gemma4 granite-embed-multi-311m",
        Rule::new(&[Step::AnyRuns(&[&NOT_LINE_FEEDS, &LINE_FEEDS])])
            .spelled(Spelling::Underlined)
            .always_bos(),
    ),
    (
        "sarvam-moe",
        Rule::new(&[Step::AnyRuns(&[&NOT_LINE_FEEDS, &LINE_FEEDS])]).spelled(Spelling::Underlined),
    ),
    ("whitespace", Rule::new(&[Step::Runs(&NOT_SPACES, ALL)]).spelled(Spelling::Plain)),
];

/// Qwen 2's.
const QWEN2: Words = Words { max_digits: 1, ..LLAMA3 };

/// GPT-4o's without its distinction of case, which the names that share this lack in llama.cpp.
const WORDS_AND_MARKS: Words = Words {
    contractions: Contractions::AfterWord,
    word: Word::Plain(LETTER | MARK),
    tail: Tail::LineEndsAndSlashes,
    ..LLAMA3
};

const MARKS_OF_DEFAULT: Set = Set::of_classes(PUNCTUATION).and_ranges(&[
    ('$', '$'),
    ('+', '+'),
    ('<', '>'),
    ('^', '^'),
    ('|', '|'),
    ('~', '~'),
]);
const MARKS_OF_FALCON: Set = Set::of_classes(PUNCTUATION).and_ranges(&[
    ('$', '$'),
    ('+', '+'),
    ('<', '>'),
    ('^', '^'),
    ('`', '`'),
    ('|', '|'),
    ('~', '~'),
]);
const MARKS_OF_CHAMELEON: Set =
    Set::of_classes(PUNCTUATION).and_ranges(&[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')]);
const NOT_BLOOM_BREAKS: Set = BLOOM_BREAKS.negated();

/// No limit to a run.
const ALL: usize = usize::MAX;
