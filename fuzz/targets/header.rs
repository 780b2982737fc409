//! Any bytes as the head of a model file: the reader accepts or refuses, never panics, and what it accepts is true.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sluice::gguf::{Format, Header, HeaderReader, Metadata, ModelWriter, Split, TensorType, join};

fuzz_target!(|file: &[u8]| {
    let whole = Header::parse(file);
    let pieces = in_pieces(file);
    match (&whole, &pieces) {
        (Ok(whole), Some(pieces)) => {
            assert_eq!((&whole.tensors, &whole.files), (&pieces.tensors, &pieces.files));
            assert_eq!(written(&whole.metadata), written(&pieces.metadata));
        }
        // Without the size of the file, tensors beyond its end are not found out.
        (Err(_), _) => {}
        (Ok(_), None) => panic!("the whole file is accepted, its pieces are refused"),
    }
    let Ok(header) = whole else { return };
    check_places(&header, file.len() as u64);
    check_rewriting(&header);
    let _ = Split::of(&header);
    let _ = join(vec![header.clone(), header]);
});

/// The header from pieces whose sizes follow from the file, of a source that does not know the file's size.
fn in_pieces(file: &[u8]) -> Option<Header> {
    let mut reader = HeaderReader::new(None);
    let mut size = 1 + file.len() % 61;
    loop {
        let wanted = reader.wanted();
        assert!(wanted.start < wanted.end, "nothing is wanted");
        let start = usize::try_from(wanted.start).ok()?.min(file.len());
        let end = file.len().min(start + size);
        let piece = &file[start..end];
        match reader.push(piece) {
            Ok(Some(header)) => return Some(header),
            Ok(None) => assert!(!piece.is_empty(), "the file has ended, the reader waits"),
            Err(_) => return None,
        }
        size = size * 3 % 4099 + 1;
    }
}

fn check_places(header: &Header, file_bytes: u64) {
    let mut places: Vec<(u64, u64)> = Vec::new();
    for tensor in &header.tensors {
        let end = tensor.offset + tensor.n_bytes;
        assert!(tensor.offset >= header.files[0].data_offset && end <= file_bytes);
        if let TensorType::Known(ty) = tensor.ty {
            assert_eq!(
                ty.row_bytes(tensor.n_cols()).map(|row| row * tensor.n_rows()),
                Some(tensor.n_bytes)
            );
            places.push((tensor.offset, end));
        }
    }
    places.sort_unstable();
    assert!(places.is_sorted_by(|a, b| a.1 <= b.0), "tensors overlap");
}

fn check_rewriting(header: &Header) {
    let Some(file) = written(&header.metadata) else { return };
    let again = Header::parse(&file).expect("what was written is read");
    assert_eq!(written(&again.metadata), Some(file));
    let _ = ModelWriter::new(Format::Llmw, &header.metadata, &[], |_: &[u8]| Ok(()));
}

/// A file of this metadata alone; also a way to compare NaNs. `None` if the alignment is too large to be written.
fn written(metadata: &Metadata) -> Option<Vec<u8>> {
    if metadata.get_u64("general.alignment").is_ok_and(|a| a.unwrap_or(32) > 1 << 16) {
        return None;
    }
    let mut file = Vec::new();
    let sink = |bytes: &[u8]| {
        file.extend_from_slice(bytes);
        Ok(())
    };
    ModelWriter::new(Format::Gguf, metadata, &[], sink)
        .and_then(ModelWriter::finish)
        .expect("written");
    Some(file)
}
