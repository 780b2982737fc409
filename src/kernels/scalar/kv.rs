//! K and V as they are stored.

use half::f16;

use super::quantize::{ROUND, inverse, largest};
use crate::quant::GgmlType;

/// Writes `src` as F32, F16 or Q8_0.
pub fn kv_encode(ty: GgmlType, src: &[f32], dst: &mut [u8]) {
    match ty {
        GgmlType::F32 => {
            dst.as_chunks_mut::<4>().0.iter_mut().zip(src).for_each(|(d, x)| *d = x.to_le_bytes());
        }
        GgmlType::F16 => {
            let dst = dst.as_chunks_mut::<2>().0;
            dst.iter_mut().zip(src).for_each(|(d, x)| *d = half_of(*x).to_le_bytes());
        }
        GgmlType::Q8_0 => {
            for (block, x) in dst.as_chunks_mut::<34>().0.iter_mut().zip(src.as_chunks::<32>().0) {
                encode_q8_0(x, block);
            }
        }
        _ => unreachable!("{ty} is no KV type"),
    }
}

fn half_of(x: f32) -> f16 {
    f16::from_f32_const(x)
}

/// What is stored is rounded by the stored step, a half. It may lie below `max|x| / 127`, by a third where halves are
/// subnormal: then the largest elements saturate.
fn encode_q8_0(x: &[f32; 32], block: &mut [u8; 34]) {
    let d = half_of(largest(x) / 127.0);
    let factor = inverse(d.to_f32_const());
    [block[0], block[1]] = d.to_le_bytes();
    for (q, x) in block[2..].iter_mut().zip(x) {
        // Adding 1.5 * 2^23 leaves the rounded integer in the low bits.
        let shifted = x * factor + ROUND;
        let rounded = shifted.to_bits().wrapping_sub(ROUND.to_bits()) as i32;
        *q = if shifted.is_nan() { 0 } else { rounded.clamp(-127, 127) as u8 };
    }
}
