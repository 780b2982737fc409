//! The facts of a model's file under our own names: the only place where GGUF's keys are read.
//!
//! It checks each value by itself and those that must agree with each other; tensors are checked where they are used.

use super::config::{ModelKind, Pooling};
use super::failure::ModelFailure;
use super::keys::Keys;
use crate::error::Result;
use crate::gguf::{Header, Metadata};

/// Hyper-parameters. An optional one is absent from the file; whether that is an error is for the family to say.
#[derive(Debug, Clone, PartialEq)]
pub struct Hparams {
    /// Architecture as GGUF names it.
    pub arch: String,
    /// Tokens of the vocabulary.
    pub n_vocab: u32,
    /// Context that the model was trained for.
    pub n_ctx_train: u32,
    /// Width of the residual stream.
    pub n_embd: u32,
    /// Layers.
    pub n_layer: u32,
    /// Query heads.
    pub n_head: u32,
    /// Key-value heads; divides `n_head`.
    pub n_head_kv: u32,
    /// Values of one head.
    pub head_dim: u32,
    /// Width of the feed-forward network.
    pub n_ff: u32,
    /// Epsilon of the RMS norms.
    pub rms_eps: Option<f32>,
    /// Epsilon of norms that take the mean off as well.
    pub layer_norm_eps: Option<f32>,
    /// Whether a token sees only those before it, where the file says so.
    pub causal: Option<bool>,
    /// Kinds of tokens that have an embedding, the first of a pair of texts and the second; 0 where the file has none.
    pub n_token_types: u32,
    /// How the model's makers pool the vectors of a text, where the file says so.
    pub pooling: Option<Pooling>,
    /// Rotary embedding.
    pub rope: RopeHparams,
    /// Sliding window: token i sees token j when `i - j < n_window`.
    pub n_window: Option<u32>,
    /// Which layers are windowed, where the file says so.
    pub window_layers: Option<WindowLayers>,
    /// Factor of the attention scores instead of `1/sqrt(head_dim)`.
    pub attention_scale: Option<f32>,
    /// Soft cap of the attention scores.
    pub attention_softcap: Option<f32>,
    /// Soft cap of the logits.
    pub final_softcap: Option<f32>,
    /// Factor of the embeddings.
    pub embedding_scale: Option<f32>,
    /// Factor of what a block adds to the residual stream.
    pub residual_scale: Option<f32>,
    /// Scale of the logits; what it does is for the family to say.
    pub logit_scale: Option<f32>,
    /// Experts; `None` for a dense model.
    pub experts: Option<ExpertHparams>,
}

/// Rotary position embedding.
#[derive(Debug, Clone, PartialEq)]
pub struct RopeHparams {
    /// Values of a head that are rotated; even, at most `head_dim`.
    pub n_rot: u32,
    /// Base of the frequencies.
    pub freq_base: f32,
    /// Base of the frequencies in windowed layers, where it differs.
    pub freq_base_window: Option<f32>,
    /// How positions beyond the original context are reached.
    pub scaling: RopeScaling,
    /// Factor of sine and cosine.
    pub attn_factor: f32,
    /// Context before it was extended.
    pub n_ctx_orig: u32,
    /// Granite's switch for rotating at all.
    pub finetuned: Option<bool>,
}

/// How positions beyond the original context are reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RopeScaling {
    /// Not by a formula; tensors with factors may still say how.
    None,
    /// Positions divided by `factor`.
    Linear {
        /// By how much.
        factor: f32,
    },
    /// Low frequencies as with `Linear`, high ones untouched, a ramp between.
    Yarn {
        /// By how much the context grew.
        factor: f32,
        /// Rotations over the original context above which a pair is untouched.
        beta_fast: f32,
        /// Rotations below which it is scaled fully.
        beta_slow: f32,
    },
}

/// Which layers are windowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WindowLayers {
    /// Of so many layers the last is not.
    Period(u32),
    /// Said layer by layer.
    Each(Vec<bool>),
}

/// Mixture of experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpertHparams {
    /// Experts of a layer.
    pub n_expert: u32,
    /// Experts that a token goes through.
    pub n_expert_used: u32,
    /// Width of one expert.
    pub n_ff_expert: u32,
}

