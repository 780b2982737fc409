//! The builds with threads: the pool that compute workers serve, opening over a desk, and the plan that an engine's memory is made for.

use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use js_sys::Promise;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};
use wasm_bindgen_futures::future_to_promise;

use super::call::Call;
use super::facts::plain;
use super::js_error::{halted_to_js, to_js};
use super::options::open_config;
use super::session::{Session, open_session};
use super::web_host::{JsHost, WebHost, device_bytes, linear_memory_bytes, now};
use crate::runtime::web::{DeskSource, JsDesk, JsSource, WebSource};
use crate::runtime::{Inspection, Pool, Team, WeightSource, choose_threads};

/// What the exports mean in TypeScript; paths as seen from the built module.
#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = "
import type { Desk } from '../../worker/desk.js';
import type { Planned } from '../../worker/crew.js';
";

/// The module's pool. All its workers share the memory that this is in.
static POOL: OnceLock<Arc<Pool>> = OnceLock::new();

/// Makes the calling worker the leader of `n_threads` on a device of `n_cores`. Gives the address of the word to set when one of the others breaks down.
#[wasm_bindgen(js_name = leadTeam)]
#[must_use]
pub fn lead_team(n_threads: usize, n_cores: usize) -> usize {
    let pool = POOL.get_or_init(|| Arc::new(Pool::with_cores(n_threads, n_cores)));
    core::ptr::from_ref(pool.failed_word()).addr()
}

/// Works as helper `number`, from 1 on, until the team ends or does without it.
#[wasm_bindgen(js_name = serveTeam)]
pub fn serve_team(number: usize) {
    if let Some(pool) = POOL.get() {
        pool.serve(number);
    }
}

/// Measures how many of the team's threads are worth having; the others are let go.
#[wasm_bindgen(js_name = chooseThreads)]
#[must_use]
pub fn choose_useful_threads() -> usize {
    let Some(pool) = POOL.get() else { return 1 };
    let chosen = choose_threads(pool, &now);
    pool.keep_threads(chosen);
    chosen
}

/// Lets all helpers go.
#[wasm_bindgen(js_name = endTeam)]
pub fn end_team() {
    if let Some(pool) = POOL.get() {
        pool.end();
    }
}

/// The threads to compute with.
pub(super) fn team() -> Option<Arc<dyn Team>> {
    POOL.get().map(|pool| Arc::clone(pool) as Arc<dyn Team>)
}

/// Reads the header of `source` and plans what [`open_by_desk`] would take; resolves to the sizes that its memory is made with.
#[wasm_bindgen(unchecked_return_type = "Promise<Planned>")]
pub fn plan(
    host: JsHost,
    source: JsSource,
    #[wasm_bindgen(unchecked_param_type = "EngineOptions")] options: JsValue,
    call: &Call,
) -> Promise {
    let call = call.clone();
    future_to_promise(async move {
        let host = Rc::new(host);
        let base_bytes = linear_memory_bytes();
        let config = open_config(&options, device_bytes(&host), base_bytes);
        let config = config.map_err(|error| to_js(&error))?;
        let source = Rc::new(WebSource::new(source));
        let web_host = WebHost::new(&host, &call, source.buffer_bytes());
        let inspection = Inspection::read(source, &web_host).await;
        let inspection = inspection.map_err(|halted| halted_to_js(&halted))?;
        let plan = inspection.plan(&config).map_err(|error| to_js(&error))?;
        Ok(plain(&Planned { base_bytes, linear_bytes: plan.linear_bytes }))
    })
}

/// `Planned` of `js/worker/crew.ts`.
#[derive(Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Planned {
    base_bytes: u64,
    linear_bytes: u64,
}

/// Opens the model behind `desk`, in a memory of the size that was planned; resolves to a [`Session`].
#[wasm_bindgen(js_name = openByDesk, unchecked_return_type = "Promise<Session>")]
pub fn open_by_desk(
    host: JsHost,
    desk: JsDesk,
    #[wasm_bindgen(unchecked_param_type = "EngineOptions")] options: JsValue,
    call: &Call,
    #[wasm_bindgen(unchecked_param_type = "number")] base_bytes: f64,
) -> Promise {
    let call = call.clone();
    future_to_promise(async move {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole and not negative"
        )]
        let config = open_config(&options, device_bytes(&host), base_bytes as u64);
        let config = config.map_err(|error| to_js(&error))?;
        let source = DeskSource::open(desk).await.map_err(|error| to_js(&error))?;
        let session: Session = open_session(host, Rc::new(source), &config, &call).await?;
        Ok(session.into())
    })
}
