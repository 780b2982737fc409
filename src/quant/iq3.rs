//! IQ3_XXS, IQ3_S: 256 elements a block, in groups of 4 that are a point of a lattice with signs.

use super::block::{Block, even_signs, flip};
use super::grids;
use super::half_float::f16_to_f32;

/// 3.06 bits an element: 256 points, 7 sign bits for 8 elements, one 4-bit scale for 32.
#[derive(Debug, Clone, Copy, bytemuck::AnyBitPattern)]
#[repr(C)]
pub struct BlockIq3Xxs {
    /// Scale, an IEEE half.
    pub d: [u8; 2],
    /// Index of the point, per group.
    pub qs: [u8; 64],
    /// Per 32 elements a little-endian number: four times 7 sign bits, the scale on top.
    pub scales_and_signs: [[u8; 4]; 8],
}

/// 3.44 bits an element: 512 points, 8 sign bits for 8 elements, one 4-bit scale for 32.
#[derive(Debug, Clone, Copy, bytemuck::AnyBitPattern)]
#[repr(C)]
pub struct BlockIq3S {
    /// Scale, an IEEE half.
    pub d: [u8; 2],
    /// Low 8 bits of the index, per group.
    pub qs: [u8; 64],
    /// Bit 8 of the index: bit `l` of byte `ib` belongs to group `8 ib + l`.
    pub qh: [u8; 8],
    /// Signs, per 8 elements.
    pub signs: [u8; 32],
    /// Per 64 elements: the scale of the first 32 in the low half, of the others in the high half.
    pub scales: [u8; 4],
}

const _: () = assert!(size_of::<BlockIq3Xxs>() == 98, "stored size");
const _: () = assert!(size_of::<BlockIq3S>() == 110, "stored size");

impl Block<256> for BlockIq3Xxs {
    fn decode(&self, out: &mut [f32; 256]) {
        let d = f16_to_f32(u16::from_le_bytes(self.d));
        for (group, out) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let tail = u32::from_le_bytes(self.scales_and_signs[group / 8]);
            let scale = d * (0.5 + f32::from((tail >> 28) as u8)) * 0.5;
            let signs =
                even_signs((tail >> (7 * (group % 8 / 2)) & 127) as u8) >> (4 * (group % 2));
            let digits = grids::IQ3_XXS[usize::from(self.qs[group])];
            for (j, x) in out.iter_mut().enumerate() {
                *x = flip(scale * XXS_MAGNITUDES[usize::from(digits >> (3 * j) & 7)], signs, j);
            }
        }
    }
}

impl Block<256> for BlockIq3S {
    fn decode(&self, out: &mut [f32; 256]) {
        let d = f16_to_f32(u16::from_le_bytes(self.d));
        for (group, out) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let four_bits = self.scales[group / 16] >> (4 * (group % 16 / 8)) & 15;
            let scale = d * f32::from(1 + 2 * four_bits);
            let high = usize::from(self.qh[group / 8] >> (group % 8) & 1);
            let digits = grids::IQ3_S[usize::from(self.qs[group]) | high << 8];
            let signs = self.signs[group / 2] >> (4 * (group % 2));
            for (j, x) in out.iter_mut().enumerate() {
                *x = flip(scale * f32::from(1 + 2 * (digits >> (3 * j) & 7)), signs, j);
            }
        }
    }
}

/// What the digits of a point of IQ3_XXS stand for; those of IQ3_S are the odd numbers.
const XXS_MAGNITUDES: [f32; 8] = [4.0, 12.0, 20.0, 28.0, 36.0, 44.0, 52.0, 62.0];
