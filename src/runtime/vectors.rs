//! Norms, biases and factors on their way into the model: all at open, or each before the pass comes to it where the bytes
//! are still arriving.

use core::cell::RefCell;
use std::rc::Rc;

use super::host::{Host, Outcome, or_abort};
use super::open::memory_size;
use crate::error::Result;
use crate::gguf::Header;
use crate::loader::read_ranges;
use crate::model::{Model, Phase};
use crate::source::{FileRange, WeightSource};

/// Those that the model has not been given yet.
#[derive(Debug)]
pub(super) struct Vectors {
    /// The last needed first.
    waiting: Vec<Waiting>,
    source: Rc<dyn WeightSource>,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    stage: usize,
    use_index: usize,
    range: FileRange,
}

impl Vectors {
    /// All of the model's; it will be given them before it needs them.
    pub(super) fn new(
        header: &Header,
        model: &mut Model,
        source: Rc<dyn WeightSource>,
    ) -> Result<Self> {
        let mut waiting = Vec::new();
        for (use_index, used) in model.uses().iter().enumerate() {
            if used.phase == Phase::Open {
                let tensor = &header.tensors[used.tensor as usize];
                let skipped = u64::from(used.first_row) * u64::from(used.row_bytes);
                let (offset, len) = (tensor.offset + skipped, memory_size(used.bytes())?);
                let range = FileRange { file: tensor.file, offset, len };
                waiting.push(Waiting { stage: model.vector_stage(use_index), use_index, range });
            }
        }
        waiting.sort_by_key(|w| core::cmp::Reverse(w.stage));
        model.let_vectors_follow();
        Ok(Self { waiting, source })
    }

    /// Whether the pass must wait for some before it goes on at `stage`.
    pub(super) fn are_due(&self, stage: usize) -> bool {
        self.waiting.last().is_some_and(|w| w.stage <= stage)
    }

    /// Reads all of them.
    pub(super) async fn read_all(&mut self, model: &mut Model, host: &dyn Host) -> Outcome<()> {
        self.read_due(usize::MAX, model, host).await
    }

    /// Reads those that are needed up to `stage`. Nothing else may read from the source meanwhile.
    pub(super) async fn read_due(
        &mut self,
        stage: usize,
        model: &mut Model,
        host: &dyn Host,
    ) -> Outcome<()> {
        let first = self.waiting.iter().position(|w| w.stage <= stage);
        let due = &self.waiting[first.unwrap_or(self.waiting.len())..];
        let ranges: Vec<FileRange> = due.iter().map(|w| w.range).collect();
        let model = RefCell::new(model);
        let each =
            |i: usize, bytes: Vec<u8>| model.borrow_mut().set_vector(due[i].use_index, &bytes);
        or_abort(read_ranges(&self.source, &ranges, each), host).await??;
        let n_left = self.waiting.len() - ranges.len();
        self.waiting.truncate(n_left);
        Ok(())
    }
}
