//! Uses + sizes + budget → [`Plan`]. A pure function; it decides memory and nobody else does.
//!
//! It knows rows, bytes and the order of uses: no transformer, no source, no allocator. `docs/memory-plan.md` has the
//! arithmetic with a worked example.

mod plan;
mod request;
mod search;

mod ledger;
mod residents;
mod weights;

mod report;
mod size;

pub use ledger::{PAGE_BYTES, REGION_BYTES};
pub use plan::{LedgerItem, Plan, ResidentRun};
pub use request::{Experts, Limits, Request, SessionBytes, Wishes};
pub use search::plan;
pub use size::{Letters, parse_size};
pub use weights::EMBED_ROWS;
