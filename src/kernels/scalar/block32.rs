//! The integer kernels of formats with blocks of 32: one scale, for some one offset. 32 * 128 * 127 = 520 192 bounds
//! every sum of a block.

use super::matmul::{FastBlock, XBlock, dot16};
use crate::quant::{
    BlockIq4Nl, BlockQ4_0, BlockQ4_1, BlockQ5_0, BlockQ5_1, BlockQ8_0, LEVELS, f16_to_f32,
};

/// `x = d q`, q signed: `acc += isum * (d_w * d_x)`.
pub(super) struct Signed {
    q: [i8; 32],
    d: f32,
}

/// `x = d q + m`, q not negative: `acc += isum * (d_w * d_x)`, then `acc += m * (xsum * d_x)`.
pub(super) struct WithOffset {
    q: [i8; 32],
    d: f32,
    m: f32,
}

impl Signed {
    #[inline]
    fn add(&self, acc: f32, x: &XBlock<'_, 32>) -> f32 {
        acc + dot32(&self.q, x.qs) as f32 * (self.d * x.d)
    }
}

impl WithOffset {
    #[inline]
    fn add(&self, acc: f32, x: &XBlock<'_, 32>) -> f32 {
        let acc = acc + dot32(&self.q, x.qs) as f32 * (self.d * x.d);
        let sum = i32::from(x.sums[0]) + i32::from(x.sums[1]);
        acc + self.m * (sum as f32 * x.d)
    }
}

macro_rules! format {
    ($name:ident, $stored:ty, $kind:ident, $unpack:expr) => {
        #[doc = concat!("The kernel of [`", stringify!($stored), "`].")]
        pub(super) struct $name($kind);

        impl FastBlock<32> for $name {
            type Stored = $stored;

            #[inline]
            fn unpack(stored: &$stored) -> Self {
                let unpack: fn(&$stored) -> $kind = $unpack;
                Self(unpack(stored))
            }

            #[inline]
            fn add(&self, acc: f32, x: &XBlock<'_, 32>) -> f32 {
                self.0.add(acc, x)
            }
        }
    };
}

format!(Q4_0, BlockQ4_0, Signed, |b| Signed {
    q: nibbles(&b.qs).map(|q| q as i8 - 8),
    d: half(b.d)
});
format!(Q4_1, BlockQ4_1, WithOffset, |b| WithOffset {
    q: nibbles(&b.qs).map(|q| q as i8),
    d: half(b.d),
    m: half(b.m)
});
format!(Q5_0, BlockQ5_0, Signed, |b| Signed {
    q: with_fifth_bits(nibbles(&b.qs), b.qh).map(|q| q as i8 - 16),
    d: half(b.d)
});
format!(Q5_1, BlockQ5_1, WithOffset, |b| WithOffset {
    q: with_fifth_bits(nibbles(&b.qs), b.qh).map(|q| q as i8),
    d: half(b.d),
    m: half(b.m)
});
format!(Q8_0, BlockQ8_0, Signed, |b| Signed { q: b.qs, d: half(b.d) });
format!(Iq4Nl, BlockIq4Nl, Signed, |b| Signed {
    q: nibbles(&b.qs).map(|q| LEVELS[usize::from(q)]),
    d: half(b.d)
});

#[inline]
fn dot32(q: &[i8; 32], x: &[i8; 32]) -> i32 {
    let ((q, _), (x, _)) = (q.as_chunks::<16>(), x.as_chunks::<16>());
    dot16(&q[0], &x[0]) + dot16(&q[1], &x[1])
}

/// The 32 numbers of 16 bytes, the low halves first.
#[inline]
pub(super) fn nibbles(qs: &[u8; 16]) -> [u8; 32] {
    core::array::from_fn(|i| qs[i % 16] >> (4 * (i / 16)) & 15)
}

#[inline]
fn with_fifth_bits(q: [u8; 32], qh: [u8; 4]) -> [u8; 32] {
    let qh = u32::from_le_bytes(qh);
    core::array::from_fn(|i| q[i] | ((qh >> i & 1) << 4) as u8)
}

/// A scale or offset of a block; a NaN counts as an infinity, which the vector kernels can have without a comparison.
#[inline]
pub(super) fn half(bits: [u8; 2]) -> f32 {
    let x = f16_to_f32(u16::from_le_bytes(bits));
    if x.is_nan() { f32::INFINITY.copysign(x) } else { x }
}
