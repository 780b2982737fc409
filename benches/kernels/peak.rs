//! What a build can multiply at most: the instructions it multiplies with, on registers and nothing else, in as many chains as
//! keep the processor's multipliers busy. Every function gives the products it made.

use core::hint::black_box;

#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
pub(crate) use scalar::{bytes, floats};
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(crate) use simd128::{bytes, floats};

/// Turns of a loop, so many that its beginning and end count for nothing.
const TURNS: usize = 4096;
/// Chains of f32: two instructions of 3 or 4 cycles each, of which two or four are begun in a cycle.
const FLOATS: usize = 12;

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod simd128 {
    use core::arch::wasm32::*;

    use super::{FLOATS, TURNS, black_box};

    /// Chains of sums; they and what they are multiplied with must fit the 15 registers that V8 gives out.
    #[cfg(target_feature = "relaxed-simd")]
    const CHAINS: usize = 12;
    #[cfg(not(target_feature = "relaxed-simd"))]
    const CHAINS: usize = 8;

    /// 16 products and the sum so far.
    #[cfg(target_feature = "relaxed-simd")]
    #[inline(always)]
    fn step(sum: v128, [x, w]: [v128; 2]) -> v128 {
        i32x4_relaxed_dot_i8x16_i7x16_add(x, w, sum)
    }

    /// The same with widened activations. The sums are the weights of the next turn: what does not change is computed once.
    #[cfg(not(target_feature = "relaxed-simd"))]
    #[inline(always)]
    fn step(sum: v128, [low, high]: [v128; 2]) -> v128 {
        let low = i32x4_dot_i16x8(i16x8_extend_low_i8x16(sum), low);
        let high = i32x4_dot_i16x8(i16x8_extend_high_i8x16(sum), high);
        i32x4_add(i32x4_add(low, high), sum)
    }

    pub(crate) fn bytes() -> usize {
        let with = black_box([i8x16_splat(3), i8x16_splat(5)]);
        let mut sums = black_box([i32x4(7, 11, 13, 17); CHAINS]);
        for _ in 0..TURNS {
            for sum in &mut sums {
                *sum = step(*sum, with);
            }
        }
        black_box(sums);
        TURNS * CHAINS * 16
    }

    pub(crate) fn floats() -> usize {
        let [factor, term] = black_box([f32x4_splat(0.5), f32x4_splat(1.0)]);
        let mut sums = black_box([f32x4_splat(3.0); FLOATS]);
        for _ in 0..TURNS {
            for sum in &mut sums {
                *sum = f32x4_add(f32x4_mul(*sum, factor), term);
            }
        }
        black_box(sums);
        TURNS * FLOATS * 4
    }
}

#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
mod scalar {
    use super::{FLOATS, TURNS, black_box};

    /// Numbers that the compiler puts into one vector, where it has vectors.
    const LANES: usize = if cfg!(target_arch = "wasm32") { 1 } else { 4 };

    /// What the compiler makes of the kernels' own loop over blocks of 32, in the nearest cache.
    pub(crate) fn bytes() -> usize {
        let [w, x] = black_box([[[3_i8; 32]; 128], [[5; 32]; 128]]);
        for _ in 0..TURNS / 128 {
            let blocks = black_box(&w).iter().zip(black_box(&x));
            black_box(blocks.map(|(w, x)| dot32(w, x)).sum::<i32>());
        }
        TURNS * 32
    }

    #[inline(always)]
    fn dot32(w: &[i8; 32], x: &[i8; 32]) -> i32 {
        let mut sum = 0;
        for i in 0..32 {
            sum += i32::from(w[i]) * i32::from(x[i]);
        }
        sum
    }

    pub(crate) fn floats() -> usize {
        let [factor, term] = black_box([0.5_f32, 1.0]);
        let mut sums = black_box([[3.0_f32; LANES]; FLOATS]);
        for _ in 0..TURNS {
            for sum in sums.as_flattened_mut() {
                *sum = *sum * factor + term;
            }
        }
        black_box(sums);
        TURNS * FLOATS * LANES
    }
}
