//! Conversations on tiny models that got a vocabulary: what the KV cache holds is used again with the same bits, lost windows are
//! computed again, and a full context ends the answer or is shifted to what a fresh prompt gives.

use std::ops::ControlFlow;
use std::rc::Rc;

use sluice::error::ErrorKind;
use sluice::gguf::{Array, Format, Header, Metadata, ModelWriter, TensorSpec, TensorType, Value};
use sluice::runtime::native::{NativeHost, block_on};
use sluice::runtime::{
    ChatConfig, Conversation, Engine, FinishReason, GenerateConfig, Halted, Json, LocalTime,
    OpenConfig, Prompt, SamplerConfig,
};
use sluice::source::MemorySource;

use super::generate::fixture;

/// A fixture's model under a vocabulary of 96 tokens: letters, and the markers of `ChatML`.
pub(crate) fn with_vocabulary(name: &str) -> Vec<u8> {
    with_letters(name, "")
}

/// The same with other letters in place of the last ones.
fn with_letters(name: &str, others: &str) -> Vec<u8> {
    let markers = ["<|end|>", "<|im_start|>", "<|im_end|>"].map(str::to_owned);
    let letters =
        ['\u{120}', '\u{10a}'].into_iter().chain((' '..='~').filter(|c| !" `^~".contains(*c)));
    let mut tokens: Vec<String> = markers.into_iter().chain(letters.map(String::from)).collect();
    tokens.truncate(96 - others.chars().count());
    tokens.extend(others.chars().map(String::from));
    assert_eq!(tokens.len(), 96, "one name for each row of the table");
    let types = (0..96).map(|id| if id < 3 { 3 } else { 1 }).collect();
    let text = |text: &str| Value::String(text.as_bytes().into());
    let tokenizer = [
        ("model", text("gpt2")),
        ("pre", text("gpt-2")),
        ("tokens", Value::Array(Array::strings(&tokens))),
        ("token_type", Value::Array(Array::I32(types))),
        ("merges", Value::Array(Array::strings(Vec::<String>::new()))),
        ("bos_token_id", Value::U32(0)),
        ("eos_token_id", Value::U32(0)),
    ];
    with_tokenizer(name, tokenizer)
}

/// A fixture's model with other keys of a tokenizer.
pub(crate) fn with_tokenizer<const N: usize>(name: &str, keys: [(&str, Value); N]) -> Vec<u8> {
    rewritten(name, |metadata| {
        for (key, value) in keys {
            metadata.insert(format!("tokenizer.ggml.{key}"), value);
        }
    })
}

/// A fixture's model with other metadata.
pub(crate) fn rewritten(name: &str, change: impl FnOnce(&mut Metadata)) -> Vec<u8> {
    let file = std::fs::read(fixture(&format!("models/{name}.gguf"))).expect("fixture");
    let Header { mut metadata, tensors, .. } = Header::parse(&file).expect("header");
    change(&mut metadata);
    let specs: Vec<_> = tensors
        .iter()
        .map(|t| match t.ty {
            TensorType::Known(ty) => TensorSpec { name: &t.name, ty, shape: &t.shape },
            TensorType::Unknown(_) => panic!("known types"),
        })
        .collect();
    let mut out = Vec::new();
    let sink = |bytes: &[u8]| {
        out.extend_from_slice(bytes);
        Ok(())
    };
    let mut writer = ModelWriter::new(Format::Gguf, &metadata, &specs, sink).expect("head");
    for t in &tensors {
        writer.write(&file[t.offset as usize..(t.offset + t.n_bytes) as usize]).expect("data");
    }
    writer.finish().expect("end");
    out
}

fn open(name: &str, n_ctx: u32) -> Engine {
    let config = OpenConfig { n_ctx: Some(n_ctx), n_batch: Some(16), ..OpenConfig::default() };
    let source = Rc::new(MemorySource::new(vec![with_vocabulary(name)]));
    block_on(Engine::open(source, &config, &NativeHost::new())).expect("opens")
}

