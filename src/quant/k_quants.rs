//! The K formats: 256 elements a block, in sub-blocks of 16 or 32 with small integer scales (and minima) of their own.

use super::Block;
use super::half_float::f16_to_f32;

/// `x = d * sc * q - dmin * m`, q of 2 bits; 16 sub-blocks of 16.
#[derive(Debug, Clone, Copy, bytemuck::AnyBitPattern)]
#[repr(C)]
pub struct BlockQ2K {
    /// Per sub-block: scale in the low half, minimum in the high half.
    pub scales: [u8; 16],
    /// Per 128 elements 32 bytes; bits `2k` of byte `l` are element `32k + l`.
    pub qs: [u8; 64],
    /// Scale of the scales, an IEEE half.
    pub d: [u8; 2],
    /// Scale of the minima, an IEEE half.
    pub dmin: [u8; 2],
}

/// `x = d * (sc - 32) * q`, q of 3 bits less 4; 16 sub-blocks of 16.
#[derive(Debug, Clone, Copy, bytemuck::AnyBitPattern)]
#[repr(C)]
pub struct BlockQ3K {
    /// Bit 2 of q: bit `k` of byte `l` belongs to element `32k + l`.
    pub hmask: [u8; 32],
    /// Bits 0 and 1 of q, laid out as in [`BlockQ2K`].
    pub qs: [u8; 64],
    /// Sixteen 6-bit scales: low halves in the first 8 bytes, upper 2 bits in the last 4.
    pub scales: [u8; 12],
    /// Scale of the scales, an IEEE half.
    pub d: [u8; 2],
}

/// `x = d * sc * q - dmin * m`, q of 4 bits; 8 sub-blocks of 32.
#[derive(Debug, Clone, Copy, bytemuck::AnyBitPattern)]
#[repr(C)]
pub struct BlockQ4K {
    /// Scale of the scales, an IEEE half.
    pub d: [u8; 2],
    /// Scale of the minima, an IEEE half.
    pub dmin: [u8; 2],
    /// Eight 6-bit scales and minima: [`scale_min_k4`].
    pub scales: [u8; 12],
    /// Per 64 elements 32 bytes: element `l` in the low half of byte `l`, element `32 + l` in the high half.
    pub qs: [u8; 128],
}

/// `x = d * sc * q - dmin * m`, q of 5 bits; 8 sub-blocks of 32.
#[derive(Debug, Clone, Copy, bytemuck::AnyBitPattern)]
#[repr(C)]
pub struct BlockQ5K {
    /// Scale of the scales, an IEEE half.
    pub d: [u8; 2],
    /// Scale of the minima, an IEEE half.
    pub dmin: [u8; 2],
    /// Eight 6-bit scales and minima: [`scale_min_k4`].
    pub scales: [u8; 12],
    /// Bit 4 of q: bit `k` of byte `l` belongs to element `32k + l`.
    pub qh: [u8; 32],
    /// Bits 0 to 3 of q, laid out as in [`BlockQ4K`].
    pub qs: [u8; 128],
}

/// `x = d * sc * (q - 32)`, q of 6 bits; 16 sub-blocks of 16.
#[derive(Debug, Clone, Copy, bytemuck::AnyBitPattern)]
#[repr(C)]
pub struct BlockQ6K {
    /// Bits 0 to 3: per 128 elements 64 bytes, element `l` in the low half of byte `l`, `64 + l` in the high half.
    pub ql: [u8; 128],
    /// Bits 4 and 5: per 128 elements 32 bytes, bits `2k` of byte `l` belong to element `32k + l`.
    pub qh: [u8; 64],
    /// Signed scales of the sub-blocks.
    pub scales: [i8; 16],
    /// Scale of the scales, an IEEE half.
    pub d: [u8; 2],
}

const _: () = assert!(size_of::<BlockQ2K>() == 84, "stored size");
const _: () = assert!(size_of::<BlockQ3K>() == 110, "stored size");
const _: () = assert!(size_of::<BlockQ4K>() == 144, "stored size");
const _: () = assert!(size_of::<BlockQ5K>() == 176, "stored size");
const _: () = assert!(size_of::<BlockQ6K>() == 210, "stored size");

