//! Models of real shapes with random weights: what `sluice make-model` writes.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]
#![allow(clippy::disallowed_methods, reason = "tests read files and start the command")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use sluice::gguf::{Header, TensorType};
use sluice::planner::PAGE_BYTES;
use sluice::quant::GgmlType;
use sluice::runtime::native::{NativeHost, block_on, open_source};
use sluice::runtime::{Inspection, OpenConfig};

/// Runs the command with `arguments`, the last of them standing for a file in a directory of the test's own.
fn make(name: &str, arguments: &[&str]) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("make-model");
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join(name);
    let sluice = env!("CARGO_BIN_EXE_sluice");
    let done = Command::new(sluice)
        .arg("make-model")
        .args(arguments)
        .arg("--quiet")
        .arg("-o")
        .arg(&file)
        .output();
    let done = done.unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    file
}

/// Bytes by format.
fn types(header: &Header) -> BTreeMap<GgmlType, u64> {
    let mut types = BTreeMap::new();
    for tensor in &header.tensors {
        match tensor.ty {
            TensorType::Known(ty) => *types.entry(ty).or_insert(0) += tensor.n_bytes,
            TensorType::Unknown(id) => panic!("{}: type {id}", tensor.name),
        }
    }
    types
}

#[test]
fn a_made_model_has_the_formats_of_the_real_file_and_runs() {
    let file = make("gemma.gguf", &["gemma3-270m", "--layers", "6"]);
    let bytes = std::fs::read(&file).unwrap();
    let header = Header::parse(&bytes).unwrap();
    check_vocabulary(&header);
    let types = types(&header);
    // Layers 2 and 5 of 6 have more bits; rows of 640 are no whole blocks of 256, those of 1024 and 2048 are.
    let expected = [
        (GgmlType::F32, 6 * 2 * 256 * 4 + 6 * 4 * 640 * 4 + 640 * 4),
        (GgmlType::Q5_0, (6 * 640 * (1024 + 256 + 2 * 2048) + 4 * 640 * 256) / 32 * 22),
        (GgmlType::Q8_0, (640 * 262_144 + 2 * 640 * 256) / 32 * 34),
        (GgmlType::Q4_K, (6 * 1024 * 640 + 4 * 2048 * 640) / 256 * 144),
        (GgmlType::Q6_K, 2 * 2048 * 640 / 256 * 210),
    ];
    assert_eq!(types, BTreeMap::from(expected), "bytes by format");

    let logits = file.with_extension("logits");
    let sluice = Command::new(env!("CARGO_BIN_EXE_sluice"))
        .args(["logits".as_ref(), file.as_os_str(), "--ids".as_ref(), "2,300,262143".as_ref()])
        .args(["--out".as_ref(), logits.as_os_str()])
        .output()
        .unwrap();
    assert!(sluice.status.success(), "{}", String::from_utf8_lossy(&sluice.stderr));
    std::fs::remove_file(&file).unwrap();
    let logits = std::fs::read(&logits).unwrap();
    let logits: Vec<f32> = logits.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    assert_eq!(logits.len(), 3 * 262_144, "three positions");
    let size = (logits.iter().map(|l| f64::from(*l) * f64::from(*l)).sum::<f64>()
        / logits.len() as f64)
        .sqrt();
    assert!((0.1..30.0).contains(&size), "logits are of size {size}");
}

#[test]
fn the_same_seed_makes_the_same_file() {
    let a = std::fs::read(make("a.gguf", &["smollm2-135m", "--layers", "1"])).unwrap();
    let b = std::fs::read(make("b.gguf", &["smollm2-135m", "--layers", "1"])).unwrap();
    let c =
        std::fs::read(make("c.gguf", &["smollm2-135m", "--layers", "1", "--seed", "2"])).unwrap();
    check_vocabulary(&Header::parse(&a).unwrap());
    assert!(a == b, "seed 1 twice");
    assert!(a != c && a.len() == c.len(), "another seed");
}

/// The sizes that are tested by nothing but their headers: what they would take, and that no plan passes its budget.
#[test]
fn headers_of_true_size_are_planned() {
    // Size of the file, the floor at a context of 512, and bytes of keys and values of a position.
    let shapes = [
        ("llama-1b", 780..830, 32, 16 * 2 * 512 * 2),
        ("llama-8b", 4_900..4_950, 144, 32 * 2 * 1024 * 2),
        ("llama-13b", 7_800..7_900, 440, 40 * 2 * 5120 * 2),
        ("llama-70b", 42_000..43_000, 200, 80 * 2 * 1024 * 2),
    ];
    for (shape, megabytes, most, position_bytes) in shapes {
        let file = make(&format!("{shape}-zeros.gguf"), &[shape, "--zeros"]);
        let size = std::fs::metadata(&file).unwrap().len();
        assert!(megabytes.contains(&(size / 1_000_000)), "{shape}: {size} bytes");
        let source = open_source(std::slice::from_ref(&file), false).unwrap();
        let header = block_on(Inspection::read(source, &NativeHost::new())).unwrap();
        let config = |budget| OpenConfig {
            n_ctx: Some(512),
            budget_bytes: Some(budget),
            ..OpenConfig::default()
        };
        let floor = header.fit(&config(0), None).floor_bytes.unwrap();
        assert!(floor <= most * 1_000_000, "{shape}: the floor is {floor}");
        let error = header.plan(&config(floor - PAGE_BYTES)).unwrap_err();
        assert_eq!(error.code(), "out_of_memory", "{shape}: {error}");
        let mut residents = Vec::new();
        for budget in [floor, 2 * floor, 1 << 30, 4 << 30, 16 << 30, 64 << 30] {
            let plan = header.plan(&config(budget)).unwrap();
            assert!(plan.total_bytes <= budget, "{shape}: {} of {budget}", plan.total_bytes);
            let sum: u64 = plan.ledger.iter().map(|item| item.bytes).sum();
            assert_eq!(sum, plan.total_bytes, "{shape}: the ledger's sum");
            let kv = plan.ledger_bytes("kv");
            // Beside them stands what says where each head is: 64 bytes for one of 128 values.
            let n_heads = position_bytes / (2 * 2 * 128);
            let values = 512 * position_bytes;
            assert!(
                (values..values + 65_536 + 64 * n_heads).contains(&kv),
                "{shape}: {kv} bytes of keys and values"
            );
            assert!(
                plan.resident_bytes + plan.streamed_bytes_per_token >= plan.weight_bytes,
                "{shape}: every row is kept or read"
            );
            residents.push(plan.resident_bytes);
        }
        assert!(residents.is_sorted(), "{shape}: {residents:?}");
        assert!(residents[0] < PAGE_BYTES, "{shape}: the floor keeps nothing: {residents:?}");
        assert!(residents[5] > size * 9 / 10, "{shape}: 64 GiB keep everything: {residents:?}");
        println!("{shape}: {size} bytes, floor {floor}");
        std::fs::remove_file(&file).unwrap();
    }
}

/// Any text can be encoded with the made vocabulary, and comes back.
fn check_vocabulary(header: &Header) {
    let tokenizer = sluice::tokenizer::Tokenizer::from_metadata(&header.metadata).unwrap();
    let text = "It runs in 300 MB \u{2014} caf\u{e9}, \u{65e5}\u{672c}\n";
    let ids = tokenizer.encode(text, false, false).unwrap();
    assert_eq!(tokenizer.decode(&ids, false), text.as_bytes(), "{ids:?}");
    assert!(ids.len() < text.len(), "some bytes are joined: {ids:?}");
}
