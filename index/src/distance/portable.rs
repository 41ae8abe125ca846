//! The table for machines without kernels of this crate: simsimd, which dispatches at run time.
//!
//! simsimd compares equal types only, so a stored vector is widened to `f32` a piece at a time.

use half::f16;
use half::slice::HalfFloatSliceExt;
use simsimd::{BinarySimilarity, SpatialSimilarity};

use super::{Kernels, PLANES, SIDE_BY_SIDE, row, scalar};
use crate::prefetch::prefetch;

/// Components widened at a time: small enough for the stack and the nearest cache.
const PIECE: usize = 256;

pub(super) fn table() -> Kernels {
    Kernels {
        name: "portable",
        dot_f32,
        l2_f32,
        dot_f16: |a, b| widened(a, b, |b, wide| b.convert_to_f32_slice(wide), dot_f32),
        l2_f16: |a, b| widened(a, b, |b, wide| b.convert_to_f32_slice(wide), l2_f32),
        dot_f32_i8: |a, b, scale| widened(a, b, |b, wide| scaled(b, scale, wide), dot_f32),
        l2_f32_i8: |a, b, scale| widened(a, b, |b, wide| scaled(b, scale, wide), l2_f32),
        dot_i8,
        l2_i8,
        hamming,
        and_count: scalar::and_count,
        and_ranks,
        dot_f32_rows: |q, rows, out| each(q, rows, out, dot_f32),
        l2_f32_rows: |q, rows, out| each(q, rows, out, l2_f32),
        dot_f16_rows: |q, rows, out| each(q, rows, out, |a, b: &[f16]| (table().dot_f16)(a, b)),
        l2_f16_rows: |q, rows, out| each(q, rows, out, |a, b: &[f16]| (table().l2_f16)(a, b)),
        dot_i8_rows: |q, rows, out| each(q, rows, out, dot_i8),
        l2_i8_rows: |q, rows, out| each(q, rows, out, l2_i8),
        hamming_rows: |q, rows, out| each(q, rows, out, hamming),
        plane_sums: |planes, blocks, out| plane_sums(planes, blocks, out),
        dot_i8_gather: |q, codes, positions, out| gather(q, codes, positions, out, dot_i8),
        l2_i8_gather: |q, codes, positions, out| gather(q, codes, positions, out, l2_i8),
    }
}

// simsimd returns `None` only for slices of different lengths, which the public functions refuse.

fn dot_f32(a: &[f32], b: &[f32]) -> f32 {
    f32::dot(a, b).map_or(0.0, |sum| sum as f32)
}

fn l2_f32(a: &[f32], b: &[f32]) -> f32 {
    f32::sqeuclidean(a, b).map_or(0.0, |sum| sum as f32)
}

fn dot_i8(a: &[i8], b: &[i8]) -> i32 {
    i8::dot(a, b).map_or(0, |sum| sum as i32)
}

fn l2_i8(a: &[i8], b: &[i8]) -> i32 {
    i8::sqeuclidean(a, b).map_or(0, |sum| sum as i32)
}

fn hamming(a: &[u8], b: &[u8]) -> u32 {
    u8::hamming(a, b).map_or(0, |bits| bits as u32)
}

fn scaled(codes: &[i8], scale: f32, wide: &mut [f32]) {
    for (w, c) in wide.iter_mut().zip(codes) {
        *w = f32::from(*c) * scale;
    }
}

fn widened<B>(a: &[f32], b: &[B], widen: impl Fn(&[B], &mut [f32]), kernel: fn(&[f32], &[f32]) -> f32) -> f32 {
    let mut wide = [0f32; PIECE];
    let pieces = a.chunks(PIECE).zip(b.chunks(PIECE));
    pieces
        .map(|(a, b)| {
            let wide = &mut wide[..b.len()];
            widen(b, wide);
            kernel(a, wide)
        })
        .sum()
}

fn each<A, B, R>(query: &[A], rows: &[B], out: &mut [R], kernel: impl Fn(&[A], &[B]) -> R) {
    for (row, out) in rows.chunks_exact(query.len()).zip(out) {
        *out = kernel(query, row);
    }
}

/// The sums of planes, with the instructions that the caller enables.
#[inline(always)]
pub(super) fn plane_sums(planes: &[[u64; PLANES]], blocks: &[[u64; SIDE_BY_SIDE]], out: &mut [[i32; SIDE_BY_SIDE]]) {
    for (block, out) in blocks.chunks_exact(planes.len().max(1)).zip(out) {
        let mut counts = [[0u64; SIDE_BY_SIDE]; PLANES];
        for (bits, planes) in block.iter().zip(planes) {
            for (counts, plane) in counts.iter_mut().zip(planes) {
                for lane in 0..SIDE_BY_SIDE {
                    counts[lane] += u64::from((bits[lane] & plane).count_ones());
                }
            }
        }
        let [ones, twos, fours, eights] = counts;
        for lane in 0..SIDE_BY_SIDE {
            out[lane] = (ones[lane] + 2 * twos[lane] + 4 * fours[lane]) as i32 - 8 * eights[lane] as i32;
        }
    }
}

fn gather(query: &[i8], codes: &[i8], positions: &[u32], out: &mut [i32], kernel: fn(&[i8], &[i8]) -> i32) {
    for (i, out) in out.iter_mut().enumerate() {
        if let Some(next) = positions.get(i + 2) {
            prefetch(row(codes, query.len(), *next));
        }
        *out = kernel(query, row(codes, query.len(), positions[i]));
    }
}

/// The number of ranks that are written at a time; surplus ones are truncated.
const LISTED: usize = 4;

/// Appends the ranks, among the bits of `a`, of the bits that `b` has too, with the instructions that the caller
/// enables.
/// It writes several at a time: the number of shared bits of a word is unpredictable, so a loop over them would cost a
/// branch misprediction per word.
#[inline(always)]
pub(super) fn and_ranks(a: &[u64], b: &[u64], below: u32, out: &mut Vec<u32>) {
    let mut below = below;
    for (a, b) in a.iter().zip(b) {
        let mut shared = a & b;
        let end = out.len() + shared.count_ones() as usize;
        while out.len() < end {
            let mut ranks = [0; LISTED];
            for rank in &mut ranks {
                let before = (shared & shared.wrapping_neg()).wrapping_sub(1);
                *rank = below + (a & before).count_ones();
                shared &= shared.wrapping_sub(1);
            }
            out.extend_from_slice(&ranks);
        }
        out.truncate(end);
        below += a.count_ones();
    }
}
