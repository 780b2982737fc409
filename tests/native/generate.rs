//! The runtime on the oracle's models: logits of every position, greedy text, stop rules, aborts and errors.

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::path::PathBuf;

use sluice::error::ErrorKind;
use sluice::model::Precision;
use sluice::runtime::native::{NativeHost, block_on, open_source};
use sluice::runtime::{
    EmbedConfig, Engine, Finish, GenerateConfig, Halted, Host, ModelKind, OpenConfig, Outcome,
    Prompt, SamplerConfig, Snapshot, Stats, StoppedBy, Wants,
};

/// The path of a fixture.
pub(crate) fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// Opens a model file with `config`.
pub(crate) fn open(path: &std::path::Path, config: &OpenConfig) -> Engine {
    let source = open_source(&[path.to_owned()], false).expect("the file is there");
    block_on(Engine::open(source, config, &NativeHost::new()))
        .unwrap_or_else(|h| panic!("{path:?}: {h:?}"))
}

/// Logits of every position, `[n_tokens][n_vocab]`.
pub(crate) fn logits(engine: &mut Engine, ids: &[u32], n_chunk: u32) -> Vec<Vec<f32>> {
    let mut rows = Vec::new();
    block_on(engine.logits(ids, n_chunk, &NativeHost::new(), &mut |row| rows.push(row.to_vec())))
        .expect("logits");
    rows
}

/// What a model makes of `ids`: all logits, or of an encoder the vectors of the text and of its half.
pub(crate) fn computed(engine: &mut Engine, ids: &[u32], n_chunk: u32) -> Vec<Vec<f32>> {
    match engine.model().kind() {
        ModelKind::Decoder => logits(engine, ids, n_chunk),
        ModelKind::Encoder => {
            [ids, &ids[..ids.len() / 2]].iter().map(|ids| embedding(engine, ids)).collect()
        }
    }
}

/// The vector of `ids`.
pub(crate) fn embedding(engine: &mut Engine, ids: &[u32]) -> Vec<f32> {
    let config = EmbedConfig::default();
    block_on(engine.embed(&[ids.to_vec()], &config, &NativeHost::new())).expect("embeds").vectors
}

fn exact() -> OpenConfig {
    OpenConfig {
        precision: Precision::Exact,
        all_logits: true,
        n_ctx: Some(256),
        ..OpenConfig::default()
    }
}

fn greedy(max_tokens: u32) -> GenerateConfig {
    let sampler = SamplerConfig { temperature: 0.0, ..SamplerConfig::default() };
    GenerateConfig { max_tokens, sampler, ignore_eog: true, ..GenerateConfig::default() }
}

fn json(path: PathBuf) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(path).expect("fixture")).expect("JSON")
}

fn ids(value: &serde_json::Value) -> Vec<u32> {
    value.as_array().expect("ids").iter().map(|id| id.as_u64().expect("id") as u32).collect()
}

fn run(
    engine: &mut Engine,
    prompt: &Prompt,
    config: &GenerateConfig,
) -> (Vec<u32>, String, Finish) {
    let (mut ids, mut text) = (Vec::new(), String::new());
    let finish =
        block_on(engine.generate(prompt, config, &NativeHost::new(), None, &mut |chunk, _| {
            ids.extend(chunk.token.map(|sample| sample.id));
            text.push_str(chunk.text);
            ControlFlow::Continue(())
        }))
        .expect("generate");
    (ids, text, finish)
}

fn failure(done: Outcome<Finish>) -> (ErrorKind, String) {
    match done {
        Err(Halted::Failed(error)) => (error.kind(), error.message().to_owned()),
        other => panic!("expected an error, got {other:?}"),
    }
}

const LLAMAS: [&str; 6] =
    ["llama-gqa", "llama-7to1", "llama-bias", "llama-ropefreqs-tied", "llama-linear", "llama-yarn"];

