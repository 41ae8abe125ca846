//! Kernels for AVX2 with FMA and F16C.
//!
//! Floats are added in four independent sums of eight lanes; the remainder is added one by one. Codes are widened to
//! sixteen bits and multiplied in pairs (`vpmaddwd`), which cannot saturate.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use half::f16;

use super::{Kernels, PLANES, SIDE_BY_SIDE, portable, row, scalar};
use crate::prefetch::prefetch;

/// The number of rows that are prefetched ahead of the current one.
const AHEAD: usize = 4;

pub(super) fn table() -> Option<Kernels> {
    let found = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("popcnt");
    // SAFETY (of every entry): the instructions were detected above, and only this table exposes these functions.
    found.then_some(Kernels {
        name: "avx2",
        dot_f32: |a, b| unsafe { dot_f32(a, b) },
        l2_f32: |a, b| unsafe { l2_f32(a, b) },
        dot_f16: |a, b| unsafe { dot_f16(a, b) },
        l2_f16: |a, b| unsafe { l2_f16(a, b) },
        dot_f32_i8: |a, b, scale| unsafe { dot_f32_i8(a, b, scale) },
        l2_f32_i8: |a, b, scale| unsafe { l2_f32_i8(a, b, scale) },
        dot_i8: |a, b| unsafe { dot_i8(a, b) },
        l2_i8: |a, b| unsafe { l2_i8(a, b) },
        hamming: |a, b| unsafe { hamming(a, b) },
        and_count: |a, b| unsafe { and_count(a, b) },
        and_ranks: |a, b, below, out| unsafe { and_ranks(a, b, below, out) },
        dot_f32_rows: |q, rows, out| unsafe { dot_f32_rows(q, rows, out) },
        l2_f32_rows: |q, rows, out| unsafe { l2_f32_rows(q, rows, out) },
        dot_f16_rows: |q, rows, out| unsafe { dot_f16_rows(q, rows, out) },
        l2_f16_rows: |q, rows, out| unsafe { l2_f16_rows(q, rows, out) },
        dot_i8_rows: |q, rows, out| unsafe { dot_i8_rows(q, rows, out) },
        l2_i8_rows: |q, rows, out| unsafe { l2_i8_rows(q, rows, out) },
        hamming_rows: |q, rows, out| unsafe { hamming_rows(q, rows, out) },
        plane_sums: |planes, blocks, out| unsafe { plane_sums(planes, blocks, out) },
        dot_i8_gather: |q, codes, at, out| unsafe { dot_i8_gather(q, codes, at, out) },
        l2_i8_gather: |q, codes, at, out| unsafe { l2_i8_gather(q, codes, at, out) },
    })
}

// A stored type that float kernels load as `f32`, eight lanes at a time.
trait Wide: Copy {
    /// # Safety
    /// 8 elements must be readable at `at`, and AVX2 and F16C there.
    unsafe fn whole(at: *const Self) -> __m256;
}

impl Wide for f32 {
    #[inline(always)]
    unsafe fn whole(at: *const Self) -> __m256 {
        // SAFETY: see the trait.
        unsafe { _mm256_loadu_ps(at) }
    }
}

impl Wide for f16 {
    #[inline(always)]
    unsafe fn whole(at: *const Self) -> __m256 {
        // SAFETY: see the trait.
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(at.cast())) }
    }
}

impl Wide for i8 {
    #[inline(always)]
    unsafe fn whole(at: *const Self) -> __m256 {
        // SAFETY: see the trait.
        unsafe { _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(at.cast()))) }
    }
}

/// The sum of the eight lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn sum_ps(v: __m256) -> f32 {
    let v = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
    let v = _mm_add_ps(v, _mm_movehl_ps(v, v));
    _mm_cvtss_f32(_mm_add_ss(v, _mm_movehdup_ps(v)))
}

/// The sum of the eight lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn sum_epi32(v: __m256i) -> i32 {
    let v = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v));
    let v = _mm_add_epi32(v, _mm_shuffle_epi32::<0b01_00_11_10>(v));
    _mm_cvtsi128_si32(_mm_add_epi32(v, _mm_shuffle_epi32::<0b10_11_00_01>(v)))
}

