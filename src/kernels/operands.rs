//! What the matrix kernels take: weights as stored, activations as the format of the weights wants them, a place for results.

use crate::quant::GgmlType;

/// What precision `fast` rounds activations to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ActFormat {
    /// Not at all.
    F32,
    /// Signed bytes with one scale for 32 values.
    Q8Block32,
    /// Signed bytes with one scale for 256 values.
    Q8Block256,
}

impl ActFormat {
    /// Values that share a scale; 1 for plain f32.
    #[must_use]
    pub const fn block(self) -> usize {
        match self {
            Self::F32 => 1,
            Self::Q8Block32 => 32,
            Self::Q8Block256 => 256,
        }
    }
}

/// The format of activations that precision `fast` multiplies weights of type `ty` with.
///
/// | weights | activations |
/// |---|---|
/// | Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 IQ4_NL | `Q8Block32` |
/// | Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_XS | `Q8Block256` |
/// | F32 F16 BF16 | `F32` |
/// | IQ1_S IQ1_M IQ2_XXS IQ2_XS IQ2_S IQ3_XXS IQ3_S TQ1_0 TQ2_0 MXFP4 NVFP4 Q1_0 Q2_0 | `F32`: no integer kernel, so `fast` has the bits of `exact` |
#[must_use]
pub const fn activation_format(ty: GgmlType) -> ActFormat {
    match ty {
        GgmlType::Q4_0
        | GgmlType::Q4_1
        | GgmlType::Q5_0
        | GgmlType::Q5_1
        | GgmlType::Q8_0
        | GgmlType::IQ4_NL => ActFormat::Q8Block32,
        GgmlType::Q2_K
        | GgmlType::Q3_K
        | GgmlType::Q4_K
        | GgmlType::Q5_K
        | GgmlType::Q6_K
        | GgmlType::IQ4_XS => ActFormat::Q8Block256,
        _ => ActFormat::F32,
    }
}

/// Whole rows of a weight matrix, raw blocks as the file has them: `[n_rows, n_in]`.
#[derive(Debug, Clone, Copy)]
pub struct Weights<'a> {
    /// Number format of the blocks.
    pub ty: GgmlType,
    /// The rows, one after the other; any alignment.
    pub bytes: &'a [u8],
    /// Rows in `bytes`.
    pub n_rows: usize,
    /// Elements of a row, a whole number of blocks.
    pub n_in: usize,
}

impl<'a> Weights<'a> {
    /// Bytes of one row.
    #[must_use]
    pub fn row_bytes(&self) -> usize {
        self.n_in / self.ty.block_elements() * self.ty.block_bytes()
    }

    /// The rows, each of [`Weights::row_bytes`] bytes.
    pub(super) fn rows(&self) -> impl Iterator<Item = &'a [u8]> {
        self.bytes.chunks_exact(self.row_bytes().max(1)).take(self.n_rows)
    }
}

/// Activations rounded to signed bytes in -127..=127 by [`quantize_q8`](super::quantize_q8), of one or more tokens.
#[derive(Debug, Clone, Copy)]
pub struct Q8<'a> {
    /// Values that share a scale: 32 or 256.
    pub block: usize,
    /// `[n_tokens, n_in]`
    pub qs: &'a [i8],
    /// `[n_tokens, n_in / block]`
    pub scales: &'a [f32],
    /// Sums of 16 neighbours of `qs`: `[n_tokens, n_in / 16]`, at most 2032 in magnitude.
    pub sums: &'a [i16],
}

/// The activations of a matrix product: `[n_tokens, n_in]`.
#[derive(Debug, Clone, Copy)]
pub enum Activations<'a> {
    /// Any weight format: a row of weights is decoded and multiplied in f32.
    F32(&'a [f32]),
    /// In the [`activation_format`] of the weights.
    Q8(Q8<'a>),
}

/// Where results go: row `r` of the weights, token `t`, at `data[t * stride + first_row + r]`.
#[derive(Debug)]
pub struct Out<'a> {
    /// `[n_tokens, stride]`; the last token may end after its last row.
    pub data: &'a mut [f32],
    /// Distance between tokens, in elements.
    pub stride: usize,
    /// Place of the first row.
    pub first_row: usize,
}

/// Which elements of a head RoPE turns against each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RopePairing {
    /// `2i` and `2i + 1`.
    Interleaved,
    /// `i` and `i + n_rot / 2`.
    HalfSplit,
}

/// K or V rows of one KV head: position `p` is row `p % capacity`.
#[derive(Debug, Clone, Copy)]
pub struct KvRows<'a> {
    /// F32, F16 or `Q8_0`.
    pub ty: GgmlType,
    /// The rows of this head, perhaps among those of others.
    pub bytes: &'a [u8],
    /// Distance between positions.
    pub row_bytes: usize,
    /// Where what is read starts in a row, in bytes.
    pub head_offset: usize,
    /// Rows kept.
    pub capacity: usize,
    /// Whether it is known that no element of these rows is infinite or a NaN.
    pub finite: bool,
}

impl<'a> KvRows<'a> {
    /// The same rows from element `first` on, the start of a block.
    #[must_use]
    pub fn from_element(self, first: usize) -> Self {
        let bytes = first / self.ty.block_elements() * self.ty.block_bytes();
        Self { head_offset: self.head_offset + bytes, ..self }
    }

    /// The bytes of this head at position `pos`, to the end of the storage.
    #[inline]
    pub(super) fn at(&self, pos: usize) -> &'a [u8] {
        &self.bytes[pos % self.capacity * self.row_bytes + self.head_offset..]
    }
}

/// Queries of adjacent tokens and of the heads that share one KV head.
#[derive(Debug, Clone, Copy)]
pub struct Queries<'a> {
    /// Head `h` of token `t` at `data[t * stride + h * head_dim..][..head_dim]`.
    pub data: &'a [f32],
    /// Distance between tokens, in elements.
    pub stride: usize,
    /// Heads of the group.
    pub n_heads: usize,
    /// Size of a query or key.
    pub head_dim: usize,
}

/// How scores are made from dot products.
#[derive(Debug, Clone, Copy)]
pub struct Scoring<'a> {
    /// Factor of the dot products, usually `1 / sqrt(head_dim)`.
    pub scale: f32,
    /// `softcap * tanh(score / softcap)` where given.
    pub softcap: Option<f32>,
    /// A score per head that takes part in the softmax and has no value: `[n_heads]`.
    pub sinks: Option<&'a [f32]>,
}

/// Where attention writes: head `h` of token `t` at `data[t * stride + h * value_dim..][..value_dim]`.
#[derive(Debug)]
pub struct AttentionOut<'a> {
    /// The results.
    pub data: &'a mut [f32],
    /// Distance between tokens, in elements.
    pub stride: usize,
    /// Size of a value.
    pub value_dim: usize,
}
