//! IQ4_NL, IQ4_XS: 4 bits an element that index a table of unequal steps.

use super::Block;
use super::half_float::f16_to_f32;

/// `x = d * LEVELS[q]`, 32 elements a block, laid out as Q4_0.
#[derive(Debug, Clone, Copy, bytemuck::AnyBitPattern)]
#[repr(C)]
pub struct BlockIq4Nl {
    /// Scale, an IEEE half.
    pub d: [u8; 2],
    /// Byte `j`: element `j` in the low half, element `j + 16` in the high half.
    pub qs: [u8; 16],
}

/// `x = d * (sc - 32) * LEVELS[q]`, 256 elements a block in sub-blocks of 32.
#[derive(Debug, Clone, Copy, bytemuck::AnyBitPattern)]
#[repr(C)]
pub struct BlockIq4Xs {
    /// Scale of the scales, an IEEE half.
    pub d: [u8; 2],
    /// Upper 2 bits of the 6-bit scales: bits `2 sub` of this little-endian number.
    pub scales_h: [u8; 2],
    /// Lower 4 bits of the scales, two a byte.
    pub scales_l: [u8; 4],
    /// Per sub-block 16 bytes, laid out as in [`BlockIq4Nl`].
    pub qs: [[u8; 16]; 8],
}

const _: () = assert!(size_of::<BlockIq4Nl>() == 18, "stored size");
const _: () = assert!(size_of::<BlockIq4Xs>() == 136, "stored size");

impl Block<32> for BlockIq4Nl {
    #[inline]
    fn decode(&self, out: &mut [f32; 32]) {
        levels(out, f16_to_f32(u16::from_le_bytes(self.d)), &self.qs);
    }
}

impl Block<256> for BlockIq4Xs {
    fn decode(&self, out: &mut [f32; 256]) {
        let (d, scales_h) =
            (f16_to_f32(u16::from_le_bytes(self.d)), u16::from_le_bytes(self.scales_h));
        for (sub, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let low = self.scales_l[sub / 2] >> (4 * (sub % 2)) & 15;
            let high = (scales_h >> (2 * sub) & 3) as u8;
            levels(out, d * f32::from((low | high << 4) as i8 - 32), &self.qs[sub]);
        }
    }
}

fn levels(out: &mut [f32; 32], scale: f32, qs: &[u8; 16]) {
    for (j, q) in qs.iter().enumerate() {
        out[j] = scale * f32::from(LEVELS[usize::from(q & 15)]);
        out[j + 16] = scale * f32::from(LEVELS[usize::from(q >> 4)]);
    }
}

/// The table of both formats: finer steps near zero.
pub(crate) const LEVELS: [i8; 16] =
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];
