//! Where the time of a pass goes, layer by layer.

/// Receives one profile a pass: each chunk of the prompt and each decoded token.
pub trait ProfileSink {
    /// One pass has ended.
    fn pass(&mut self, profile: &PassProfile<'_>);
}

/// One pass over the weights.
#[derive(Debug)]
pub struct PassProfile<'a> {
    /// Whether the pass belongs to the prompt.
    pub prefill: bool,
    /// Position of its first token.
    pub pos: u32,
    /// Tokens of the pass.
    pub n_tokens: u32,
    /// Embedding, each layer, head: `n_layer + 2` entries.
    pub layers: &'a [LayerTimes],
    /// Bytes of memory in use after it.
    pub memory_bytes: u64,
}

/// What one layer took.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LayerTimes {
    /// Milliseconds that the layer waited for its weights.
    pub load_ms: f64,
    /// Milliseconds of arithmetic.
    pub compute_ms: f64,
}
