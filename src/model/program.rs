//! A forward pass as a flat list of small operations over named buffers. Families write it once, when the model is
//! opened; the state steps through it; the list of uses is read off it.

use super::kv_cache::KvLayer;
use super::rope::Rope;
use crate::quant::GgmlType;

/// A buffer of activations, `[n_tokens, width]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Buf {
    /// The residual stream.
    Residual,
    /// What a norm gives to the projections, and what a block gives back to the residual stream.
    Hidden,
    /// Queries `[n_tokens, n_head, head_dim]`; attention leaves its result in their place.
    Query,
    /// Keys `[n_tokens, n_head_kv, head_dim]`.
    Key,
    /// Values `[n_tokens, n_head_kv, head_dim]`.
    Value,
    /// The gated half of the feed-forward network; for experts `[n_pairs, n_ff_expert]`.
    Gate,
    /// The other half.
    Up,
    /// The router's opinion `[n_tokens, n_expert]`.
    Router,
    /// The tokens of one expert, gathered; what one expert gives back.
    Gathered,
    /// Logits `[n_wanted, n_vocab]`: row 0 belongs to the first wanted token.
    Logits,
}

impl Buf {
    /// Memories that the buffers live in. Queries and keys are dead when the feed-forward network begins.
    pub(crate) const N_MEMORIES: usize = 8;

    /// The memory of this buffer.
    pub(crate) const fn memory(self) -> usize {
        match self {
            Self::Residual => 0,
            Self::Hidden => 1,
            Self::Query | Self::Gate => 2,
            Self::Key | Self::Up => 3,
            Self::Value => 4,
            Self::Router => 5,
            Self::Gathered => 6,
            Self::Logits => 7,
        }
    }
}

/// A tensor that the model keeps as f32: index of its use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VectorId(pub(crate) u32);

/// One of the program's rotary embeddings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RopeId(pub(crate) u32);

/// Weights times activations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Projection {
    /// Index into the list of uses.
    pub(crate) use_index: u32,
    /// Number format of the weights.
    pub(crate) ty: GgmlType,
    /// Values of a row.
    pub(crate) n_in: u32,
    /// Rows, of all experts together.
    pub(crate) n_rows: u32,
    /// Activations.
    pub(crate) input: Buf,
    /// Values of the block that the activations were rounded by; `None`: they are f32.
    pub(crate) block: Option<u32>,
    /// A value for each row that is added, for projections of experts.
    pub(crate) bias: Option<VectorId>,
}

/// Rows of a projection that go to one buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// Where they go; a row of the buffer is `n_rows` values.
    pub(crate) output: Buf,
    /// How many.
    pub(crate) n_rows: u32,
}

/// The function of a gated feed-forward network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gating {
    /// `silu(gate) * up`.
    Silu,
    /// `gelu(gate) * up`, the form with tanh.
    Gelu,
    /// `gate * sigmoid(1.702 gate) * (up + 1)`, both clamped.
    ClampedSilu,
}

/// How attention makes scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ScoringRule {
    /// Factor of the products of queries and keys.
    pub(crate) scale: f32,
    /// Soft cap of the scores.
    pub(crate) softcap: Option<f32>,
    /// A score for each head that takes part in the softmax and has no value.
    pub(crate) sinks: Option<VectorId>,
}

/// The keys and values that a query sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Those up to its own position, or a window of them, in the cache of this layer.
    Past(u32),
    /// Those of every token of the chunk, which is a whole text.
    Text,
}

/// What the rows of an operation are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    /// The tokens of the chunk.
    Tokens,
    /// Each token once for each of the `n_used` experts that it goes through, sorted by expert.
    Pairs {
        /// Experts that a token goes through.
        n_used: u32,
    },
}

impl Rows {
    /// Rows for each token.
    pub(crate) const fn per_token(self) -> u32 {
        match self {
            Self::Tokens => 1,
            Self::Pairs { n_used } => n_used,
        }
    }
}

/// How the chosen experts of a token are weighted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weighting {
    /// By the router's probabilities over all experts.
    Probability,
    /// By those, divided by their sum over the chosen ones.
    Normalized,
    /// By the softmax over the chosen ones alone.
    SoftmaxOfChosen,
}

