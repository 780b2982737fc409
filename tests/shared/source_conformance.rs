//! What every weight source does, as one suite: the native tests run it over files, maps and memory, the browser tests over
//! what only browsers have. A case makes its own source of its own files.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use sluice::error::{Detail, ErrorKind, Result};
use sluice::source::{Completion, Places, ReadRequest, Ticket, WeightSource};

/// Makes a source of these files.
pub(crate) type Make<'a> =
    &'a dyn Fn(Vec<Vec<u8>>) -> Pin<Box<dyn Future<Output = Rc<dyn WeightSource>>>>;

/// Runs every case; panics in the first that fails, naming it.
pub(crate) async fn source_conforms(make: Make<'_>) {
    knows_its_files(make).await;
    reads_any_range(make).await;
    ends_every_read_once(make).await;
    refuses_what_is_not_there(make).await;
    writes_nothing_into_a_closed_place(make).await;
    survives_cancelling(make).await;
    takes_any_hint(make).await;
    keeps_places_alive(make).await;
}

async fn knows_its_files(make: Make<'_>) {
    let source = make(vec![noise(10, 1), noise(100_000, 2)]).await;
    assert_eq!(source.n_files(), 2, "number of files");
    for (file, bytes) in [(0, 10), (1, 100_000)] {
        let known = source.file_bytes(file);
        assert!(known.is_none_or(|b| b == bytes), "file {file} has {bytes} bytes, not {known:?}");
    }
}

async fn reads_any_range(make: Make<'_>) {
    let files = vec![noise(3 << 20, 3), noise(70_001, 4), noise(1, 5)];
    let source = make(files.clone()).await;
    let ranges = [
        (0, 0, 1),
        (0, 0, 3 << 20),
        (0, (3 << 20) - 1, 1),
        (0, 65_535, 2),
        (0, (1 << 20) - 7, (1 << 20) + 14),
        (1, 1, 70_000),
        (1, 4095, 4098),
        (2, 0, 1),
    ];
    for (file, offset, len) in ranges {
        let memory = Memory::new(len + 2 * GUARD);
        let ticket = memory.open(GUARD, len);
        let result = read(&source, &memory, ReadRequest { ticket, file, offset, len }).await;
        assert!(result.is_ok(), "{len} bytes at {offset} of file {file}: {result:?}");
        let start = usize::try_from(offset).unwrap();
        let bytes = memory.bytes.borrow();
        assert!(
            bytes[GUARD..GUARD + len] == files[file as usize][start..start + len],
            "bytes at {offset} of file {file}"
        );
        let outside = bytes[..GUARD].iter().chain(&bytes[GUARD + len..]);
        assert!(outside.copied().all(|b| b == UNTOUCHED), "wrote outside its place");
    }
}

async fn ends_every_read_once(make: Make<'_>) {
    let file = noise(400_000, 6);
    let source = make(vec![file.clone()]).await;
    let memory = Memory::new(400_000);
    let mut open = Vec::new();
    for i in 0..25_u32 {
        let (offset, len) = (i as usize * 15_000, 15_001 + i as usize);
        let ticket = memory.open(i as usize * 16_000, len.min(16_000));
        open.push((ticket, offset, len.min(16_000)));
        submit(
            &source,
            &memory,
            ReadRequest { ticket, file: 0, offset: offset as u64, len: len.min(16_000) },
        );
    }
    while !open.is_empty() {
        let Completion { ticket, result } = next(&source).await;
        let i = open.iter().position(|o| o.0 == ticket);
        let Some(i) = i else { panic!("{ticket:?} ended twice or was never asked for") };
        let (_, offset, len) = open.swap_remove(i);
        assert!(result.is_ok(), "{result:?}");
        let at = ticket.slot as usize * 16_000;
        assert!(
            memory.bytes.borrow()[at..at + len] == file[offset..offset + len],
            "bytes of {ticket:?}"
        );
    }
    assert!(source.poll().is_none(), "a read ended that was never asked for");
}

async fn refuses_what_is_not_there(make: Make<'_>) {
    let file = noise(5000, 7);
    let source = make(vec![file.clone()]).await;
    let wrong = [
        (0, 4990, 11),
        (0, 5000, 1),
        (0, 1 << 40, 8),
        (0, u64::MAX - 3, 8),
        (1, 0, 8),
        (u32::MAX, 0, 1),
    ];
    for (file, offset, len) in wrong {
        let memory = Memory::new(64);
        let ticket = memory.open(0, len);
        let result = read(&source, &memory, ReadRequest { ticket, file, offset, len }).await;
        let e = result.expect_err("read bytes that are not there");
        assert_eq!(e.kind(), ErrorKind::SourceFailed, "{e}");
        let says_where = e
            .details()
            .iter()
            .any(|(name, value)| *name == "offset" && *value == Detail::Number(offset));
        assert!(says_where, "the error does not say where: {e} {:?}", e.details());
    }
    whole_file_reads(&source, &file).await;
}

async fn writes_nothing_into_a_closed_place(make: Make<'_>) {
    let file = noise(200_000, 8);
    let source = make(vec![file.clone()]).await;
    let memory = Memory::new(200_000);
    let ticket = memory.open(0, 200_000);
    memory.close(ticket);
    let result =
        read(&source, &memory, ReadRequest { ticket, file: 0, offset: 0, len: 200_000 }).await;
    assert!(result.is_err(), "a read ended well whose place was closed");
    assert!(memory.bytes.borrow().iter().all(|b| *b == UNTOUCHED), "wrote into a closed place");
    whole_file_reads(&source, &file).await;
}

