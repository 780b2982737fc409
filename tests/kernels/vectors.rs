//! Operations on vectors: reductions, norms, nonlinear functions, RoPE.

use sluice::kernels::{self, RopePairing, math, scalar};
use wasm_bindgen_test::wasm_bindgen_test;

use crate::golden;
use crate::numbers::{Digest, ROUNDING, Rng, assert_same, same};

/// Lengths up to two vectors of sixteen and one more, and some real ones.
fn lengths() -> impl Iterator<Item = usize> {
    (0..=33).chain([48, 63, 64, 80, 96, 576, 577, 1536])
}

/// Numbers that take every path of the nonlinear functions.
fn wide(n: usize, rng: &mut Rng) -> Vec<f32> {
    const EDGES: [f32; 12] = [
        0.0,
        -0.0,
        0.624,
        -0.626,
        88.7,
        -88.0,
        104.5,
        -1e4,
        1e-40,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
    ];
    let mut number = |i: usize| match i % 5 {
        0 => rng.unit(),
        1 => rng.unit() * 100.0,
        2 => rng.activation(),
        3 => rng.unit() * 1e-3,
        _ => EDGES[rng.below(EDGES.len())],
    };
    (0..n).map(&mut number).collect()
}

#[wasm_bindgen_test(unsupported = test)]
pub(crate) fn reductions_have_sixteen_sums_and_one_tree() {
    let (mut rng, mut digest) = (Rng::new(21), Digest::new());
    for n in lengths() {
        let (a, b) = (rng.activations(n + 1), rng.activations(n + 3));
        // Slices at odd places: unaligned for a vector.
        let (a, b) = (&a[1..], &b[3..]);
        let got = [kernels::dot(a, b), kernels::sum(a), kernels::sum_of_squares(a)];
        assert_same(&got, &[scalar::dot(a, b), scalar::sum(a), scalar::dot(a, a)], "reduction");
        assert_same(&got[..2], &[by_hand(a, b), by_hand(a, &vec![1.0; n])], "the stated order");
        let products = || a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b));
        let bound = n as f64 * f64::from(f32::EPSILON) * products().map(f64::abs).sum::<f64>();
        assert!((f64::from(got[0]) - products().sum::<f64>()).abs() <= bound, "against f64");
        digest.floats(&got);
    }
    golden::check("reductions", &digest);
}

/// The order of accumulation as it is written down.
fn by_hand(a: &[f32], b: &[f32]) -> f32 {
    let mut s = [0.0; 16];
    for i in 0..a.len() {
        s[i % 16] += a[i] * b[i];
    }
    let s: Vec<f32> = (0..8).map(|i| s[i] + s[i + 8]).collect();
    let s: Vec<f32> = (0..4).map(|i| s[i] + s[i + 4]).collect();
    (s[0] + s[2]) + (s[1] + s[3])
}

#[wasm_bindgen_test(unsupported = test)]
pub(crate) fn norms_follow_the_definition() {
    let (mut rng, mut digest) = (Rng::new(22), Digest::new());
    for n in lengths().skip(1) {
        let (x, w, b) = (rng.activations(n), rng.activations(n), rng.activations(n));
        for weight in [None, Some(w.as_slice())] {
            let (mut got, mut want) = (vec![0.0; n], x.clone());
            kernels::rms_norm(&x, weight, 1e-5, &mut got);
            scalar::rms_norm(&mut want, weight, 1e-5);
            assert_same(&got, &want, "rms_norm");
            digest.floats(&got);
            let mean = x.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / n as f64;
            // Squares, sixteen sums and the sum of these, mean and epsilon, of which the root takes half; then root, inverse and factors.
            let most = ROUNDING * ((1 + n.div_ceil(16) + 4 + 2) as f64 / 2.0 + 4.0);
            for (i, got) in got.iter().enumerate() {
                let want = f64::from(x[i]) / (mean + 1e-5).sqrt()
                    * f64::from(weight.map_or(1.0, |w| w[i]));
                assert!((f64::from(*got) - want).abs() <= most * want.abs(), "rms_norm in f64");
            }
            for bias in [None, Some(b.as_slice())] {
                let (mut got, mut want) = (vec![0.0; n], x.clone());
                kernels::layer_norm(&x, weight, bias, 1e-5, &mut got);
                scalar::layer_norm(&mut want, weight, bias, 1e-5);
                assert_same(&got, &want, "layer_norm");
                digest.floats(&got);
            }
        }
    }
    golden::check("norms", &digest);
}

