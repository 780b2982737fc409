//! Logits of every position, for tests and for callers that score texts.

use super::Engine;
use super::host::{Host, Outcome};
use crate::TokenId;
use crate::error::{Error, ErrorKind};
use crate::model::LogitsWanted;

impl Engine {
    /// Feeds `ids` as a fresh sequence in chunks of at most `n_chunk` tokens and gives the logits of each position,
    /// `[n_vocab]`, in order. The engine must have been opened with `all_logits`.
    ///
    /// # Errors
    /// `invalid_option` for no ids, ids that are not in the vocabulary or a chunk of zero; `context_full`; `misuse` without `all_logits` and for an encoder.
    pub async fn logits(
        &mut self,
        ids: &[TokenId],
        n_chunk: u32,
        host: &dyn Host,
        on_position: &mut dyn FnMut(&[f32]),
    ) -> Outcome<()> {
        self.require_decoder()?;
        let invalid = |what: &str| Error::new(ErrorKind::InvalidOption, what.to_owned());
        if ids.is_empty() || n_chunk == 0 {
            return Err(
                invalid("logits need at least one token id and a chunk of at least 1").into()
            );
        }
        if !self.all_logits {
            let what = "logits of every position need a model that was opened for them";
            return Err(Error::new(ErrorKind::Misuse, what).into());
        }
        self.check_ids(ids, 0)?;
        self.reset();
        let n_vocab = self.model.hparams().n_vocab as usize;
        for chunk in ids.chunks(n_chunk.min(self.plan.n_batch) as usize) {
            self.run_chunk(chunk, LogitsWanted::All, true, host, None).await?;
            self.history.extend_from_slice(chunk);
            self.state.logits().chunks_exact(n_vocab).for_each(&mut *on_position);
        }
        Ok(())
    }
}
