//! Which tokens mean something: begin and end of a text, end of generation, and the corrections to token types that
//! llama.cpp makes by the texts of tokens. Ids come from the metadata, and where that says nothing from known texts.

use super::invalid;
use super::vocab::{Attrs, Vocab};
use crate::TokenId;
use crate::error::Result;
use crate::gguf::Metadata;

/// Ids with a role, where the vocabulary has them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpecialIds {
    /// Begins a text.
    pub bos: Option<TokenId>,
    /// Ends a text.
    pub eos: Option<TokenId>,
    /// Ends a turn of a chat.
    pub eot: Option<TokenId>,
    /// Ends a message that a tool answers.
    pub eom: Option<TokenId>,
    /// Stands for what the vocabulary cannot spell.
    pub unk: Option<TokenId>,
    /// Separates or ends the texts of an encoder.
    pub sep: Option<TokenId>,
    /// Fills up.
    pub pad: Option<TokenId>,
    /// What a line feed becomes.
    pub nl: Option<TokenId>,
}

/// Tokens for filling in the middle that end generation.
struct InfillIds {
    pad: Option<TokenId>,
    repository: Option<TokenId>,
    file: Option<TokenId>,
}

impl SpecialIds {
    /// Puts the ids that the metadata names over the defaults of the vocabulary's kind.
    ///
    /// # Errors
    /// If a begin or end lies outside the vocabulary. Other roles are ignored then, as in llama.cpp: files name a
    /// padding token that their vocabulary lacks.
    pub(super) fn read(metadata: &Metadata, vocab: &Vocab, defaults: Self) -> Result<Self> {
        let inside = |id: &TokenId| (*id as usize) < vocab.len();
        let lenient = |key, default: Option<TokenId>| -> Result<_> {
            let id = metadata.get_u32(key)?.filter(inside);
            Result::Ok(id.or(default.filter(inside)))
        };
        let strict = |key, default| match metadata.get_u32(key)? {
            Some(id) if !inside(&id) => {
                Err(invalid(key, format!("is {id} in a vocabulary of {} tokens", vocab.len())))
            }
            _ => lenient(key, default),
        };
        Ok(Self {
            bos: strict("tokenizer.ggml.bos_token_id", defaults.bos)?,
            eos: strict("tokenizer.ggml.eos_token_id", defaults.eos)?,
            eot: strict("tokenizer.ggml.eot_token_id", defaults.eot)?,
            eom: strict("tokenizer.ggml.eom_token_id", defaults.eom)?,
            unk: lenient("tokenizer.ggml.unknown_token_id", defaults.unk)?,
            sep: lenient("tokenizer.ggml.seperator_token_id", defaults.sep)?,
            pad: lenient("tokenizer.ggml.padding_token_id", defaults.pad)?,
            nl: None,
        })
    }

    /// Finds what the metadata left out by the texts of tokens, corrects their attributes, and returns the ids that end
    /// generation, in order.
    ///
    /// # Errors
    /// If the metadata has something else than an id under a key of a role.
    pub(super) fn complete(
        &mut self,
        metadata: &Metadata,
        vocab: &mut Vocab,
    ) -> Result<Box<[TokenId]>> {
        self.eot = self.eot.or_else(|| control_named(vocab, TURN_ENDS));
        self.eom = self.eom.or_else(|| control_named(vocab, &["<|eom_id|>"]));
        let infill = InfillIds::read(metadata, vocab)?;
        let mut ends: Vec<TokenId> =
            [infill.pad, infill.repository, infill.file].into_iter().flatten().collect();
        for id in named(vocab, TURN_ENDS).chain(named(vocab, OTHER_ENDS)).collect::<Vec<_>>() {
            ends.push(id);
            vocab.set_attrs(id, vocab.attrs(id).with(Attrs::CONTROL));
        }
        for id in named(vocab, ALWAYS_SHOWN).collect::<Vec<_>>() {
            vocab.set_attrs(id, Attrs::USER_DEFINED);
        }
        ends.extend([self.eos, self.eot, self.eom].into_iter().flatten());
        ends.sort_unstable();
        ends.dedup();
        remove_false_ends(vocab, &mut ends);
        Ok(ends.into())
    }
}

impl InfillIds {
    fn read(metadata: &Metadata, vocab: &mut Vocab) -> Result<Self> {
        let n_vocab = vocab.len();
        let mut role = |keys: &[&str], texts: &[&str]| -> Result<_> {
            let mut id = None;
            for key in keys {
                id = metadata.get_u32(key)?.filter(|id| (*id as usize) < n_vocab).or(id);
            }
            Result::Ok(id.or_else(|| control_named(vocab, texts)))
        };
        role(
            &["tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.prefix_token_id"],
            INFILL_PREFIXES,
        )?;
        role(
            &["tokenizer.ggml.fim_suf_token_id", "tokenizer.ggml.suffix_token_id"],
            INFILL_SUFFIXES,
        )?;
        role(
            &["tokenizer.ggml.fim_mid_token_id", "tokenizer.ggml.middle_token_id"],
            INFILL_MIDDLES,
        )?;
        Ok(Self {
            pad: role(&["tokenizer.ggml.fim_pad_token_id"], INFILL_PADS)?,
            repository: role(&["tokenizer.ggml.fim_rep_token_id"], INFILL_REPOSITORIES)?,
            file: role(&["tokenizer.ggml.fim_sep_token_id"], &["<|file_sep|>"])?,
        })
    }
}

