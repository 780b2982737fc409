//! An opened model as JS holds it.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;

use js_sys::{Float32Array, Float64Array, Function, JsString, Promise, Uint32Array};
use wasm_bindgen::prelude::{JsCast, JsValue, wasm_bindgen};
use wasm_bindgen_futures::{JsFuture, future_to_promise, spawn_local};

use super::call::Call;
use super::facts::{Facts, plain};
use super::js_error::{halted_to_js, to_js};
use super::options::{generate_config, open_config};
use super::queue::Queue;
use super::web_host::{JsHost, WebHost, device_bytes, linear_memory_bytes};
use crate::error::{Error, ErrorKind};
use crate::runtime::web::{JsSource, WebSource};
use crate::runtime::{
    Chunk, Engine, Finish, GenerateConfig, Halted, Host, OpenConfig, Outcome, Prompt, Stats, Texts,
    WeightSource,
};

/// What the exports mean in TypeScript; paths as seen from the built module.
#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = "
import type { ChatMessage, EngineOptions, FinishReason, PoolingOptions, SamplingOptions, Stats, TemplateOptions } from '../../options.js';
import type { Facts } from '../../protocol.js';
import type { Host } from '../../worker/host.js';
import type { Source } from '../../worker/source.js';

/** How an answer ended, and its figures. */
export interface Answered {
  finishReason: FinishReason;
  stats: Stats;
}
";

/// Opens the model that `source` reads; resolves to a [`Session`].
#[wasm_bindgen(unchecked_return_type = "Promise<Session>")]
pub fn open(
    host: JsHost,
    source: JsSource,
    #[wasm_bindgen(unchecked_param_type = "EngineOptions")] options: JsValue,
    call: &Call,
) -> Promise {
    let call = call.clone();
    future_to_promise(async move {
        let config = open_config(&options, device_bytes(&host), linear_memory_bytes())
            .map_err(|error| to_js(&error))?;
        let source = Rc::new(WebSource::new(source));
        Ok(open_session(host, source, &config, &call).await?.into())
    })
}

/// Opens the model that `source` reads.
pub(super) async fn open_session(
    host: JsHost,
    source: Rc<dyn WeightSource>,
    config: &OpenConfig,
    call: &Call,
) -> Result<Session, JsValue> {
    let host = Rc::new(host);
    let buffer_bytes = source.buffer_bytes();
    let web_host = WebHost::new(&host, call, buffer_bytes);
    let engine =
        Engine::open(source, config, &web_host).await.map_err(|halted| halted_to_js(&halted))?;
    let (facts, texts) = (Facts::of(&engine, config), engine.texts());
    let stats = Rc::new(RefCell::new(engine.stats().clone()));
    let engine = Rc::new(Queue::new(engine));
    let web_host = WebHost::new(&host, &Call::default(), buffer_bytes);
    spawn_local(load_rest(Rc::clone(&engine), Rc::clone(&stats), Rc::clone(&host), web_host));
    Ok(Session { facts, texts, engine, host, stats, buffer_bytes })
}

/// An opened model. Calls that compute queue: each takes its turn.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Session {
    facts: Facts,
    texts: Texts,
    engine: Rc<Queue<Engine>>,
    host: Rc<JsHost>,
    /// A copy that can be read while a call has the engine.
    stats: Rc<RefCell<Stats>>,
    buffer_bytes: u64,
}