fn conversation(messages: &[(&str, &str)]) -> Conversation {
    let message = |(role, content): &(&str, &str)| {
        let field = |name: &str, text: &str| (name.to_owned(), Json::from(text));
        Json::Object(vec![field("role", role), field("content", content)])
    };
    Conversation {
        messages: messages.iter().map(message).collect(),
        tools: None,
        template: None,
        arguments: Vec::new(),
        add_generation_prompt: true,
        now: LocalTime { year: 2025, month: 7, day: 4, hour: 0, minute: 0, second: 0 },
    }
}

fn greedy(max_tokens: u32) -> GenerateConfig {
    let sampler = SamplerConfig { temperature: 0.0, ..SamplerConfig::default() };
    GenerateConfig {
        max_tokens,
        sampler,
        ignore_eog: true,
        keep_first_logits: true,
        ..GenerateConfig::default()
    }
}

pub(crate) struct Answer {
    pub(crate) ids: Vec<u32>,
    reason: FinishReason,
    pub(crate) first_logits: Vec<u32>,
    pub(crate) reused: u32,
    pub(crate) prompt: u32,
}

pub(crate) fn chat(
    engine: &mut Engine,
    messages: &[(&str, &str)],
    max_tokens: u32,
    shift: bool,
) -> Result<Answer, Halted> {
    let config = ChatConfig { generate: greedy(max_tokens), context_shift: shift };
    let mut ids = Vec::new();
    let conversation = conversation(messages);
    let finish = block_on(engine.chat(
        &conversation,
        &config,
        &NativeHost::new(),
        None,
        &mut |chunk, _| {
            ids.extend(chunk.token.map(|sample| sample.id));
            ControlFlow::Continue(())
        },
    ))?;
    let first_logits = engine.first_logits().iter().map(|x| x.to_bits()).collect();
    let (reused, prompt) = (engine.stats().reused_tokens, engine.stats().prompt_tokens);
    assert_eq!(engine.stats().generated_tokens as usize, ids.len(), "tokens that were counted");
    Ok(Answer { ids, reason: finish.stopped_by.reason(), first_logits, reused, prompt })
}

fn fresh(name: &str, n_ctx: u32, messages: &[(&str, &str)], max_tokens: u32) -> Answer {
    let answer = chat(&mut open(name, n_ctx), messages, max_tokens, false).expect("answers");
    assert_eq!(answer.reused, 0, "a fresh engine has nothing to reuse");
    answer
}

pub(crate) const FIRST: &[(&str, &str)] =
    &[("system", "Be brief."), ("user", "Hello, who are you?")];

#[test]
fn a_common_beginning_is_used_again_with_the_bits_of_a_fresh_prefill() {
    for name in ["llama-gqa", "gemma3", "qwen2"] {
        let mut engine = open(name, 256);
        let first = chat(&mut engine, FIRST, 5, false).expect("answers");
        assert_eq!((first.reused, first.ids.len()), (0, 5), "{name}");
        let text = engine.texts().detokenize(&first.ids, true).expect("text");
        let mut longer = FIRST.to_vec();
        longer.extend([("assistant", &*text), ("user", "And what can you do?")]);
        let second = chat(&mut engine, &longer, 8, false).expect("answers");
        assert!(second.reused >= first.prompt, "{name}: {} of {}", second.reused, first.prompt);
        let expected = fresh(name, 256, &longer, 8);
        assert_eq!(second.first_logits, expected.first_logits, "{name}: bits of the logits");
        assert_eq!((second.ids, second.prompt), (expected.ids, expected.prompt), "{name}");

        let same = chat(&mut engine, &longer, 8, false).expect("answers");
        assert_eq!(same.reused, same.prompt - 1, "{name}: one token gives the logits");
        assert_eq!(same.first_logits, expected.first_logits, "{name}: the same again");
        let other = chat(&mut engine, &[("user", "x")], 8, false).expect("answers");
        assert_eq!(
            other.first_logits,
            fresh(name, 256, &[("user", "x")], 8).first_logits,
            "{name}"
        );
    }
}

