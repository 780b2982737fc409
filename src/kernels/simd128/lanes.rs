//! Loads and stores of vectors through references, so that the kernels need no unsafe code, and the few ways in which
//! lanes change places.
#![allow(
    unsafe_code,
    reason = "vector loads take pointers; here they come from references of the right size"
)]

use core::arch::wasm32::*;

/// 16 bytes of a block, from byte `AT` on.
#[inline(always)]
pub(super) fn load_at<const AT: usize, const N: usize>(block: &[u8; N]) -> v128 {
    const { assert!(AT + 16 <= N, "inside the block") };
    // SAFETY: the bytes read lie inside the block, and wasm loads take any alignment.
    unsafe { v128_load(block.as_ptr().add(AT).cast()) }
}

/// 16 bytes of a block, from byte `at` on.
#[inline(always)]
pub(super) fn load_from<const N: usize>(block: &[u8; N], at: usize) -> v128 {
    assert!(at + 16 <= N, "inside the block");
    // SAFETY: the bytes read lie inside the block, and wasm loads take any alignment.
    unsafe { v128_load(block.as_ptr().add(at).cast()) }
}

/// Eight i16.
#[inline(always)]
pub(super) fn load_i16(from: &[i16; 8]) -> v128 {
    // SAFETY: the reference covers 16 readable bytes.
    unsafe { v128_load(from.as_ptr().cast()) }
}

/// Four i16 from byte `at` of a block on, as i32.
#[inline(always)]
pub(super) fn load_i16x4_from<const N: usize>(block: &[u8; N], at: usize) -> v128 {
    assert!(at + 8 <= N, "inside the block");
    // SAFETY: the bytes read lie inside the block, and wasm loads take any alignment.
    unsafe { i32x4_load_extend_i16x4(block.as_ptr().add(at).cast()) }
}

/// Bytes `AT..AT + 4` of a block in all lanes.
#[inline(always)]
pub(super) fn splat_at<const AT: usize, const N: usize>(block: &[u8; N]) -> v128 {
    const { assert!(AT + 4 <= N, "inside the block") };
    // SAFETY: the bytes read lie inside the block, and wasm loads take any alignment.
    unsafe { v128_load32_splat(block.as_ptr().add(AT).cast()) }
}

/// 16 signed bytes.
#[inline(always)]
pub(super) fn load_i8(from: &[i8; 16]) -> v128 {
    // SAFETY: the reference covers 16 readable bytes, and wasm loads take any alignment.
    unsafe { v128_load(from.as_ptr().cast()) }
}

/// Four f32.
#[inline(always)]
pub(super) fn load_f32(from: &[f32; 4]) -> v128 {
    // SAFETY: the reference covers 16 readable bytes.
    unsafe { v128_load(from.as_ptr().cast()) }
}

/// Four i32.
#[inline(always)]
pub(super) fn load_i32(from: &[i32; 4]) -> v128 {
    // SAFETY: the reference covers 16 readable bytes.
    unsafe { v128_load(from.as_ptr().cast()) }
}

/// Stores four f32.
#[inline(always)]
pub(super) fn store_f32(to: &mut [f32; 4], x: v128) {
    // SAFETY: the reference covers 16 writable bytes and nobody else sees them.
    unsafe { v128_store(to.as_mut_ptr().cast(), x) }
}

/// Stores 16 signed bytes.
#[inline(always)]
pub(super) fn store_i8(to: &mut [i8; 16], x: v128) {
    // SAFETY: the reference covers 16 writable bytes and nobody else sees them.
    unsafe { v128_store(to.as_mut_ptr().cast(), x) }
}

/// Stores eight i16.
#[inline(always)]
pub(super) fn store_i16(to: &mut [i16; 8], x: v128) {
    // SAFETY: the reference covers 16 writable bytes and nobody else sees them.
    unsafe { v128_store(to.as_mut_ptr().cast(), x) }
}

/// Four bytes in all lanes.
#[inline(always)]
pub(super) fn splat_i8x4(from: &[i8; 4]) -> v128 {
    // SAFETY: the reference covers 4 readable bytes, and wasm loads take any alignment.
    unsafe { v128_load32_splat(from.as_ptr().cast()) }
}

/// Each lane in all lanes of a vector of its own.
#[inline(always)]
pub(super) fn splats(x: v128) -> [v128; 4] {
    [
        i32x4_shuffle::<0, 0, 0, 0>(x, x),
        i32x4_shuffle::<1, 1, 1, 1>(x, x),
        i32x4_shuffle::<2, 2, 2, 2>(x, x),
        i32x4_shuffle::<3, 3, 3, 3>(x, x),
    ]
}

/// `[x, 0, 0, 0]`
#[inline(always)]
pub(super) fn load_first(from: &i32) -> v128 {
    // SAFETY: the reference covers 4 readable bytes.
    unsafe { v128_load32_zero(core::ptr::from_ref(from).cast()) }
}

/// Bytes `at..at + 4` of each of four blocks, one block a lane.
#[inline(always)]
pub(super) fn gather_from<const N: usize>(blocks: [&[u8; N]; 4], at: usize) -> v128 {
    assert!(at + 4 <= N, "inside the block");
    let [a, b, c, d] = blocks.map(|block| block.as_ptr());
    // SAFETY: the bytes read lie inside the blocks, and wasm loads take any alignment.
    unsafe {
        let v = v128_load32_zero(a.add(at).cast());
        let v = v128_load32_lane::<1>(v, b.add(at).cast());
        let v = v128_load32_lane::<2>(v, c.add(at).cast());
        v128_load32_lane::<3>(v, d.add(at).cast())
    }
}

/// The sums of the four lanes of each of four vectors of i32.
#[inline(always)]
pub(super) fn sums_i32(a: v128, b: v128, c: v128, d: v128) -> v128 {
    let ab = i32x4_add(i32x4_shuffle::<0, 4, 1, 5>(a, b), i32x4_shuffle::<2, 6, 3, 7>(a, b));
    let cd = i32x4_add(i32x4_shuffle::<0, 4, 1, 5>(c, d), i32x4_shuffle::<2, 6, 3, 7>(c, d));
    i32x4_add(i64x2_shuffle::<0, 2>(ab, cd), i64x2_shuffle::<1, 3>(ab, cd))
}

/// The f32 of the halves in the low 16 bits of each lane; a NaN becomes an infinity. The rest of a lane does not matter.
#[inline(always)]
pub(super) fn halves_low(x: v128) -> v128 {
    halves_high(i32x4_shl(x, 16))
}

/// The f32 of the halves in the high 16 bits of each lane; a NaN becomes an infinity. The rest of a lane does not matter.
#[inline(always)]
pub(super) fn halves_high(x: v128) -> v128 {
    // The arithmetic shift leaves the sign at the top, the exponent field of 5 bits at the foot of that of f32.
    let placed = v128_and(i32x4_shr(x, 3), u32x4_splat(0x8fff_e000));
    let up = f32x4_splat(f32::from_bits(0x7780_0000));
    let down = f32x4_splat(f32::from_bits(0x0780_0000));
    // 2^112 puts the bias right, subnormals included. Another 2^112 sends what had the highest exponent to infinity and
    // everything else no further than f32 reaches.
    f32x4_mul(f32x4_mul(f32x4_mul(placed, up), up), down)
}
