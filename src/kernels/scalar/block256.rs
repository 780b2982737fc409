//! The integer kernels of formats with blocks of 256: integer scales, for some minima, of 16 sub-blocks of 16 (a scale of
//! 32 elements counts for two). The scales are part of the integer sum.
//!
//! Bounds of a block's sum, |x| <= 127: Q2_K 256*3*15*127 = 1.5e6, Q3_K 256*4*32*127 = 4.2e6, Q4_K 256*15*63*127 = 3.1e7,
//! Q5_K 256*31*63*127 = 6.4e7, Q6_K 256*32*128*127 = 1.3e8, IQ4_XS 256*127*32*127 = 1.3e8: all below 2^31. The minima
//! stay below 16*63*2032 = 2.1e6.

use super::block32::{half, nibbles};
use super::matmul::{FastBlock, XBlock, dot16};
use crate::quant::{
    BlockIq4Xs, BlockQ2K, BlockQ3K, BlockQ4K, BlockQ5K, BlockQ6K, LEVELS, scale_min_k4,
};

/// `x = d scale q`: `acc += isum * (d_w * d_x)`.
pub(super) struct Scaled {
    q: [i8; 256],
    scales: [i32; 16],
    d: f32,
}

/// `x = d scale q - dmin min`: `acc += isum * (d_w * d_x)`, then `acc -= minsum * (dmin * d_x)`.
pub(super) struct WithMinima {
    scaled: Scaled,
    minima: [i32; 16],
    dmin: f32,
}

impl Scaled {
    #[inline]
    fn add(&self, acc: f32, x: &XBlock<'_, 256>) -> f32 {
        let mut sum = 0;
        let subs = self.q.as_chunks::<16>().0.iter().zip(x.qs.as_chunks::<16>().0);
        for ((q, x), scale) in subs.zip(self.scales) {
            sum += scale * dot16(q, x);
        }
        acc + sum as f32 * (self.d * x.d)
    }
}

impl WithMinima {
    #[inline]
    fn add(&self, acc: f32, x: &XBlock<'_, 256>) -> f32 {
        let acc = self.scaled.add(acc, x);
        let sum: i32 = self.minima.iter().zip(x.sums).map(|(min, sum)| min * i32::from(*sum)).sum();
        acc - sum as f32 * (self.dmin * x.d)
    }
}

macro_rules! format {
    ($name:ident, $stored:ty, $kind:ident, $unpack:expr) => {
        #[doc = concat!("The kernel of [`", stringify!($stored), "`].")]
        pub(super) struct $name($kind);

        impl FastBlock<256> for $name {
            type Stored = $stored;

            #[inline]
            fn unpack(stored: &$stored) -> Self {
                let unpack: fn(&$stored) -> $kind = $unpack;
                Self(unpack(stored))
            }

            #[inline]
            fn add(&self, acc: f32, x: &XBlock<'_, 256>) -> f32 {
                self.0.add(acc, x)
            }
        }
    };
}

format!(Q2K, BlockQ2K, WithMinima, |b| WithMinima {
    scaled: Scaled {
        q: two_bits(&b.qs).map(|q| q as i8),
        scales: b.scales.map(|s| i32::from(s & 15)),
        d: half(b.d),
    },
    minima: b.scales.map(|s| i32::from(s >> 4)),
    dmin: half(b.dmin),
});
format!(Q3K, BlockQ3K, Scaled, |b| {
    let q = two_bits(&b.qs);
    let third = |i: usize| (b.hmask[i % 32] >> (i / 32) & 1) << 2;
    let low = |sub: usize| b.scales[sub % 8] >> (4 * (sub / 8)) & 15;
    let high = |sub: usize| b.scales[8 + sub % 4] >> (2 * (sub / 4)) & 3;
    Scaled {
        q: core::array::from_fn(|i| (q[i] | third(i)) as i8 - 4),
        scales: core::array::from_fn(|sub| i32::from(low(sub) | high(sub) << 4) - 32),
        d: half(b.d),
    }
});
format!(Q4K, BlockQ4K, WithMinima, |b| WithMinima {
    scaled: Scaled {
        q: core::array::from_fn(|i| k4_nibble(&b.qs, i) as i8),
        scales: core::array::from_fn(|sub| i32::from(scale_min_k4(&b.scales, sub / 2).0)),
        d: half(b.d),
    },
    minima: core::array::from_fn(|sub| i32::from(scale_min_k4(&b.scales, sub / 2).1)),
    dmin: half(b.dmin),
});
format!(Q5K, BlockQ5K, WithMinima, |b| {
    let fifth = |i: usize| (b.qh[i % 32] >> (i / 32) & 1) << 4;
    WithMinima {
        scaled: Scaled {
            q: core::array::from_fn(|i| (k4_nibble(&b.qs, i) | fifth(i)) as i8),
            scales: core::array::from_fn(|sub| i32::from(scale_min_k4(&b.scales, sub / 2).0)),
            d: half(b.d),
        },
        minima: core::array::from_fn(|sub| i32::from(scale_min_k4(&b.scales, sub / 2).1)),
        dmin: half(b.dmin),
    }
});
format!(Q6K, BlockQ6K, Scaled, |b| {
    // Element i: half i/128, quarter k = i/32 % 4 of it, byte l = i % 32.
    let low = |i: usize| b.ql[64 * (i / 128) + i % 64] >> (4 * (i / 64 % 2)) & 15;
    let high = |i: usize| b.qh[32 * (i / 128) + i % 32] >> (2 * (i / 32 % 4)) & 3;
    Scaled {
        q: core::array::from_fn(|i| (low(i) | high(i) << 4) as i8 - 32),
        scales: b.scales.map(i32::from),
        d: half(b.d),
    }
});
format!(Iq4Xs, BlockIq4Xs, Scaled, |b| {
    let scales_h = u16::from_le_bytes(b.scales_h);
    let scale = |sub: usize| {
        let low = i32::from(b.scales_l[sub / 2] >> (4 * (sub % 2)) & 15);
        low + (i32::from(scales_h >> (2 * sub) & 3) << 4) - 32
    };
    let mut q = [0; 256];
    for (q, qs) in q.as_chunks_mut::<32>().0.iter_mut().zip(&b.qs) {
        *q = nibbles(qs).map(|q| LEVELS[usize::from(q)]);
    }
    Scaled { q, scales: core::array::from_fn(|sub| scale(sub / 2)), d: half(b.d) }
});

/// Per 128 elements 32 bytes; bits `2k` of byte `l` are element `32k + l`.
#[inline]
fn two_bits(qs: &[u8; 64]) -> [u8; 256] {
    core::array::from_fn(|i| qs[32 * (i / 128) + i % 32] >> (2 * (i / 32 % 4)) & 3)
}

/// Per 64 elements 32 bytes: the low halves, then the high halves.
#[inline]
fn k4_nibble(qs: &[u8; 128], i: usize) -> u8 {
    qs[32 * (i / 64) + i % 32] >> (4 * (i / 32 % 2)) & 15
}
