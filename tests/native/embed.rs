//! Embeddings: a sequence of their own beside the conversation, the same bits in any chunks, and meanings that lie close stand close.

use std::path::Path;
use std::rc::Rc;

use sluice::error::{Error, ErrorKind};
use sluice::runtime::native::{NativeHost, block_on};
use sluice::runtime::{EmbedConfig, Engine, Halted, OpenConfig, Pooling};
use sluice::source::MemorySource;

use super::allocations::measure;
use super::chat::{FIRST, chat, with_vocabulary};
use super::generate::open as open_file;

fn open(name: &str, n_batch: u32, budget_bytes: Option<u64>) -> Engine {
    let n_ctx = Some(128);
    let config =
        OpenConfig { n_ctx, n_batch: Some(n_batch), budget_bytes, ..OpenConfig::default() };
    let source = Rc::new(MemorySource::new(vec![with_vocabulary(name)]));
    block_on(Engine::open(source, &config, &NativeHost::new())).expect("opens")
}

fn embed(engine: &mut Engine, texts: &[&str], config: EmbedConfig) -> Result<Vec<Vec<f32>>, Error> {
    let ids = texts.iter().map(|text| engine.embedding_ids(text)).collect::<Result<Vec<_>, _>>()?;
    match block_on(engine.embed(&ids, &config, &NativeHost::new())) {
        Ok(found) => Ok(found.vectors.chunks(found.n_embd).map(<[f32]>::to_vec).collect()),
        Err(Halted::Failed(error)) => Err(error),
        Err(Halted::Aborted) => panic!("nobody aborts"),
    }
}

fn pooled(pooling: Pooling) -> EmbedConfig {
    EmbedConfig { pooling: Some(pooling), normalize: false }
}

const TEXTS: &[&str] = &["A first text, of some length.", "second", "x"];

#[test]
fn chunks_and_neighbours_change_no_bit() {
    for name in ["llama-gqa", "gemma3", "olmoe"] {
        let whole =
            embed(&mut open(name, 64, None), TEXTS, EmbedConfig::default()).expect("embeds");
        let parts = embed(&mut open(name, 3, None), TEXTS, EmbedConfig::default()).expect("embeds");
        assert_eq!(whole, parts, "{name}");
        let alone = embed(&mut open(name, 64, None), &TEXTS[1..2], EmbedConfig::default());
        assert_eq!(alone.expect("embeds")[0], whole[1], "{name}");
        assert!(whole[0] != whole[1], "{name}: texts differ");
        assert_eq!(by_threads(name), whole, "{name}: threads");
    }
}

/// In a sequence that was not planned, shared by three threads.
fn by_threads(name: &str) -> Vec<Vec<f32>> {
    let host = NativeHost::with_threads(3);
    let (n_ctx, n_batch) = (Some(128), Some(64));
    let config = OpenConfig { n_ctx, n_batch, n_threads: 3, ..OpenConfig::default() };
    let source = Rc::new(MemorySource::new(vec![with_vocabulary(name)]));
    let mut engine = block_on(Engine::open(source, &config, &host)).expect("opens");
    let ids: Vec<_> = TEXTS.iter().map(|text| engine.embedding_ids(text).expect("ids")).collect();
    let found = block_on(engine.embed(&ids, &EmbedConfig::default(), &host)).expect("embeds");
    found.vectors.chunks(found.n_embd).map(<[f32]>::to_vec).collect()
}

#[test]
fn pooling_takes_what_it_says() {
    let mut engine = open("llama-gqa", 4, None);
    let of = |engine: &mut Engine, pooling, text: &str| {
        embed(engine, &[text], pooled(pooling)).expect("embeds").remove(0)
    };
    let (first, mean) =
        (of(&mut engine, Pooling::Cls, "abcdef"), of(&mut engine, Pooling::Mean, "abcdef"));
    assert_eq!(first, of(&mut engine, Pooling::Cls, "axyz"), "the first token sees nothing else");
    assert_eq!(first, of(&mut engine, Pooling::Mean, "a"), "of one token all are the same");
    assert_eq!(first, of(&mut engine, Pooling::Last, "a"));
    let lasts: Vec<_> = (1..=6).map(|n| of(&mut engine, Pooling::Last, &"abcdef"[..n])).collect();
    for (i, found) in mean.iter().enumerate() {
        let expected = lasts.iter().map(|last| f64::from(last[i])).sum::<f64>() / 6.0;
        assert!((f64::from(*found) - expected).abs() < 1e-6, "{found} and {expected}");
    }
    let unit =
        embed(&mut engine, &["abcdef"], EmbedConfig { normalize: true, ..pooled(Pooling::Mean) });
    let unit = unit.expect("embeds").remove(0);
    let length = unit.iter().map(|x| x * x).sum::<f32>().sqrt();
    assert!((length - 1.0).abs() < 1e-6, "length {length}");
    let ratio = mean[0] / unit[0];
    assert!(mean.iter().zip(&unit).all(|(m, u)| (m - u * ratio).abs() < 1e-5), "one direction");
}