#[wasm_bindgen]
impl Session {
    /// Continues `prompt`, a text or a `Uint32Array` of ids; `on_chunk(text, id, logprob, top)` gets every piece;
    /// `top` is id and log-probability of the likeliest tokens, one after the other, when some were asked for.
    /// Resolves to the reason why the answer ended, and its figures.
    #[wasm_bindgen(unchecked_return_type = "Promise<Answered>")]
    pub fn generate(
        &self,
        #[wasm_bindgen(unchecked_param_type = "string | Uint32Array")] prompt: JsValue,
        #[wasm_bindgen(unchecked_param_type = "SamplingOptions")] options: JsValue,
        call: &Call,
        #[wasm_bindgen(
            unchecked_param_type = "(text: string, id: number | null, logprob: number | null, top: Float64Array | null) => void"
        )]
        on_chunk: Function,
    ) -> Promise {
        let (engine, stats) = (Rc::clone(&self.engine), Rc::clone(&self.stats));
        let (host, texts) = (self.web_host(call), self.texts.clone());
        future_to_promise(async move {
            let config = generate_config(&options, random_seed()).map_err(|error| to_js(&error))?;
            let prompt = read_prompt(&prompt, &config, &texts).map_err(|error| to_js(&error))?;
            let mut engine = engine.turn().await;
            not_aborted(&host)?;
            let mut give = giving(&stats, &on_chunk);
            let done = engine.generate(&prompt, &config, &host, None, &mut give).await;
            answered(done, engine.stats(), &stats)
        })
    }

    /// Runs `ids` as a fresh sequence in chunks of at most `n_chunk` tokens; `on_position(logits)` gets a copy of the logits
    /// of each position, `[n_vocab]`.
    #[wasm_bindgen(unchecked_return_type = "Promise<void>")]
    pub fn logits(
        &self,
        ids: Vec<u32>,
        n_chunk: Option<u32>,
        call: &Call,
        #[wasm_bindgen(unchecked_param_type = "(row: Float32Array<ArrayBuffer>) => void")]
        on_position: Function,
    ) -> Promise {
        let (engine, stats) = (Rc::clone(&self.engine), Rc::clone(&self.stats));
        let host = self.web_host(call);
        future_to_promise(async move {
            let mut engine = engine.turn().await;
            not_aborted(&host)?;
            let done = engine
                .logits(&ids, n_chunk.unwrap_or(u32::MAX), &host, &mut |row| {
                    let _ = on_position.call1(&JsValue::UNDEFINED, &Float32Array::from(row));
                })
                .await;
            stats.borrow_mut().clone_from(engine.stats());
            done.map(|()| JsValue::UNDEFINED).map_err(|halted| halted_to_js(&halted))
        })
    }

    /// The ids of `text`. It waits for no call, like everything that needs the vocabulary alone.
    ///
    /// # Errors
    /// As [`Texts::tokenize`].
    pub fn tokenize(
        &self,
        text: &str,
        add_special: bool,
        parse_special: bool,
    ) -> Result<Vec<u32>, JsValue> {
        self.texts.tokenize(text, add_special, parse_special).map_err(|error| to_js(&error))
    }

    /// The text of `ids`.
    ///
    /// # Errors
    /// As [`Texts::detokenize`].
    pub fn detokenize(&self, ids: &[u32], special: bool) -> Result<String, JsValue> {
        self.texts.detokenize(ids, special).map_err(|error| to_js(&error))
    }

    /// What is in force after all options and defaults, facts of the file, and the plan.
    #[wasm_bindgen(unchecked_return_type = "Facts")]
    #[must_use]
    pub fn facts(&self) -> JsValue {
        plain(&self.facts)
    }

    /// The latest figures.
    #[wasm_bindgen(unchecked_return_type = "Stats")]
    #[must_use]
    pub fn stats(&self) -> JsValue {
        plain(&*self.stats.borrow())
    }
}

impl Session {
    pub(super) fn engine(&self) -> Rc<Queue<Engine>> {
        Rc::clone(&self.engine)
    }

    pub(super) fn texts(&self) -> &Texts {
        &self.texts
    }

    pub(super) fn live_stats(&self) -> Rc<RefCell<Stats>> {
        Rc::clone(&self.stats)
    }

    pub(super) fn web_host(&self, call: &Call) -> WebHost {
        WebHost::new(&self.host, call, self.buffer_bytes)
    }
}

