//! Memory is invisible to the maths: every budget, ring, slot size, source, chunk and cache gives the same bits, and no run
//! takes more than its plan says.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use sluice::error::ErrorKind;
use sluice::gguf::Header;
use sluice::model::KvType;
use sluice::runtime::native::{NativeHost, block_on, open_source};
use sluice::runtime::{Engine, Halted, Inspection, OpenConfig, Precision, Residency};
use sluice::source::{MemorySource, WeightSource};

use crate::generate::{computed, fixture};

/// Positions of the runs: a few chunks, and more than one page of a window.
const N_TOKENS: u32 = 40;

fn prompt(n_vocab: u32) -> Vec<u32> {
    (0..N_TOKENS).map(|i| (i * 7919 + 3) % n_vocab).collect()
}

fn source(path: &Path, kind: Kind) -> Rc<dyn WeightSource> {
    match kind {
        Kind::File => open_source(&[path.to_owned()], false).expect("file"),
        Kind::Mmap => open_source(&[path.to_owned()], true).expect("map"),
        Kind::Memory => Rc::new(MemorySource::new(vec![std::fs::read(path).expect("file")])),
    }
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    File,
    Mmap,
    Memory,
}

fn try_open(path: &Path, kind: Kind, config: &OpenConfig) -> Result<Engine, Halted> {
    block_on(Engine::open(source(path, kind), &of_model(path, config), &NativeHost::new()))
}

fn run(path: &Path, kind: Kind, config: &OpenConfig, n_chunk: u32) -> (Vec<u32>, Engine) {
    let mut engine =
        try_open(path, kind, config).unwrap_or_else(|h| panic!("{path:?} {config:?}: {h:?}"));
    let ids = prompt(engine.model().hparams().n_vocab);
    let rows = computed(&mut engine, &ids, n_chunk);
    (rows.iter().flatten().map(|value| value.to_bits()).collect(), engine)
}

fn floor(path: &Path, kind: Kind, config: &OpenConfig) -> u64 {
    let inspection =
        block_on(Inspection::read(source(path, kind), &NativeHost::new())).expect("header");
    inspection.plan(&of_model(path, config)).expect("plan").floor_bytes
}

/// Bytes of the longest row of a matrix: the smallest slot there can be.
fn longest_row(header: &Header) -> u64 {
    let matrices = header.tensors.iter().filter(|tensor| tensor.shape.len() > 1);
    let rows = matrices.map(|tensor| tensor.n_bytes / tensor.n_rows());
    rows.max().expect("tensors")
}

/// An encoder has no chunks.
fn of_model(path: &Path, config: &OpenConfig) -> OpenConfig {
    let is_encoder = path.file_stem().is_some_and(|name| name.to_string_lossy().ends_with("bert"));
    OpenConfig { n_batch: config.n_batch.filter(|_| !is_encoder), ..config.clone() }
}

fn base(precision: Precision) -> OpenConfig {
    OpenConfig {
        precision,
        n_ctx: Some(64),
        all_logits: true,
        n_batch: Some(16),
        ..OpenConfig::default()
    }
}

