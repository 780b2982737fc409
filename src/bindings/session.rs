//! An opened model as JS holds it.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;

use js_sys::{Float32Array, Float64Array, Function, Promise, Uint32Array};
use wasm_bindgen::prelude::{JsCast, JsValue, wasm_bindgen};
use wasm_bindgen_futures::future_to_promise;

use super::call::Call;
use super::facts::{Facts, plain};
use super::js_error::{halted_to_js, to_js};
use super::options::{generate_config, open_config};
use super::queue::Queue;
use super::web_host::{JsHost, WebHost, device_bytes, linear_memory_bytes};
use crate::error::{Error, ErrorKind};
use crate::runtime::web::{JsSource, WebSource};
use crate::runtime::{Chunk, Engine, Prompt, Stats, WeightSource};

/// What the exports mean in TypeScript; paths as seen from the built module.
#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = "
import type { EngineOptions, FinishReason, SamplingOptions, Stats } from '../../options.js';
import type { Facts } from '../../protocol.js';
import type { Host } from '../../worker/host.js';
import type { Source } from '../../worker/source.js';
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
        let host = Rc::new(host);
        let config = open_config(&options, device_bytes(&host), linear_memory_bytes())
            .map_err(|error| to_js(&error))?;
        let source = Rc::new(WebSource::new(source));
        let buffer_bytes = source.buffer_bytes();
        let web_host = WebHost::new(&host, &call, buffer_bytes);
        let engine = Engine::open(source, &config, &web_host)
            .await
            .map_err(|halted| halted_to_js(&halted))?;
        let facts = Facts::of(&engine, &config);
        let stats = Rc::new(RefCell::new(engine.stats().clone()));
        let engine = Rc::new(Queue::new(engine));
        Ok(Session { facts, engine, host, stats, buffer_bytes }.into())
    })
}

/// An opened model. Calls queue: each takes its turn.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Session {
    facts: Facts,
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
    /// Resolves to the reason why the answer ended.
    #[wasm_bindgen(unchecked_return_type = "Promise<FinishReason>")]
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
        let host = self.web_host(call);
        future_to_promise(async move {
            let prompt = read_prompt(&prompt).map_err(|error| to_js(&error))?;
            let config = generate_config(&options, random_seed()).map_err(|error| to_js(&error))?;
            let mut engine = engine.turn().await;
            let done = engine
                .generate(&prompt, &config, &host, None, &mut |chunk, now| {
                    stats.borrow_mut().clone_from(now);
                    let (id, logprob) =
                        chunk.token.map_or((JsValue::NULL, JsValue::NULL), |sample| {
                            (sample.id.into(), sample.logprob.map_or(JsValue::NULL, JsValue::from))
                        });
                    let top = top_logprobs(chunk);
                    let text = chunk.text.into();
                    match on_chunk.call4(&JsValue::UNDEFINED, &text, &id, &logprob, &top) {
                        Ok(_) => ControlFlow::Continue(()),
                        Err(_) => ControlFlow::Break(()),
                    }
                })
                .await;
            stats.borrow_mut().clone_from(engine.stats());
            match done {
                Ok(finish) => Ok(finish.stopped_by.reason().name().into()),
                Err(halted) => Err(halted_to_js(&halted)),
            }
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
            let done = engine
                .logits(&ids, n_chunk.unwrap_or(u32::MAX), &host, &mut |row| {
                    let _ = on_position.call1(&JsValue::UNDEFINED, &Float32Array::from(row));
                })
                .await;
            stats.borrow_mut().clone_from(engine.stats());
            done.map(|()| JsValue::UNDEFINED).map_err(|halted| halted_to_js(&halted))
        })
    }

    /// The ids of `text`.
    #[wasm_bindgen(unchecked_return_type = "Promise<Uint32Array>")]
    pub fn tokenize(&self, text: String, add_special: bool, parse_special: bool) -> Promise {
        let engine = Rc::clone(&self.engine);
        future_to_promise(async move {
            let engine = engine.turn().await;
            let ids = engine.tokenizer().encode(&text, add_special, parse_special);
            ids.map(|ids| Uint32Array::from(&ids[..]).into()).map_err(|error| to_js(&error))
        })
    }

    /// The text of `ids`.
    #[wasm_bindgen(unchecked_return_type = "Promise<string>")]
    pub fn detokenize(&self, ids: Vec<u32>, special: bool) -> Promise {
        let engine = Rc::clone(&self.engine);
        future_to_promise(async move {
            let engine = engine.turn().await;
            engine.detokenize(&ids, special).map(JsValue::from).map_err(|error| to_js(&error))
        })
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
    fn web_host(&self, call: &Call) -> WebHost {
        WebHost::new(&self.host, call, self.buffer_bytes)
    }
}

fn read_prompt(prompt: &JsValue) -> Result<Prompt, Error> {
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
fn random_seed() -> u64 {
    (js_sys::Math::random() * 9_007_199_254_740_992.0) as u64
}
