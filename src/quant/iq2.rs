//! IQ2_XXS, IQ2_XS, IQ2_S: 256 elements a block, in groups of 8 that are a point of a lattice with signs.

use super::block::{Block, even_signs, flip};
use super::grids;
use super::half_float::f16_to_f32;

/// 2.06 bits an element: 256 points, 7 sign bits a group, one 4-bit scale for 32 elements.
#[derive(Debug, Clone, Copy, bytemuck::AnyBitPattern)]
#[repr(C)]
pub struct BlockIq2Xxs {
    /// Scale, an IEEE half.
    pub d: [u8; 2],
    /// Per 32 elements: four point indices, then a little-endian number of four times 7 sign bits and the scale on top.
    pub qs: [[u8; 8]; 8],
}

/// 2.31 bits an element: 512 points, 7 sign bits a group, one 4-bit scale for 16 elements.
#[derive(Debug, Clone, Copy, bytemuck::AnyBitPattern)]
#[repr(C)]
pub struct BlockIq2Xs {
    /// Scale, an IEEE half.
    pub d: [u8; 2],
    /// Per group a little-endian number: 9 bits of index, 7 sign bits.
    pub qs: [[u8; 2]; 32],
    /// Per 32 elements: the scale of the first 16 in the low half, of the others in the high half.
    pub scales: [u8; 8],
}

/// 2.56 bits an element: 1024 points, 8 sign bits a group, one 4-bit scale for 16 elements.
#[derive(Debug, Clone, Copy, bytemuck::AnyBitPattern)]
#[repr(C)]
pub struct BlockIq2S {
    /// Scale, an IEEE half.
    pub d: [u8; 2],
    /// Low 8 bits of the index, per group.
    pub qs: [u8; 32],
    /// Signs, per group.
    pub signs: [u8; 32],
    /// Upper 2 bits of the index: bits `2l` of byte `ib` belong to group `4 ib + l`.
    pub qh: [u8; 8],
    /// As in [`BlockIq2Xs`].
    pub scales: [u8; 8],
}

const _: () = assert!(size_of::<BlockIq2Xxs>() == 66, "stored size");
const _: () = assert!(size_of::<BlockIq2Xs>() == 74, "stored size");
const _: () = assert!(size_of::<BlockIq2S>() == 82, "stored size");

impl Block<256> for BlockIq2Xxs {
    fn decode(&self, out: &mut [f32; 256]) {
        let d = f16_to_f32(u16::from_le_bytes(self.d));
        for (group, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let (qs, l) = (&self.qs[group / 4], group % 4);
            let tail = u32::from_le_bytes([qs[4], qs[5], qs[6], qs[7]]);
            let signs = even_signs((tail >> (7 * l) & 127) as u8);
            point(out, scale(d, (tail >> 28) as u8), grids::IQ2_XXS[usize::from(qs[l])], signs);
        }
    }
}

impl Block<256> for BlockIq2Xs {
    fn decode(&self, out: &mut [f32; 256]) {
        let d = f16_to_f32(u16::from_le_bytes(self.d));
        for (group, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let q = u16::from_le_bytes(self.qs[group]);
            let signs = even_signs((q >> 9) as u8);
            point(
                out,
                scale_of(d, &self.scales, group),
                grids::IQ2_XS[usize::from(q & 511)],
                signs,
            );
        }
    }
}

impl Block<256> for BlockIq2S {
    fn decode(&self, out: &mut [f32; 256]) {
        let d = f16_to_f32(u16::from_le_bytes(self.d));
        for (group, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let high = usize::from(self.qh[group / 4] >> (2 * (group % 4)) & 3);
            let index = usize::from(self.qs[group]) | high << 8;
            point(out, scale_of(d, &self.scales, group), grids::IQ2_S[index], self.signs[group]);
        }
    }
}

fn scale_of(d: f32, scales: &[u8; 8], group: usize) -> f32 {
    scale(d, scales[group / 4] >> (4 * (group % 4 / 2)) & 15)
}

fn scale(d: f32, four_bits: u8) -> f32 {
    d * (0.5 + f32::from(four_bits)) * 0.25
}

fn point(out: &mut [f32; 8], scale: f32, digits: u16, signs: u8) {
    for (j, x) in out.iter_mut().enumerate() {
        *x = flip(scale * MAGNITUDES[usize::from(digits >> (2 * j) & 3)], signs, j);
    }
}

/// What the digits of a point stand for; there are three.
const MAGNITUDES: [f32; 4] = [8.0, 25.0, 43.0, 0.0];
