//! The ggml number formats: their names, block layouts and sizes, and their scalar dequantisation.
//!
//! It knows bytes and numbers only: no files, no tensors. One file per family of formats holds the block structs
//! (bytes as stored, alignment 1) and how a block decodes.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "fields are cut out of packed bits: the masks bound them"
)]
#![allow(clippy::doc_markdown, reason = "the names of formats are words here, not items")]

mod block;
mod half_float;

mod fp4;
mod iq1;
mod iq2;
mod iq3;
mod iq4;
mod k_quants;
mod low_bit;
mod plain;
mod round32;
mod ternary;

mod grids;

pub use block::{Block, dequantize_row};
pub use fp4::{BlockMxfp4, BlockNvfp4};
pub use half_float::{bf16_to_f32, f16_to_f32};
pub use iq1::{BlockIq1M, BlockIq1S};
pub use iq2::{BlockIq2S, BlockIq2Xs, BlockIq2Xxs};
pub use iq3::{BlockIq3S, BlockIq3Xxs};
pub(crate) use iq4::LEVELS;
pub use iq4::{BlockIq4Nl, BlockIq4Xs};
pub use k_quants::{BlockQ2K, BlockQ3K, BlockQ4K, BlockQ5K, BlockQ6K, scale_min_k4};
pub use low_bit::{BlockQ1_0, BlockQ2_0};
pub use plain::{BlockBf16, BlockF16, BlockF32};
pub use round32::{BlockQ4_0, BlockQ4_1, BlockQ5_0, BlockQ5_1, BlockQ8_0};
pub use ternary::{BlockTq1_0, BlockTq2_0};

/// A ggml number format. The discriminant is ggml's own type number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, non_camel_case_types, reason = "the names are ggml's own")]
#[repr(u32)]
pub enum GgmlType {
    F32 = 0,
    F16 = 1,
    Q4_0 = 2,
    Q4_1 = 3,
    Q5_0 = 6,
    Q5_1 = 7,
    Q8_0 = 8,
    Q2_K = 10,
    Q3_K = 11,
    Q4_K = 12,
    Q5_K = 13,
    Q6_K = 14,
    IQ2_XXS = 16,
    IQ2_XS = 17,
    IQ3_XXS = 18,
    IQ1_S = 19,
    IQ4_NL = 20,
    IQ3_S = 21,
    IQ2_S = 22,
    IQ4_XS = 23,
    IQ1_M = 29,
    BF16 = 30,
    TQ1_0 = 34,
    TQ2_0 = 35,
    MXFP4 = 39,
    NVFP4 = 40,
    Q1_0 = 41,
    Q2_0 = 42,
}

/// Name, elements of a block, bytes of a block; in the order of the type numbers.
const FACTS: &[(GgmlType, &str, usize, usize)] = &[
    (GgmlType::F32, "F32", 1, 4),
    (GgmlType::F16, "F16", 1, 2),
    (GgmlType::Q4_0, "Q4_0", 32, 18),
    (GgmlType::Q4_1, "Q4_1", 32, 20),
    (GgmlType::Q5_0, "Q5_0", 32, 22),
    (GgmlType::Q5_1, "Q5_1", 32, 24),
    (GgmlType::Q8_0, "Q8_0", 32, 34),
    (GgmlType::Q2_K, "Q2_K", 256, 84),
    (GgmlType::Q3_K, "Q3_K", 256, 110),
    (GgmlType::Q4_K, "Q4_K", 256, 144),
    (GgmlType::Q5_K, "Q5_K", 256, 176),
    (GgmlType::Q6_K, "Q6_K", 256, 210),
    (GgmlType::IQ2_XXS, "IQ2_XXS", 256, 66),
    (GgmlType::IQ2_XS, "IQ2_XS", 256, 74),
    (GgmlType::IQ3_XXS, "IQ3_XXS", 256, 98),
    (GgmlType::IQ1_S, "IQ1_S", 256, 50),
    (GgmlType::IQ4_NL, "IQ4_NL", 32, 18),
    (GgmlType::IQ3_S, "IQ3_S", 256, 110),
    (GgmlType::IQ2_S, "IQ2_S", 256, 82),
    (GgmlType::IQ4_XS, "IQ4_XS", 256, 136),
    (GgmlType::IQ1_M, "IQ1_M", 256, 56),
    (GgmlType::BF16, "BF16", 1, 2),
    (GgmlType::TQ1_0, "TQ1_0", 256, 54),
    (GgmlType::TQ2_0, "TQ2_0", 256, 66),
    (GgmlType::MXFP4, "MXFP4", 32, 17),
    (GgmlType::NVFP4, "NVFP4", 64, 36),
    (GgmlType::Q1_0, "Q1_0", 128, 18),
    (GgmlType::Q2_0, "Q2_0", 64, 18),
];

impl GgmlType {
    /// The format with ggml's type number `id`, if it is one that this crate reads.
    #[must_use]
    pub fn from_id(id: u32) -> Option<Self> {
        FACTS.iter().map(|f| f.0).find(|t| *t as u32 == id)
    }

    /// ggml's type number.
    #[must_use]
    pub const fn id(self) -> u32 {
        self as u32
    }

    /// The name as ggml spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.facts().1
    }

    /// Elements of one block; 1 for plain numbers.
    #[must_use]
    pub fn block_elements(self) -> usize {
        self.facts().2
    }

    /// Bytes of one block.
    #[must_use]
    pub fn block_bytes(self) -> usize {
        self.facts().3
    }

    /// Bytes of a row of `n` elements; `None` if `n` is no whole number of blocks or the size overflows.
    #[must_use]
    pub fn row_bytes(self, n: u64) -> Option<u64> {
        let block = self.block_elements() as u64;
        if !n.is_multiple_of(block) {
            return None;
        }
        (n / block).checked_mul(self.block_bytes() as u64)
    }

    fn facts(self) -> &'static (Self, &'static str, usize, usize) {
        FACTS.iter().find(|f| f.0 == self).unwrap_or(&FACTS[0])
    }
}

impl core::fmt::Display for GgmlType {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}