async fn survives_cancelling(make: Make<'_>) {
    let file = noise(300_000, 9);
    let source = make(vec![file.clone()]).await;
    source.cancel_all();
    whole_file_reads(&source, &file).await;
    let memory = Memory::new(300_000);
    let n_reads = 6;
    for i in 0..n_reads {
        let ticket = memory.open(i * 50_000, 50_000);
        submit(
            &source,
            &memory,
            ReadRequest { ticket, file: 0, offset: i as u64 * 50_000, len: 50_000 },
        );
    }
    source.cancel_all();
    for _ in 0..n_reads {
        let Completion { ticket, result } = next(&source).await;
        let at = ticket.slot as usize * 50_000;
        let right = memory.bytes.borrow()[at..at + 50_000] == file[at..at + 50_000];
        assert!(result.is_err() || right, "a cancelled read ended well with wrong bytes");
    }
    assert!(source.poll().is_none(), "a cancelled read ended twice");
    whole_file_reads(&source, &file).await;
}

async fn takes_any_hint(make: Make<'_>) {
    let file = noise(100_000, 10);
    let source = make(vec![file.clone()]).await;
    for (file, offset, len) in
        [(0, 0, 100_000), (0, 99_999, 50), (0, 1 << 50, 1), (0, 0, 0), (7, 0, 1)]
    {
        source.will_need(file, offset, len);
    }
    whole_file_reads(&source, &file).await;
}

async fn keeps_places_alive(make: Make<'_>) {
    let source = make(vec![noise(100_000, 11)]).await;
    let memory = Memory::new(100_000);
    let ticket = memory.open(0, 100_000);
    submit(&source, &memory, ReadRequest { ticket, file: 0, offset: 0, len: 100_000 });
    drop(memory);
    let ended = next(&source).await;
    assert_eq!(ended.ticket, ticket, "another read ended");
}

async fn whole_file_reads(source: &Rc<dyn WeightSource>, file: &[u8]) {
    let memory = Memory::new(file.len());
    let ticket = memory.open(0, file.len());
    let request = ReadRequest { ticket, file: 0, offset: 0, len: file.len() };
    let result = read(source, &memory, request).await;
    assert!(result.is_ok(), "the source does not read any more: {result:?}");
    assert!(*memory.bytes.borrow() == file, "bytes of the whole file");
}

async fn read(
    source: &Rc<dyn WeightSource>,
    memory: &Rc<Memory>,
    request: ReadRequest,
) -> Result<()> {
    submit(source, memory, request);
    let ended = next(source).await;
    assert_eq!(ended.ticket, request.ticket, "another read ended");
    ended.result
}

fn submit(source: &Rc<dyn WeightSource>, memory: &Rc<Memory>, request: ReadRequest) {
    let places = Rc::clone(memory) as Rc<dyn Places>;
    source.submit(request, &places);
}

/// The next read that ends; a source that forgets its waker hangs here.
async fn next(source: &Rc<dyn WeightSource>) -> Completion {
    poll_fn(|context| {
        source.wake_on_completion(context.waker());
        source.poll().map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

/// Places in one piece of memory, one a ticket; slots count up from 0.
#[derive(Debug)]
struct Memory {
    bytes: RefCell<Vec<u8>>,
    /// Start and length of slot i, while it may be written.
    open: RefCell<Vec<Option<(usize, usize)>>>,
    generation: Cell<u32>,
}

impl Memory {
    fn new(len: usize) -> Rc<Self> {
        let bytes = RefCell::new(vec![UNTOUCHED; len]);
        Rc::new(Self { bytes, open: RefCell::default(), generation: Cell::new(7) })
    }

    fn open(&self, start: usize, len: usize) -> Ticket {
        let mut open = self.open.borrow_mut();
        open.push(Some((start, len)));
        Ticket { slot: u32::try_from(open.len() - 1).unwrap(), generation: self.generation.get() }
    }

    fn close(&self, ticket: Ticket) {
        self.open.borrow_mut()[ticket.slot as usize] = None;
    }
}

impl Places for Memory {
    fn fill(
        &self,
        ticket: Ticket,
        at: usize,
        len: usize,
        write: &mut dyn FnMut(&mut [u8]),
    ) -> bool {
        let open = self.open.borrow().get(ticket.slot as usize).copied().flatten();
        let Some((start, room)) = open.filter(|_| ticket.generation == self.generation.get())
        else {
            return false;
        };
        if at.checked_add(len).is_none_or(|end| end > room) {
            return false;
        }
        write(&mut self.bytes.borrow_mut()[start + at..start + at + len]);
        true
    }
}

/// Bytes that look like nothing and differ from file to file.
fn noise(len: usize, seed: u32) -> Vec<u8> {
    let mut x = seed.wrapping_mul(0x9E37_79B1) | 1;
    let mut next = || {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        x.to_le_bytes()[1]
    };
    (0..len).map(|_| next()).collect()
}

const GUARD: usize = 64;
const UNTOUCHED: u8 = 0xA5;
