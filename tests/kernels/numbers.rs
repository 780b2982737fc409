//! Seeded numbers, comparison by bits, and digests.

/// What one operation in f32 is off by at most, as a share of its result.
pub(crate) const ROUNDING: f64 = f32::EPSILON as f64 / 2.0;

/// xorshift64*: the same numbers everywhere.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((u64::from(self.next()) * n as u64) >> 32) as usize
    }

    /// Between -1 and 1.
    pub(crate) fn unit(&mut self) -> f32 {
        (self.next() as i32) as f32 / 2_147_483_648.0
    }

    /// Like activations: mostly small, some large.
    pub(crate) fn activation(&mut self) -> f32 {
        let x = self.unit();
        x * x * x * 8.0
    }

    pub(crate) fn activations(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.activation()).collect()
    }
}

/// Equal bits, or both not a number.
pub(crate) fn same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

/// Panics at the first element whose bits differ.
pub(crate) fn assert_same(got: &[f32], want: &[f32], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}: lengths");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!(same(*g, *w), "{what}: element {i} is {g:e}, by definition {w:e}");
    }
}

/// FNV-1a over the bits of numbers; all NaNs count as one.
pub(crate) struct Digest(u64);

impl Digest {
    pub(crate) fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    pub(crate) fn floats(&mut self, xs: &[f32]) {
        for x in xs {
            let x = if x.is_nan() { f32::NAN } else { *x };
            self.bytes(&x.to_bits().to_le_bytes());
        }
    }

    pub(crate) fn finish(&self) -> String {
        format!("{:016x}", self.0)
    }
}
