//! One pass of a chunk of tokens: tiles from the loader into the model's steps, a checkpoint between steps.

use super::host::{Host, Outcome, checkpoint, or_abort};
use super::profile::LayerTimes;
use super::{Engine, PassProfile, ProfileSink};
use crate::TokenId;
use crate::loader::Tile;
use crate::model::{Fed, LogitsWanted, Need};

impl Engine {
    /// Feeds `tokens` (at most `n_batch`) at the position where the sequence stands. After an abort or an error the
    /// sequence stands where it stood before, or at 0 where that is lost.
    pub(super) async fn run_chunk(
        &mut self,
        tokens: &[TokenId],
        want: LogitsWanted,
        prefill: bool,
        host: &dyn Host,
        sink: Option<&mut (dyn ProfileSink + '_)>,
    ) -> Outcome<()> {
        let pos = self.state.pos();
        self.times.fill(LayerTimes::default());
        let done = self.sweep(tokens, pos, want, host).await;
        self.stats.context_used = self.state.pos();
        self.see_loader();
        self.stats.see_memory(host.memory_bytes());
        if let Err(halted) = done {
            self.loader.abandon_pass();
            if self.state.rewind(pos).is_err() {
                self.reset();
            }
            return Err(halted);
        }
        if let Some(sink) = sink {
            let n_tokens = u32::try_from(tokens.len()).unwrap_or(u32::MAX);
            let memory_bytes = self.stats.memory_bytes;
            sink.pass(&PassProfile { prefill, pos, n_tokens, layers: &self.times, memory_bytes });
        }
        Ok(())
    }

    async fn sweep(
        &mut self,
        tokens: &[TokenId],
        pos: u32,
        want: LogitsWanted,
        host: &dyn Host,
    ) -> Outcome<()> {
        self.state.begin(&self.model, tokens, pos, want)?;
        self.loader.begin_pass(want != LogitsWanted::None, tokens);
        let mut tile: Option<Tile> = None;
        loop {
            let started = host.now_ms();
            let layer = self.state.layer(&self.model);
            match self.state.need(&self.model) {
                Need::Done => return Ok(()),
                Need::Compute => self.state.compute(&self.model)?,
                Need::Rows { use_index, first_row, n_rows } => {
                    let held = match tile.take() {
                        Some(held) => held,
                        None => self.await_tile(use_index, first_row, n_rows, layer, host).await?,
                    };
                    let fed = {
                        let bytes = self.loader.bytes(&held);
                        self.state.feed(&self.model, held.first_row(), held.n_rows(), &bytes)?
                    };
                    match fed {
                        Fed::Again => tile = Some(held),
                        Fed::Consumed => {
                            self.loader.release(held);
                        }
                    }
                }
            }
            self.times[layer].compute_ms += host.now_ms() - started;
            checkpoint(host).await?;
        }
    }

    /// The tile at `first_row`, after as many reads as it takes.
    async fn await_tile(
        &mut self,
        use_index: usize,
        first_row: u32,
        n_rows: u32,
        layer: usize,
        host: &dyn Host,
    ) -> Outcome<Tile> {
        let started = host.now_ms();
        let tile = loop {
            if let Some(tile) = self.loader.tile(use_index, first_row, n_rows)? {
                break tile;
            }
            or_abort(self.loader.wait(), host).await?;
        };
        let waited = host.now_ms() - started;
        self.stats.stall_ms += waited;
        let times = &mut self.times[layer];
        times.load_ms += waited;
        times.compute_ms -= waited;
        Ok(tile)
    }
}