macro_rules! float_kernel {
    ($name:ident, $b:ty, $rest:expr, |$sum:ident, $x:ident, $y:ident $(, $scale:ident)?| $step:expr) => {
        #[inline]
        #[target_feature(enable = "avx2,fma,f16c")]
        fn $name(a: &[f32], b: &[$b] $(, $scale: f32)?) -> f32 {
            let n = a.len().min(b.len());
            let (pa, pb) = (a.as_ptr(), b.as_ptr());
            let rest = n / 8 * 8;
            let rest: f32 = $rest(&a[rest..n], &b[rest..n] $(, $scale)?);
            $(let $scale = _mm256_set1_ps($scale);)?
            let mut sums = [_mm256_setzero_ps(); 4];
            let mut i = 0;
            // SAFETY: every load starts at `i` and ends at `n` or before, within both slices.
            unsafe {
                while i + 32 <= n {
                    for (lane, $sum) in sums.iter_mut().enumerate() {
                        let at = i + lane * 8;
                        let ($x, $y) = (f32::whole(pa.add(at)), <$b>::whole(pb.add(at)));
                        *$sum = { let $sum = *$sum; $step };
                    }
                    i += 32;
                }
                while i + 8 <= n {
                    let ($x, $y) = (f32::whole(pa.add(i)), <$b>::whole(pb.add(i)));
                    sums[0] = { let $sum = sums[0]; $step };
                    i += 8;
                }
            }
            let [s, t, u, v] = sums;
            sum_ps(_mm256_add_ps(_mm256_add_ps(s, t), _mm256_add_ps(u, v))) + rest
        }
    };
}

float_kernel!(dot_f32, f32, scalar::dot_f32, |sum, x, y| _mm256_fmadd_ps(x, y, sum));
float_kernel!(dot_f16, f16, scalar::dot_f16, |sum, x, y| _mm256_fmadd_ps(x, y, sum));
float_kernel!(l2_f32, f32, scalar::l2_f32, |sum, x, y| {
    let d = _mm256_sub_ps(x, y);
    _mm256_fmadd_ps(d, d, sum)
});
float_kernel!(l2_f16, f16, scalar::l2_f16, |sum, x, y| {
    let d = _mm256_sub_ps(x, y);
    _mm256_fmadd_ps(d, d, sum)
});
float_kernel!(dot_f32_i8, i8, scalar::dot_f32_i8, |sum, x, y, scale| {
    _mm256_fmadd_ps(x, _mm256_mul_ps(y, scale), sum)
});
float_kernel!(l2_f32_i8, i8, scalar::l2_f32_i8, |sum, x, y, scale| {
    let d = _mm256_fnmadd_ps(y, scale, x);
    _mm256_fmadd_ps(d, d, sum)
});

/// The dot product. Magnitudes of `b` times signed components of `a`, which is at least -127: then the sum of two
/// products fits 16 bits, and 32 pairs are multiplied at once.
#[inline]
#[target_feature(enable = "avx2")]
fn dot_i8(a: &[i8], b: &[i8]) -> i32 {
    let n = a.len().min(b.len());
    let (pa, pb) = (a.as_ptr(), b.as_ptr());
    let ones = _mm256_set1_epi16(1);
    let products = |at: usize| {
        // SAFETY: callers see to it that 32 components from `at` on are within both slices.
        let (x, y) = unsafe { (_mm256_loadu_si256(pa.add(at).cast()), _mm256_loadu_si256(pb.add(at).cast())) };
        _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_abs_epi8(y), _mm256_sign_epi8(x, y)), ones)
    };
    let mut sums = [_mm256_setzero_si256(); 2];
    let mut i = 0;
    while i + 64 <= n {
        sums[0] = _mm256_add_epi32(sums[0], products(i));
        sums[1] = _mm256_add_epi32(sums[1], products(i + 32));
        i += 64;
    }
    if i + 32 <= n {
        sums[0] = _mm256_add_epi32(sums[0], products(i));
        i += 32;
    }
    sum_epi32(_mm256_add_epi32(sums[0], sums[1])) + scalar::dot_i8(&a[i..n], &b[i..n])
}

macro_rules! code_kernel {
    ($name:ident, $rest:expr, |$x:ident, $y:ident| $step:expr) => {
        #[inline]
        #[target_feature(enable = "avx2")]
        fn $name(a: &[i8], b: &[i8]) -> i32 {
            let n = a.len().min(b.len());
            let (pa, pb) = (a.as_ptr(), b.as_ptr());
            let mut sums = [_mm256_setzero_si256(); 2];
            let mut i = 0;
            // SAFETY: every load starts at `i` and ends at `n` or before, within both slices.
            unsafe {
                while i + 32 <= n {
                    for (lane, sum) in sums.iter_mut().enumerate() {
                        let at = i + lane * 16;
                        let $x = _mm256_cvtepi8_epi16(_mm_loadu_si128(pa.add(at).cast()));
                        let $y = _mm256_cvtepi8_epi16(_mm_loadu_si128(pb.add(at).cast()));
                        *sum = _mm256_add_epi32(*sum, $step);
                    }
                    i += 32;
                }
                if i + 16 <= n {
                    let $x = _mm256_cvtepi8_epi16(_mm_loadu_si128(pa.add(i).cast()));
                    let $y = _mm256_cvtepi8_epi16(_mm_loadu_si128(pb.add(i).cast()));
                    sums[0] = _mm256_add_epi32(sums[0], $step);
                    i += 16;
                }
            }
            sum_epi32(_mm256_add_epi32(sums[0], sums[1])) + $rest(&a[i..n], &b[i..n])
        }
    };
}

