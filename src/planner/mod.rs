//! Uses + sizes + budget → [`Plan`]. A pure function; it decides memory and nobody else does.

mod plan;

pub use plan::{LedgerItem, Plan, ResidentRun};
