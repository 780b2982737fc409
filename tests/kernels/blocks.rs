//! Blocks of weights of every format: random ones with sensible scales, and extremes.

use sluice::quant::GgmlType;

use crate::numbers::Rng;

/// All formats.
pub(crate) const ALL: [GgmlType; 28] = [
    GgmlType::F32,
    GgmlType::F16,
    GgmlType::BF16,
    GgmlType::Q4_0,
    GgmlType::Q4_1,
    GgmlType::Q5_0,
    GgmlType::Q5_1,
    GgmlType::Q8_0,
    GgmlType::Q2_K,
    GgmlType::Q3_K,
    GgmlType::Q4_K,
    GgmlType::Q5_K,
    GgmlType::Q6_K,
    GgmlType::IQ1_S,
    GgmlType::IQ1_M,
    GgmlType::IQ2_XXS,
    GgmlType::IQ2_XS,
    GgmlType::IQ2_S,
    GgmlType::IQ3_XXS,
    GgmlType::IQ3_S,
    GgmlType::IQ4_NL,
    GgmlType::IQ4_XS,
    GgmlType::TQ1_0,
    GgmlType::TQ2_0,
    GgmlType::MXFP4,
    GgmlType::NVFP4,
    GgmlType::Q1_0,
    GgmlType::Q2_0,
];

/// What blocks are filled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fill {
    /// Random bytes, scales around 0.01.
    Random,
    /// Every byte but the scales.
    Bytes(u8),
    /// Random bytes with these bits for the scales.
    Scale(u16),
}

/// Random blocks and the extremes: all 0, all 15 (or -1), all -128, zero, subnormal, largest, infinite and NaN scales.
pub(crate) const FILLS: [Fill; 11] = [
    Fill::Random,
    Fill::Bytes(0x00),
    Fill::Bytes(0xff),
    Fill::Bytes(0x80),
    Fill::Bytes(0x7f),
    Fill::Scale(0x0000),
    Fill::Scale(0x8000),
    Fill::Scale(0x0001),
    Fill::Scale(0x83ff),
    Fill::Scale(0x7bff),
    Fill::Scale(0xfc00),
];

/// Bytes of `n_blocks` blocks.
pub(crate) fn blocks(ty: GgmlType, n_blocks: usize, fill: Fill, rng: &mut Rng) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..n_blocks * ty.block_bytes()).map(|_| rng.next() as u8).collect();
    if let Fill::Bytes(byte) = fill {
        bytes.fill(byte);
    }
    for block in bytes.chunks_exact_mut(ty.block_bytes()) {
        for place in halves(ty) {
            let bits = match fill {
                Fill::Scale(bits) => bits,
                // A half between 2^-8 and 2^-6 of either sign.
                _ => 0x1c00 + (rng.next() as u16 & 0x87ff),
            };
            block[*place..][..2].copy_from_slice(&bits.to_le_bytes());
        }
        match ty {
            GgmlType::F32 | GgmlType::BF16 => {
                let (n, byte) = (block.len(), rng.next() as u8);
                block[n - 1] = 0x3c | byte & 0x81;
            }
            // The exponent byte 2^(e - 128), and bytes of a small float.
            GgmlType::MXFP4 => block[0] = 0x78 + (rng.next() as u8 & 3),
            GgmlType::NVFP4 => block[..4].iter_mut().for_each(|b| *b = *b & 0x0f | 0x20),
            // The scale of IQ1_M stands in the upper four bits of four halves.
            GgmlType::IQ1_M => {
                for (i, bits) in [0x0_u8, 0x0, 0x8, 0x2].iter().enumerate() {
                    block[48 + 2 * i + 1] = block[48 + 2 * i + 1] & 0x0f | bits << 4;
                }
            }
            _ => {}
        }
    }
    bytes
}

/// Where a block has halves.
pub(crate) const fn halves(ty: GgmlType) -> &'static [usize] {
    match ty {
        GgmlType::Q4_1 | GgmlType::Q5_1 | GgmlType::Q4_K | GgmlType::Q5_K => &[0, 2],
        GgmlType::Q2_K => &[80, 82],
        GgmlType::Q3_K => &[108],
        GgmlType::Q6_K => &[208],
        GgmlType::TQ1_0 => &[52],
        GgmlType::TQ2_0 => &[64],
        GgmlType::F32 | GgmlType::BF16 | GgmlType::MXFP4 | GgmlType::NVFP4 | GgmlType::IQ1_M => &[],
        _ => &[0],
    }
}

/// Where a block has the scale of its offsets or minima, if it has them.
pub(crate) const fn minimum(ty: GgmlType) -> Option<usize> {
    match ty {
        GgmlType::Q4_1 | GgmlType::Q5_1 | GgmlType::Q4_K | GgmlType::Q5_K => Some(2),
        GgmlType::Q2_K => Some(82),
        _ => None,
    }
}
