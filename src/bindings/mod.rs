//! The exports to JS: the runtime behind `&self` and a queue, options read from plain objects, errors with codes.
//! It holds no logic of its own; `js/worker/main.ts` is the only caller.

mod chat;
mod embed;
mod inspect;
mod session;

#[cfg(target_feature = "atomics")]
mod threads;

mod call;
mod queue;
mod web_host;

mod facts;
mod given;
mod json;
mod options;

mod js_error;
mod panic;

pub use call::Call;
pub use inspect::{Inspected, inspect};
pub use panic::{panic_place, start};
pub use session::{Session, open};
#[cfg(target_feature = "atomics")]
pub use threads::{choose_useful_threads, end_team, lead_team, open_by_desk, plan, serve_team};
pub use web_host::JsHost;
