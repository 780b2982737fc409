//! Random blocks of each format: random bits for the quants, and scales that make weights of variance 1 / n, so that
//! activations keep their size from layer to layer and logits stay finite.

use half::f16;
use sluice::quant::GgmlType;

use super::formats::Role;

/// The bytes of one tensor, piece by piece.
#[derive(Debug)]
pub(super) struct BlockStream {
    ty: GgmlType,
    scale: f64,
    role: Role,
    random: Random,
    /// Values so far, for tensors whose values depend on their place.
    at: u64,
    n: u64,
}

impl BlockStream {
    /// A tensor with rows of `n_cols`; the bytes depend on nothing but these arguments.
    pub(super) fn new(ty: GgmlType, n_cols: u64, role: Role, seed: u64) -> Self {
        #[allow(clippy::cast_precision_loss, reason = "a row has no 2^52 values")]
        let n = n_cols as f64;
        Self {
            ty,
            scale: 1.0 / (deviation(ty) * n.sqrt()),
            role,
            random: Random(seed),
            at: 0,
            n: n_cols,
        }
    }

    /// Fills the beginning of `piece` with whole blocks, at most `left` bytes; gives how many bytes.
    pub(super) fn fill(&mut self, piece: &mut [u8], left: u64) -> usize {
        let room = usize::try_from(left).map_or(piece.len(), |left| left.min(piece.len()));
        let n = room / self.ty.block_bytes() * self.ty.block_bytes();
        if self.ty == GgmlType::F32 {
            piece[..n]
                .chunks_exact_mut(4)
                .for_each(|value| value.copy_from_slice(&self.plain().to_le_bytes()));
            return n;
        }
        let piece = &mut piece[..n];
        let (words, rest) = piece.as_chunks_mut::<8>();
        words.iter_mut().for_each(|word| *word = self.random.next().to_le_bytes());
        let last = self.random.next().to_le_bytes();
        rest.copy_from_slice(&last[..rest.len()]);
        piece.chunks_exact_mut(self.ty.block_bytes()).for_each(|block| self.set_scales(block));
        n
    }

    /// Overwrites the scale of a block, and its offset where it has one: between three and five quarters of the tensor's.
    fn set_scales(&mut self, block: &mut [u8]) {
        let scale = self.scale * (0.75 + 0.5 * self.random.unit());
        let mut put = |at: usize, value: f64| {
            block[at..at + 2].copy_from_slice(&f16::from_f64(value).to_le_bytes());
        };
        match self.ty {
            GgmlType::Q4_1 => {
                put(0, scale);
                put(2, -7.5 * scale);
            }
            GgmlType::Q5_1 => {
                put(0, scale);
                put(2, -15.5 * scale);
            }
            GgmlType::Q4_K => {
                put(0, scale);
                put(2, 7.5 * scale);
            }
            GgmlType::Q5_K => {
                put(0, scale);
                put(2, 15.5 * scale);
            }
            GgmlType::Q6_K => put(208, scale),
            _ => put(0, scale),
        }
    }

    /// The next value of a tensor of plain numbers.
    fn plain(&mut self) -> f32 {
        let at = self.at;
        self.at += 1;
        #[allow(clippy::cast_possible_truncation, reason = "the rounding is meant")]
        let noise = (self.random.unit() - 0.5) as f32;
        match self.role {
            // The slow half of the frequencies is slowed down further.
            Role::RopeFactors(factor) => {
                if at < self.n / 2 {
                    1.0
                } else {
                    factor
                }
            }
            _ => 1.0 + 0.2 * noise,
        }
    }
}

/// The standard deviation of a format's random values when the block's own scale is 1: of uniform quants, and where sub-blocks
/// have random 6-bit or 8-bit scales and offsets, of the product.
fn deviation(ty: GgmlType) -> f64 {
    match ty {
        GgmlType::Q4_0 | GgmlType::Q4_1 => 4.6,
        GgmlType::Q5_0 | GgmlType::Q5_1 => 9.2,
        GgmlType::Q8_0 => 73.9,
        GgmlType::Q4_K => 258.0,
        GgmlType::Q5_K => 527.0,
        GgmlType::Q6_K => 1365.0,
        _ => 1.0,
    }
}

/// splitmix64: as fast as memory, and a seed is a place in its one long sequence of good quality.
#[derive(Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `[0, 1)`.
    fn unit(&mut self) -> f64 {
        f64::from(u32::try_from(self.next() >> 32).unwrap_or(0)) / 4_294_967_296.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice::quant::dequantize_row;

    /// Weights of every format are finite and of variance 1 / n.
    #[test]
    #[allow(clippy::cast_precision_loss, reason = "small counts")]
    fn weights_are_as_large_as_they_should_be() {
        use GgmlType::{Q4_0, Q4_1, Q4_K, Q5_0, Q5_1, Q5_K, Q6_K, Q8_0};
        for ty in [Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K] {
            for n in [512_u64, 4096, 28_672] {
                let bytes = ty.row_bytes(n).unwrap() * 40;
                let mut stream = BlockStream::new(ty, n, Role::Weight, 3);
                let mut row = vec![0; usize::try_from(bytes).unwrap()];
                assert_eq!(stream.fill(&mut row, bytes), row.len(), "whole blocks");
                let mut values = vec![0.0; usize::try_from(n * 40).unwrap()];
                dequantize_row(ty, &row, &mut values);
                let count = (40 * n) as f64;
                let mean = values.iter().map(|v| f64::from(*v)).sum::<f64>() / count;
                let variance =
                    values.iter().map(|v| f64::from(*v) * f64::from(*v)).sum::<f64>() / count;
                let of_one = (variance * n as f64).sqrt();
                assert!(
                    (0.9..1.15).contains(&of_one),
                    "{ty}, {n}: deviation {of_one} of what it should be"
                );
                assert!(mean.abs() < 0.15 / (n as f64).sqrt(), "{ty}, {n}: mean {mean}");
            }
        }
    }
}
