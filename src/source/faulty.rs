//! A source that misbehaves as it is told, for tests of everything that reads.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;

use super::ended::EndedReads;
use super::{Completion, Places, ReadRequest, WeightSource, check_range, dropped, read_failed};
use crate::error::Result;

/// Files in memory whose reads end when, how and in the order that the script says.
#[derive(Debug)]
pub struct FaultySource {
    files: Vec<Vec<u8>>,
    delivery: Delivery,
    faults: RefCell<Vec<Fault>>,
    /// Reads that have not ended, in the order in which they came.
    held: RefCell<Vec<Held>>,
    log: RefCell<Vec<ReadRequest>>,
    late_writes: Cell<u32>,
    random: Cell<u64>,
    ended: EndedReads,
}

/// When reads end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// Before `submit` returns.
    AtOnce,
    /// When the source is polled next.
    Soon,
    /// A while later, in a random order that the seed decides.
    Shuffled {
        /// Any number.
        seed: u64,
    },
    /// When the test calls [`FaultySource::finish`]; a cancelled read too, after it has tried to write once more.
    Held,
}

/// What goes wrong. Reads are counted from 0 in the order in which they are submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The read fails with nothing written.
    FailRead {
        /// Which read.
        read: u64,
    },
    /// The first `times` reads that cover the byte fail there, with the bytes before it written.
    FailAtByte {
        /// Which file.
        file: u32,
        /// Which byte of it.
        offset: u64,
        /// How often.
        times: u32,
    },
    /// The read brings only its first `len` bytes, as from a file that was cut off.
    ShortRead {
        /// Which read.
        read: u64,
        /// How many bytes come.
        len: usize,
    },
    /// The byte arrives with all its bits inverted, and nobody says so.
    WrongByte {
        /// Which file.
        file: u32,
        /// Which byte of it.
        offset: u64,
    },
    /// The read ends only when it is cancelled.
    Never {
        /// Which read.
        read: u64,
    },
}

#[derive(Debug)]
struct Held {
    number: u64,
    request: ReadRequest,
    places: Rc<dyn Places>,
    cancelled: bool,
}

impl FaultySource {
    /// A source of these files.
    #[must_use]
    pub fn new(files: Vec<Vec<u8>>, delivery: Delivery, faults: &[Fault]) -> Self {
        let seed = if let Delivery::Shuffled { seed } = delivery { seed } else { 0 };
        Self {
            files,
            delivery,
            faults: RefCell::new(faults.to_vec()),
            held: RefCell::default(),
            log: RefCell::default(),
            late_writes: Cell::new(0),
            random: Cell::new(seed),
            ended: EndedReads::default(),
        }
    }

    /// From now on this goes wrong too.
    pub fn add_fault(&self, fault: Fault) {
        self.faults.borrow_mut().push(fault);
    }

    /// Reads that have not ended.
    #[must_use]
    pub fn n_held(&self) -> usize {
        self.held.borrow().len()
    }

    /// Ends the `i`-th of the reads that have not ended; whether there was one.
    pub fn finish(&self, i: usize) -> bool {
        let read = {
            let mut held = self.held.borrow_mut();
            if i >= held.len() {
                return false;
            }
            held.remove(i)
        };
        self.end(&read);
        true
    }

    /// All reads that were submitted so far.
    #[must_use]
    pub fn log(&self) -> Vec<ReadRequest> {
        self.log.borrow().clone()
    }

    /// Reads that wrote into their place after they had been cancelled: the place's owner let them.
    #[must_use]
    pub fn late_writes(&self) -> u32 {
        self.late_writes.get()
    }

    fn end(&self, read: &Held) {
        let mut result = self.bring(read);
        if read.cancelled {
            self.late_writes.set(self.late_writes.get() + u32::from(result.is_ok()));
            result = Err(read_failed(&read.request, "cancelled"));
        }
        self.ended.push(Completion { ticket: read.request.ticket, result });
    }

