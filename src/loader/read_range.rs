//! Reading plain ranges into vectors: headers, and the small tensors that the model keeps. Only while no loader reads from
//! the same source, because whoever polls a source takes all its completions.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;

use crate::error::{Error, ErrorKind, Result};
use crate::source::{Completion, FileRange, Places, ReadRequest, Ticket, WeightSource};

/// Reads `len` bytes at `offset` of file `file`.
///
/// # Errors
/// The source's, naming the range; `out_of_memory` when the bytes find no room.
pub async fn read_range(
    source: &Rc<dyn WeightSource>,
    file: u32,
    offset: u64,
    len: usize,
) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let range = FileRange { file, offset, len };
    read_ranges(source, &[range], |_, read| {
        bytes = read;
        Ok(())
    })
    .await?;
    Ok(bytes)
}

/// Reads each of `ranges`, several at a time, and gives the bytes of range `i` to `each(i, bytes)` in order.
///
/// # Errors
/// The first failure in order, the source's or that of `each`; nothing more is read then.
pub async fn read_ranges(
    source: &Rc<dyn WeightSource>,
    ranges: &[FileRange],
    mut each: impl FnMut(usize, Vec<u8>) -> Result<()>,
) -> Result<()> {
    let mut started = VecDeque::with_capacity(AT_A_TIME);
    let mut coming = ranges.iter();
    for i in 0..ranges.len() {
        while started.len() < AT_A_TIME
            && let Some(range) = coming.next()
        {
            started.push_back(start(source, *range)?);
        }
        let ended = poll_fn(|context| {
            source.wake_on_completion(context.waker());
            while let Some(completion) = source.poll() {
                deliver(&mut started, completion);
            }
            let ready = started.front().is_none_or(|r: &Started| r.result.is_some());
            if ready { Poll::Ready(started.pop_front()) } else { Poll::Pending }
        });
        let Some(Started { buffer, range, result, .. }) = ended.await else { break };
        result.unwrap_or(Ok(())).map_err(|e| describe(&e, range))?;
        each(i, buffer.bytes.take())?;
    }
    Ok(())
}

#[derive(Debug)]
struct Started {
    range: FileRange,
    buffer: Rc<Buffer>,
    result: Option<Result<()>>,
}

/// The place of one read. The source keeps it alive as long as it may write.
#[derive(Debug)]
struct Buffer {
    ticket: Ticket,
    bytes: RefCell<Vec<u8>>,
}

fn start(source: &Rc<dyn WeightSource>, range: FileRange) -> Result<Started> {
    let FileRange { file, offset, len } = range;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|_| {
        Error::new(
            ErrorKind::OutOfMemory,
            format!("no memory for {len} bytes at offset {offset} of file {file}"),
        )
    })?;
    bytes.resize(len, 0);
    let ticket = Ticket { slot: SLOT, generation: GENERATION.fetch_add(1, Ordering::Relaxed) };
    let buffer = Rc::new(Buffer { ticket, bytes: RefCell::new(bytes) });
    if len == 0 {
        return Ok(Started { range, buffer, result: Some(Ok(())) });
    }
    let places = Rc::clone(&buffer) as Rc<dyn Places>;
    source.submit(ReadRequest { ticket, file, offset, len }, &places);
    Ok(Started { range, buffer, result: None })
}

/// A completion of a read that was dropped earlier finds nobody.
fn deliver(started: &mut VecDeque<Started>, completion: Completion) {
    if let Some(read) = started.iter_mut().find(|r| r.buffer.ticket == completion.ticket) {
        read.result = Some(completion.result);
    }
}

fn describe(e: &Error, range: FileRange) -> Error {
    let FileRange { file, offset, len } = range;
    let message = format!("reading {len} bytes at offset {offset} of file {file} failed: {e}");
    e.reworded(message)
        .with("file", u64::from(file))
        .with("offset", offset)
        .with("length", len as u64)
}

impl Places for Buffer {
    fn fill(
        &self,
        ticket: Ticket,
        at: usize,
        len: usize,
        write: &mut dyn FnMut(&mut [u8]),
    ) -> bool {
        if ticket != self.ticket {
            return false;
        }
        let Ok(mut bytes) = self.bytes.try_borrow_mut() else { return false };
        let Some(place) = at.checked_add(len).and_then(|end| bytes.get_mut(at..end)) else {
            return false;
        };
        write(place);
        true
    }

    fn lend(&self, ticket: Ticket, len: usize) -> Option<usize> {
        let mut bytes = self.bytes.try_borrow_mut().ok()?;
        let lent = ticket == self.ticket && len <= bytes.len();
        lent.then(|| bytes.as_mut_ptr().addr())
    }
}

/// Reads under way at a time: enough to hide the latency of a network.
const AT_A_TIME: usize = 16;

/// No loader has this many slots, so a loader that polls a late completion of ours knows that it is not its own.
const SLOT: u32 = u32::MAX;

/// Tells the reads of this module apart, those of dropped futures included.
static GENERATION: AtomicU32 = AtomicU32::new(0);