#[test]
fn tiny_llamas_give_the_oracles_logits_and_greedy_ids() {
    for name in LLAMAS {
        let facts = json(fixture(&format!("models/{name}.json")));
        let prompt = ids(&facts["prompt"]);
        let expected =
            std::fs::read(fixture(&format!("models/{name}.logits.f32"))).expect("logits");
        let expected: Vec<f32> = expected
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect();
        let mut engine = open(&fixture(&format!("models/{name}.gguf")), &exact());
        let rows = logits(&mut engine, &prompt, u32::MAX);
        let worst =
            rows.iter().flatten().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert_eq!(rows.len() * rows[0].len(), expected.len(), "{name}");
        assert!(worst <= 2e-4, "{name}: logits differ by {worst}");
        let (greedy_ids, ..) = run(&mut engine, &Prompt::Ids(prompt), &greedy(16));
        assert_eq!(greedy_ids, ids(&facts["greedy"]), "{name}");
    }
}

#[test]
fn chunks_of_any_size_give_the_same_bits() {
    for (name, precision) in [
        ("models/llama-7to1.gguf", Precision::Exact),
        ("quant/llama-q4_0.gguf", Precision::Fast),
        ("quant/llama-q8_0.gguf", Precision::Fast),
        ("quant/llama-q4_1.gguf", Precision::Fast),
    ] {
        let config = OpenConfig { precision, ..exact() };
        let prompt: Vec<u32> = (0..40).map(|i| (i * 7 + 3) % 60).collect();
        let mut engine = open(&fixture(name), &config);
        let whole = logits(&mut engine, &prompt, u32::MAX);
        for n_chunk in [1, 3, 16] {
            assert!(
                whole == logits(&mut engine, &prompt, n_chunk),
                "{name} in chunks of {n_chunk}"
            );
        }
    }
}

#[test]
fn a_generation_ends_by_limit_context_or_caller_and_the_engine_works_on() {
    let mut engine = open(
        &fixture("models/llama-gqa.gguf"),
        &OpenConfig { n_ctx: Some(12), ..OpenConfig::default() },
    );
    let prompt = Prompt::Ids(vec![1, 2, 3]);
    let (ids, _, finish) = run(&mut engine, &prompt, &greedy(4));
    assert_eq!((ids.len(), finish.stopped_by), (4, StoppedBy::MaxTokens), "limit");
    let (all, _, finish) = run(&mut engine, &prompt, &greedy(100));
    assert_eq!(
        (all.len(), finish.stopped_by),
        (10, StoppedBy::Context),
        "12 positions hold 3 + 9 tokens; the tenth is not fed"
    );
    assert_eq!(all[..4], ids[..], "the same prompt gives the same ids");
    let (none, _, finish) = run(&mut engine, &prompt, &greedy(0));
    assert_eq!((none.len(), finish.stopped_by), (0, StoppedBy::MaxTokens), "no tokens wanted");
    let mut seen = 0;
    let finish =
        block_on(engine.generate(&prompt, &greedy(9), &NativeHost::new(), None, &mut |_, _| {
            seen += 1;
            if seen == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }));
    assert_eq!((seen, finish.expect("finish").stopped_by), (2, StoppedBy::Caller), "caller");
    assert_eq!(run(&mut engine, &prompt, &greedy(4)).0, ids, "works on");
}

#[test]
fn resuming_equals_one_sequence() {
    let mut engine = open(&fixture("models/llama-gqa.gguf"), &exact());
    let (whole, ..) = run(&mut engine, &Prompt::Ids(vec![5, 6, 7, 8, 9]), &greedy(6));
    let config = GenerateConfig { resume: true, ..greedy(6) };
    engine.reset();
    let nothing = GenerateConfig { max_tokens: 0, ..config.clone() };
    let _ = run(&mut engine, &Prompt::Ids(vec![5, 6, 7]), &nothing);
    assert_eq!(run(&mut engine, &Prompt::Ids(vec![8, 9]), &config).0, whole, "two parts");
    assert_eq!(engine.history().len(), 10, "5 fed, 6 generated, the last not fed");
}

