//! What a model is: hyper-parameters, tensor roles, the list of uses, and the maths of one pass on slices.

mod kv_type;
mod uses;

pub use kv_type::KvType;
pub use uses::{Phase, Use};
