//! Files to accept and to refuse, each as `parser/index.json` says, within memory that follows the file's size.

use serde_json::Value;
use sluice::error::Result;
use sluice::gguf::{Header, HeaderReader, join, sibling_names};
use sluice::model::{KvType, Model, ModelConfig, Precision};
use sluice::tokenizer::Tokenizer;

use super::{fixture, read};
use crate::allocations::measure;

#[test]
fn every_case_comes_out_as_expected() {
    let index: Value = serde_json::from_slice(&read("parser/index.json")).unwrap();
    let mut wrong = Vec::new();
    for case in index.as_array().unwrap() {
        let text = |key: &str| case[key].as_str().unwrap_or_default();
        let files = files(case);
        let total: usize = files.iter().map(Vec::len).sum();
        let (result, allocated) = measure(|| open(&files, text("level"), text("class")));
        let as_expected = match text("expect") {
            "accept" => result.is_ok(),
            "reject" => result.is_err(),
            _ => true,
        };
        if !as_expected {
            wrong.push(format!("{} ({}): {result:?}", text("file"), text("why")));
        }
        if let Err(e) = result {
            assert!(
                matches!(e.code(), "invalid_model" | "unsupported_model"),
                "{}: {e:?}",
                text("file")
            );
        }
        let bound = (64 << 10) + 16 * total;
        assert!(allocated.peak_bytes < bound, "{}: {allocated:?} for {total} bytes", text("file"));
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        index.as_array().unwrap().len(),
        wrong.join("\n")
    );
}

/// What opening a model does, as far as `level` goes.
fn open(files: &[Vec<u8>], level: &str, class: &str) -> Result<()> {
    let headers = files.iter().map(|file| Header::parse(file)).collect::<Result<Vec<_>>>()?;
    let header = join(headers)?;
    // A type that nobody knows matters to whoever uses the tensor.
    if level == "model" || class == "unknown_type" {
        open_model(&header)?;
    }
    Ok(())
}

fn open_model(header: &Header) -> Result<()> {
    let config = ModelConfig { precision: Precision::Exact, kv: KvType::F32 };
    Model::new(header, &config)?;
    Tokenizer::from_metadata(&header.metadata)?;
    Ok(())
}

#[test]
fn a_file_of_unknown_size_is_refused_as_soon() {
    let index: Value = serde_json::from_slice(&read("parser/index.json")).unwrap();
    for case in index.as_array().unwrap().iter().filter(|case| case["level"] == "container") {
        let file = case["file"].as_str().unwrap();
        let bytes = read(&format!("parser/{file}"));
        let (result, allocated) = measure(|| {
            let mut reader = HeaderReader::new(None);
            loop {
                let wanted = reader.wanted();
                let start = bytes.len().min(usize::try_from(wanted.start).unwrap());
                let end = bytes.len().min(usize::try_from(wanted.end).unwrap());
                match reader.push(&bytes[start..end]) {
                    Ok(None) => assert!(
                        start < bytes.len(),
                        "{file}: an ended file keeps the reader waiting"
                    ),
                    other => break other,
                }
            }
        });
        assert!(allocated.peak_bytes < 3 << 20, "{file}: {allocated:?}");
        if case["expect"] == "accept" {
            assert!(matches!(result, Ok(Some(_))), "{file}: {result:?}");
        }
    }
}

#[test]
fn what_fuzzing_found_stays_refused() {
    let folder = fixture("fuzz/header");
    let files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!files.is_empty(), "there are such files");
    for file in files {
        let (result, allocated) = measure(|| Header::parse(&std::fs::read(&file).unwrap()));
        assert!(result.is_err(), "{}: {result:?}", file.display());
        assert!(allocated.peak_bytes < 1 << 20, "{}: {allocated:?}", file.display());
    }
}

#[test]
fn messages_name_the_culprit() {
    for (file, code, part) in [
        ("bad/version-1.gguf", "unsupported_model", "GGUF version 1 is not read"),
        ("bad/big-endian.gguf", "unsupported_model", "big-endian"),
        ("bad/cut-0.gguf", "invalid_model", "the file is empty"),
        ("bad/cut-16.gguf", "invalid_model", "24 bytes are needed, it has 16"),
        ("bad/truncated-320.gguf", "invalid_model", "GGUF metadata entry"),
        (
            "bad/truncated-last-byte.gguf",
            "invalid_model",
            "ends at byte 4416, the file has 4415 bytes",
        ),
        ("bad/duplicate-key.gguf", "invalid_model", "stands there twice"),
        ("bad/overlap-partial.gguf", "invalid_model", "overlaps with tensor"),
        ("bad/offset-unaligned.gguf", "invalid_model", "not on a multiple of 32 bytes"),
        ("bad/alignment-48.gguf", "invalid_model", "key 'general.alignment' is 48"),
        ("bad/row-not-block.gguf", "invalid_model", "no multiple of Q4_0's block of 32"),
        (
            "bad/huge-n-tensors-10000000000.gguf",
            "invalid_model",
            "1099511627776 tensors are declared at byte 24",
        ),
    ] {
        let error = Header::parse(&read(&format!("parser/{file}"))).unwrap_err();
        assert_eq!(error.code(), code, "{file}");
        assert!(error.message().contains(part), "{file}: {error}");
    }
    let error = Header::parse(b"<!DOCTYPE html><html lang=\"en\"><title>404</title>").unwrap_err();
    assert!(error.message().contains("'<!DOCTYPE html'…: a web page, not a model"), "{error}");
}

#[test]
fn parts_join_in_any_order() {
    let first = fixture("parser/ok/splitmeta/splitmeta-00001-of-00003.gguf");
    let names = sibling_names(first.to_str().unwrap()).unwrap();
    let part = |i: usize| Header::parse(&std::fs::read(&names[i]).unwrap()).unwrap();
    let straight = join(vec![part(0), part(1), part(2)]).unwrap();
    let turned = join(vec![part(2), part(0), part(1)]).unwrap();
    assert_eq!(straight.metadata, turned.metadata);
    for (a, b) in straight.tensors.iter().zip(&turned.tensors) {
        let file = [1, 2, 0][a.file as usize];
        assert_eq!((&a.name, a.offset, file), (&b.name, b.offset, b.file));
        assert_eq!(straight.files[a.file as usize], turned.files[b.file as usize]);
    }
    for (parts, message) in [
        (vec![part(0)], "1 of 3 parts are given (part 2 is missing)"),
        (vec![part(0), part(2), part(2)], "part 3 of 3 is given twice"),
    ] {
        let error = join(parts).unwrap_err();
        assert!(error.message().contains(message), "{error}");
    }
}

fn files(case: &Value) -> Vec<Vec<u8>> {
    let file = case["file"].as_str().unwrap();
    let folder = file.rsplit_once('/').unwrap().0;
    match case["parts"].as_array() {
        Some(parts) => parts
            .iter()
            .map(|p| read(&format!("parser/{folder}/{}", p.as_str().unwrap())))
            .collect(),
        None => vec![read(&format!("parser/{file}"))],
    }
}
