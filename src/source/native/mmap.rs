//! Files mapped into memory; a read copies out of the map into its place, so that the engine's own memory stays what the
//! plan says. Mapped pages count as the process's resident memory until the system takes them back.
#![allow(unsafe_code, reason = "a map is sound only while nobody shortens the file")]

use std::path::Path;
use std::rc::Rc;
use std::task::Waker;

use memmap2::Mmap;

use super::file::OpenFile;
use crate::error::Result;
use crate::source::ended::EndedReads;
use crate::source::{Completion, Places, ReadRequest, WeightSource, check_range, dropped};

/// The files of a model as memory maps. Reads are complete at once.
#[derive(Debug)]
pub struct MmapSource {
    maps: Vec<Mmap>,
    ended: EndedReads,
}

impl MmapSource {
    /// Maps the files of one model, in the order of its parts. A file that is shortened while it is mapped ends the process:
    /// that is the system's rule for maps, and the reason why plain reads are the default.
    ///
    /// # Errors
    /// `source_failed` naming the path that cannot be opened or mapped.
    pub fn open<P: AsRef<Path>>(paths: &[P]) -> Result<Self> {
        let maps = paths.iter().map(|p| map(p.as_ref())).collect::<Result<_>>()?;
        Ok(Self { maps, ended: EndedReads::default() })
    }
}

fn map(path: &Path) -> Result<Mmap> {
    let file = OpenFile::open(path)?;
    // SAFETY: the map is private to this source and read-only; bytes are only copied out of it, never kept as references,
    // and any byte value is valid. Writers to the file can change bytes under a copy, which can yield wrong weights only.
    unsafe { Mmap::map(&file.file) }.map_err(|e| file.failed("map", &e))
}

impl WeightSource for MmapSource {
    fn n_files(&self) -> u32 {
        u32::try_from(self.maps.len()).unwrap_or(u32::MAX)
    }

    fn file_bytes(&self, file: u32) -> Option<u64> {
        self.maps.get(file as usize).map(|m| m.len() as u64)
    }

    fn reads_at_once(&self) -> bool {
        true
    }

    fn submit(&self, request: ReadRequest, places: &Rc<dyn Places>) {
        let result = check_range(self, &request).and_then(|start| {
            let from = &self.maps[request.file as usize][start..start + request.len];
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

    #[cfg(unix)]
    fn will_need(&self, file: u32, offset: u64, len: u64) {
        let Some(map) = self.maps.get(file as usize) else { return };
        let size = map.len() as u64;
        let start = offset.min(size);
        let len = len.min(size - start);
        if let (Ok(start), Ok(len)) = (usize::try_from(start), usize::try_from(len)) {
            // Advice only.
            let _ = map.advise_range(memmap2::Advice::WillNeed, start, len);
        }
    }
}
