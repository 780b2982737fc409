//! The functions against the standard library's, which on the build machine is good to the last place or two.
#![allow(
    clippy::disallowed_methods,
    reason = "the standard library is what these tests compare with"
)]

use super::*;

/// The distance of `got` from the true value in units of the last place of the f32 nearest to it.
fn ulps(got: f32, want: f64) -> f64 {
    if got.is_infinite() && (want as f32).is_infinite() {
        return 0.0;
    }
    let near = (want as f32).abs().max(f32::MIN_POSITIVE);
    let ulp = f64::from(f32::from_bits(near.to_bits() + 1)) - f64::from(near);
    (f64::from(got) - want).abs() / ulp
}

fn worst(range: core::ops::Range<f32>, f: impl Fn(f32) -> f32, truth: impl Fn(f64) -> f64) -> f64 {
    const STEPS: u32 = 400_000;
    let step = (f64::from(range.end) - f64::from(range.start)) / f64::from(STEPS);
    (0..=STEPS)
        .map(|i| (f64::from(range.start) + f64::from(i) * step) as f32)
        .map(|x| ulps(f(x), truth(f64::from(x))))
        .fold(0.0, f64::max)
}

#[test]
fn exp_is_good_to_about_one_ulp_and_right_at_the_ends() {
    assert!(worst(-87.0..88.7, exp, f64::exp) < 1.2, "normal results");
    assert!(worst(-104.0..-87.0, exp, f64::exp) < 1.2, "subnormal results");
    assert!(worst(-1.0..1.0, exp, f64::exp) < 1.2, "near zero");
    assert_eq!(exp(0.0), 1.0, "e^0");
    assert_eq!(exp(f32::NEG_INFINITY), 0.0, "e^-inf");
    assert_eq!(exp(f32::INFINITY), f32::INFINITY, "e^inf");
    assert_eq!(exp(89.5), f32::INFINITY, "overflow");
    assert!(exp(f32::NAN).is_nan(), "NaN passes");
}

#[test]
fn tanh_is_good_to_about_two_ulps() {
    assert!(worst(-12.0..12.0, tanh, f64::tanh) < 2.0, "everywhere");
    assert!(worst(-0.7..0.7, tanh, f64::tanh) < 2.0, "near zero");
    assert_eq!(tanh(f32::INFINITY), 1.0, "at infinity");
    assert_eq!(tanh(-40.0), -1.0, "far out");
    assert_eq!(tanh(1e-30), 1e-30, "tiny");
    assert!(tanh(f32::NAN).is_nan(), "NaN passes");
}

#[test]
fn logarithms_and_powers_are_right() {
    assert!(worst(1e-6..10.0, ln, f64::ln) < 0.51, "near one");
    assert!(worst(1e-38..3e38, ln, f64::ln) < 0.51, "everywhere");
    assert_eq!(ln(0.0), f32::NEG_INFINITY, "at zero");
    assert!(ln(-1.0).is_nan(), "below zero");
    assert!((ln_f64(5e-324) - 5e-324_f64.ln()).abs() < 1e-12, "the smallest number");
    for (x, y) in [(10_000.0, -0.75), (500_000.0, -0.98), (1e6, 0.5), (2.0, 10.0), (0.5, 0.0)] {
        let want = f64::powf(x, y);
        assert!((pow_f64(x, y) - want).abs() <= want * 1e-14, "{x}^{y}");
    }
    for i in -7000..=7000 {
        let x = f64::from(i) * 0.1;
        let want = x.exp();
        assert!((exp_f64(x) - want).abs() <= want * 4e-16, "e^{x}");
    }
}

#[test]
fn sine_and_cosine_hold_up_to_large_angles() {
    for i in 0..200_000_i32 {
        let x = f64::from(i) * 5.37 + f64::from(i % 97) * 0.013;
        for x in [x, -x, x * 400.0] {
            let (sin, cos) = sin_cos_f64(x);
            let close = (sin - x.sin()).abs() < 4e-16 && (cos - x.cos()).abs() < 4e-16;
            assert!(close, "angle {x}");
        }
    }
}

#[test]
fn erf_agrees_with_its_series() {
    // erf x = 2/sqrt(pi) e^(-x^2) sum of 2^n x^(2n+1) / (2n+1)!!, all terms positive.
    let series = |x: f64| {
        let (mut term, mut sum) = (x, x);
        for n in 1..200_u32 {
            term *= 2.0 * x * x / f64::from(2 * n + 1);
            sum += term;
        }
        sum * (-x * x).exp() * core::f64::consts::FRAC_2_SQRT_PI
    };
    for i in -3990..3990 {
        let x = f64::from(i) * 0.001;
        assert!((erf_f64(x) - series(x)).abs() < 1e-14, "erf {x}");
    }
    assert_eq!((erf(5.0), erf(-5.0), erf(0.0)), (1.0, -1.0, 0.0), "the ends");
    assert!(erf(f32::NAN).is_nan(), "NaN passes");
}

#[test]
fn activation_functions_follow_their_definitions() {
    for i in -4000..4000 {
        let x = f64::from(i) * 0.005;
        let xf = x as f32;
        let close = |got: f32, want: f64, what: &str| {
            assert!((f64::from(got) - want).abs() < 1e-6 * want.abs().max(0.1), "{what} {x}");
        };
        let x = f64::from(xf);
        close(silu(xf), x / (1.0 + (-x).exp()), "silu");
        close(sigmoid(xf), 1.0 / (1.0 + (-x).exp()), "sigmoid");
        close(softplus(xf), x.exp().ln_1p(), "softplus");
        let u = (2.0 / core::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
        close(gelu(xf), 0.5 * x * (1.0 + u.tanh()), "gelu");
    }
    assert!((gelu_erf(1.0) - 0.841_344_7).abs() < 1e-7, "gelu_erf(1)");
}
