//! Files that are bytes in memory already.

use std::rc::Rc;
use std::task::Waker;

use super::ended::EndedReads;
use super::{Completion, Places, ReadRequest, WeightSource, check_range, dropped};

/// The files of a model in memory. Reads are complete at once.
#[derive(Debug)]
pub struct MemorySource {
    files: Vec<Vec<u8>>,
    ended: EndedReads,
}

impl MemorySource {
    /// A source of these files.
    #[must_use]
    pub fn new(files: Vec<Vec<u8>>) -> Self {
        Self { files, ended: EndedReads::default() }
    }
}

impl WeightSource for MemorySource {
    fn n_files(&self) -> u32 {
        u32::try_from(self.files.len()).unwrap_or(u32::MAX)
    }

    fn file_bytes(&self, file: u32) -> Option<u64> {
        self.files.get(file as usize).map(|f| f.len() as u64)
    }

    fn reads_at_once(&self) -> bool {
        true
    }

    fn submit(&self, request: ReadRequest, places: &Rc<dyn Places>) {
        let result = check_range(self, &request).and_then(|start| {
            let from = &self.files[request.file as usize][start..start + request.len];
            let filled =
                places.fill(request.ticket, 0, request.len, &mut |to| to.copy_from_slice(from));
            if filled { Ok(()) } else { Err(dropped(&request)) }
        });
        self.ended.push(Completion { ticket: request.ticket, result });
    }

    fn poll(&self) -> Option<Completion> {
        self.ended.pop()
    }

    fn wake_on_completion(&self, waker: &Waker) {
        self.ended.wake_on_push(waker);
    }

    fn cancel_all(&self) {}

    fn buffer_bytes(&self) -> u64 {
        self.files.iter().map(|f| f.len() as u64).sum()
    }
}