impl Hparams {
    /// Whether the vocabulary and the embedding table are of one size.
    ///
    /// # Errors
    /// `invalid_model` with both sizes.
    pub(crate) fn check_vocabulary(&self, n_tokens: usize) -> Result<()> {
        if n_tokens == self.n_vocab as usize {
            return Ok(());
        }
        Err(ModelFailure::VocabularySize { n_tokens, n_rows: self.n_vocab }.into())
    }

    /// Reads and checks the metadata of a header.
    pub(crate) fn read(header: &Header) -> Result<Self> {
        let keys = Keys::new(&header.metadata)?;
        let count = |name, max| keys.required(name, keys.count(name, max)?);
        let n_layer = count("block_count", MAX_LAYERS)?;
        let per_layer = |name, max| keys.layer_count(name, max, n_layer);

        let n_embd = count("embedding_length", MAX_WIDTH)?;
        let n_ctx_train = count("context_length", u32::MAX)?;
        let n_ff =
            keys.required("feed_forward_length", per_layer("feed_forward_length", MAX_WIDTH)?)?;
        let n_head = keys.required(HEAD_COUNT, per_layer(HEAD_COUNT, MAX_HEADS)?)?;
        let n_head_kv = per_layer(HEAD_COUNT_KV, MAX_HEADS)?.unwrap_or(n_head);
        if !n_head.is_multiple_of(n_head_kv) {
            let why = "it does not divide attention.head_count";
            return Err(keys.bad(HEAD_COUNT_KV, &n_head_kv.to_string(), why));
        }
        let head_dim = head_dim(&keys, n_embd, n_head)?;
        Ok(Self {
            arch: keys.arch().to_owned(),
            n_vocab: n_vocab(&keys, header)?,
            n_ctx_train,
            n_embd,
            n_layer,
            n_head,
            n_head_kv,
            head_dim,
            n_ff,
            rms_eps: keys.not_negative(RMS_EPS)?,
            layer_norm_eps: keys.not_negative(LAYER_NORM_EPS)?,
            causal: keys.flag(CAUSAL)?,
            n_token_types: header.metadata.get_u32(TOKEN_TYPES)?.unwrap_or(0),
            pooling: pooling(&keys)?,
            rope: RopeHparams::read(&keys, head_dim, n_ctx_train)?,
            n_window: keys.whole("attention.sliding_window", u32::MAX)?.filter(|&n| n > 0),
            window_layers: WindowLayers::read(&keys, n_layer)?,
            attention_scale: keys.scale("attention.scale")?,
            attention_softcap: keys.scale("attn_logit_softcapping")?,
            final_softcap: keys.scale("final_logit_softcapping")?,
            embedding_scale: keys.scale("embedding_scale")?,
            residual_scale: keys.scale("residual_scale")?,
            logit_scale: keys.scale("logit_scale")?,
            experts: ExpertHparams::read(&keys, n_ff)?,
        })
    }

    /// Refuses attention that looks the other way than `kind` does.
    pub(crate) fn require_direction(
        &self,
        kind: ModelKind,
    ) -> core::result::Result<(), ModelFailure> {
        let (causal, why) = match kind {
            ModelKind::Decoder => (true, "attention looks back only"),
            ModelKind::Encoder => (false, "attention of this architecture looks both ways"),
        };
        match self.causal.filter(|&found| found != causal) {
            None => Ok(()),
            Some(found) => Err(ModelFailure::KeyUnsupported {
                key: format!("{}.{CAUSAL}", self.arch),
                found: found.to_string(),
                why,
            }),
        }
    }

    /// Refuses a RoPE base of its own for windowed layers, where the architecture has none.
    pub(crate) fn require_one_rope_base(&self) -> core::result::Result<(), ModelFailure> {
        match self.rope.freq_base_window.filter(|&base| base != self.rope.freq_base) {
            None => Ok(()),
            Some(base) => Err(ModelFailure::KeyUnsupported {
                key: format!("{}.rope.freq_base_swa", self.arch),
                found: base.to_string(),
                why: "all layers of this architecture have one base",
            }),
        }
    }

    /// The value of a key that the architecture cannot do without.
    pub(crate) fn require<T: Copy>(
        &self,
        name: &str,
        value: Option<T>,
    ) -> core::result::Result<T, ModelFailure> {
        value.ok_or_else(|| ModelFailure::MissingKey { key: format!("{}.{name}", self.arch) })
    }
}