/// All ways to hold one model against the run that keeps everything.
fn all_ways_agree(path: &Path, precision: Precision) {
    let base = base(precision);
    let (expected, resident) = run(path, Kind::File, &base, u32::MAX);
    assert_eq!(resident.plan().streamed_bytes_per_token, 0, "{path:?}: everything is kept");
    let all = resident.plan().total_bytes;
    let least = floor(path, Kind::File, &base);
    let check = |config: &OpenConfig, kind, n_chunk| {
        let (found, engine) = run(path, kind, config, n_chunk);
        assert!(found == expected, "{path:?} {kind:?} chunks of {n_chunk} {config:?}");
        let plan = engine.plan();
        assert!(plan.total_bytes <= plan.budget_bytes, "{path:?}: {plan:?}");
    };
    for eighth in 0..=8 {
        let budget_bytes = Some(least + (all.saturating_sub(least)) * eighth / 8);
        check(&OpenConfig { budget_bytes, ..base.clone() }, Kind::File, u32::MAX);
    }
    let at_floor = OpenConfig { budget_bytes: Some(least), ..base };
    for kind in [Kind::Mmap, Kind::Memory] {
        let budget_bytes = Some(floor(path, kind, &base));
        check(&OpenConfig { budget_bytes, ..base.clone() }, kind, u32::MAX);
    }
    check(&at_floor, Kind::File, 1);
    let one_chunk = OpenConfig { n_batch: Some(N_TOKENS), ..base };
    check(&one_chunk, Kind::File, u32::MAX);
    let no_async = OpenConfig { prefetch: false, ..base };
    check(
        &OpenConfig { budget_bytes: Some(floor(path, Kind::File, &no_async)), ..no_async },
        Kind::File,
        7,
    );
    let header = Header::parse(&std::fs::read(path).expect("file")).expect("header");
    let row = longest_row(&header);
    for (n_slots, slot_bytes) in
        [(1, None), (3, None), (1, Some(row)), (2, Some(2 * row + 7)), (2, Some(8 << 20))]
    {
        let ring = OpenConfig { n_slots: Some(n_slots), slot_bytes, ..base.clone() };
        let budget_bytes = Some(floor(path, Kind::File, &ring));
        check(&OpenConfig { budget_bytes, ..ring }, Kind::File, u32::MAX);
    }
    // Some files have one set of rotations for short contexts and another for long ones.
    let is_one = header.tensor("rope_factors_long.weight").is_none();
    for n_ctx in [N_TOKENS, 256].into_iter().filter(|_| is_one) {
        let reach = OpenConfig { n_ctx: Some(n_ctx), ..base.clone() };
        let budget_bytes = Some(floor(path, Kind::File, &reach));
        check(&OpenConfig { budget_bytes, ..reach }, Kind::File, 7);
    }
    let refused =
        try_open(path, Kind::File, &OpenConfig { budget_bytes: Some(least - (64 << 10)), ..base });
    match refused {
        Err(Halted::Failed(error)) => assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{path:?}"),
        other => panic!("{path:?}: a page below the floor must be refused, got {other:?}"),
    }
}

fn tiny_models() -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for folder in ["models", "quant"] {
        for entry in std::fs::read_dir(fixture(folder)).expect("folder") {
            let path = entry.expect("entry").path();
            if path.extension().is_some_and(|e| e == "gguf") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    paths
}

#[test]
fn tiny_models_give_the_same_bits_however_they_are_held() {
    let mut n_run = 0;
    for path in tiny_models() {
        for precision in [Precision::Fast, Precision::Exact] {
            match try_open(&path, Kind::File, &base(precision)) {
                Err(Halted::Failed(error)) if error.kind() == ErrorKind::UnsupportedModel => {}
                Err(halted) => panic!("{path:?}: {halted:?}"),
                Ok(_) => {
                    all_ways_agree(&path, precision);
                    n_run += 1;
                }
            }
        }
    }
    assert!(n_run >= 2 * 40, "only {n_run} runs");
}

#[test]
fn residency_f32_gives_the_bits_of_exact() {
    for path in tiny_models() {
        let exact = base(Precision::Exact);
        let Ok(_) = try_open(&path, Kind::File, &exact) else { continue };
        let (expected, _) = run(&path, Kind::File, &exact, u32::MAX);
        let decoded = OpenConfig { residency: Residency::F32, ..base(Precision::Fast) };
        assert!(run(&path, Kind::File, &decoded, u32::MAX).0 == expected, "{path:?}: all resident");
        let streamed =
            OpenConfig { budget_bytes: Some(floor(&path, Kind::File, &decoded)), ..decoded };
        assert!(run(&path, Kind::File, &streamed, u32::MAX).0 == expected, "{path:?}: streamed");
    }
}

#[test]
fn each_cache_format_gives_its_own_bits_at_every_budget() {
    let path = fixture("models/gemma3.gguf");
    for kv in [KvType::F32, KvType::F16, KvType::Q8_0] {
        let config = OpenConfig { kv: Some(kv), ..base(Precision::Fast) };
        let (expected, _) = run(&path, Kind::File, &config, u32::MAX);
        let tight = OpenConfig { budget_bytes: Some(floor(&path, Kind::File, &config)), ..config };
        let (found, engine) = run(&path, Kind::File, &tight, 3);
        assert!(found == expected, "{kv:?}");
        assert_eq!(engine.plan().kv, kv, "the budget never changes the format");
    }
}
