//! Conversations as JS gives them.

use js_sys::{Date, Function, Promise, Uint32Array};
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};
use wasm_bindgen_futures::future_to_promise;

use super::call::Call;
use super::given::{Field, read};
use super::js_error::to_js;
use super::json::read_json;
use super::options::{generate_config, set};
use super::session::{Session, answered, giving, not_aborted, random_seed};
use crate::error::{Error, ErrorKind};
use crate::runtime::{ChatConfig, Conversation, Json, LocalTime};

#[wasm_bindgen]
impl Session {
    /// Answers a conversation; as `generate` otherwise. `chat` holds the options of a chat, `options` those of generating.
    #[wasm_bindgen(unchecked_return_type = "Promise<Answered>")]
    pub fn chat(
        &self,
        #[wasm_bindgen(unchecked_param_type = "readonly ChatMessage[]")] messages: JsValue,
        #[wasm_bindgen(unchecked_param_type = "TemplateOptions")] chat: JsValue,
        #[wasm_bindgen(unchecked_param_type = "SamplingOptions")] options: JsValue,
        call: &Call,
        #[wasm_bindgen(
            unchecked_param_type = "(text: string, id: number | null, logprob: number | null, top: Float64Array | null) => void"
        )]
        on_chunk: Function,
    ) -> Promise {
        let (engine, stats) = (self.engine(), self.live_stats());
        let host = self.web_host(call);
        future_to_promise(async move {
            let asked = Asked::read(&messages, &chat).map_err(|error| to_js(&error))?;
            let config = asked.config(&options).map_err(|error| to_js(&error))?;
            let mut engine = engine.turn().await;
            not_aborted(&host)?;
            let mut give = giving(&stats, &on_chunk);
            let done = engine.chat(&asked.conversation, &config, &host, None, &mut give).await;
            answered(done, engine.stats(), &stats)
        })
    }

    /// The text and ids that a conversation becomes.
    ///
    /// # Errors
    /// As [`crate::runtime::Texts::render_chat`], and `invalid_option` for what is no conversation.
    #[wasm_bindgen(unchecked_return_type = "{ text: string; ids: Uint32Array }", js_name = renderChat)]
    pub fn render_chat(
        &self,
        #[wasm_bindgen(unchecked_param_type = "readonly ChatMessage[]")] messages: JsValue,
        #[wasm_bindgen(unchecked_param_type = "TemplateOptions")] chat: JsValue,
    ) -> Result<JsValue, JsValue> {
        let asked = Asked::read(&messages, &chat).map_err(|error| to_js(&error))?;
        let rendered = self.texts().render_chat(&asked.conversation);
        let rendered = rendered.map_err(|error| to_js(&error))?;
        let reply = js_sys::Object::new();
        let set = |key: &str, value: &JsValue| {
            js_sys::Reflect::set(&reply, &JsValue::from_str(key), value)
        };
        set("text", &rendered.text.into())?;
        set("ids", &Uint32Array::from(&rendered.ids[..]))?;
        Ok(reply.into())
    }
}

/// What a chat was asked with, beside how to sample.
struct Asked {
    conversation: Conversation,
    context_shift: bool,
}

impl Asked {
    fn read(messages: &JsValue, options: &JsValue) -> Result<Self, Error> {
        let Json::List(messages) = read_json("messages", messages)? else {
            let message = "'messages' must be a list of messages";
            return Err(Error::new(ErrorKind::InvalidOption, message).with("key", "messages"));
        };
        let conversation = Conversation {
            messages,
            tools: None,
            template: None,
            arguments: Vec::new(),
            add_generation_prompt: true,
            now: local_time(),
        };
        let mut asked = Self { conversation, context_shift: false };
        read(options, CHAT, &mut asked)?;
        Ok(asked)
    }

    fn config(&self, options: &JsValue) -> Result<ChatConfig, Error> {
        let generate = generate_config(options, random_seed())?;
        for (key, is_set) in [("resume", generate.resume), ("parseSpecial", generate.parse_special)]
        {
            if is_set {
                let message = format!("option '{key}' is for 'generate'; a chat does without");
                return Err(Error::new(ErrorKind::InvalidOption, message).with("key", key));
            }
        }
        Ok(ChatConfig { generate, context_shift: self.context_shift })
    }
}

const CHAT: &[Field<Asked>] = &[
    ("contextShift", |c, given| set(&mut c.context_shift, given.flag())),
    ("template", |c, given| {
        let text = given.text().ok_or_else(|| given.refused("a text"));
        set(&mut c.conversation.template, text.map(Some))
    }),
    ("templateArguments", |c, given| match given.json()? {
        Json::Object(arguments) => set(&mut c.conversation.arguments, Ok(arguments)),
        _ => Err(given.refused("an object")),
    }),
    ("tools", |c, given| match given.json()? {
        tools @ Json::List(_) => set(&mut c.conversation.tools, Ok(Some(tools))),
        _ => Err(given.refused("a list of tool definitions")),
    }),
];

/// The time here and now, for templates that write the date.
#[allow(clippy::cast_possible_truncation, reason = "seconds fit 53 bits")]
fn local_time() -> LocalTime {
    let now = Date::new_0();
    LocalTime::from_seconds((now.get_time() / 1000.0 - now.get_timezone_offset() * 60.0) as i64)
}