impl RopeHparams {
    fn read(keys: &Keys<'_>, head_dim: u32, n_ctx_train: u32) -> Result<Self> {
        let name = "rope.dimension_count";
        let n_rot = keys.count(name, u32::MAX)?.unwrap_or(head_dim);
        if n_rot > head_dim || !n_rot.is_multiple_of(2) {
            let why = "it must be even and no larger than a head";
            return Err(keys.bad(name, &n_rot.to_string(), why));
        }
        let n_ctx_orig = keys.count("rope.scaling.original_context_length", u32::MAX)?;
        Ok(Self {
            n_rot,
            freq_base: keys.positive("rope.freq_base")?.unwrap_or(10_000.0),
            freq_base_window: keys.positive("rope.freq_base_swa")?,
            scaling: RopeScaling::read(keys)?,
            attn_factor: keys.positive("rope.scaling.attn_factor")?.unwrap_or(1.0),
            n_ctx_orig: n_ctx_orig.unwrap_or(n_ctx_train),
            finetuned: keys.flag("rope.scaling.finetuned")?,
        })
    }
}

impl RopeScaling {
    fn read(keys: &Keys<'_>) -> Result<Self> {
        let kind = keys.text("rope.scaling.type")?;
        // Files of before the typed scaling have `scale_linear`; a factor of 0 says that there is none.
        let factor = match keys.number("rope.scaling.factor")?.filter(|&x| x != 0.0) {
            Some(factor) => Some(factor),
            None => keys.number("rope.scale_linear")?.filter(|&x| x != 0.0),
        };
        if let Some(factor) = factor.filter(|&x| x < 0.0) {
            return Err(keys.bad("rope.scaling.factor", &factor.to_string(), "it must be above 0"));
        }
        match (kind, factor) {
            (Some("none"), _) | (None | Some("linear" | "longrope"), None) => Ok(Self::None),
            (None | Some("linear" | "longrope"), Some(factor)) => Ok(Self::Linear { factor }),
            (Some("yarn"), factor) => {
                only(keys, "rope.scaling.yarn_ext_factor", 1.0)?;
                only(keys, "rope.scaling.yarn_attn_factor", 1.0)?;
                only(keys, "rope.scaling.yarn_log_multiplier", 0.0)?;
                Ok(Self::Yarn {
                    factor: factor.unwrap_or(1.0),
                    beta_fast: keys.positive("rope.scaling.yarn_beta_fast")?.unwrap_or(32.0),
                    beta_slow: keys.positive("rope.scaling.yarn_beta_slow")?.unwrap_or(1.0),
                })
            }
            (Some(other), _) => Err(keys.unsupported(
                "rope.scaling.type",
                other,
                "known are none, linear, yarn and longrope",
            )),
        }
    }
}

impl WindowLayers {
    fn read(keys: &Keys<'_>, n_layer: u32) -> Result<Option<Self>> {
        let name = "attention.sliding_window_pattern";
        match keys.layer_flags(name, n_layer)? {
            Some(each) => Ok(Some(Self::Each(each))),
            None => Ok(keys.count(name, MAX_LAYERS)?.map(Self::Period)),
        }
    }

    /// Whether `layer` is windowed.
    #[must_use]
    pub fn contains(&self, layer: u32) -> bool {
        match self {
            Self::Period(period) => layer % period + 1 < *period,
            Self::Each(each) => each.get(layer as usize).copied().unwrap_or(false),
        }
    }
}

impl ExpertHparams {
    fn read(keys: &Keys<'_>, n_ff: u32) -> Result<Option<Self>> {
        let Some(n_expert) = keys.whole("expert_count", MAX_EXPERTS)?.filter(|&n| n > 0) else {
            return Ok(None);
        };
        let name = "expert_used_count";
        let n_expert_used = keys.required(name, keys.count(name, MAX_EXPERTS)?)?;
        if n_expert_used > n_expert {
            return Err(keys.bad(
                name,
                &n_expert_used.to_string(),
                "there are not so many experts",
            ));
        }
        // Softmax is what the router's opinion goes through; 1 is its number.
        if let Some(n) = keys.whole("expert_gating_func", u32::MAX)?.filter(|&n| n > 1) {
            return Err(keys.unsupported("expert_gating_func", &n.to_string(), "only softmax is"));
        }
        if keys.number("expert_weights_scale")? != Some(0.0) {
            only(keys, "expert_weights_scale", 1.0)?;
        }
        let n_ff_expert = keys.count("expert_feed_forward_length", MAX_WIDTH)?.unwrap_or(n_ff);
        Ok(Some(Self { n_expert, n_expert_used, n_ff_expert }))
    }
}

