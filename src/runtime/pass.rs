//! One pass of a chunk of tokens: tiles from the loader into the model's steps, a checkpoint between steps.

use super::host::{Host, Outcome, Progress, Stage, checkpoint, or_abort};
use super::live::Computed;
use super::profile::LayerTimes;
use super::{Engine, PassProfile, ProfileSink};
use crate::TokenId;
use crate::error::Result;
use crate::loader::{Loader, Tile};
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
        if self.vectors.are_due(0) {
            self.read_vectors(0, host).await?;
        }
        self.state.begin(&self.model, tokens, pos, want)?;
        self.loader.begin_pass(want.uses_head(), tokens);
        let team = host.team();
        if let Some(team) = &team {
            team.share_cores(false);
        }
        // The steps of a longer chunk last longer than a read.
        let sharing = team.filter(|_| tokens.len() == 1);
        let share_cores = |loader: &mut Loader| {
            if let Some(team) = &sharing {
                team.share_cores(loader.is_reading());
            }
        };
        let mut tile: Option<Tile> = None;
        let mut done_bytes = 0;
        let began = host.now_ms();
        let mut started = began;
        loop {
            let layer = self.state.layer(&self.model);
            if self.vectors.are_due(layer) {
                self.read_vectors(layer, host).await?;
            }
            match self.state.need(&self.model) {
                Need::Done => return Ok(()),
                Need::Compute => {
                    share_cores(&mut self.loader);
                    self.state.compute(&self.model)?;
                }
                Need::Rows { use_index, first_row, n_rows } => {
                    let held = match tile.take() {
                        Some(held) => held,
                        None => {
                            self.await_tile(use_index, first_row, n_rows, started, host).await?
                        }
                    };
                    share_cores(&mut self.loader);
                    match self.feed(use_index, &held)? {
                        Fed::Again => tile = Some(held),
                        Fed::Consumed => {
                            done_bytes += self.loader.bytes(&held).len() as u64;
                            self.loader.release(held);
                            if started - began > SLOW_MS {
                                self.tell(layer, done_bytes, host);
                            }
                        }
                    }
                }
            }
            let now = host.now_ms();
            self.times[layer].compute_ms += now - started;
            self.show(layer, host, now);
            started = if checkpoint(host, now).await? { host.now_ms() } else { now };
        }
    }

    /// Computes with the tile.
    fn feed(&mut self, use_index: usize, tile: &Tile) -> Result<Fed> {
        let (first_row, n_rows) = (tile.first_row(), tile.n_rows());
        let fed = self.state.feed(&self.model, first_row, n_rows, &self.loader.bytes(tile))?;
        let of_use = self.model.uses().get(use_index);
        self.computed = of_use.map(|of_use| Computed { tensor: of_use.tensor, first_row, n_rows });
        Ok(fed)
    }

    /// Reads the norms and biases that the pass has come to. The loader's own reads end first: one source has one reader.
    async fn read_vectors(&mut self, layer: usize, host: &dyn Host) -> Outcome<()> {
        while let Some(read) = self.loader.reads_under_way() {
            or_abort(read, host).await?;
        }
        self.vectors.read_due(layer, &mut self.model, host).await
    }

    /// Tells how far the pass is. A token's rows of a tensor that is also the head are read beside those that the plan counts.
    fn tell(&self, layer: usize, loaded_bytes: u64, host: &dyn Host) {
        let n_layer = self.model.hparams().n_layer;
        let total_bytes = self.plan.weight_bytes;
        let layer = u32::try_from(layer).unwrap_or(u32::MAX).checked_sub(1);
        host.progress(&Progress {
            stage: Stage::Pass,
            loaded_bytes: loaded_bytes.min(total_bytes),
            total_bytes,
            layer: layer.filter(|l| *l < n_layer),
            n_layer,
        });
    }

    /// The tile at `first_row`, after as many reads as it takes; the wait began at `started`.
    async fn await_tile(
        &mut self,
        use_index: usize,
        first_row: u32,
        n_rows: u32,
        started: f64,
        host: &dyn Host,
    ) -> Outcome<Tile> {
        let tile = loop {
            if let Some(tile) = self.loader.tile(use_index, first_row, n_rows)? {
                break tile;
            }
            self.loader.block();
            if let Some(tile) = self.loader.tile(use_index, first_row, n_rows)? {
                break tile;
            }
            or_abort(self.loader.wait(), host).await?;
            self.show(self.state.layer(&self.model), host, host.now_ms());
        };
        let waited = host.now_ms() - started;
        self.stats.stall_ms += waited;
        let times = &mut self.times[self.state.layer(&self.model)];
        times.load_ms += waited;
        times.compute_ms -= waited;
        Ok(tile)
    }
}

/// A pass that takes longer tells how far it is.
const SLOW_MS: f64 = 300.0;