impl Block<256> for BlockQ2K {
    fn decode(&self, out: &mut [f32; 256]) {
        let (d, dmin) =
            (f16_to_f32(u16::from_le_bytes(self.d)), f16_to_f32(u16::from_le_bytes(self.dmin)));
        for (sub, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let (scale, min) =
                (d * f32::from(self.scales[sub] & 15), dmin * f32::from(self.scales[sub] >> 4));
            let (qs, shift) = two_bit_place(&self.qs, sub);
            for (x, q) in out.iter_mut().zip(qs) {
                *x = scale * f32::from(q >> shift & 3) - min;
            }
        }
    }
}

impl Block<256> for BlockQ3K {
    fn decode(&self, out: &mut [f32; 256]) {
        let d = f16_to_f32(u16::from_le_bytes(self.d));
        for (sub, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let low = self.scales[sub % 8] >> (4 * (sub / 8)) & 15;
            let high = self.scales[8 + sub % 4] >> (2 * (sub / 4)) & 3;
            let scale = d * f32::from((low | high << 4) as i8 - 32);
            let (qs, shift) = two_bit_place(&self.qs, sub);
            let hmask = &self.hmask[16 * (sub % 2)..][..16];
            for ((x, q), h) in out.iter_mut().zip(qs).zip(hmask) {
                let high = (h >> (sub / 2) & 1) << 2;
                *x = scale * f32::from((q >> shift & 3 | high) as i8 - 4);
            }
        }
    }
}

impl Block<256> for BlockQ4K {
    fn decode(&self, out: &mut [f32; 256]) {
        let (d, dmin) =
            (f16_to_f32(u16::from_le_bytes(self.d)), f16_to_f32(u16::from_le_bytes(self.dmin)));
        for (sub, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let (sc, m) = scale_min_k4(&self.scales, sub);
            let (scale, min) = (d * f32::from(sc), dmin * f32::from(m));
            let qs = &self.qs[32 * (sub / 2)..][..32];
            for (x, q) in out.iter_mut().zip(qs) {
                *x = scale * f32::from(q >> (4 * (sub % 2)) & 15) - min;
            }
        }
    }
}

impl Block<256> for BlockQ5K {
    fn decode(&self, out: &mut [f32; 256]) {
        let (d, dmin) =
            (f16_to_f32(u16::from_le_bytes(self.d)), f16_to_f32(u16::from_le_bytes(self.dmin)));
        for (sub, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let (sc, m) = scale_min_k4(&self.scales, sub);
            let (scale, min) = (d * f32::from(sc), dmin * f32::from(m));
            let qs = &self.qs[32 * (sub / 2)..][..32];
            for ((x, q), h) in out.iter_mut().zip(qs).zip(&self.qh) {
                let high = (h >> sub & 1) << 4;
                *x = scale * f32::from(q >> (4 * (sub % 2)) & 15 | high) - min;
            }
        }
    }
}

impl Block<256> for BlockQ6K {
    fn decode(&self, out: &mut [f32; 256]) {
        let d = f16_to_f32(u16::from_le_bytes(self.d));
        for (sub, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let scale = d * f32::from(self.scales[sub]);
            let (half, k, l) = (sub / 8, sub % 8 / 2, 16 * (sub % 2));
            let ql = &self.ql[64 * half + 32 * (k % 2) + l..][..16];
            let qh = &self.qh[32 * half + l..][..16];
            for ((x, q), h) in out.iter_mut().zip(ql).zip(qh) {
                let low = q >> (4 * (k / 2)) & 15;
                let high = h >> (2 * k) & 3;
                *x = scale * f32::from((low | high << 4) as i8 - 32);
            }
        }
    }
}

/// The 6-bit scale and minimum of sub-block `j` of 8 in Q4_K and Q5_K: the first four lie in the low bits of bytes
/// 0 to 7, the others in bytes 8 to 11 with their upper 2 bits on top of the first four.
#[inline]
#[must_use]
pub const fn scale_min_k4(scales: &[u8; 12], j: usize) -> (u8, u8) {
    if j < 4 {
        (scales[j] & 63, scales[j + 4] & 63)
    } else {
        let low = scales[j + 4];
        (low & 15 | scales[j - 4] >> 6 << 4, low >> 4 | scales[j] >> 6 << 4)
    }
}

/// The 16 bytes that hold sub-block `sub` of 16 elements at 2 bits each, and by how much to shift them.
fn two_bit_place(qs: &[u8; 64], sub: usize) -> (&[u8], usize) {
    (&qs[32 * (sub / 8) + 16 * (sub % 2)..][..16], 2 * (sub % 8 / 2))
}
