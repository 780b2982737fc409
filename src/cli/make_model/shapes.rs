//! The shapes of real models: sizes, metadata, and the tensors of a file in the order of llama.cpp's converter.

use sluice::gguf::{Metadata, Value};

use super::formats::Role;

/// A model whose shape can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ShapeName {
    /// SmolLM2 135M
    #[value(name = "smollm2-135m")]
    SmolLm2,
    /// Gemma 3 270M
    #[value(name = "gemma3-270m")]
    Gemma3,
    /// Llama 3.2 1B
    #[value(name = "llama-1b")]
    Llama1B,
    /// Llama 3.1 8B
    #[value(name = "llama-8b")]
    Llama8B,
    /// Llama 2 13B
    #[value(name = "llama-13b")]
    Llama13B,
    /// Llama 3.1 70B
    #[value(name = "llama-70b")]
    Llama70B,
}

/// What kind of vocabulary a model has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vocabulary {
    /// Byte-level BPE with the rules `pre` for splitting text.
    Bpe { pre: &'static str, n_merges: usize },
    /// SentencePiece scores, of Llama 2.
    Spm,
    /// The same, of Gemma.
    GemmaSpm,
}

/// Sizes of a model.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    name: &'static str,
    arch: &'static str,
    pub(super) n_layer: u32,
    n_embd: u32,
    n_ff: u32,
    n_head: u32,
    n_head_kv: u32,
    head_dim: u32,
    pub(super) n_vocab: u32,
    n_ctx_train: u32,
    rope_freq_base: f32,
    rms_eps: f32,
    pub(super) tied: bool,
    rope_factor: Option<f32>,
    pub(super) vocabulary: Vocabulary,
    /// 70B keeps values in more bits, since eight query heads share them.
    pub(super) wide_values: bool,
}

impl Shape {
    /// The shape of `name`, with another number of layers if asked for.
    pub(super) fn of(name: ShapeName, layers: Option<u32>) -> Self {
        let shape = match name {
            ShapeName::SmolLm2 => SMOLLM2,
            ShapeName::Gemma3 => GEMMA_3,
            ShapeName::Llama1B => LLAMA_1B,
            ShapeName::Llama8B => LLAMA_8B,
            ShapeName::Llama13B => LLAMA_13B,
            ShapeName::Llama70B => LLAMA_70B,
        };
        Self { n_layer: layers.unwrap_or(shape.n_layer), ..shape }
    }

    /// Hyper-parameters under the keys of the architecture.
    pub(super) fn describe(&self, metadata: &mut Metadata) {
        let text = |s: &str| Value::String(s.as_bytes().into());
        metadata.insert("general.architecture", text(self.arch));
        metadata.insert("general.name", text(&format!("{} shape, random weights", self.name)));
        let mut set = |key: &str, value| {
            metadata.insert(format!("{}.{key}", self.arch), value);
        };
        set("block_count", Value::U32(self.n_layer));
        set("context_length", Value::U32(self.n_ctx_train));
        set("embedding_length", Value::U32(self.n_embd));
        set("feed_forward_length", Value::U32(self.n_ff));
        set("attention.head_count", Value::U32(self.n_head));
        set("attention.head_count_kv", Value::U32(self.n_head_kv));
        set("attention.layer_norm_rms_epsilon", Value::F32(self.rms_eps));
        set("rope.freq_base", Value::F32(self.rope_freq_base));
        set("vocab_size", Value::U32(self.n_vocab));
        if self.is_gemma() {
            set("attention.key_length", Value::U32(self.head_dim));
            set("attention.value_length", Value::U32(self.head_dim));
            set("attention.sliding_window", Value::U32(512));
        } else {
            set("rope.dimension_count", Value::U32(self.head_dim));
        }
    }

    /// Name, sizes in ggml's order and role of every tensor, in the order of the file.
    pub(super) fn tensors(&self) -> Vec<(String, Vec<u64>, Role)> {
        let (n_embd, n_ff) = (u64::from(self.n_embd), u64::from(self.n_ff));
        let n_vocab = u64::from(self.n_vocab);
        let mut all = Vec::new();
        if let Some(factor) = self.rope_factor {
            let n = u64::from(self.head_dim / 2);
            all.push(("rope_freqs.weight".to_owned(), vec![n], Role::RopeFactors(factor)));
        }
        all.push(("token_embd.weight".to_owned(), vec![n_embd, n_vocab], Role::Embedding));
        for layer in 0..self.n_layer {
            self.layer(layer, n_embd, n_ff, &mut all);
        }
        all.push(("output_norm.weight".to_owned(), vec![n_embd], Role::Norm));
        if !self.tied {
            all.push(("output.weight".to_owned(), vec![n_embd, n_vocab], Role::Head));
        }
        all
    }

