//! Plain numbers: F32, F16, BF16. A block is one element.

use super::Block;
use super::half_float::{bf16_to_f32, f16_to_f32};

/// One little-endian f32.
#[derive(Debug, Clone, Copy, bytemuck::AnyBitPattern)]
#[repr(C)]
pub struct BlockF32([u8; 4]);

/// One little-endian IEEE half.
#[derive(Debug, Clone, Copy, bytemuck::AnyBitPattern)]
#[repr(C)]
pub struct BlockF16([u8; 2]);

/// One little-endian bfloat16.
#[derive(Debug, Clone, Copy, bytemuck::AnyBitPattern)]
#[repr(C)]
pub struct BlockBf16([u8; 2]);

impl Block<1> for BlockF32 {
    #[inline]
    fn decode(&self, out: &mut [f32; 1]) {
        out[0] = f32::from_le_bytes(self.0);
    }
}

impl Block<1> for BlockF16 {
    #[inline]
    fn decode(&self, out: &mut [f32; 1]) {
        out[0] = f16_to_f32(u16::from_le_bytes(self.0));
    }
}

impl Block<1> for BlockBf16 {
    #[inline]
    fn decode(&self, out: &mut [f32; 1]) {
        out[0] = bf16_to_f32(u16::from_le_bytes(self.0));
    }
}
