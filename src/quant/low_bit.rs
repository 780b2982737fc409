//! Q1_0 and Q2_0: one or two bits an element, in order, lowest bits first.

use super::Block;
use super::half_float::f16_to_f32;

/// `x = d` or `x = -d`, 128 elements a block.
#[derive(Debug, Clone, Copy, bytemuck::AnyBitPattern)]
#[repr(C)]
pub struct BlockQ1_0 {
    /// Scale, an IEEE half.
    pub d: [u8; 2],
    /// Bit `j % 8` of byte `j / 8` is set where element `j` is positive.
    pub qs: [u8; 16],
}

/// `x = d * (q - 1)`, q of 2 bits, 64 elements a block.
#[derive(Debug, Clone, Copy, bytemuck::AnyBitPattern)]
#[repr(C)]
pub struct BlockQ2_0 {
    /// Scale, an IEEE half.
    pub d: [u8; 2],
    /// Four elements a byte.
    pub qs: [u8; 16],
}

const _: () = assert!(size_of::<BlockQ1_0>() == 18, "stored size");
const _: () = assert!(size_of::<BlockQ2_0>() == 18, "stored size");

impl Block<128> for BlockQ1_0 {
    #[inline]
    fn decode(&self, out: &mut [f32; 128]) {
        let d = f16_to_f32(u16::from_le_bytes(self.d));
        for (j, x) in out.iter_mut().enumerate() {
            *x = if self.qs[j / 8] >> (j % 8) & 1 == 1 { d } else { -d };
        }
    }
}

impl Block<64> for BlockQ2_0 {
    #[inline]
    fn decode(&self, out: &mut [f32; 64]) {
        let d = f16_to_f32(u16::from_le_bytes(self.d));
        for (j, x) in out.iter_mut().enumerate() {
            *x = f32::from((self.qs[j / 4] >> (2 * (j % 4)) & 3) as i8 - 1) * d;
        }
    }
}
