//! Reading what stays in memory: at open, or beside whatever else the engine does where the bytes are still arriving.

use super::Engine;
use super::host::{Host, Outcome, Progress, Stage, checkpoint, or_abort};
use crate::error::Result;
use crate::loader::Wait;

impl Engine {
    /// Reads all residents.
    pub(super) async fn load_residents(&mut self, host: &dyn Host) -> Outcome<()> {
        while let Some(read) = self.load_on(host)? {
            or_abort(read, host).await?;
            checkpoint(host, host.now_ms()).await?;
        }
        Ok(())
    }

    /// Goes on reading what stays in memory, if some of it is still to come: the end of the next read, after which to call
    /// again; `None` when all is there.
    ///
    /// # Errors
    /// `source_failed`, once: calling again reads again.
    pub fn load_on(&mut self, host: &dyn Host) -> Result<Option<Wait>> {
        let all_ready = self.loader.poll_residents()?;
        let seen = self.loader.resident_progress();
        host.progress(&Progress {
            stage: Stage::Load,
            loaded_bytes: seen.loaded_bytes,
            total_bytes: seen.total_bytes,
            layer: seen.layer,
            n_layer: self.model.hparams().n_layer,
        });
        self.see_loader();
        Ok((!all_ready).then(|| self.loader.wait()))
    }
}