#[wasm_bindgen_test(unsupported = test)]
pub(crate) fn nonlinear_functions_follow_the_definition() {
    let (mut rng, mut digest) = (Rng::new(23), Digest::new());
    for n in lengths() {
        let (x, up) = (wide(n, &mut rng), rng.activations(n));
        let mut check = |what: &str, active: &dyn Fn(&mut [f32]), one: &dyn Fn(f32, f32) -> f32| {
            let (mut got, mut want) = (x.clone(), x.clone());
            active(&mut got);
            want.iter_mut().zip(&up).for_each(|(x, up)| *x = one(*x, *up));
            assert_same(&got, &want, what);
            digest.floats(&got);
        };
        check("silu", &|x| kernels::silu(x), &|x, _| math::silu(x));
        check("gelu", &|x| kernels::gelu(x), &|x, _| math::gelu(x));
        check("silu_mul", &|x| kernels::silu_mul(x, &up), &|x, up| math::silu(x) * up);
        check("gelu_mul", &|x| kernels::gelu_mul(x, &up), &|x, up| math::gelu(x) * up);
        check("softcap", &|x| kernels::softcap(x, 30.0), &|x, _| 30.0 * math::tanh(x / 30.0));
    }
    golden::check("nonlinear functions", &digest);
}

#[wasm_bindgen_test(unsupported = test)]
pub(crate) fn softmax_sums_to_one() {
    let (mut rng, mut digest) = (Rng::new(24), Digest::new());
    for n in lengths().skip(1) {
        let x: Vec<f32> = rng.activations(n).iter().map(|x| x * 20.0).collect();
        let (mut got, mut want) = (x.clone(), x);
        kernels::softmax(&mut got);
        scalar::softmax(&mut want);
        assert_same(&got, &want, "softmax");
        let sum: f64 = got.iter().map(|p| f64::from(*p)).sum();
        assert!((sum - 1.0).abs() < 1e-5, "{n} probabilities sum to {sum}");
        digest.floats(&got);
    }
    golden::check("softmax", &digest);
}

#[wasm_bindgen_test(unsupported = test)]
pub(crate) fn rope_turns_pairs() {
    let (mut rng, mut digest) = (Rng::new(25), Digest::new());
    for pairs in 0..=33 {
        let x = rng.activations(2 * pairs);
        let angles: Vec<_> =
            (0..pairs).map(|i| math::sin_cos_f64(f64::from(rng.next() >> (i % 32)))).collect();
        let sin: Vec<f32> = angles.iter().map(|(sin, _)| *sin as f32).collect();
        let cos: Vec<f32> = angles.iter().map(|(_, cos)| *cos as f32).collect();
        for pairing in [RopePairing::Interleaved, RopePairing::HalfSplit] {
            let (mut got, mut want) = (x.clone(), x.clone());
            kernels::rope(&mut got, &cos, &sin, pairing);
            scalar::rope(&mut want, &cos, &sin, pairing);
            assert_same(&got, &want, "rope");
            digest.floats(&got);
            for i in 0..pairs {
                let (a, b) = match pairing {
                    RopePairing::Interleaved => (2 * i, 2 * i + 1),
                    RopePairing::HalfSplit => (i, i + pairs),
                };
                assert!(same(got[a], x[a] * cos[i] - x[b] * sin[i]), "first of pair {i}");
                assert!(same(got[b], x[a] * sin[i] + x[b] * cos[i]), "second of pair {i}");
            }
        }
    }
    golden::check("rope", &digest);
}

#[wasm_bindgen_test(unsupported = test)]
pub(crate) fn elementary_functions_have_the_same_bits_everywhere() {
    let (mut rng, mut digest) = (Rng::new(26), Digest::new());
    for x in wide(20_000, &mut rng) {
        digest.floats(&[math::exp(x), math::tanh(x), math::ln(x), math::erf(x), math::softplus(x)]);
        digest.floats(&[math::gelu_erf(x), math::sigmoid(x), math::pow(x.abs(), 0.3)]);
        if x.is_finite() {
            digest.floats(&[math::sin(x), math::cos(x)]);
        }
        let (sin, _) = math::sin_cos_f64(f64::from(rng.next() >> 4));
        digest.bytes(&sin.to_bits().to_le_bytes());
        digest.bytes(&math::pow_f64(f64::from(rng.next()), -0.7).to_bits().to_le_bytes());
    }
    golden::check("elementary functions", &digest);
}

#[wasm_bindgen_test(unsupported = test)]
pub(crate) fn simple_vector_operations_do_what_they_say() {
    let x = [1.0, 2.0, -3.0, 4.0, 5.0];
    let run = |f: &dyn Fn(&mut [f32])| {
        let mut y = x;
        f(&mut y);
        y
    };
    assert_eq!(run(&|y| kernels::add_assign(y, &x)), [2.0, 4.0, -6.0, 8.0, 10.0], "add_assign");
    assert_eq!(run(&|y| kernels::mul_assign(y, &x)), [1.0, 4.0, 9.0, 16.0, 25.0], "mul_assign");
    assert_eq!(
        run(&|y| kernels::add_scaled(y, &x, 2.0)),
        [3.0, 6.0, -9.0, 12.0, 15.0],
        "add_scaled"
    );
    assert_eq!(run(&|y| kernels::scale(y, 0.5)), [0.5, 1.0, -1.5, 2.0, 2.5], "scale");
}