#[test]
fn a_window_that_is_lost_is_computed_again() {
    // Windows of 10 positions, of which a page of 64 is kept.
    let long = "0123456789 ".repeat(14);
    let (one, two) = ([("user", &*long)], [("user", &long[..60])]);
    let mut engine = open("gemma3", 256);
    chat(&mut engine, &one, 4, false).expect("answers");
    let second = chat(&mut engine, &two, 6, false).expect("answers");
    assert_eq!(second.reused, 0, "what both begin with has left the windows");
    let expected = fresh("gemma3", 256, &two, 6);
    assert_eq!((second.first_logits, second.ids), (expected.first_logits, expected.ids));
}

#[test]
fn a_generation_in_between_and_an_error_leave_a_conversation_right() {
    let mut engine = open("llama-gqa", 128);
    chat(&mut engine, FIRST, 4, false).expect("answers");
    let nothing = block_on(engine.generate(
        &Prompt::Ids(vec![9, 8, 7]),
        &greedy(3),
        &NativeHost::new(),
        None,
        &mut |_, _| ControlFlow::Continue(()),
    ));
    assert!(nothing.is_ok(), "generates");
    let long = "x".repeat(300);
    let Err(Halted::Failed(error)) = chat(&mut engine, &[("user", &*long)], 4, false) else {
        panic!("a prompt that does not fit is refused")
    };
    assert_eq!(error.kind(), ErrorKind::ContextFull, "{error}");
    let again = chat(&mut engine, FIRST, 6, false).expect("answers");
    assert_eq!(again.ids, fresh("llama-gqa", 128, FIRST, 6).ids);
}

/// The text of an answer that goes on over shifts, its ids, and why it ended.
fn shifted_text(
    n_ctx: u32,
    change: impl FnOnce(&mut GenerateConfig),
) -> (String, Vec<u32>, FinishReason) {
    let letters = "\u{c3}\u{a9}"; // the bytes C3 and A9
    let source = Rc::new(MemorySource::new(vec![with_letters("llama-gqa", letters)]));
    let config = OpenConfig { n_ctx: Some(n_ctx), n_batch: Some(16), ..OpenConfig::default() };
    let mut engine = block_on(Engine::open(source, &config, &NativeHost::new())).expect("opens");
    let mut generate = greedy(60);
    (generate.sampler.temperature, generate.sampler.seed) = (3.0, 7);
    change(&mut generate);
    let config = ChatConfig { generate, context_shift: true };
    let turns = ["One?", "Two.", "Three?", "Four.", "Five?"].into_iter();
    let turns: Vec<_> = ["user", "assistant"].into_iter().cycle().zip(turns).collect();
    let turns = conversation(&turns);
    let (mut text, mut ids) = (String::new(), Vec::new());
    let done = block_on(engine.chat(&turns, &config, &NativeHost::new(), None, &mut |chunk, _| {
        text.push_str(chunk.text);
        ids.extend(chunk.token.map(|token| token.id));
        ControlFlow::Continue(())
    }));
    let reason = done.expect("answers").stopped_by.reason();
    (text, ids, reason)
}

#[test]
fn characters_and_stop_strings_go_through_a_shift() {
    // Two tokens that make a character together, in any order: what comes in pieces is what comes at once.
    let mut split = 0;
    for n_ctx in 100..108 {
        let (text, ids, _) = shifted_text(n_ctx, |generate| {
            generate.sampler.logit_bias = vec![(94, 1e4), (95, 1e4)];
        });
        let bytes: Vec<u8> = ids.iter().map(|id| if *id == 94 { 0xC3 } else { 0xA9 }).collect();
        assert_eq!(text, String::from_utf8_lossy(&bytes), "{n_ctx} positions");
        split += u32::from(bytes.windows(2).any(|pair| pair == [0xC3, 0xA9]));
    }
    assert_eq!(split, 8, "there are characters of two tokens");

    let (text, ids, _) = shifted_text(100, |_| {});
    assert_eq!(ids.len(), 60, "the answer goes on after the context was full");
    for at in 1..text.len() - 4 {
        let Some(stop) = text.get(at..at + 4).filter(|stop| text.find(*stop) == Some(at)) else {
            continue;
        };
        let (shown, _, reason) =
            shifted_text(100, |generate| generate.stop = vec![stop.to_owned()]);
        assert_eq!((&*shown, reason), (&text[..at], FinishReason::Stop), "{stop:?} at {at}");
    }
}

