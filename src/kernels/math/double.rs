//! f64 functions for what is computed once: RoPE angles and frequencies, logarithms of probabilities.

/// e to the power `x`, to about one unit in the last place.
#[must_use]
pub fn exp_f64(x: f64) -> f64 {
    if x > 709.8 {
        return f64::INFINITY;
    }
    if x < -745.2 {
        return 0.0;
    }
    let shifted = x * core::f64::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    // The Taylor series to r^13: the next term is below 2^-57 for |r| <= ln 2 / 2.
    let mut sum = 0.0;
    for k in (2..=13_u32).rev() {
        sum = (sum + 1.0) * r / f64::from(k);
    }
    let y = (sum + 1.0) * r + 1.0;
    let n = shifted.to_bits().wrapping_sub(ROUND.to_bits()) as i64;
    let half = n >> 1;
    (y * power_of_two(half)) * power_of_two(n.wrapping_sub(half))
}

/// Natural logarithm; NaN below 0, negative infinity at 0.
#[must_use]
pub fn ln_f64(x: f64) -> f64 {
    if x.is_nan() || x == f64::INFINITY {
        return x;
    }
    if x <= 0.0 {
        return if x == 0.0 { f64::NEG_INFINITY } else { f64::NAN };
    }
    // Subnormal numbers are scaled up first.
    let (x, shift) = if x < f64::MIN_POSITIVE { (x * power_of_two(64), 64) } else { (x, 0) };
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023 - shift;
    let mut mantissa = f64::from_bits(bits & 0x000f_ffff_ffff_ffff | 0x3ff0_0000_0000_0000);
    if mantissa > core::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    // ln m = 2 artanh(s) with s = (m - 1) / (m + 1), |s| < 0.172.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let t = s * s;
    let mut sum = 0.0;
    for k in (1..=11_u32).rev() {
        sum = (sum + 1.0 / f64::from(2 * k + 1)) * t;
    }
    let e = exponent as f64;
    e * LN_2_HIGH + (2.0 * s * sum + e * LN_2_LOW + 2.0 * s)
}

/// `x` to the power `y`, for `x >= 0`; relative error about `|y ln x|` units in the last place.
#[must_use]
pub fn pow_f64(x: f64, y: f64) -> f64 {
    if y == 0.0 {
        return 1.0;
    }
    exp_f64(y * ln_f64(x))
}

/// Sine and cosine of an angle in radians, up to 2^29 in magnitude: absolute error about 2^-52.
#[must_use]
pub fn sin_cos_f64(x: f64) -> (f64, f64) {
    // x = n pi/2 + r. The pieces of pi/2 have 24 bits each, so that n times a piece is exact.
    let shifted = x * core::f64::consts::FRAC_2_PI + ROUND;
    let n = shifted - ROUND;
    let mut r = x;
    for piece in HALF_PI {
        r -= n * piece;
    }
    let t = r * r;
    let (mut sin, mut cos) = (0.0, 0.0);
    for k in (1..=9_u32).rev() {
        sin = (sin + 1.0) * -t / f64::from(2 * k * (2 * k + 1));
        cos = (cos + 1.0) * -t / f64::from((2 * k - 1) * 2 * k);
    }
    let (sin, cos) = (r * sin + r, cos + 1.0);
    match shifted.to_bits() & 3 {
        0 => (sin, cos),
        1 => (cos, -sin),
        2 => (-sin, -cos),
        _ => (-cos, sin),
    }
}

/// 2^n for n from -1022 to 1023.
fn power_of_two(n: i64) -> f64 {
    f64::from_bits((n.wrapping_add(1023) as u64) << 52)
}

/// 1.5 * 2^52: adding it rounds to an integer, ties to even.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// ln 2 in two pieces, the first of 32 bits.
const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
/// pi/2 in pieces of 24 bits; the last one carries what is left.
const HALF_PI: [f64; 5] = [
    1.570_796_251_296_997,
    7.549_789_415_861_596e-8,
    5.390_302_529_957_765e-15,
    3.282_003_415_807_913e-22,
    1.270_655_876_013_988e-29,
];
