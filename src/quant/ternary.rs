//! TQ1_0 and TQ2_0: ternary elements times one scale, 256 a block.

use super::Block;
use super::half_float::f16_to_f32;

/// 1.69 bits an element: five digits of base 3 in a byte.
///
/// A byte is the fraction `0.d0 d1 d2 d3 d4` in base 3, times 256 and rounded up: digit n is read by multiplying the
/// byte by 3^n modulo 256 and taking the integer part of three times the rest.
#[derive(Debug, Clone, Copy, bytemuck::AnyBitPattern)]
#[repr(C)]
pub struct BlockTq1_0 {
    /// 32 bytes for elements 0 to 159 (digit n of byte m is element `32n + m`), 16 for elements 160 to 239.
    pub qs: [u8; 48],
    /// Elements 240 to 255, four digits a byte.
    pub qh: [u8; 4],
    /// Scale, an IEEE half.
    pub d: [u8; 2],
}

/// 2.06 bits an element: `x = d * (q - 1)`.
#[derive(Debug, Clone, Copy, bytemuck::AnyBitPattern)]
#[repr(C)]
pub struct BlockTq2_0 {
    /// Per 128 elements 32 bytes; bits `2k` of byte `l` are element `32k + l`.
    pub qs: [u8; 64],
    /// Scale, an IEEE half.
    pub d: [u8; 2],
}

const _: () = assert!(size_of::<BlockTq1_0>() == 54, "stored size");
const _: () = assert!(size_of::<BlockTq2_0>() == 66, "stored size");

impl Block<256> for BlockTq1_0 {
    fn decode(&self, out: &mut [f32; 256]) {
        let d = f16_to_f32(u16::from_le_bytes(self.d));
        let runs = [(&self.qs[..32], 5), (&self.qs[32..], 5), (&self.qh[..], 4)];
        let mut out = out.iter_mut();
        for (bytes, n_digits) in runs {
            for power in &POWERS[..n_digits] {
                for (byte, x) in bytes.iter().zip(&mut out) {
                    let digit = (u16::from(byte.wrapping_mul(*power)) * 3) >> 8;
                    *x = f32::from(digit as i8 - 1) * d;
                }
            }
        }
    }
}

impl Block<256> for BlockTq2_0 {
    fn decode(&self, out: &mut [f32; 256]) {
        let d = f16_to_f32(u16::from_le_bytes(self.d));
        for (k, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            for (x, q) in out.iter_mut().zip(&self.qs[32 * (k / 4)..]) {
                *x = f32::from((q >> (2 * (k % 4)) & 3) as i8 - 1) * d;
            }
        }
    }
}

const POWERS: [u8; 5] = [1, 3, 9, 27, 81];