    /// Writes what the faults let through, in two pieces, the second first.
    fn bring(&self, read: &Held) -> Result<()> {
        let request = &read.request;
        let start = check_range(self, request)?;
        let (len, why) = self.fault_of(read.number, request);
        let bytes = &self.files[request.file as usize][start..start + len];
        let half = len / 2;
        for part in [half..len, 0..half] {
            let write = &mut |to: &mut [u8]| to.copy_from_slice(&bytes[part.clone()]);
            if !part.is_empty() && !read.places.fill(request.ticket, part.start, part.len(), write)
            {
                return Err(dropped(request));
            }
        }
        self.spoil(read);
        why.map_or(Ok(()), |why| Err(read_failed(request, why)))
    }

    /// How many bytes of the read come, and why not all of them.
    fn fault_of(&self, number: u64, request: &ReadRequest) -> (usize, Option<&'static str>) {
        for fault in self.faults.borrow_mut().iter_mut() {
            match fault {
                Fault::FailRead { read } if *read == number => {
                    return (0, Some("injected failure"));
                }
                Fault::ShortRead { read, len } if *read == number && *len < request.len => {
                    return (*len, Some("the file ends early"));
                }
                Fault::FailAtByte { file, offset, times }
                    if *file == request.file && *times > 0 =>
                {
                    let before =
                        offset.checked_sub(request.offset).and_then(|n| usize::try_from(n).ok());
                    if let Some(before) = before.filter(|n| *n < request.len) {
                        *times -= 1;
                        return (before, Some("injected failure at a byte"));
                    }
                }
                _ => {}
            }
        }
        (request.len, None)
    }

    fn spoil(&self, read: &Held) {
        for fault in self.faults.borrow().iter() {
            let Fault::WrongByte { file, offset } = *fault else { continue };
            let at = offset.checked_sub(read.request.offset).and_then(|n| usize::try_from(n).ok());
            if let Some(at) = at.filter(|at| file == read.request.file && *at < read.request.len) {
                read.places.fill(read.request.ticket, at, 1, &mut |to| to[0] = !to[0]);
            }
        }
    }

    fn never_ends(&self, number: u64) -> bool {
        self.faults.borrow().iter().any(|f| matches!(f, Fault::Never { read } if *read == number))
    }

    fn next_random(&self) -> u64 {
        let next = self.random.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.random.set(next);
        let mixed = (next ^ (next >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed ^ (mixed >> 27)
    }

    /// Reads that may end by themselves.
    fn can_end(&self) -> Vec<usize> {
        let held = self.held.borrow();
        held.iter()
            .enumerate()
            .filter(|(_, r)| !self.never_ends(r.number))
            .map(|(i, _)| i)
            .collect()
    }
}

impl WeightSource for FaultySource {
    fn n_files(&self) -> u32 {
        u32::try_from(self.files.len()).unwrap_or(u32::MAX)
    }

    fn file_bytes(&self, file: u32) -> Option<u64> {
        self.files.get(file as usize).map(|f| f.len() as u64)
    }

    fn reads_at_once(&self) -> bool {
        self.delivery == Delivery::AtOnce
    }

    fn submit(&self, request: ReadRequest, places: &Rc<dyn Places>) {
        let number = self.log.borrow().len() as u64;
        self.log.borrow_mut().push(request);
        let read = Held { number, request, places: Rc::clone(places), cancelled: false };
        if self.delivery == Delivery::AtOnce && !self.never_ends(number) {
            self.end(&read);
        } else {
            self.held.borrow_mut().push(read);
        }
    }

    fn poll(&self) -> Option<Completion> {
        match self.delivery {
            Delivery::Soon => {
                while let Some(i) = self.can_end().first() {
                    self.finish(*i);
                }
            }
            Delivery::Shuffled { .. } if self.next_random().is_multiple_of(2) => {
                let can_end = self.can_end();
                if !can_end.is_empty() {
                    let pick = self.next_random() % can_end.len() as u64;
                    self.finish(can_end[usize::try_from(pick).unwrap_or(0)]);
                }
            }
            _ => {}
        }
        self.ended.pop()
    }

    fn wake_on_completion(&self, waker: &Waker) {
        self.ended.wake_on_push(waker);
        let by_itself = matches!(self.delivery, Delivery::Soon | Delivery::Shuffled { .. });
        if by_itself && !self.can_end().is_empty() {
            waker.wake_by_ref();
        }
    }

    fn cancel_all(&self) {
        for read in self.held.borrow_mut().iter_mut() {
            read.cancelled = true;
        }
        if self.delivery != Delivery::Held {
            while self.finish(0) {}
        }
    }
}