#[test]
fn a_conversation_is_not_disturbed() {
    let mut engine = open("gemma3", 16, None);
    let before = chat(&mut engine, FIRST, 5, false).expect("answers");
    embed(&mut engine, TEXTS, EmbedConfig::default()).expect("embeds");
    assert!(embed(&mut engine, &["y", ""], EmbedConfig::default()).is_err(), "an empty text");
    let after = chat(&mut engine, FIRST, 5, false).expect("answers");
    assert_eq!(after.reused, after.prompt - 1, "the conversation is still there");
    assert_eq!((after.ids, after.first_logits), (before.ids, before.first_logits));
}

#[test]
fn what_cannot_be_embedded_is_refused_by_name() {
    let mut engine = open("llama-gqa", 16, None);
    let long = "x".repeat(129);
    let error = embed(&mut engine, &[&long], EmbedConfig::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ContextFull, "{error}");
    assert!(error.message().contains("129") && error.message().contains("128"), "{error}");
    let error = embed(&mut engine, &[""], EmbedConfig::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidOption, "{error}");
    // What cannot fit is refused before memory is taken for it.
    let endless = "x".repeat(20 << 20);
    let (refused, allocated) = measure(|| engine.embedding_ids(&endless));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::ContextFull);
    assert!(allocated.peak_bytes < 1 << 20, "{} bytes", allocated.peak_bytes);
    assert_eq!(embed(&mut engine, &["fine"], EmbedConfig::default()).expect("works on").len(), 1);

    let floor = open("llama-gqa", 16, None).plan().total_bytes;
    let mut tight = open("llama-gqa", 16, Some(floor + 100));
    let error = embed(&mut tight, &["x"], EmbedConfig::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
    assert!(error.message().contains("'embeddings'"), "{error}");
    chat(&mut tight, FIRST, 2, false).expect("a conversation goes on");

    let config = OpenConfig {
        n_ctx: Some(128),
        n_batch: Some(16),
        embeddings: true,
        ..OpenConfig::default()
    };
    let source = Rc::new(MemorySource::new(vec![with_vocabulary("llama-gqa")]));
    let mut planned = block_on(Engine::open(source, &config, &NativeHost::new())).expect("opens");
    assert!(planned.plan().total_bytes > floor, "the plan has it in");
    assert_eq!(embed(&mut planned, &["x"], EmbedConfig::default()).expect("embeds").len(), 1);
}

#[test]
fn meanings_that_lie_close_stand_close() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/smollm2-135m-q4_1.gguf");
    let mut engine = open_file(&file, &OpenConfig { n_ctx: Some(128), ..OpenConfig::default() });
    let config = EmbedConfig { normalize: true, ..EmbedConfig::default() };
    let mut like = |a: &str, b: &str| {
        let found = embed(&mut engine, &[a, b], config).expect("embeds");
        found[0].iter().zip(&found[1]).map(|(a, b)| a * b).sum::<f32>()
    };
    for (text, near, far) in [
        (
            "The cat sleeps on the sofa.",
            "A kitten is napping on the couch.",
            "Interest rates rose again this quarter.",
        ),
        (
            "How do I bake bread?",
            "What is a recipe for a loaf of bread?",
            "The train to Berlin leaves at noon.",
        ),
        (
            "Stocks fell sharply on Monday.",
            "The share market dropped at the start of the week.",
            "She painted the fence green.",
        ),
    ] {
        let (near, far) = (like(text, near), like(text, far));
        println!("{text}: near {near:.3}, far {far:.3}");
        assert!(near > far, "{text}: near {near}, far {far}");
    }
}
