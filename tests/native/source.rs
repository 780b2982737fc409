//! Every native source against the one suite, and what is particular to each.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_possible_truncation,
    reason = "a test fails where it panics, and its sizes are small"
)]
#![allow(clippy::disallowed_methods, reason = "native tests write the files that sources read")]

#[path = "../shared/source_conformance.rs"]
mod source_conformance;

use std::fs;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

use sluice::error::ErrorKind;
use sluice::loader::{read_range, read_ranges};
use sluice::source::native::{FileSource, MmapSource, block_on};
use sluice::source::{Delivery, Fault, FaultySource, FileRange, MemorySource, WeightSource};
use source_conformance::source_conforms;

fn conforms(make: impl Fn(Vec<Vec<u8>>) -> Rc<dyn WeightSource> + Copy + 'static) {
    block_on(source_conforms(&move |files| Box::pin(async move { make(files) })));
}

#[test]
fn memory_conforms() {
    conforms(|files| Rc::new(MemorySource::new(files)));
}

#[test]
fn files_conform() {
    conforms(|files| open_and_remove(&files, |paths| Rc::new(FileSource::open(paths).unwrap())));
}

#[test]
fn maps_conform() {
    conforms(|files| open_and_remove(&files, |paths| Rc::new(MmapSource::open(paths).unwrap())));
}

#[test]
fn the_faulty_source_conforms_while_nothing_is_wrong() {
    conforms(|files| Rc::new(FaultySource::new(files, Delivery::AtOnce, &[])));
    conforms(|files| Rc::new(FaultySource::new(files, Delivery::Soon, &[])));
    conforms(|files| Rc::new(FaultySource::new(files, Delivery::Shuffled { seed: 1 }, &[])));
    conforms(|files| Rc::new(FaultySource::new(files, Delivery::Shuffled { seed: 2 }, &[])));
}

#[test]
fn a_file_that_cannot_be_opened_is_named() {
    let folder = scratch();
    let missing = folder.join("missing.gguf");
    for e in
        [FileSource::open(&[&missing]).unwrap_err(), MmapSource::open(&[&missing]).unwrap_err()]
    {
        assert_eq!(e.kind(), ErrorKind::SourceFailed, "{e}");
        assert!(e.message().contains("missing.gguf"), "{e}");
    }
    let e = FileSource::open(&[&folder]).unwrap_err();
    assert!(e.message().contains("not a file"), "{e}");
    fs::remove_dir(folder).unwrap();
}

#[test]
fn a_file_that_shrinks_after_it_was_opened_is_an_error() {
    let paths = written(&[vec![7; 10_000]]);
    let source: Rc<dyn WeightSource> = Rc::new(FileSource::open(&paths).unwrap());
    fs::File::options().write(true).open(&paths[0]).unwrap().set_len(4000).unwrap();
    let e = block_on(read_range(&source, 0, 3000, 2000)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::SourceFailed, "{e}");
    assert!(e.message().contains("4000"), "{e}");
    assert_eq!(block_on(read_range(&source, 0, 3000, 1000)).unwrap(), vec![7; 1000]);
    fs::remove_dir_all(paths[0].parent().unwrap()).unwrap();
}

#[test]
fn ranges_come_in_order_whatever_the_source_does() {
    let file: Vec<u8> = (0..20_000_u32).map(|i| ((i * 31) >> 3) as u8).collect();
    let ranges: Vec<FileRange> = (0..50)
        .map(|i| FileRange { file: 0, offset: i * 397, len: (i as usize * 7) % 300 })
        .collect();
    for seed in 0..20 {
        let delivery = Delivery::Shuffled { seed };
        let source: Rc<dyn WeightSource> =
            Rc::new(FaultySource::new(vec![file.clone()], delivery, &[]));
        let mut n = 0;
        let each = |i: usize, bytes: Vec<u8>| {
            let start = ranges[i].offset as usize;
            assert_eq!(bytes, file[start..start + ranges[i].len], "range {i}");
            assert_eq!(i, n, "order");
            n += 1;
            Ok(())
        };
        block_on(read_ranges(&source, &ranges, each)).unwrap();
        assert_eq!(n, ranges.len());
    }
}

#[test]
fn a_failed_range_says_where_and_the_next_reading_is_undisturbed() {
    let file = vec![1; 10_000];
    let fault = Fault::FailAtByte { file: 0, offset: 5000, times: 1 };
    let shuffled = Delivery::Shuffled { seed: 5 };
    let source: Rc<dyn WeightSource> = Rc::new(FaultySource::new(vec![file], shuffled, &[fault]));
    let ranges: Vec<FileRange> =
        (0..10).map(|i| FileRange { file: 0, offset: i * 1000, len: 1000 }).collect();
    let e = block_on(read_ranges(&source, &ranges, |_, _| Ok(()))).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::SourceFailed, "{e}");
    assert!(e.message().contains("offset 5000"), "{e}");
    // The other reads of that call were dropped under way; their ends must not be taken for ours.
    block_on(read_ranges(&source, &ranges, |_, bytes| {
        assert_eq!(bytes, vec![1; 1000]);
        Ok(())
    }))
    .unwrap();
}

/// Opens `files` from disk; where the system allows it they are gone from their folder before they are read.
fn open_and_remove(
    files: &[Vec<u8>],
    open: impl FnOnce(&[PathBuf]) -> Rc<dyn WeightSource>,
) -> Rc<dyn WeightSource> {
    let paths = written(files);
    let source = open(&paths);
    let _ = fs::remove_dir_all(paths[0].parent().unwrap());
    source
}

/// Writes `files` into a folder of their own.
fn written(files: &[Vec<u8>]) -> Vec<PathBuf> {
    let folder = scratch();
    let paths: Vec<PathBuf> =
        (0..files.len()).map(|i| folder.join(format!("part-{i}.bin"))).collect();
    for (path, bytes) in paths.iter().zip(files) {
        fs::write(path, bytes).unwrap();
    }
    paths
}

/// A new empty folder among the build's temporary files.
fn scratch() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("source-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}