/// Refuses a number that is not the one that this engine computes with.
fn only(keys: &Keys<'_>, name: &str, value: f32) -> Result<()> {
    match keys.number(name)?.filter(|&x| x != value) {
        None => Ok(()),
        Some(x) => Err(keys.unsupported(name, &x.to_string(), "it is a variant that is not built")),
    }
}

fn head_dim(keys: &Keys<'_>, n_embd: u32, n_head: u32) -> Result<u32> {
    let key = keys.count("attention.key_length", MAX_HEAD_DIM)?;
    let value = keys.count("attention.value_length", MAX_HEAD_DIM)?;
    let head_dim = match key.or(value) {
        Some(head_dim) => head_dim,
        None if n_embd.is_multiple_of(n_head) => n_embd / n_head,
        None => {
            return Err(keys.bad(
                HEAD_COUNT,
                &n_head.to_string(),
                "it does not divide embedding_length",
            ));
        }
    };
    if let Some(value) = value.filter(|&value| value != head_dim) {
        let why = "heads of keys and of values must have one size";
        return Err(keys.unsupported("attention.value_length", &value.to_string(), why));
    }
    if u64::from(n_head) * u64::from(head_dim) > u64::from(MAX_WIDTH) {
        return Err(keys.bad(
            HEAD_COUNT,
            &n_head.to_string(),
            "all heads together are absurdly wide",
        ));
    }
    Ok(head_dim)
}

/// How llama.cpp numbers the ways of pooling. 0 leaves it to the caller.
fn pooling(keys: &Keys<'_>) -> Result<Option<Pooling>> {
    let name = "pooling_type";
    match keys.whole(name, u32::MAX)? {
        None | Some(0) => Ok(None),
        Some(1) => Ok(Some(Pooling::Mean)),
        Some(2) => Ok(Some(Pooling::Cls)),
        Some(3) => Ok(Some(Pooling::Last)),
        Some(other) => {
            let why = "a vector is made by mean, cls or last; models that rank are not computed";
            Err(keys.unsupported(name, &other.to_string(), why))
        }
    }
}

/// The rows of the embedding table, which the vocabulary in the file must agree with.
fn n_vocab(keys: &Keys<'_>, header: &Header) -> Result<u32> {
    let name = "token_embd.weight";
    let table =
        header.tensor(name).ok_or_else(|| ModelFailure::MissingTensor { name: name.to_owned() })?;
    let n_rows = table.shape.get(1).copied().unwrap_or(1);
    if let Some((key, found)) = keys.n_vocab()?.filter(|(_, found)| *found != n_rows) {
        let found = format!("{found} tokens");
        let why = "token_embd.weight has another number of rows";
        return Err(ModelFailure::KeyValue { key, found, why }.into());
    }
    match u32::try_from(n_rows) {
        Ok(n) if n > 0 && n <= MAX_VOCAB => Ok(n),
        _ => {
            let what = "no vocabulary has so many rows";
            Err(ModelFailure::TensorSize { name: name.to_owned(), what }.into())
        }
    }
}

/// The name of the architecture, for the registry of families.
pub(crate) fn architecture(metadata: &Metadata) -> Result<&str> {
    Ok(Keys::new(metadata)?.arch())
}

const HEAD_COUNT: &str = "attention.head_count";
const HEAD_COUNT_KV: &str = "attention.head_count_kv";
pub(crate) const RMS_EPS: &str = "attention.layer_norm_rms_epsilon";
pub(crate) const LAYER_NORM_EPS: &str = "attention.layer_norm_epsilon";
const CAUSAL: &str = "attention.causal";
const TOKEN_TYPES: &str = "tokenizer.ggml.token_type_count";

// Sizes far beyond any model. They keep every product of two of them inside 64 bits, and every width inside 32.
const MAX_LAYERS: u32 = 1 << 12;
const MAX_WIDTH: u32 = 1 << 24;
const MAX_HEADS: u32 = 1 << 16;
const MAX_HEAD_DIM: u32 = 1 << 16;
const MAX_EXPERTS: u32 = 1 << 12;
const MAX_VOCAB: u32 = 1 << 26;