/// One operation. `width` is in values of f32.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Op {
    /// Sine and cosine of the chunk's positions.
    RopeTable { rope: RopeId },
    /// Rows of the embedding table by token, times `scale`, into the residual stream.
    Embed { use_index: u32, ty: GgmlType, width: u32, scale: f32 },
    /// RMS norm of `groups` runs of `width` values of each token; `input` and `output` may be one buffer.
    RmsNorm { input: Buf, output: Buf, weight: VectorId, width: u32, groups: u32, eps: f32 },
    /// Layer norm of each token: mean off, variance 1, then weight and bias; `input` and `output` may be one buffer.
    LayerNorm { input: Buf, output: Buf, weight: VectorId, bias: VectorId, width: u32, eps: f32 },
    /// Adds row `i` of a table of `n_rows` to token `i` of the residual stream.
    AddRows { use_index: u32, ty: GgmlType, width: u32, n_rows: u32 },
    /// Rounds a buffer to 8 bits, for the projections that follow.
    Round { input: Buf, rows: Rows, width: u32, block: u32 },
    /// A projection for every token.
    MatMul { projection: Projection, parts: [Part; MAX_PARTS], n_parts: u32 },
    /// Adds `width` values of a vector, from `at` on, to each row.
    Bias { buf: Buf, vector: VectorId, at: u32, width: u32 },
    /// Multiplies by a number.
    Scale { buf: Buf, width: u32, factor: f32 },
    /// `cap * tanh(x / cap)`.
    Softcap { buf: Buf, width: u32, cap: f32 },
    /// Rotates the first values of each head.
    Rotate { buf: Buf, rope: RopeId, n_head: u32, head_dim: u32 },
    /// Keys and values into the cache.
    KvWrite { layer: u32 },
    /// Attention of every query, into the place of the query.
    Attend { seen: Seen, n_head: u32, n_head_kv: u32, head_dim: u32, scoring: ScoringRule },
    /// `gate = gelu(gate)`, the form with tanh.
    Gelu { width: u32 },
    /// `gate = f(gate) * up`.
    Combine { gating: Gating, rows: Rows, width: u32 },
    /// `residual += scale * hidden`.
    AddResidual { width: u32, scale: f32 },
    /// Chooses the experts of each token.
    Route { n_expert: u32, n_used: u32, weighting: Weighting },
    /// A projection of each expert for its tokens: from the buffer by token, into the buffer by pair.
    ExpertIn { projection: Projection, output: Buf, n_expert: u32, n_used: u32 },
    /// A projection of each expert for its pairs, weighted and summed into a buffer by token.
    ExpertOut { projection: Projection, output: Buf, n_expert: u32 },
    /// Sets a buffer to zero.
    Clear { buf: Buf, width: u32 },
}

/// The tokens of a chunk that an operation works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All of them.
    All,
    /// In the last layer, once keys and values are written, nobody needs more than the tokens whose logits are wanted; but
    /// at least one, so that every pass takes its weights in the same order.
    LastLayer,
    /// The tokens whose logits are wanted.
    Head,
}

/// An operation and where in the pass it stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Step {
    /// What is done.
    pub(crate) op: Op,
    /// 0 for the embedding, then the layers, then the head.
    pub(crate) stage: u32,
    /// For which tokens.
    pub(crate) scope: Scope,
}

/// The whole pass.
#[derive(Debug, Default)]
pub(crate) struct Program {
    /// The operations in order.
    pub(crate) steps: Vec<Step>,
    /// The layers of the KV cache.
    pub(crate) kv: Vec<KvLayer>,
    /// The rotary embeddings.
    pub(crate) ropes: Vec<Rope>,
    /// Values for each token in each memory of [`Buf`].
    pub(crate) widths: [u64; Buf::N_MEMORIES],
    /// The largest needs of the operations.
    pub(crate) needs: Needs,
}

/// The largest needs of a program's operations.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Needs {
    /// Values of one token that are rounded at a time.
    pub(crate) rounded: u64,
    /// Blocks that they are rounded by.
    pub(crate) rounded_blocks: u64,
    /// Longest row of weights.
    pub(crate) row: u32,
    /// Query heads that share a key-value head.
    pub(crate) group: u32,
    /// Longest head.
    pub(crate) head_dim: u32,
    /// Experts of a layer.
    pub(crate) n_expert: u32,
    /// Experts that a token goes through.
    pub(crate) n_used: u32,
}

