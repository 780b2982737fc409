//! Embeddings for JS.

use js_sys::{Float32Array, Object, Promise, Reflect};
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};
use wasm_bindgen_futures::future_to_promise;

use super::call::Call;
use super::given::{Field, read};
use super::js_error::{halted_to_js, to_js};
use super::options::set;
use super::session::{Session, not_aborted};
use crate::error::Result;
use crate::runtime::{EmbedConfig, Pooling};

#[wasm_bindgen]
impl Session {
    /// Embeds `texts`; resolves to all vectors in a row and the number of tokens.
    #[wasm_bindgen(
        unchecked_return_type = "Promise<{ vectors: Float32Array<ArrayBuffer>; width: number; tokens: number }>"
    )]
    pub fn embed(
        &self,
        texts: Vec<String>,
        #[wasm_bindgen(unchecked_param_type = "PoolingOptions")] options: JsValue,
        call: &Call,
    ) -> Promise {
        let (engine, stats) = (self.engine(), self.live_stats());
        let host = self.web_host(call);
        future_to_promise(async move {
            let mut config = EmbedConfig::default();
            read(&options, EMBED, &mut config).map_err(|error| to_js(&error))?;
            let mut engine = engine.turn().await;
            not_aborted(&host)?;
            let texts = texts.iter().map(|text| engine.embedding_ids(text));
            let texts = texts.collect::<Result<Vec<_>>>().map_err(|error| to_js(&error))?;
            let done = engine.embed(&texts, &config, &host).await;
            stats.borrow_mut().clone_from(engine.stats());
            let found = done.map_err(|halted| halted_to_js(&halted))?;
            let reply = Object::new();
            let set = |key: &str, value: &JsValue| Reflect::set(&reply, &key.into(), value);
            set("vectors", &Float32Array::from(&found.vectors[..]))?;
            set("width", &JsValue::from_f64(found.n_embd as f64))?;
            set("tokens", &JsValue::from_f64(f64::from(found.n_tokens)))?;
            Ok(reply.into())
        })
    }
}

const EMBED: &[Field<EmbedConfig>] = &[
    ("normalize", |c, given| set(&mut c.normalize, given.flag())),
    ("pooling", |c, given| set(&mut c.pooling, given.one_of(POOLINGS).map(Some))),
];

const POOLINGS: &[(&str, Pooling)] =
    &[("mean", Pooling::Mean), ("last", Pooling::Last), ("cls", Pooling::Cls)];
