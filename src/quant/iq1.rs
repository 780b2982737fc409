//! IQ1_S, IQ1_M: 256 elements a block, in groups of 8 that are one of 2048 ternary points, shifted by an eighth.

use super::Block;
use super::grids;
use super::half_float::f16_to_f32;

/// 1.56 bits an element: a 3-bit scale and one shift for 32 elements.
#[derive(Debug, Clone, Copy, bytemuck::AnyBitPattern)]
#[repr(C)]
pub struct BlockIq1S {
    /// Scale, an IEEE half.
    pub d: [u8; 2],
    /// Low 8 bits of the index, per group.
    pub qs: [u8; 32],
    /// Per 32 elements a little-endian number: four times the upper 3 bits of the index, the scale, the sign of the shift.
    pub qh: [[u8; 2]; 8],
}

/// 1.75 bits an element: a 3-bit scale for 16 elements and a shift for 8.
#[derive(Debug, Clone, Copy, bytemuck::AnyBitPattern)]
#[repr(C)]
pub struct BlockIq1M {
    /// Low 8 bits of the index, per group.
    pub qs: [u8; 32],
    /// Per two groups: upper 3 bits of the index and the sign of the shift, four bits each.
    pub qh: [u8; 16],
    /// Four little-endian numbers: four 3-bit scales, and on top a quarter of the IEEE half that scales the block.
    pub scales: [[u8; 2]; 4],
}

const _: () = assert!(size_of::<BlockIq1S>() == 50, "stored size");
const _: () = assert!(size_of::<BlockIq1M>() == 56, "stored size");

impl Block<256> for BlockIq1S {
    fn decode(&self, out: &mut [f32; 256]) {
        let d = f16_to_f32(u16::from_le_bytes(self.d));
        for (group, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let qh = u16::from_le_bytes(self.qh[group / 4]);
            let index = usize::from(self.qs[group]) | usize::from(qh >> (3 * (group % 4)) & 7) << 8;
            point(out, d * f32::from(2 * (qh >> 12 & 7) + 1), index, qh >> 15 == 1);
        }
    }
}

impl Block<256> for BlockIq1M {
    fn decode(&self, out: &mut [f32; 256]) {
        let scales = self.scales.map(u16::from_le_bytes);
        let d = f16_to_f32(scales.iter().rev().fold(0, |d, s| d << 4 | s >> 12));
        for (group, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let qh = self.qh[group / 2] >> (4 * (group % 2)) & 15;
            let index = usize::from(self.qs[group]) | usize::from(qh & 7) << 8;
            let three_bits = scales[group / 8] >> (3 * (group % 8 / 2)) & 7;
            point(out, d * f32::from(2 * three_bits + 1), index, qh >> 3 == 1);
        }
    }
}

fn point(out: &mut [f32; 8], scale: f32, index: usize, down: bool) {
    let digits = grids::IQ1_S[index];
    let shift = if down { -0.125 } else { 0.125 };
    for (j, x) in out.iter_mut().enumerate() {
        *x = scale * (f32::from((digits >> (2 * j) & 3) as i8 - 1) + shift);
    }
}
