//! The generator of random numbers: xoshiro256** (Blackman and Vigna), its state filled by splitmix64 from the seed.

/// A stream of random numbers that depends on the seed alone.
#[derive(Debug, Clone)]
pub(crate) struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The stream of `seed`; every seed, 0 too, is as good as any other.
    pub(crate) fn new(seed: u64) -> Self {
        let mut mix = seed;
        let state = core::array::from_fn(|_| {
            mix = mix.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = mix;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        });
        Self { state }
    }

    /// 64 random bits.
    pub(crate) fn next(&mut self) -> u64 {
        let s = &mut self.state;
        let out = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        out
    }

    /// A uniform integer in `0..n`, `n` at least 1: the high half of a 128-bit product (its bias is below `n / 2^64`).
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        let product = u128::from(self.next()) * u128::from(n);
        #[allow(clippy::cast_possible_truncation, reason = "the high half of 128 bits")]
        let high = (product >> 64) as u64;
        high
    }

    /// A uniform number in `[0, 1)` with 53 bits.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed by an independent program from the published definitions of splitmix64 and xoshiro256**.
    #[test]
    fn first_numbers_of_seed_0() {
        let mut rng = Rng::new(0);
        let first: [u64; 3] = core::array::from_fn(|_| rng.next());
        assert_eq!(first, [0x99ec_5f36_cb75_f2b4, 0xbf6e_1f78_4956_452a, 0x1a5f_849d_4933_e6e0]);
    }
}
