//! How a model is computed and how large a session is: the values that the runtime decides and the model obeys.

use super::KvType;

/// How a model is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelConfig {
    /// What activations are when they meet quantised weights.
    pub precision: Precision,
    /// How keys and values are kept.
    pub kv: KvType,
}

/// What activations are when they meet quantised weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// Rounded to 8 bits, with a scale per block of the weights' format.
    Fast,
    /// f32 as they are; the weights are decoded.
    Exact,
}

/// What a model is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelKind {
    /// Each token sees those before it; the head says which comes next.
    Decoder,
    /// Each token sees all others of its text, and nothing comes next: it makes embeddings.
    Encoder,
}

impl ModelKind {
    /// Its name for programs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Decoder => "decoder",
            Self::Encoder => "encoder",
        }
    }
}

/// How the vectors of a text's tokens become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// Their mean.
    Mean,
    /// That of the last token.
    Last,
    /// That of the first token.
    Cls,
}

/// The size of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Positions of the context.
    pub n_ctx: u32,
    /// Tokens of one pass at most.
    pub n_batch: u32,
    /// Rows of logits of one pass at most.
    pub n_logits: u32,
}

/// Bytes that a session takes, by what they are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModelMemory {
    /// Activations, their 8-bit copies, RoPE tables, attention scores, the tokens of a chunk.
    pub scratch_bytes: u64,
    /// Logits.
    pub logits_bytes: u64,
    /// Keys and values of a full context.
    pub kv_bytes: u64,
    /// Norms, biases and factors as f32, and the program itself. The model holds them, the other three the state.
    pub vectors_bytes: u64,
}

/// Which positions of a pass get logits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogitsWanted {
    /// None: the output head is skipped.
    None,
    /// The last one.
    Last,
    /// Every one.
    All,
    /// None, but what the head would have got for every position: [`super::State::hidden`].
    Hidden,
}

impl LogitsWanted {
    /// Whether the weights of the head are used.
    #[must_use]
    pub fn uses_head(self) -> bool {
        matches!(self, Self::Last | Self::All)
    }
}

/// What one step of a pass may take, so that a caller sees an abort and an event loop gets its turn. The bounds change no
/// bit of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepBounds {
    /// Multiplications with f32 activations.
    pub macs_f32: usize,
    /// Multiplications with rounded activations.
    pub macs_rounded: usize,
    /// Everything else, in multiplications or what takes as long.
    pub other: usize,
}

impl Default for StepBounds {
    /// At most about 20 ms on a slow core.
    fn default() -> Self {
        Self { macs_f32: 8 << 20, macs_rounded: 48 << 20, other: 24 << 20 }
    }
}

impl StepBounds {
    /// What takes `n` threads as long as these bounds take one.
    #[must_use]
    pub fn shared_by(self, n: usize) -> Self {
        let Self { macs_f32, macs_rounded, other } = self;
        let [macs_f32, macs_rounded, other] =
            [macs_f32, macs_rounded, other].map(|bound| bound.saturating_mul(n));
        Self { macs_f32, macs_rounded, other }
    }
}
