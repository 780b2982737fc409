//! Files read by position, each read straight into its place.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::task::Waker;

use crate::error::{Error, ErrorKind, Result};
use crate::source::ended::EndedReads;
use crate::source::{Completion, Places, ReadRequest, WeightSource, check_range, dropped};

/// The files of a model on disk. Reads are complete at once.
#[derive(Debug)]
pub struct FileSource {
    files: Vec<OpenFile>,
    ended: EndedReads,
}

#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) file: File,
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
}

impl FileSource {
    /// Opens the files of one model, in the order of its parts.
    ///
    /// # Errors
    /// `source_failed` naming the path that cannot be opened.
    pub fn open<P: AsRef<Path>>(paths: &[P]) -> Result<Self> {
        let files = paths.iter().map(|p| OpenFile::open(p.as_ref())).collect::<Result<_>>()?;
        Ok(Self { files, ended: EndedReads::default() })
    }

    fn read(&self, request: &ReadRequest, places: &Rc<dyn Places>) -> Result<()> {
        check_range(self, request)?;
        let file = &self.files[request.file as usize];
        let mut read = Ok(());
        let filled = places.fill(request.ticket, 0, request.len, &mut |to| {
            read = read_exact_at(&file.file, to, request.offset);
        });
        if !filled {
            return Err(dropped(request));
        }
        read.map_err(|e| file.failed("read", &e))
    }
}

impl OpenFile {
    #[allow(clippy::disallowed_methods, reason = "this is where native bytes come in")]
    pub(super) fn open(path: &Path) -> Result<Self> {
        let path = path.to_owned();
        let failed = |e: io::Error| {
            let message = format!("cannot open {}: {e}", path.display());
            Error::new(ErrorKind::SourceFailed, message).with("path", path.display().to_string())
        };
        let file = File::open(&path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(failed(io::Error::other("it is not a file")));
        }
        let bytes = metadata.len();
        Ok(Self { file, path, bytes })
    }

    pub(super) fn failed(&self, what: &str, e: &io::Error) -> Error {
        Error::new(ErrorKind::SourceFailed, format!("cannot {what} {}: {e}", self.path.display()))
            .with("path", self.path.display().to_string())
    }
}

impl WeightSource for FileSource {
    fn n_files(&self) -> u32 {
        u32::try_from(self.files.len()).unwrap_or(u32::MAX)
    }

    fn file_bytes(&self, file: u32) -> Option<u64> {
        self.files.get(file as usize).map(|f| f.bytes)
    }

    fn reads_at_once(&self) -> bool {
        true
    }

    fn submit(&self, request: ReadRequest, places: &Rc<dyn Places>) {
        let result = self.read(&request, places);
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
        use rustix::fs::{Advice, fadvise};
        if let Some(file) = self.files.get(file as usize) {
            // Advice only: a file system that knows none still reads.
            let _ = fadvise(&file.file, offset, core::num::NonZeroU64::new(len), Advice::WillNeed);
        }
    }
}

fn read_exact_at(file: &File, mut to: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !to.is_empty() {
        match read_at(file, to, offset) {
            Ok(0) => {
                let message = format!("the file ends at byte {offset}, it was longer when opened");
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
            }
            Ok(n) => {
                to = &mut to[n..];
                offset += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

#[cfg(unix)]
fn read_at(file: &File, to: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, to, offset)
}

#[cfg(windows)]
fn read_at(file: &File, to: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, to, offset)
}