    fn layer(&self, layer: u32, n_embd: u64, n_ff: u64, all: &mut Vec<(String, Vec<u64>, Role)>) {
        let head_dim = u64::from(self.head_dim);
        let (q, kv) = (head_dim * u64::from(self.n_head), head_dim * u64::from(self.n_head_kv));
        let mut add = |name: &str, shape: Vec<u64>, role| {
            all.push((format!("blk.{layer}.{name}.weight"), shape, role));
        };
        add("attn_norm", vec![n_embd], Role::Norm);
        add("ffn_down", vec![n_ff, n_embd], Role::FfnDown(layer));
        add("ffn_gate", vec![n_embd, n_ff], Role::Weight);
        add("ffn_up", vec![n_embd, n_ff], Role::Weight);
        add("ffn_norm", vec![n_embd], Role::Norm);
        add("attn_k", vec![n_embd, kv], Role::Weight);
        add("attn_output", vec![q, n_embd], Role::Weight);
        add("attn_q", vec![n_embd, q], Role::Weight);
        add("attn_v", vec![n_embd, kv], Role::Values(layer));
        if self.is_gemma() {
            for name in ["attn_k_norm", "attn_q_norm"] {
                add(name, vec![head_dim], Role::Norm);
            }
            for name in ["post_attention_norm", "post_ffw_norm"] {
                add(name, vec![n_embd], Role::Norm);
            }
        }
    }

    fn is_gemma(&self) -> bool {
        self.arch == "gemma3"
    }
}

const LLAMA_8B: Shape = Shape {
    name: "Llama 3.1 8B",
    arch: "llama",
    n_layer: 32,
    n_embd: 4096,
    n_ff: 14_336,
    n_head: 32,
    n_head_kv: 8,
    head_dim: 128,
    n_vocab: 128_256,
    n_ctx_train: 131_072,
    rope_freq_base: 500_000.0,
    rms_eps: 1e-5,
    tied: false,
    rope_factor: Some(8.0),
    vocabulary: Vocabulary::Bpe { pre: "llama-bpe", n_merges: 280_147 },
    wide_values: false,
};

const LLAMA_1B: Shape = Shape {
    name: "Llama 3.2 1B",
    n_layer: 16,
    n_embd: 2048,
    n_ff: 8192,
    head_dim: 64,
    tied: true,
    rope_factor: Some(32.0),
    ..LLAMA_8B
};

const LLAMA_70B: Shape = Shape {
    name: "Llama 3.1 70B",
    n_layer: 80,
    n_embd: 8192,
    n_ff: 28_672,
    n_head: 64,
    wide_values: true,
    ..LLAMA_8B
};

const LLAMA_13B: Shape = Shape {
    name: "Llama 2 13B",
    n_layer: 40,
    n_embd: 5120,
    n_ff: 13_824,
    n_head: 40,
    n_head_kv: 40,
    n_vocab: 32_000,
    n_ctx_train: 4096,
    rope_freq_base: 10_000.0,
    rope_factor: None,
    vocabulary: Vocabulary::Spm,
    ..LLAMA_8B
};

const SMOLLM2: Shape = Shape {
    name: "SmolLM2 135M",
    n_layer: 30,
    n_embd: 576,
    n_ff: 1536,
    n_head: 9,
    n_head_kv: 3,
    head_dim: 64,
    n_vocab: 49_152,
    n_ctx_train: 8192,
    rope_freq_base: 100_000.0,
    tied: true,
    rope_factor: None,
    vocabulary: Vocabulary::Bpe { pre: "smollm", n_merges: 48_900 },
    ..LLAMA_8B
};

const GEMMA_3: Shape = Shape {
    name: "Gemma 3 270M",
    arch: "gemma3",
    n_layer: 18,
    n_embd: 640,
    n_ff: 2048,
    n_head: 4,
    n_head_kv: 1,
    head_dim: 256,
    n_vocab: 262_144,
    n_ctx_train: 32_768,
    rope_freq_base: 1e6,
    rms_eps: 1e-6,
    tied: true,
    rope_factor: None,
    vocabulary: Vocabulary::GemmaSpm,
    wide_values: false,
};
