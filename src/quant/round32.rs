//! The formats that round to a grid of equal steps, 32 elements a block: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0.
//!
//! `x = d * (q - offset)` or `x = q * d + m`. In the 4- and 5-bit formats byte `j` of `qs` holds element `j` in its
//! low half and element `j + 16` in its high half.

use super::Block;
use super::half_float::f16_to_f32;

/// `x = d * (q - 8)`, q of 4 bits.
#[derive(Debug, Clone, Copy, bytemuck::AnyBitPattern)]
#[repr(C)]
pub struct BlockQ4_0 {
    /// Scale, an IEEE half.
    pub d: [u8; 2],
    /// Two elements a byte.
    pub qs: [u8; 16],
}

/// `x = q * d + m`, q of 4 bits.
#[derive(Debug, Clone, Copy, bytemuck::AnyBitPattern)]
#[repr(C)]
pub struct BlockQ4_1 {
    /// Scale, an IEEE half.
    pub d: [u8; 2],
    /// Minimum, an IEEE half.
    pub m: [u8; 2],
    /// Two elements a byte.
    pub qs: [u8; 16],
}

/// `x = d * (q - 16)`, q of 5 bits.
#[derive(Debug, Clone, Copy, bytemuck::AnyBitPattern)]
#[repr(C)]
pub struct BlockQ5_0 {
    /// Scale, an IEEE half.
    pub d: [u8; 2],
    /// Bit 4 of element `j` is bit `j` of this little-endian number.
    pub qh: [u8; 4],
    /// Bits 0 to 3, two elements a byte.
    pub qs: [u8; 16],
}

/// `x = q * d + m`, q of 5 bits.
#[derive(Debug, Clone, Copy, bytemuck::AnyBitPattern)]
#[repr(C)]
pub struct BlockQ5_1 {
    /// Scale, an IEEE half.
    pub d: [u8; 2],
    /// Minimum, an IEEE half.
    pub m: [u8; 2],
    /// Bit 4 of element `j` is bit `j` of this little-endian number.
    pub qh: [u8; 4],
    /// Bits 0 to 3, two elements a byte.
    pub qs: [u8; 16],
}

/// `x = q * d`, q a signed byte.
#[derive(Debug, Clone, Copy, bytemuck::AnyBitPattern)]
#[repr(C)]
pub struct BlockQ8_0 {
    /// Scale, an IEEE half.
    pub d: [u8; 2],
    /// The elements.
    pub qs: [i8; 32],
}

const _: () = assert!(size_of::<BlockQ4_0>() == 18, "stored size");
const _: () = assert!(size_of::<BlockQ4_1>() == 20, "stored size");
const _: () = assert!(size_of::<BlockQ5_0>() == 22, "stored size");
const _: () = assert!(size_of::<BlockQ5_1>() == 24, "stored size");
const _: () = assert!(size_of::<BlockQ8_0>() == 34, "stored size");

impl Block<32> for BlockQ4_0 {
    #[inline]
    fn decode(&self, out: &mut [f32; 32]) {
        let d = f16_to_f32(u16::from_le_bytes(self.d));
        for (j, q) in self.qs.iter().enumerate() {
            out[j] = f32::from((q & 15) as i8 - 8) * d;
            out[j + 16] = f32::from((q >> 4) as i8 - 8) * d;
        }
    }
}

impl Block<32> for BlockQ4_1 {
    #[inline]
    fn decode(&self, out: &mut [f32; 32]) {
        let (d, m) =
            (f16_to_f32(u16::from_le_bytes(self.d)), f16_to_f32(u16::from_le_bytes(self.m)));
        for (j, q) in self.qs.iter().enumerate() {
            out[j] = f32::from(q & 15) * d + m;
            out[j + 16] = f32::from(q >> 4) * d + m;
        }
    }
}

impl Block<32> for BlockQ5_0 {
    #[inline]
    fn decode(&self, out: &mut [f32; 32]) {
        let (d, qh) = (f16_to_f32(u16::from_le_bytes(self.d)), u32::from_le_bytes(self.qh));
        for (j, q) in self.qs.iter().enumerate() {
            out[j] = f32::from((q & 15 | fifth_bit(qh, j)) as i8 - 16) * d;
            out[j + 16] = f32::from((q >> 4 | fifth_bit(qh, j + 16)) as i8 - 16) * d;
        }
    }
}

impl Block<32> for BlockQ5_1 {
    #[inline]
    fn decode(&self, out: &mut [f32; 32]) {
        let (d, m) =
            (f16_to_f32(u16::from_le_bytes(self.d)), f16_to_f32(u16::from_le_bytes(self.m)));
        let qh = u32::from_le_bytes(self.qh);
        for (j, q) in self.qs.iter().enumerate() {
            out[j] = f32::from(q & 15 | fifth_bit(qh, j)) * d + m;
            out[j + 16] = f32::from(q >> 4 | fifth_bit(qh, j + 16)) * d + m;
        }
    }
}

impl Block<32> for BlockQ8_0 {
    #[inline]
    fn decode(&self, out: &mut [f32; 32]) {
        let d = f16_to_f32(u16::from_le_bytes(self.d));
        for (x, q) in out.iter_mut().zip(self.qs) {
            *x = f32::from(q) * d;
        }
    }
}

fn fifth_bit(qh: u32, j: usize) -> u8 {
    ((qh >> j & 1) << 4) as u8
}
