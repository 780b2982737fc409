//! The parts that families are built from. Each adds its operations to a program and takes what differs between
//! families as a small struct.

mod attention;
mod embedding;
mod experts;
mod feed_forward;

pub(crate) use attention::{Attention, AttentionBiases, QkNorm, inverse_sqrt};
pub(crate) use embedding::Head;
pub(crate) use experts::{ExpertBiases, Experts};
pub(crate) use feed_forward::{FeedForward, GateWeights};

/// How a block is joined to the residual stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Joint {
    /// A norm of what the block takes in: `attn_norm`, `ffn_norm`.
    pub(crate) norm_before: bool,
    /// A norm of what it gives back: `post_attention_norm`, `post_ffw_norm`.
    pub(crate) norm_after: bool,
    /// Factor of what it gives back.
    pub(crate) scale: f32,
}

impl Joint {
    /// `x + block(norm(x))`.
    pub(crate) const PRE_NORM: Self = Self { norm_before: true, norm_after: false, scale: 1.0 };
    /// `x + norm(block(norm(x)))`.
    pub(crate) const BOTH_NORMS: Self = Self { norm_before: true, norm_after: true, scale: 1.0 };
    /// `x + norm(block(x))`.
    pub(crate) const POST_NORM: Self = Self { norm_before: false, norm_after: true, scale: 1.0 };
}