impl Needs {
    /// Takes an operation into account.
    pub(crate) fn see(&mut self, op: &Op) {
        match *op {
            Op::Round { rows, width, block, .. } => {
                self.see_rounded(rows.per_token(), width, block);
            }
            Op::AddRows { width, .. } => self.row = self.row.max(width),
            Op::MatMul { projection, .. } | Op::ExpertOut { projection, .. } => {
                self.row = self.row.max(projection.n_in);
            }
            Op::ExpertIn { projection, .. } => {
                self.row = self.row.max(projection.n_in);
                if let Some(block) = projection.block {
                    self.see_rounded(1, projection.n_in, block);
                }
            }
            Op::Attend { n_head, n_head_kv, head_dim, .. } => {
                self.group = self.group.max(n_head / n_head_kv.max(1));
                self.head_dim = self.head_dim.max(head_dim);
            }
            Op::Route { n_expert, n_used, .. } => {
                self.n_expert = self.n_expert.max(n_expert);
                self.n_used = self.n_used.max(n_used);
            }
            _ => {}
        }
    }

    fn see_rounded(&mut self, rows: u32, width: u32, block: u32) {
        let n = u64::from(rows) * u64::from(width);
        self.rounded = self.rounded.max(n);
        self.rounded_blocks = self.rounded_blocks.max(n / u64::from(block.max(1)));
    }
}

impl Op {
    /// The buffers that the operation writes and the values for each token that it writes there.
    pub(crate) fn outputs(&self) -> [Option<(Buf, u64)>; MAX_PARTS] {
        let one = |buf, width: u32| [Some((buf, u64::from(width))), None, None];
        let two = |a: (Buf, u64), b: (Buf, u64)| [Some(a), Some(b), None];
        match *self {
            Self::RopeTable { .. }
            | Self::Round { .. }
            | Self::KvWrite { .. }
            | Self::Route { .. } => [None; 3],
            Self::Embed { width, .. }
            | Self::AddRows { width, .. }
            | Self::AddResidual { width, .. } => one(Buf::Residual, width),
            Self::LayerNorm { output, width, .. } => one(output, width),
            Self::Gelu { width } => one(Buf::Gate, width),
            Self::RmsNorm { output, width, groups, .. } => one(output, width * groups),
            Self::MatMul { parts, n_parts, .. } => core::array::from_fn(|i| {
                let written = i < n_parts as usize;
                written.then(|| (parts[i].output, u64::from(parts[i].n_rows)))
            }),
            Self::Bias { buf, width, .. }
            | Self::Scale { buf, width, .. }
            | Self::Softcap { buf, width, .. }
            | Self::Clear { buf, width } => one(buf, width),
            Self::Rotate { buf, n_head, head_dim, .. } => one(buf, n_head * head_dim),
            Self::Attend { n_head, head_dim, .. } => one(Buf::Query, n_head * head_dim),
            Self::Combine { rows, width, .. } => {
                [Some((Buf::Gate, u64::from(rows.per_token()) * u64::from(width))), None, None]
            }
            Self::ExpertIn { projection: p, output, n_expert, n_used } => {
                let width = u64::from(n_used) * u64::from(p.n_rows / n_expert.max(1));
                two((output, width), (Buf::Gathered, u64::from(p.n_in)))
            }
            Self::ExpertOut { projection: p, output, n_expert } => {
                let width = u64::from(p.n_rows / n_expert.max(1));
                two((output, width), (Buf::Gathered, width))
            }
        }
    }

    /// Whether the operation goes from expert to expert.
    pub(crate) const fn is_of_experts(&self) -> bool {
        matches!(self, Self::ExpertIn { .. } | Self::ExpertOut { .. })
    }

    /// The use that the operation takes its weights from.
    pub(crate) fn use_index_mut(&mut self) -> Option<&mut u32> {
        match self {
            Self::Embed { use_index, .. } | Self::AddRows { use_index, .. } => Some(use_index),
            Self::MatMul { projection, .. }
            | Self::ExpertIn { projection, .. }
            | Self::ExpertOut { projection, .. } => Some(&mut projection.use_index),
            _ => None,
        }
    }
}

/// Buffers that the rows of one projection may go to: fused query, key and value.
pub(crate) const MAX_PARTS: usize = 3;
