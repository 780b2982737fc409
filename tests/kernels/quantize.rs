//! Rounding of activations and of K and V.

use sluice::kernels::{kv_encode, quantize_q8, scalar};
use sluice::quant::{GgmlType, dequantize_row};
use wasm_bindgen_test::wasm_bindgen_test;

use crate::golden;
use crate::numbers::{Digest, ROUNDING, Rng, assert_same};

/// Values that rounding could treat wrongly, to be mixed into random ones.
const SPECIAL: [f32; 14] = [
    0.0,
    -0.0,
    1e-45,
    -1e-40,
    1.2e-38,
    1.5e-36,
    65_504.0,
    -65_520.0,
    1e30,
    f32::MAX,
    f32::MIN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
];

fn rows() -> Vec<Vec<f32>> {
    let mut rng = Rng::new(11);
    let mut rows: Vec<_> = (0..=9).map(|n| rng.activations(256 * n)).collect();
    // All halves between two bytes, which round to the even one.
    rows.push((0..256).map(|i| if i == 255 { 127.0 } else { i as f32 * 0.5 - 63.5 }).collect());
    for special in SPECIAL {
        let mut row = rng.activations(512);
        for _ in 0..3 {
            let i = rng.below(row.len());
            row[i] = special;
        }
        rows.push(row);
        rows.push(vec![special; 256]);
    }
    rows
}

#[wasm_bindgen_test(unsupported = test)]
pub(crate) fn activations_are_rounded_as_defined() {
    let mut digest = Digest::new();
    for block in [32, 256] {
        for row in rows() {
            let (mut qs, mut scales) = (vec![1; row.len()], vec![1.0; row.len() / block]);
            let mut sums = vec![1; row.len() / 16];
            quantize_q8(&row, block, &mut qs, &mut scales, &mut sums);
            let (mut qs2, mut scales2, mut sums2) = (qs.clone(), scales.clone(), sums.clone());
            scalar::quantize_q8(&row, block, &mut qs2, &mut scales2, &mut sums2);
            assert_eq!((&qs, &sums), (&qs2, &sums2), "bytes and sums");
            assert_same(&scales, &scales2, "scales");
            digest.bytes(bytemuck::cast_slice(&qs));
            digest.bytes(bytemuck::cast_slice(&sums));
            digest.floats(&scales);
            check_rounding(&row, block, &qs, &scales, &sums);
        }
    }
    golden::check("quantize_q8", &digest);
}

fn check_rounding(row: &[f32], block: usize, qs: &[i8], scales: &[f32], sums: &[i16]) {
    for (i, (x, q)) in row.iter().zip(qs).enumerate() {
        let d = scales[i / block];
        assert!(*q != -128, "bytes stay in -127..=127");
        if d.is_finite() && d > 0.0 {
            let error = (f64::from(*x) - f64::from(*q) * f64::from(d)).abs();
            assert!(error <= f64::from(d) * HALF_STEP, "{x} is stored as {q} times {d}");
        } else {
            assert_eq!(*q, 0, "no step, no bytes");
        }
    }
    for (sum, qs) in sums.iter().zip(qs.chunks(16)) {
        assert_eq!(i32::from(*sum), qs.iter().map(|q| i32::from(*q)).sum::<i32>(), "sum of 16");
    }
    for (d, x) in scales.iter().zip(row.chunks(block)) {
        assert_eq!(d.is_finite(), x.iter().all(|x| x.is_finite()), "what is not finite shows");
    }
}

#[wasm_bindgen_test(unsupported = test)]
pub(crate) fn keys_and_values_are_stored_as_defined() {
    for ty in [GgmlType::F32, GgmlType::F16, GgmlType::Q8_0] {
        let mut digest = Digest::new();
        for row in rows() {
            let n = ty.row_bytes(row.len() as u64).unwrap() as usize;
            let (mut got, mut want) = (vec![1; n], vec![2; n]);
            kv_encode(ty, &row, &mut got);
            scalar::kv_encode(ty, &row, &mut want);
            let mut decoded = [vec![0.0; row.len()], vec![0.0; row.len()]];
            dequantize_row(ty, &got, &mut decoded[0]);
            dequantize_row(ty, &want, &mut decoded[1]);
            assert_same(&decoded[0], &decoded[1], &format!("{ty}"));
            digest.floats(&decoded[0]);
            check_stored(ty, &row, &decoded[0]);
        }
        golden::check(&format!("kv_encode {ty}"), &digest);
    }
}

fn check_stored(ty: GgmlType, row: &[f32], decoded: &[f32]) {
    for (x, y) in row.chunks(32).zip(decoded.chunks(32)) {
        let largest = x.iter().fold(0.0, |max, x| f32::max(max, x.abs()));
        let finite = x.iter().all(|x| x.is_finite());
        for (x, y) in x.iter().zip(y) {
            match ty {
                GgmlType::F32 => assert_same(&[*x], &[*y], "F32"),
                GgmlType::F16 => assert_same(&[half::f16::from_f32(*x).to_f32()], &[*y], "F16"),
                // Steps that are subnormal halves are coarse; infinite ones show what was not finite or too large.
                _ if finite && (0.01..8e6).contains(&largest) => {
                    let (x, y, step) = (f64::from(*x), f64::from(*y), f64::from(largest) / 127.0);
                    // The bytes come from the step itself, the stored one is a half: good to 11 bits, times the byte.
                    let of_step = (x.abs() + step * HALF_STEP) / 2048.0;
                    assert!((x - y).abs() <= step * HALF_STEP + of_step, "Q8_0: {x} became {y}");
                }
                _ => {}
            }
        }
    }
}

/// What a byte may be off by, in steps: a half, and what three roundings (step, inverse, product) make of 127.
const HALF_STEP: f64 = 0.5 + 3.0 * 127.0 * ROUNDING;
