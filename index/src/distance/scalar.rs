//! The reference implementation of every kernel, in plain Rust.
//!
//! Float sums use `f64`, so that the reference is more accurate than any kernel; integer sums are exact.

use half::f16;

use super::{PLANES, SIDE_BY_SIDE};

/// The dot product.
pub fn dot_f32(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>() as f32
}

/// The squared Euclidean distance.
pub fn l2_f32(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| (f64::from(*x) - f64::from(*y)).powi(2)).sum::<f64>() as f32
}

/// The dot product of a query and a vector of 16-bit floats.
pub fn dot_f16(a: &[f32], b: &[f16]) -> f32 {
    a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>() as f32
}

/// The squared distance of a query and a vector of 16-bit floats.
pub fn l2_f16(a: &[f32], b: &[f16]) -> f32 {
    a.iter().zip(b).map(|(x, y)| (f64::from(*x) - f64::from(*y)).powi(2)).sum::<f64>() as f32
}

/// The dot product of a query and the vector `scale * b`.
pub fn dot_f32_i8(a: &[f32], b: &[i8], scale: f32) -> f32 {
    let sum: f64 = a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum();
    (sum * f64::from(scale)) as f32
}

/// The squared distance of a query and the vector `scale * b`.
pub fn l2_f32_i8(a: &[f32], b: &[i8], scale: f32) -> f32 {
    a.iter().zip(b).map(|(x, y)| (f64::from(*x) - f64::from(*y) * f64::from(scale)).powi(2)).sum::<f64>() as f32
}

/// The dot product of two codes.
pub fn dot_i8(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).map(|(x, y)| i32::from(*x) * i32::from(*y)).sum()
}

/// The squared distance of two codes.
pub fn l2_i8(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).map(|(x, y)| (i32::from(*x) - i32::from(*y)).pow(2)).sum()
}

/// The number of bits in which two binary codes differ.
pub fn hamming(a: &[u8], b: &[u8]) -> u32 {
    a.iter().zip(b).map(|(x, y)| (x ^ y).count_ones()).sum()
}

/// The number of bits that two bit vectors share, up to the length of the shorter.
pub fn and_count(a: &[u64], b: &[u64]) -> u64 {
    a.iter().zip(b).map(|(x, y)| u64::from((x & y).count_ones())).sum()
}

/// The values of the bits of a component that is a whole number from -8 to 7, lowest first.
const PLANE_VALUES: [i32; PLANES] = [1, 2, 4, -8];

/// For each of eight rows of bits the sum of those components of a query whose bit is set. `block` has a word of each
/// row, then the next word of each, and so on; `planes` has as many, each with the first bits of 64 components, their
/// second bits, and so on.
pub fn plane_sums(planes: &[[u64; PLANES]], block: &[[u64; SIDE_BY_SIDE]]) -> [i32; SIDE_BY_SIDE] {
    let mut sums = [0; SIDE_BY_SIDE];
    for (planes, bits) in planes.iter().zip(block) {
        for (sum, bits) in sums.iter_mut().zip(bits) {
            let counts = planes.iter().map(|plane| (plane & bits).count_ones() as i32);
            *sum += counts.zip(PLANE_VALUES).map(|(count, value)| count * value).sum::<i32>();
        }
    }
    sums
}

/// Appends to `out`, for each bit of `a` that `b` has too, `below` plus the number of bits of `a` before it. Stops at
/// the end of the shorter.
pub fn and_ranks(a: &[u64], b: &[u64], below: u32, out: &mut Vec<u32>) {
    let mut rank = below;
    for (a, b) in a.iter().zip(b) {
        for bit in (0..64).filter(|bit| a >> bit & 1 == 1) {
            if b >> bit & 1 == 1 {
                out.push(rank);
            }
            rank += 1;
        }
    }
}
