//! Functions of single numbers, over whole slices: the activation, the softmax, the norm of a layer.
//!
//! The exponential is a polynomial without branches or tables, so that the compiler makes vector code of it. Its
//! relative error is below 2e-7, which no vector shows in its fifth digit.

use crate::settings::Activation;

/// `e^x`, for any finite x; 0 below -87.
#[inline(always)]
fn exp(x: f32) -> f32 {
    const LOG2_E: f32 = std::f32::consts::LOG2_E;
    // ln 2 in two parts, of which the first has few bits, so that the product below is exact.
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let clamped = x.clamp(-87.0, 88.0);
    let whole = (clamped * LOG2_E + 0.5).floor();
    let rest = clamped - whole * LN2_HIGH - whole * LN2_LOW;
    let mut sum = 1.987_569_2e-4;
    for coefficient in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 5e-1] {
        sum = sum * rest + coefficient;
    }
    let power = f32::from_bits(((whole as i32 + 127) << 23) as u32);
    let value = (sum * rest * rest + rest + 1.0) * power;
    if x < -87.0 { 0.0 } else { value }
}

/// The error function (Abramowitz and Stegun 1964, 7.1.26), to 2e-7.
#[inline(always)]
fn erf(x: f32) -> f32 {
    let size = x.abs();
    let t = 1.0 / (1.0 + 0.327_591_1 * size);
    let mut sum = 1.061_405_4;
    for coefficient in [-1.453_152_1, 1.421_413_8, -0.284_496_74, 0.254_829_6] {
        sum = sum * t + coefficient;
    }
    (1.0 - sum * t * exp(-size * size)).copysign(x)
}

/// Applies an activation to each number.
pub(crate) fn activate(activation: Activation, numbers: &mut [f32]) {
    match activation {
        Activation::Gelu => {
            numbers.iter_mut().for_each(|x| *x *= 0.5 * (1.0 + erf(*x * std::f32::consts::FRAC_1_SQRT_2)));
        }
        Activation::GeluTanh => {
            for x in numbers {
                let inner = 0.797_884_6 * (*x + 0.044_715 * *x * *x * *x);
                let e = exp(-2.0 * inner.abs());
                *x *= 0.5 * (1.0 + ((1.0 - e) / (1.0 + e)).copysign(inner));
            }
        }
        Activation::Relu => numbers.iter_mut().for_each(|x| *x = x.max(0.0)),
    }
}

/// Makes weights of rows of scores, each times `scale`.
pub(crate) fn softmax(scores: &mut [f32], columns: usize, scale: f32) {
    for row in scores.chunks_exact_mut(columns) {
        let greatest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        row.iter_mut().for_each(|x| *x = exp((*x - greatest) * scale));
        let sum: f32 = row.iter().sum();
        row.iter_mut().for_each(|x| *x /= sum);
    }
}

/// Gives each row mean 0 and variance 1, then scale and shift (Ba et al. 2016).
pub(crate) fn normalize_rows(rows: &mut [f32], scale: &[f32], shift: &[f32], epsilon: f32) {
    for row in rows.chunks_exact_mut(scale.len()) {
        let count = row.len() as f32;
        let mean = row.iter().sum::<f32>() / count;
        let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / count;
        let factor = 1.0 / (variance + epsilon).sqrt();
        for ((x, scale), shift) in row.iter_mut().zip(scale).zip(shift) {
            *x = (*x - mean) * factor * scale + shift;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_and_errors_are_near_those_of_the_definition() {
        for step in -1000..=1000 {
            let x = step as f32 / 12.0;
            let (found, expected) = (f64::from(exp(x)), f64::from(x).exp());
            assert!((found - expected).abs() <= expected * 3e-7, "exp({x}) = {found}, not {expected}");
        }
        assert_eq!((exp(-1e9), exp(0.0)), (0.0, 1.0));
        for (x, expected) in [(0.0, 0.0), (0.5, 0.520_499_9), (1.0, 0.842_700_8), (2.0, 0.995_322_3), (5.0, 1.0)] {
            assert!((erf(x) - expected).abs() < 4e-7 && (erf(-x) + expected).abs() < 4e-7, "erf({x}) = {}", erf(x));
        }
    }
}