code_kernel!(l2_i8, scalar::l2_i8, |x, y| {
    let d = _mm256_sub_epi16(x, y);
    _mm256_madd_epi16(d, d)
});

macro_rules! many {
    ($rows:ident, $one:ident, $a:ty, $b:ty, $r:ty) => {
        #[target_feature(enable = "avx2,fma,f16c")]
        fn $rows(query: &[$a], rows: &[$b], out: &mut [$r]) {
            for (row, out) in rows.chunks_exact(query.len()).zip(out) {
                *out = $one(query, row);
            }
        }
    };
    ($gather:ident, $one:ident) => {
        #[target_feature(enable = "avx2")]
        fn $gather(query: &[i8], codes: &[i8], positions: &[u32], out: &mut [i32]) {
            let dim = query.len();
            for position in positions.iter().take(AHEAD) {
                prefetch(row(codes, dim, *position));
            }
            for (i, (position, out)) in positions.iter().zip(out).enumerate() {
                if let Some(next) = positions.get(i + AHEAD) {
                    prefetch(row(codes, dim, *next));
                }
                *out = $one(query, row(codes, dim, *position));
            }
        }
    };
}

many!(dot_f32_rows, dot_f32, f32, f32, f32);
many!(l2_f32_rows, l2_f32, f32, f32, f32);
many!(dot_f16_rows, dot_f16, f32, f16, f32);
many!(l2_f16_rows, l2_f16, f32, f16, f32);
many!(dot_i8_rows, dot_i8, i8, i8, i32);
many!(l2_i8_rows, l2_i8, i8, i8, i32);
many!(dot_i8_gather, dot_i8);
many!(l2_i8_gather, l2_i8);

#[target_feature(enable = "popcnt")]
fn hamming(a: &[u8], b: &[u8]) -> u32 {
    hamming_words(a, b)
}

#[target_feature(enable = "popcnt")]
fn hamming_rows(query: &[u8], rows: &[u8], out: &mut [u32]) {
    for (row, out) in rows.chunks_exact(query.len()).zip(out) {
        *out = hamming_words(query, row);
    }
}

#[target_feature(enable = "popcnt")]
pub(super) fn plane_sums(planes: &[[u64; PLANES]], blocks: &[[u64; SIDE_BY_SIDE]], out: &mut [[i32; SIDE_BY_SIDE]]) {
    portable::plane_sums(planes, blocks, out);
}

#[target_feature(enable = "popcnt")]
fn and_count(a: &[u64], b: &[u64]) -> u64 {
    and_count_words(a, b)
}

#[target_feature(enable = "popcnt,bmi1")]
pub(super) fn and_ranks(a: &[u64], b: &[u64], below: u32, out: &mut Vec<u32>) {
    portable::and_ranks(a, b, below, out);
}

/// The number of bits that `a` and `b` share, with the instructions that the caller enables. A loop instead of an
/// iterator's sum, which may be compiled separately, without those instructions.
#[inline(always)]
pub(super) fn and_count_words(a: &[u64], b: &[u64]) -> u64 {
    let shared = a.len().min(b.len());
    let (a, a_rest) = a[..shared].as_chunks::<4>();
    let (b, b_rest) = b[..shared].as_chunks::<4>();
    let mut counts = [0u64; 4];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..4 {
            counts[lane] += u64::from((a[lane] & b[lane]).count_ones());
        }
    }
    counts.iter().sum::<u64>() + scalar::and_count(a_rest, b_rest)
}

/// The number of bits in which `a` and `b` differ, eight bytes at a time.
#[inline(always)]
pub(super) fn hamming_words(a: &[u8], b: &[u8]) -> u32 {
    let (a_words, a_rest) = a.as_chunks::<8>();
    let (b_words, b_rest) = b.as_chunks::<8>();
    let words = a_words.iter().zip(b_words);
    words.map(|(x, y)| (u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y)).count_ones()).sum::<u32>()
        + scalar::hamming(a_rest, b_rest)
}
