//! What an opened model does without computing: text to ids and back, and conversations as text. It may be asked while the
//! engine is at work, and knows nothing of it.

use std::rc::Rc;

use super::Engine;
use crate::TokenId;
use crate::error::{Error, ErrorKind, Result};
use crate::gguf::Header;
use crate::tokenizer::{Conversation, RenderedChat, Tokenizer};

/// The vocabulary and the chat template of an opened model.
#[derive(Debug, Clone)]
pub struct Texts {
    header: Rc<Header>,
    tokenizer: Rc<Tokenizer>,
    n_vocab: u32,
    n_ctx: u32,
}

impl Texts {
    /// Refuses a prompt of `n_bytes` that cannot fit behind `used` positions, special tokens not looked for, before it is copied or
    /// encoded: both take memory in proportion to it. `n_bytes` may be less than it has.
    ///
    /// # Errors
    /// `context_full`; its `needed` is a lower bound.
    pub fn check_size(&self, n_bytes: usize, used: usize) -> Result<()> {
        check_fits("needs at least", used + self.tokenizer.least_tokens(n_bytes), self.n_ctx)
    }

    /// The ids of `text`; `add_special` and `parse_special` as in [`Tokenizer::encode`].
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn tokenize(
        &self,
        text: &str,
        add_special: bool,
        parse_special: bool,
    ) -> Result<Vec<TokenId>> {
        self.tokenizer.encode(text, add_special, parse_special)
    }

    /// Text of `ids`, special tokens shown on request; bytes that are no character come out as U+FFFD.
    ///
    /// # Errors
    /// `invalid_option` when an id is not in the vocabulary.
    pub fn detokenize(&self, ids: &[TokenId], special: bool) -> Result<String> {
        check_vocabulary(ids, self.n_vocab)?;
        Ok(String::from_utf8_lossy(&self.tokenizer.decode(ids, special)).into_owned())
    }

    /// The text and ids that `conversation` becomes.
    ///
    /// # Errors
    /// As [`Tokenizer::render_chat`].
    pub fn render_chat(&self, conversation: &Conversation) -> Result<RenderedChat> {
        self.tokenizer.render_chat(&self.header.metadata, conversation)
    }
}

impl Engine {
    /// What can be asked of the model while the engine is at work.
    #[must_use]
    pub fn texts(&self) -> Texts {
        Texts {
            header: Rc::clone(&self.header),
            tokenizer: Rc::clone(&self.tokenizer),
            n_vocab: self.model.hparams().n_vocab,
            n_ctx: self.plan.n_ctx,
        }
    }

    pub(super) fn check_vocabulary(&self, ids: &[TokenId]) -> Result<()> {
        check_vocabulary(ids, self.model.hparams().n_vocab)
    }
}

/// Refuses a prompt that does not fit; `needs` says whether the number of positions is exact.
pub(super) fn check_fits(needs: &str, needed: usize, n_ctx: u32) -> Result<()> {
    let available = n_ctx as usize;
    if needed <= available {
        return Ok(());
    }
    let message = format!(
        "the prompt {needs} {needed} positions but the context has {available}: shorten it, or open the model \
         with a larger 'context'"
    );
    Err(Error::new(ErrorKind::ContextFull, message)
        .with("needed", needed as u64)
        .with("available", available as u64))
}

/// Refuses ids that are none of the vocabulary's.
fn check_vocabulary(ids: &[TokenId], n_vocab: u32) -> Result<()> {
    let Some(&id) = ids.iter().find(|&&id| id >= n_vocab) else { return Ok(()) };
    let message = format!("token id {id} is not in the vocabulary of {n_vocab} tokens");
    Err(Error::new(ErrorKind::InvalidOption, message).with("id", u64::from(id)))
}
