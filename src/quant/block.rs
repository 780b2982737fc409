//! What every block struct provides, and the one entry that decodes a row of any format.

use super::{
    BlockBf16, BlockF16, BlockF32, BlockIq1M, BlockIq1S, BlockIq2S, BlockIq2Xs, BlockIq2Xxs,
    BlockIq3S, BlockIq3Xxs, BlockIq4Nl, BlockIq4Xs, BlockMxfp4, BlockNvfp4, BlockQ1_0, BlockQ2_0,
    BlockQ2K, BlockQ3K, BlockQ4_0, BlockQ4_1, BlockQ4K, BlockQ5_0, BlockQ5_1, BlockQ5K, BlockQ6K,
    BlockQ8_0, BlockTq1_0, BlockTq2_0, GgmlType,
};

/// A block of `N` elements as it is stored: alignment 1, any bytes are a valid block.
pub trait Block<const N: usize>: bytemuck::AnyBitPattern {
    /// Decodes all elements, in f32 arithmetic in the order that ggml has.
    fn decode(&self, out: &mut [f32; N]);
}

/// Decodes a row (or several adjacent rows) of format `ty`: `out` in elements, `bytes` in whole blocks.
///
/// # Panics
/// If `bytes` is not exactly the stored size of `out.len()` elements: the caller has checked the tensor's size.
pub fn dequantize_row(ty: GgmlType, bytes: &[u8], out: &mut [f32]) {
    assert_eq!(
        ty.row_bytes(out.len() as u64),
        Some(bytes.len() as u64),
        "{ty}: bytes do not match {} elements",
        out.len()
    );
    match ty {
        GgmlType::F32 => blocks::<1, BlockF32>(bytes, out),
        GgmlType::F16 => blocks::<1, BlockF16>(bytes, out),
        GgmlType::BF16 => blocks::<1, BlockBf16>(bytes, out),
        GgmlType::Q4_0 => blocks::<32, BlockQ4_0>(bytes, out),
        GgmlType::Q4_1 => blocks::<32, BlockQ4_1>(bytes, out),
        GgmlType::Q5_0 => blocks::<32, BlockQ5_0>(bytes, out),
        GgmlType::Q5_1 => blocks::<32, BlockQ5_1>(bytes, out),
        GgmlType::Q8_0 => blocks::<32, BlockQ8_0>(bytes, out),
        GgmlType::Q2_K => blocks::<256, BlockQ2K>(bytes, out),
        GgmlType::Q3_K => blocks::<256, BlockQ3K>(bytes, out),
        GgmlType::Q4_K => blocks::<256, BlockQ4K>(bytes, out),
        GgmlType::Q5_K => blocks::<256, BlockQ5K>(bytes, out),
        GgmlType::Q6_K => blocks::<256, BlockQ6K>(bytes, out),
        GgmlType::IQ2_XXS => blocks::<256, BlockIq2Xxs>(bytes, out),
        GgmlType::IQ2_XS => blocks::<256, BlockIq2Xs>(bytes, out),
        GgmlType::IQ3_XXS => blocks::<256, BlockIq3Xxs>(bytes, out),
        GgmlType::IQ1_S => blocks::<256, BlockIq1S>(bytes, out),
        GgmlType::IQ4_NL => blocks::<32, BlockIq4Nl>(bytes, out),
        GgmlType::IQ3_S => blocks::<256, BlockIq3S>(bytes, out),
        GgmlType::IQ2_S => blocks::<256, BlockIq2S>(bytes, out),
        GgmlType::IQ4_XS => blocks::<256, BlockIq4Xs>(bytes, out),
        GgmlType::IQ1_M => blocks::<256, BlockIq1M>(bytes, out),
        GgmlType::TQ1_0 => blocks::<256, BlockTq1_0>(bytes, out),
        GgmlType::TQ2_0 => blocks::<256, BlockTq2_0>(bytes, out),
        GgmlType::MXFP4 => blocks::<32, BlockMxfp4>(bytes, out),
        GgmlType::NVFP4 => blocks::<64, BlockNvfp4>(bytes, out),
        GgmlType::Q1_0 => blocks::<128, BlockQ1_0>(bytes, out),
        GgmlType::Q2_0 => blocks::<64, BlockQ2_0>(bytes, out),
    }
}

fn blocks<const N: usize, B: Block<N>>(bytes: &[u8], out: &mut [f32]) {
    let (out, _) = out.as_chunks_mut::<N>();
    for (block, out) in bytemuck::cast_slice::<u8, B>(bytes).iter().zip(out) {
        block.decode(out);
    }
}

/// Sets bit 7 of seven stored sign bits so that the number of ones is even: the IQ2 and IQ3 formats leave it out.
pub(super) const fn even_signs(seven: u8) -> u8 {
    seven | ((seven.count_ones() as u8 & 1) << 7)
}

/// `x` with its sign flipped if bit `j` of `signs` is set: exactly a multiplication by -1.
#[inline]
pub(super) fn flip(x: f32, signs: u8, j: usize) -> f32 {
    if signs >> j & 1 == 1 { -x } else { x }
}