/// The tokens of these texts.
fn named(vocab: &Vocab, texts: &[&str]) -> impl Iterator<Item = TokenId> {
    texts.iter().filter_map(|text| vocab.find(text.as_bytes()))
}

/// The first token of the vocabulary with one of these texts; it becomes a control token.
fn control_named(vocab: &mut Vocab, texts: &[&str]) -> Option<TokenId> {
    let id = named(vocab, texts).min()?;
    vocab.set_attrs(id, vocab.attrs(id).with(Attrs::CONTROL));
    Some(id)
}

/// Texts that end generation in one family and mean something else in another.
fn remove_false_ends(vocab: &mut Vocab, ends: &mut Vec<TokenId>) {
    let end_of = |text: &str| vocab.find(text.as_bytes()).filter(|id| ends.contains(id));
    let has = |text: &str| end_of(text).is_some();
    let calls = has("<|call|>") || has("<|calls|>");
    let part = end_of("<|end|>").filter(|_| calls && (has("<|return|>") || has("<|flush|>")));
    let strike = end_of("</s>").filter(|_| has("<|tool_response>") || has("<|plamo:eos|>"));
    if let Some(id) = part {
        vocab.set_attrs(id, Attrs::USER_DEFINED);
    }
    if let Some(id) = strike {
        vocab.set_attrs(id, Attrs::NORMAL);
    }
    ends.retain(|id| Some(*id) != part && Some(*id) != strike);
}

/// Marks the tokens that take white space along. Files do not say it; llama.cpp knows it by names of models.
pub(super) fn mark_stripping_tokens(
    metadata: &Metadata,
    pre: &str,
    vocab: &mut Vocab,
) -> Result<()> {
    let architecture = metadata.get_str("general.architecture")?.unwrap_or_default();
    let name = metadata.get_str("general.name")?.unwrap_or_default().to_lowercase();
    let contains = |text: &str, parts: &[&str]| parts.iter().any(|part| text.contains(part));
    let mut mark = |text: &str, flag: Attrs| {
        if let Some(id) = vocab.find(text.as_bytes()) {
            vocab.set_attrs(id, vocab.attrs(id).with(flag));
        }
    };
    if contains(pre, &["jina-v2-de", "jina-v2-es", "jina-v2-code"])
        || contains(architecture, &["nomic-bert-moe", "jina-bert-v3"])
    {
        mark("<mask>", Attrs::STRIPS_LEFT);
    } else if contains(&name, &["phi-3", "phi3"]) {
        mark("</s>", Attrs::STRIPS_RIGHT);
        for id in vocab.ids() {
            if vocab.attrs(id).any(SPECIAL) {
                vocab.set_attrs(id, vocab.attrs(id).with(Attrs::STRIPS_RIGHT));
            }
        }
        for id in named(vocab, &["<unk>", "<s>", "<|endoftext|>"]).collect::<Vec<_>>() {
            vocab.set_attrs(id, vocab.attrs(id).without(Attrs::STRIPS_RIGHT));
        }
    } else if contains(&name, &["modern-bert"]) {
        mark("[MASK]", Attrs::STRIPS_LEFT);
    }
    Ok(())
}

/// Tokens that are looked for in a text as a whole.
pub(super) const SPECIAL: Attrs = Attrs::CONTROL.with(Attrs::USER_DEFINED).with(Attrs::UNKNOWN);

/// Tokens that are not shown as text.
pub(super) const HIDDEN: Attrs = Attrs::CONTROL.with(Attrs::UNKNOWN);

const TURN_ENDS: &[&str] = &[
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "<｜end▁of▁sentence｜>",
    "<end_of_utterance>",
];

const OTHER_ENDS: &[&str] = &[
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "</s>",
    "<|eom_id|>",
    "[EOS]",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "[e~[",
];

/// Markers that llama.cpp shows as text.
pub(super) const ALWAYS_SHOWN: &[&str] =
    &["<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"];

const INFILL_PREFIXES: &[&str] = &[
    "<|fim_prefix|>",
    "<fim-prefix>",
    "<fim_prefix>",
    "<｜fim▁begin｜>",
    "<PRE>",
    "▁<PRE>",
    "<|code_prefix|>",
    "<|prefix|>",
];
const INFILL_SUFFIXES: &[&str] = &[
    "<|fim_suffix|>",
    "<fim-suffix>",
    "<fim_suffix>",
    "<｜fim▁hole｜>",
    "<SUF>",
    "▁<SUF>",
    "<|code_suffix|>",
    "<|suffix|>",
];
const INFILL_MIDDLES: &[&str] = &[
    "<|fim_middle|>",
    "<fim-middle>",
    "<fim_middle>",
    "<｜fim▁end｜>",
    "<MID>",
    "▁<MID>",
    "<|code_middle|>",
    "<|middle|>",
];
const INFILL_PADS: &[&str] = &["<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"];
const INFILL_REPOSITORIES: &[&str] =
    &["<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"];
