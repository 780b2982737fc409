//! A header comes out the same however the file is cut into pieces.

use sluice::error::Result;
use sluice::gguf::{Array, Format, Header, HeaderReader, Metadata, ModelWriter, Value};

use super::read;
use crate::allocations::measure;

#[test]
fn pieces_of_any_size_give_the_same_header() {
    for file in
        ["all-value-types", "with-tokenizer", "nested-arrays", "v2-base", "align-1024", "empty"]
    {
        let bytes = read(&format!("parser/ok/{file}.gguf"));
        let whole = Header::parse(&bytes).unwrap();
        for size in [1, 3, 7, 64, 1000] {
            let pieces = in_pieces(&bytes, size, None).unwrap();
            // As text, in which a NaN equals itself.
            assert!(format!("{pieces:?}") == format!("{whole:?}"), "{file} in pieces of {size}");
        }
    }
}

#[test]
fn a_large_vocabulary_takes_no_allocation_per_string() {
    let mut metadata = Metadata::default();
    let n = 1 << 18;
    let tokens = Array::strings((0..n).map(|i| format!("tok{i}")));
    metadata.insert("tokenizer.ggml.tokens", Value::Array(tokens));
    metadata.insert("tokenizer.ggml.scores", Value::Array(Array::F32(vec![0.5; n])));
    metadata.insert("tokenizer.ggml.token_type", Value::Array(Array::I32(vec![1; n])));
    let mut file = Vec::new();
    let sink = |bytes: &[u8]| {
        file.extend_from_slice(bytes);
        Ok(())
    };
    ModelWriter::new(Format::Gguf, &metadata, &[], sink).unwrap().finish().unwrap();

    let (header, allocated) = measure(|| {
        let mut reader = HeaderReader::new(Some(file.len() as u64));
        loop {
            let wanted = reader.wanted();
            let piece =
                &file[usize::try_from(wanted.start).unwrap()..usize::try_from(wanted.end).unwrap()];
            if let Some(header) = reader.push(piece).unwrap() {
                break header;
            }
        }
    });
    assert!(header.metadata == metadata, "the vocabulary comes out as it was");
    assert!(allocated.n_allocations < 100, "{allocated:?}");
    // The arena is at most doubled once; ends, scores and types are 4 bytes a token each.
    assert!(allocated.peak_bytes < 10 << 20, "{allocated:?} for a header of {} bytes", file.len());
}

#[test]
fn only_the_head_is_wanted_and_pieces_grow() {
    let mut reader = HeaderReader::new(Some(5 << 30));
    let mut bytes = b"GGUF\x03\0\0\0".to_vec();
    bytes.extend(0u64.to_le_bytes());
    bytes.extend(1u64.to_le_bytes());
    bytes.extend(3u64.to_le_bytes());
    bytes.extend(b"key");
    bytes.extend(8u32.to_le_bytes());
    bytes.extend((6u64 << 20).to_le_bytes());
    bytes.resize(51 + (6 << 20), b'x');
    let mut wanted = Vec::new();
    loop {
        let range = reader.wanted();
        wanted.push(range.end - range.start);
        let end = bytes.len().min(usize::try_from(range.end).unwrap());
        if reader.push(&bytes[usize::try_from(range.start).unwrap()..end]).unwrap().is_some() {
            break;
        }
    }
    assert_eq!(wanted[0], 512 << 10);
    assert!(wanted.len() <= 3, "the length of the string is heeded: {wanted:?}");
}

fn in_pieces(bytes: &[u8], size: usize, file_bytes: Option<u64>) -> Result<Header> {
    let mut reader = HeaderReader::new(file_bytes);
    loop {
        let start = usize::try_from(reader.wanted().start).unwrap();
        let end = bytes.len().min(start + size);
        if let Some(header) = reader.push(&bytes[start..end])? {
            return Ok(header);
        }
    }
}
