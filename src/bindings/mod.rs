//! The exports to JS: the runtime behind `&self` and a queue, options read from plain objects, errors with codes.
//! It holds no logic of its own; `js/worker/main.ts` is the only caller.

mod inspect;
mod session;

mod call;
mod queue;
mod web_host;

mod facts;
mod given;
mod options;

mod js_error;
mod panic;

pub use call::Call;
pub use inspect::{Inspected, inspect};
pub use panic::{panic_place, start};
pub use session::{Session, open};
pub use web_host::JsHost;