#[test]
fn wrong_prompts_are_refused_by_name() {
    let mut engine = open(
        &fixture("models/llama-gqa.gguf"),
        &OpenConfig { n_ctx: Some(8), ..OpenConfig::default() },
    );
    let mut refuse = |prompt: Prompt, config: &GenerateConfig| {
        failure(block_on(engine.generate(
            &prompt,
            config,
            &NativeHost::new(),
            None,
            &mut |_, _| ControlFlow::Continue(()),
        )))
    };
    assert_eq!(
        refuse(Prompt::Text(String::new()), &greedy(1)).0,
        ErrorKind::InvalidOption,
        "empty text"
    );
    assert_eq!(refuse(Prompt::Ids(vec![]), &greedy(1)).0, ErrorKind::InvalidOption, "no ids");
    let (kind, message) = refuse(Prompt::Ids(vec![96]), &greedy(1));
    assert!(kind == ErrorKind::InvalidOption && message.contains("96"), "{message}");
    let (kind, message) = refuse(Prompt::Ids(vec![1; 9]), &greedy(1));
    assert!(
        kind == ErrorKind::ContextFull && message.contains('9') && message.contains('8'),
        "{message}"
    );
    let stop = GenerateConfig { stop: vec![String::new()], ..greedy(1) };
    assert_eq!(
        refuse(Prompt::Ids(vec![1]), &stop).0,
        ErrorKind::InvalidOption,
        "empty stop string"
    );
}

/// A host that says stop at its n-th checkpoint.
struct StopsAt {
    clock: NativeHost,
    left: Cell<u32>,
}

impl Host for StopsAt {
    fn now_ms(&self) -> f64 {
        self.clock.now_ms()
    }

    fn aborted(&self) -> bool {
        let left = self.left.get().saturating_sub(1);
        self.left.set(left);
        left == 0
    }
}

#[test]
fn an_abort_at_any_checkpoint_leaves_an_engine_that_gives_the_same_bits() {
    let mut engine = open(&fixture("models/llama-gqa.gguf"), &exact());
    let prompt = Prompt::Ids(vec![3, 1, 4, 1, 5]);
    let (expected, ..) = run(&mut engine, &prompt, &greedy(5));
    for n in [1, 2, 3, 7, 20, 50, 90] {
        let host = StopsAt { clock: NativeHost::new(), left: Cell::new(n) };
        let done =
            block_on(engine.generate(&prompt, &greedy(50), &host, None, &mut |_, _| {
                ControlFlow::Continue(())
            }));
        assert!(matches!(done, Err(Halted::Aborted)), "checkpoint {n}: {done:?}");
        assert_eq!(
            run(&mut engine, &prompt, &greedy(5)).0,
            expected,
            "after an abort at checkpoint {n}"
        );
    }
}

/// A host that wants to see everything after every step.
#[derive(Default)]
struct Curious {
    counts: RefCell<Vec<(u32, u32)>>,
    stages: RefCell<Vec<u32>>,
}

impl Host for Curious {
    fn now_ms(&self) -> f64 {
        0.0
    }

    fn wants(&self, _now_ms: f64) -> Wants {
        Wants { stats: true, snapshot: true }
    }

    fn stats(&self, stats: &Stats) {
        self.counts.borrow_mut().push((stats.prompt_tokens, stats.generated_tokens));
    }

    fn snapshot(&self, snapshot: &Snapshot) {
        self.stages.borrow_mut().push(snapshot.stage);
    }
}

#[test]
fn figures_and_stages_never_go_back_within_a_pass() {
    let config = OpenConfig { n_batch: Some(8), n_ctx: Some(64), ..OpenConfig::default() };
    let mut engine = open(&fixture("models/llama-gqa.gguf"), &config);
    let (host, prompt) = (Curious::default(), Prompt::Ids((3..24).collect()));
    block_on(
        engine.generate(&prompt, &greedy(3), &host, None, &mut |_, _| ControlFlow::Continue(())),
    )
    .expect("generates");
    let (counts, stages) = (host.counts.take(), host.stages.take());
    assert!(counts.is_sorted(), "prompt tokens and generated ones: {counts:?}");
    assert_eq!(counts.last(), Some(&(21, 2)), "the last pass is that of the second token");
    let passes: Vec<_> = stages.chunk_by(|a, b| a <= b).collect();
    assert_eq!(passes.len(), 3 + 2, "three chunks and two tokens: {stages:?}");
    assert!(passes.iter().all(|pass| pass.first() == Some(&0) && pass.len() > 1), "{passes:?}");
}
