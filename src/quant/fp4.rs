//! MXFP4 and NVFP4: 4-bit floats (1 sign, 2 exponent, 1 mantissa bit) with an 8-bit scale per sub-block.

use super::Block;

/// OCP microscaling FP4: 32 elements a block, the scale a power of two.
#[derive(Debug, Clone, Copy, bytemuck::AnyBitPattern)]
#[repr(C)]
pub struct BlockMxfp4 {
    /// Exponent of the scale, biased by 127.
    pub e: u8,
    /// Byte `j`: element `j` in the low half, element `j + 16` in the high half.
    pub qs: [u8; 16],
}

/// NVIDIA's FP4: 64 elements a block in sub-blocks of 16.
#[derive(Debug, Clone, Copy, bytemuck::AnyBitPattern)]
#[repr(C)]
pub struct BlockNvfp4 {
    /// Scales of the sub-blocks: unsigned floats of 4 exponent and 3 mantissa bits.
    pub d: [u8; 4],
    /// Per sub-block 8 bytes: element `j` in the low half of byte `j`, element `j + 8` in the high half.
    pub qs: [[u8; 8]; 4],
}

const _: () = assert!(size_of::<BlockMxfp4>() == 17, "stored size");
const _: () = assert!(size_of::<BlockNvfp4>() == 36, "stored size");

impl Block<32> for BlockMxfp4 {
    #[inline]
    fn decode(&self, out: &mut [f32; 32]) {
        let d = half_of_power(self.e);
        for (j, q) in self.qs.iter().enumerate() {
            out[j] = f32::from(DOUBLED[usize::from(q & 15)]) * d;
            out[j + 16] = f32::from(DOUBLED[usize::from(q >> 4)]) * d;
        }
    }
}

impl Block<64> for BlockNvfp4 {
    #[inline]
    fn decode(&self, out: &mut [f32; 64]) {
        for (sub, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let d = half_of_e4m3(self.d[sub]);
            for (j, q) in self.qs[sub].iter().enumerate() {
                out[j] = f32::from(DOUBLED[usize::from(q & 15)]) * d;
                out[j + 8] = f32::from(DOUBLED[usize::from(q >> 4)]) * d;
            }
        }
    }
}

/// `2^(e - 127) / 2`, exact; subnormal for e of 0 and 1.
pub(crate) const fn half_of_power(e: u8) -> f32 {
    if e < 2 { f32::from_bits(0x0020_0000 << e) } else { f32::from_bits((e as u32 - 1) << 23) }
}

/// Half of an unsigned E4M3 float, exact. The bias is 7; the code of a NaN counts as 0, and the top bit is ignored.
pub(crate) const fn half_of_e4m3(code: u8) -> f32 {
    let (exponent, mantissa) = (code as u32 >> 3 & 15, code as u32 & 7);
    match (code, exponent) {
        (0x7f, _) => 0.0,
        (_, 0) => mantissa as f32 * (1.0 / 1024.0),
        _ => f32::from_bits((exponent + 127 - 8) << 23 | mantissa << 20),
    }
}

/// Twice the values of the sixteen codes, so that they are integers.
pub(crate) const DOUBLED: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];
