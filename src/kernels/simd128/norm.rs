//! RMS and layer normalisation, in place: the loops over elements are the compiler's to vectorise, the sums are ours.

use super::reduce::{dot, sum};

/// `x / sqrt(mean(x^2) + eps) * weight`
pub(in crate::kernels) fn rms_norm(x: &mut [f32], weight: Option<&[f32]>, eps: f32) {
    let factor = 1.0 / (dot(x, x) / x.len() as f32 + eps).sqrt();
    match weight {
        Some(weight) => x.iter_mut().zip(weight).for_each(|(x, w)| *x = *x * factor * w),
        None => x.iter_mut().for_each(|x| *x *= factor),
    }
}

/// `(x - mean) / sqrt(variance + eps) * weight + bias`
pub(in crate::kernels) fn layer_norm(
    x: &mut [f32],
    weight: Option<&[f32]>,
    bias: Option<&[f32]>,
    eps: f32,
) {
    let mean = sum(x) / x.len() as f32;
    x.iter_mut().for_each(|x| *x -= mean);
    rms_norm(x, weight, eps);
    if let Some(bias) = bias {
        x.iter_mut().zip(bias).for_each(|(x, b)| *x += b);
    }
}
