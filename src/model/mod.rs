//! What a model is: hyper-parameters, tensor roles, the list of uses, and the maths of one pass on slices.

mod uses;

pub use uses::{Phase, Use};
