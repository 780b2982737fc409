//! What a caller can read about a run, live.

use serde::Serialize;

/// Figures of the engine and of the generation under way (or the last one). Rates are 0 until there is something to divide.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// Tokens of the prompt, reused ones included.
    pub prompt_tokens: u32,
    /// New tokens so far.
    pub generated_tokens: u32,
    /// Milliseconds from open to ready.
    pub load_ms: f64,
    /// Milliseconds of prefill.
    pub prefill_ms: f64,
    /// Milliseconds of decoding.
    pub decode_ms: f64,
    /// Milliseconds from the call to the first new token.
    pub ttft_ms: f64,
    /// Prompt tokens that were computed, per second of prefill.
    pub prefill_tokens_per_second: f64,
    /// Tokens after the first, per second of decoding.
    pub decode_tokens_per_second: f64,
    /// Bytes read from the source since open.
    pub bytes_read: u64,
    /// Milliseconds that computing waited for reads, since open.
    pub stall_ms: f64,
    /// Streamed tiles that were there when they were wanted.
    pub prefetch_hits: u64,
    /// Streamed tiles that had to be waited for.
    pub prefetch_misses: u64,
    /// Weight bytes that stay in memory.
    pub resident_bytes: u64,
    /// Their share of the weights of a pass, 0 to 1.
    pub resident_share: f64,
    /// Bytes of the KV region.
    pub kv_bytes: u64,
    /// Positions in use.
    pub context_used: u32,
    /// Positions there are.
    pub context_max: u32,
    /// Bytes of memory in use: linear memory and what the package holds beside it.
    pub memory_bytes: u64,
    /// The most that has been seen.
    pub memory_peak_bytes: u64,
    /// Bytes that the engine may take.
    pub budget_bytes: u64,
    /// Prompt tokens that were still in the KV cache.
    pub reused_tokens: u32,
    /// Which build of the engine runs.
    pub build: &'static str,
    /// Threads that compute.
    pub threads: u32,
    /// What the random numbers of the answer under way (or the last one) started from.
    pub seed: Option<u64>,
}

impl Stats {
    /// Notes the memory in use.
    pub(crate) fn see_memory(&mut self, bytes: u64) {
        self.memory_bytes = bytes;
        self.memory_peak_bytes = self.memory_peak_bytes.max(bytes);
    }

    /// Brings the rates up to date with the counts and times.
    pub(crate) fn update_rates(&mut self) {
        self.prefill_tokens_per_second =
            per_second(self.prompt_tokens.saturating_sub(self.reused_tokens), self.prefill_ms);
        self.decode_tokens_per_second =
            per_second(self.generated_tokens.saturating_sub(1), self.decode_ms);
    }
}

fn per_second(count: u32, ms: f64) -> f64 {
    if ms > 0.0 { f64::from(count) * 1000.0 / ms } else { 0.0 }
}

/// The build this code was compiled for.
pub(crate) const BUILD: &str = if cfg!(not(target_arch = "wasm32")) {
    "native"
} else if cfg!(target_feature = "relaxed-simd") {
    if cfg!(target_feature = "atomics") { "relaxed-threads" } else { "relaxed" }
} else if cfg!(target_feature = "simd128") {
    if cfg!(target_feature = "atomics") { "simd-threads" } else { "simd" }
} else {
    "scalar"
};
