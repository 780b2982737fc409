//! Encoders from file to vector: llama.cpp's embeddings in every budget, with threads and while streaming, to the bit; texts through a
//! `WordPiece` vocabulary; and everything that an encoder refuses, by name.

use std::ops::ControlFlow;
use std::rc::Rc;

use sluice::error::{Error, ErrorKind};
use sluice::gguf::{Array, Value};
use sluice::runtime::native::{NativeHost, block_on};
use sluice::runtime::{
    EmbedConfig, Engine, GenerateConfig, Halted, Inspection, OpenConfig, Pooling, Precision, Prompt,
};
use sluice::source::MemorySource;

use super::chat::{FIRST, chat, with_tokenizer};
use super::generate::fixture;

const ENCODERS: [&str; 2] = ["bert", "nomic-bert"];

fn source(file: Vec<u8>) -> Rc<MemorySource> {
    Rc::new(MemorySource::new(vec![file]))
}

fn stored(name: &str) -> Vec<u8> {
    std::fs::read(fixture(&format!("models/{name}.gguf"))).expect("fixture")
}

fn try_open(file: Vec<u8>, config: &OpenConfig, host: &NativeHost) -> Result<Engine, Error> {
    failed(block_on(Engine::open(source(file), config, host)))
}

fn failed<T>(done: Result<T, Halted>) -> Result<T, Error> {
    done.map_err(|halted| match halted {
        Halted::Failed(error) => error,
        Halted::Aborted => panic!("nobody aborts"),
    })
}

fn embed(
    engine: &mut Engine,
    ids: &[u32],
    pooling: Option<Pooling>,
    host: &NativeHost,
) -> Vec<f32> {
    let config = EmbedConfig { pooling, normalize: false };
    failed(block_on(engine.embed(&[ids.to_vec()], &config, host))).expect("embeds").vectors
}

/// The oracle's prompt and its vector.
fn golden(name: &str) -> (Vec<u32>, Vec<f32>) {
    let facts = std::fs::read(fixture(&format!("models/{name}.json"))).expect("fixture");
    let facts: serde_json::Value = serde_json::from_slice(&facts).expect("JSON");
    let ids = facts["prompt"].as_array().expect("ids").iter();
    let ids = ids.map(|id| u32::try_from(id.as_u64().expect("an id")).expect("an id")).collect();
    let vector = std::fs::read(fixture(&format!("models/{name}.embedding.f32"))).expect("fixture");
    (ids, vector.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect())
}

#[test]
fn llama_cpps_vectors_in_every_budget_to_the_bit() {
    for name in ENCODERS {
        let (ids, expected) = golden(name);
        let alone = NativeHost::new();
        let mut whole = try_open(stored(name), &OpenConfig::default(), &alone).expect("opens");
        let (plan, found) = (whole.plan().clone(), embed(&mut whole, &ids, None, &alone));
        assert_eq!((plan.n_ctx, plan.n_batch), (256, 256), "{name}: a pass is a whole text");
        assert_eq!(plan.ledger_bytes("kv"), 0, "{name}: nothing is kept of a text");
        let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(found.len() == expected.len() && worst <= 1e-4, "{name}: {worst:e}");

        let small = OpenConfig { n_ctx: Some(64), budget_bytes: Some(1), ..OpenConfig::default() };
        let ring = OpenConfig { n_slots: Some(2), slot_bytes: Some(4096), ..small.clone() };
        let floor_of = |config: &OpenConfig| {
            let error = try_open(stored(name), config, &alone).expect_err("no room");
            assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{name}: {error}");
            let inspection = block_on(Inspection::read(source(stored(name)), &alone));
            let floor = inspection.expect("reads").fit(config, None).floor_bytes;
            floor.expect("a floor")
        };
        let (floor, with_ring) = (floor_of(&small), floor_of(&ring));
        for (budget, n_threads, config) in [
            (floor, 1, &small),
            (64 << 20, 3, &small),
            (with_ring, 1, &ring),
            (
                with_ring + (64 << 10),
                1,
                &OpenConfig { precision: Precision::Exact, ..ring.clone() },
            ),
        ] {
            let host = NativeHost::with_threads(n_threads);
            let config = OpenConfig { budget_bytes: Some(budget), n_threads, ..config.clone() };
            let mut engine = try_open(stored(name), &config, &host).expect("opens");
            assert!(engine.plan().total_bytes <= budget, "{name}: inside {budget}");
            assert_eq!(
                engine.plan().n_slots > 0,
                config.n_slots.is_some(),
                "{name}: weights stream"
            );
            for pass in 0..2 {
                let again = embed(&mut engine, &ids, Some(Pooling::Mean), &host);
                assert_eq!(again, found, "{name}: {budget} bytes, {n_threads} threads, {pass}");
            }
        }
    }
}

#[test]
fn pooling_is_the_files_unless_the_caller_says() {
    let alone = NativeHost::new();
    for (number, pooling) in [(1, Pooling::Mean), (2, Pooling::Cls), (3, Pooling::Last)] {
        let file = with_metadata("bert", "bert.pooling_type", Value::U32(number));
        let mut engine = try_open(file, &OpenConfig::default(), &alone).expect("opens");
        let (ids, _) = golden("bert");
        let found = embed(&mut engine, &ids, None, &alone);
        assert_eq!(found, embed(&mut engine, &ids, Some(pooling), &alone), "{pooling:?}");
        let all = [Pooling::Mean, Pooling::Cls, Pooling::Last];
        let same = all.iter().filter(|p| embed(&mut engine, &ids, Some(**p), &alone) == found);
        assert_eq!(same.count(), 1, "{pooling:?}");
    }
    let file = with_metadata("bert", "bert.pooling_type", Value::U32(4));
    let error = try_open(file, &OpenConfig::default(), &alone).expect_err("ranks");
    assert_eq!(error.kind(), ErrorKind::UnsupportedModel, "{error}");
    assert!(error.message().contains("bert.pooling_type"), "{error}");
}