#[test]
fn a_long_conversation_is_cut_in_few_renderings() {
    let turn = [("user", "Question?"), ("assistant", "Answer.")];
    let mut turns: Vec<_> =
        [("system", "Short.")].into_iter().chain(turn.into_iter().cycle().take(4000)).collect();
    turns.push(("user", "Last question?"));
    let shifted = chat(&mut open("llama-gqa", 190), &turns, 8, true).expect("answers");
    // As many turns as leave room for the answer: one more would not fit.
    let last = |n: usize| [&turns[..1], &turns[turns.len() - 1 - 2 * n..]].concat();
    let n = (1..10).take_while(|n| fresh("llama-gqa", 256, &last(*n), 1).prompt + 8 <= 190).last();
    let expected = fresh("llama-gqa", 190, &last(n.expect("one fits")), 8);
    assert_eq!((shifted.prompt, shifted.ids), (expected.prompt, expected.ids));
}

#[test]
fn a_full_context_ends_with_length_unless_it_is_shifted() {
    let turns: &[(&str, &str)] = &[
        ("system", "Short."),
        ("user", "First question?"),
        ("assistant", "First answer."),
        ("user", "Second question?"),
        ("assistant", "Second answer."),
        ("user", "Third question?"),
    ];
    let (all, n_ctx) = (fresh("llama-gqa", 256, turns, 1).prompt, 190);
    assert!(all < n_ctx, "{all} tokens");

    let ended = chat(&mut open("llama-gqa", n_ctx), turns, 100, false).expect("answers");
    assert_eq!(ended.reason, FinishReason::Length);
    assert_eq!(ended.ids.len() as u32, n_ctx - all + 1, "up to the last position, and one more");

    // With room for a quarter of the context, one turn goes before the answer begins.
    let shorter: Vec<_> = [&turns[..1], &turns[3..]].concat();
    let shifted = chat(&mut open("llama-gqa", n_ctx), turns, 55, true).expect("answers");
    let expected = fresh("llama-gqa", n_ctx, &shorter, 55);
    assert_eq!((shifted.ids, shifted.prompt), (expected.ids, expected.prompt));

    // Too long an answer drops more on the way: what follows is what a fresh prompt of the rest and the answer so far gives.
    let mut engine = open("llama-gqa", n_ctx);
    let long = chat(&mut engine, turns, 200, true).expect("answers");
    assert_eq!(long.reason, FinishReason::Length);
    let before = (n_ctx - expected.prompt + 1) as usize;
    let shortest: Vec<_> = [&turns[..1], &turns[5..]].concat();
    let mut prompt =
        open("llama-gqa", n_ctx).render_chat(&conversation(&shortest)).expect("renders").ids;
    assert!(before < long.ids.len(), "the answer goes on after the context was full");
    prompt.extend_from_slice(&long.ids[..before]);
    let mut rest = Vec::new();
    let mut other = open("llama-gqa", n_ctx);
    block_on(other.generate(
        &Prompt::Ids(prompt),
        &greedy(200 - before as u32),
        &NativeHost::new(),
        None,
        &mut |chunk, _| {
            rest.extend(chunk.token.map(|sample| sample.id));
            ControlFlow::Continue(())
        },
    ))
    .expect("generates");
    assert_eq!(long.ids[before..], rest[..], "after the shift");

    let Err(Halted::Failed(error)) =
        chat(&mut open("llama-gqa", 64), &[("user", &*"y".repeat(99))], 4, true)
    else {
        panic!("a last message that does not fit is refused")
    };
    assert_eq!(error.kind(), ErrorKind::ContextFull, "{error}");
}
