//! `exp` and `ln` in f64 from basic arithmetic, so that they give the same bits on every platform.

/// e to the power `x`, for `x <= 0`; 0 below the range of normal numbers. Relative error below 1e-15.
pub(crate) fn exp(x: f64) -> f64 {
    if x < -708.0 {
        return 0.0;
    }
    // x = k ln 2 + r with |r| <= ln 2 / 2; adding and taking away 1.5 * 2^52 rounds to the nearest integer.
    let k = (x * core::f64::consts::LOG2_E + ROUND) - ROUND;
    let r = (x - k * LN2_HIGH) - k * LN2_LOW;
    let mut sum = 1.0;
    for n in (1..=14).rev() {
        sum = 1.0 + sum * r / f64::from(n);
    }
    #[allow(clippy::cast_possible_truncation, reason = "an integer of at most 1022 in size")]
    let exponent = k as i64;
    sum * f64::from_bits((exponent + 1023).cast_unsigned() << 52)
}

/// The natural logarithm of a positive normal number. Relative error below 1e-15.
pub(crate) fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = f64::from((bits >> 52) as u16) - 1023.0;
    let mut m = f64::from_bits((bits & MANTISSA) | ONE);
    if m > core::f64::consts::SQRT_2 {
        m *= 0.5;
        exponent += 1.0;
    }
    // ln m = 2 atanh(s), |s| <= 0.172
    let s = (m - 1.0) / (m + 1.0);
    let s2 = s * s;
    let mut sum = 0.0;
    for n in (0..=11).rev() {
        sum = sum * s2 + 2.0 / f64::from(2 * n + 1);
    }
    exponent * LN2_HIGH + (sum * s + exponent * LN2_LOW)
}

const ROUND: f64 = 6_755_399_441_055_744.0;
const MANTISSA: u64 = (1 << 52) - 1;
const ONE: u64 = 1023 << 52;
/// ln 2 with 32 bits of mantissa: its products with exponents are exact.
const LN2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
const LN2_LOW: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);