#[test]
fn texts_go_through_word_pieces() {
    let mut engine = words();
    let ids = engine.embedding_ids("The cat, x1").expect("encodes");
    let tokens = vocabulary();
    let shown: Vec<&str> = ids.iter().map(|&id| tokens[id as usize].as_str()).collect();
    assert_eq!(
        shown,
        ["[CLS]", "\u{2581}the", "\u{2581}c", "a", "t", "\u{2581},", "\u{2581}x", "1", "[SEP]"]
    );
    let alone = NativeHost::new();
    let one = embed(&mut engine, &ids, None, &alone);
    let both = [engine.embedding_ids("dog").expect("encodes"), ids];
    let both = block_on(engine.embed(&both, &EmbedConfig::default(), &alone)).expect("embeds");
    assert_eq!(both.vectors[both.n_embd..], one, "a neighbour changes no bit");
    assert_eq!(engine.stats().context_used, 0, "nothing stays");
}

#[test]
fn what_an_encoder_cannot_do_is_refused_by_name() {
    let alone = NativeHost::new();
    let mut engine = words();
    let prompt = Prompt::Text("the cat".to_owned());
    let generate = GenerateConfig::default();
    let done = block_on(
        engine.generate(&prompt, &generate, &alone, None, &mut |_, _| ControlFlow::Continue(())),
    );
    let generated = failed(done.map(|_| ())).expect_err("no text");
    let chatted = failed(chat(&mut engine, FIRST, 2, false).map(|_| ())).expect_err("no text");
    let scored = block_on(engine.logits(&[1], 1, &alone, &mut |_| ()));
    let scored = failed(scored).expect_err("no logits");
    for error in [generated, chatted, scored] {
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
        assert!(
            error.message().contains("'bert'") && error.message().contains("`embed`"),
            "{error}"
        );
    }
    let long = engine.embedding_ids(&"the ".repeat(300)).expect("encodes");
    let done = block_on(engine.embed(&[long], &EmbedConfig::default(), &alone));
    let error = failed(done).expect_err("too long");
    assert_eq!(error.kind(), ErrorKind::ContextFull, "{error}");
    assert!(error.message().contains("302") && error.message().contains("256"), "{error}");
    let error = engine.embedding_ids("").expect_err("empty");
    assert_eq!(error.kind(), ErrorKind::InvalidOption, "{error}");
    for (config, key) in [
        (OpenConfig { n_ctx: Some(257), ..OpenConfig::default() }, "'context'"),
        (OpenConfig { n_batch: Some(16), ..OpenConfig::default() }, "'batch'"),
    ] {
        let error = try_open(stored("bert"), &config, &alone).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidOption, "{error}");
        assert!(error.message().contains(key), "{error}");
    }
    for (name, causal) in [("bert", true), ("llama-gqa", false)] {
        let key = if causal { "bert.attention.causal" } else { "llama.attention.causal" };
        let file = with_metadata(name, key, Value::Bool(causal));
        let error = try_open(file, &OpenConfig::default(), &alone).expect_err("the other way");
        assert_eq!(error.kind(), ErrorKind::UnsupportedModel, "{error}");
        assert!(error.message().contains(key), "{error}");
    }
}

#[test]
fn the_verdict_says_what_it_is_for() {
    let inspection = block_on(Inspection::read(source(stored("nomic-bert")), &NativeHost::new()));
    let verdict = inspection.expect("reads").verdict(&OpenConfig::default());
    assert_eq!(verdict.card.kind, Some("encoder"));
    assert!(verdict.text().contains("encoder, 3 layers"), "{}", verdict.text());
    assert_eq!(verdict.fit.plan.expect("fits").context, 256);
}

fn words() -> Engine {
    let tokens = vocabulary();
    let text = |text: &str| Value::String(text.as_bytes().into());
    let types = (0..96).map(|id| if id < 5 { 3 } else { 1 }).collect();
    let tokenizer = [
        ("model", text("bert")),
        ("tokens", Value::Array(Array::strings(&tokens))),
        ("token_type", Value::Array(Array::I32(types))),
        ("unknown_token_id", Value::U32(1)),
        ("bos_token_id", Value::U32(2)),
        ("cls_token_id", Value::U32(2)),
        ("eos_token_id", Value::U32(3)),
        ("seperator_token_id", Value::U32(3)),
    ];
    let file = with_tokenizer("bert", tokenizer);
    try_open(file, &OpenConfig::default(), &NativeHost::new()).expect("opens")
}

/// Letters and digits at the beginning of a word and inside, some marks, and words.
fn vocabulary() -> Vec<String> {
    let mut tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].map(str::to_owned).to_vec();
    let letters = ('a'..='z').chain('0'..='9');
    tokens.extend(letters.flat_map(|c| [format!("\u{2581}{c}"), c.to_string()]));
    tokens.extend(".,;:!?()-+*/".chars().map(|c| format!("\u{2581}{c}")));
    tokens.extend(["the", "and", "dog", "house", "of", "in", "to"].map(|w| format!("\u{2581}{w}")));
    assert_eq!(tokens.len(), 96, "one for each row of the table");
    tokens
}

/// A fixture's model with another value of a key.
fn with_metadata(name: &str, key: &str, value: Value) -> Vec<u8> {
    super::chat::rewritten(name, |metadata| {
        metadata.insert(key.to_owned(), value);
    })
}