/// What takes the pieces of an answer: it keeps the figures and gives the piece to the caller's function.
pub(super) fn giving<'a>(
    live: &'a RefCell<Stats>,
    on_chunk: &'a Function,
) -> impl FnMut(&Chunk<'_>, &Stats) -> ControlFlow<()> + 'a {
    move |chunk, now| {
        live.borrow_mut().clone_from(now);
        give(on_chunk, chunk)
    }
}

/// How an answer ended: the reason, and the figures of this answer, which a call that has its turn by now does not change.
pub(super) fn answered(
    done: Outcome<Finish>,
    now: &Stats,
    live: &RefCell<Stats>,
) -> Result<JsValue, JsValue> {
    live.borrow_mut().clone_from(now);
    let finish = done.map_err(|halted| halted_to_js(&halted))?;
    Ok(plain(&Answered { finish_reason: finish.stopped_by.reason().name(), stats: now }))
}

/// `Answered` of [`TYPES`].
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Answered<'a> {
    finish_reason: &'static str,
    stats: &'a Stats,
}

/// Gives a piece of an answer to the caller's function; one that throws ends it.
fn give(on_chunk: &Function, chunk: &Chunk<'_>) -> ControlFlow<()> {
    let (id, logprob) = chunk.token.map_or((JsValue::NULL, JsValue::NULL), |sample| {
        (sample.id.into(), sample.logprob.map_or(JsValue::NULL, JsValue::from))
    });
    let (text, top) = (chunk.text.into(), top_logprobs(chunk));
    match on_chunk.call4(&JsValue::UNDEFINED, &text, &id, &logprob, &top) {
        Ok(_) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    }
}

/// A call that was stopped while it waited for its turn leaves the engine as it is.
pub(super) fn not_aborted(host: &WebHost) -> Result<(), JsValue> {
    if host.aborted() { Err(halted_to_js(&Halted::Aborted)) } else { Ok(()) }
}

/// Reads what is to stay in memory and was not there yet when the model was opened, whenever no call has the engine. What
/// fails here fails again, and is said, when a call wants it.
async fn load_rest(
    engine: Rc<Queue<Engine>>,
    stats: Rc<RefCell<Stats>>,
    host: Rc<JsHost>,
    web_host: WebHost,
) {
    loop {
        let read = {
            let mut engine = engine.turn().await;
            let read = engine.load_on(&web_host);
            stats.borrow_mut().clone_from(engine.stats());
            read
        };
        let Ok(Some(read)) = read else { return };
        read.await;
        // The promise never rejects.
        let _ = JsFuture::from(host.turn()).await;
    }
}

/// A copy of the prompt; a text that cannot fit is refused before it is copied.
fn read_prompt(prompt: &JsValue, config: &GenerateConfig, texts: &Texts) -> Result<Prompt, Error> {
    if let Some(text) = prompt.dyn_ref::<JsString>().filter(|_| !config.parse_special) {
        // It has more bytes than code units, or as many.
        texts.check_size(text.length() as usize, 0)?;
    }
    if let Some(text) = prompt.as_string() {
        return Ok(Prompt::Text(text));
    }
    let ids = prompt.dyn_ref::<Uint32Array>().map(Uint32Array::to_vec);
    let wrong = || Error::new(ErrorKind::InvalidOption, "the prompt must be a text or token ids");
    ids.map(Prompt::Ids).ok_or_else(wrong)
}

/// Ids and log-probabilities of the likeliest tokens, one after the other; null when none were asked for.
fn top_logprobs(chunk: &Chunk<'_>) -> JsValue {
    if chunk.top_logprobs.is_empty() {
        return JsValue::NULL;
    }
    let pairs = chunk.top_logprobs.iter().flat_map(|t| [f64::from(t.token), f64::from(t.logprob)]);
    Float64Array::from(&pairs.collect::<Vec<_>>()[..]).into()
}

/// A seed for a call that gave none: JS shows whole numbers below 2^53.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 2^53")]
pub(super) fn random_seed() -> u64 {
    (js_sys::Math::random() * 9_007_199_254_740_992.0) as u64
}
