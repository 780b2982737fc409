//! 16-bit floats to f32 by bit arithmetic: branch-free, so that loops over rows vectorise, and the same on every target.

/// The f32 of an IEEE half: exact for all finite values, subnormals included; infinities and NaNs stay what they are.
#[inline]
#[must_use]
pub const fn f16_to_f32(bits: u16) -> f32 {
    let magnitude = ((bits & 0x7fff) as u32) << 13;
    // The exponent field is that of a bias of 15 read with a bias of 127: 2^112 puts it right, subnormals included.
    let scaled = f32::from_bits(magnitude) * f32::from_bits(0x7780_0000);
    let special = if magnitude >= 0x0f80_0000 { 0x7f80_0000 } else { 0 };
    let sign = ((bits & 0x8000) as u32) << 16;
    f32::from_bits(scaled.to_bits() | special | sign)
}

/// The f32 of a bfloat16: its upper half.
#[inline]
#[must_use]
pub const fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits((bits as u32) << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_equals_the_reference_conversion() {
        for bits in 0..=u16::MAX {
            let (ours, theirs) = (f16_to_f32(bits), half::f16::from_bits(bits).to_f32_const());
            assert!(
                ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan(),
                "half {bits:#06x}"
            );
        }
    }
}
