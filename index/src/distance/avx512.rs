//! Kernels for AVX-512 with VNNI.
//!
//! Floats run in four independent sums, so that additions do not wait for each other, and end in a masked step. Rows that
//! follow each other are compared four at a time, so that the query is read once for the four; each has sums of its own in
//! the same order, so that its score is bit for bit that of a comparison alone. Codes
//! use `vpdpbusd`, which multiplies unsigned by signed bytes: the vector's sign bit is flipped (128 added), and 128
//! times the sum of the query is taken off again, once for a whole gather. Several rows of codes are compared four at a
//! time: the query is read once for the four, and their sums are folded in one go, which otherwise costs more than the
//! products do.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use half::f16;

use super::{Kernels, prefetch, row};

/// Rows that are compared at a time.
const FOUR: usize = 4;

/// Rows fetched ahead of those at work.
const AHEAD: usize = 2 * FOUR;

pub(super) fn table() -> Option<Kernels> {
    let found = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vnni")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("popcnt");
    // Newer than the others.
    let popcnt = is_x86_feature_detected!("avx512vpopcntdq");
    // SAFETY (of every entry): the instructions were found above, and nothing else hands these functions out.
    found.then_some(Kernels {
        name: "avx512",
        dot_f32: |a, b| unsafe { dot_f32(a, b) },
        l2_f32: |a, b| unsafe { l2_f32(a, b) },
        dot_f16: |a, b| unsafe { dot_f16(a, b) },
        l2_f16: |a, b| unsafe { l2_f16(a, b) },
        dot_f32_i8: |a, b, scale| unsafe { dot_f32_i8(a, b, scale) },
        l2_f32_i8: |a, b, scale| unsafe { l2_f32_i8(a, b, scale) },
        dot_i8: |a, b| unsafe { dot_i8(a, b) },
        l2_i8: |a, b| unsafe { l2_i8(a, b) },
        hamming: if popcnt { |a, b| unsafe { hamming_wide(a, b) } } else { |a, b| unsafe { hamming(a, b) } },
        and_count: if popcnt { |a, b| unsafe { and_count_wide(a, b) } } else { |a, b| unsafe { and_count(a, b) } },
        dot_f32_rows: |q, rows, out| unsafe { dot_f32_rows(q, rows, out) },
        l2_f32_rows: |q, rows, out| unsafe { l2_f32_rows(q, rows, out) },
        dot_f16_rows: |q, rows, out| unsafe { dot_f16_rows(q, rows, out) },
        l2_f16_rows: |q, rows, out| unsafe { l2_f16_rows(q, rows, out) },
        dot_i8_rows: |q, rows, out| unsafe { dot_i8_rows(q, rows, out) },
        l2_i8_rows: |q, rows, out| unsafe { l2_i8_rows(q, rows, out) },
        hamming_rows: if popcnt {
            |q, rows, out| unsafe { hamming_wide_rows(q, rows, out) }
        } else {
            |q, rows, out| unsafe { hamming_rows(q, rows, out) }
        },
        dot_i8_gather: |q, codes, at, out| unsafe { dot_i8_gather(q, codes, at, out) },
        l2_i8_gather: |q, codes, at, out| unsafe { l2_i8_gather(q, codes, at, out) },
    })
}

/// The mask of the lowest `n` of 16 lanes.
#[inline(always)]
fn mask16(n: usize) -> __mmask16 {
    ((1u32 << n) - 1) as __mmask16
}

/// The mask of the lowest `n` of 64 lanes, `n` below 64.
#[inline(always)]
fn mask64(n: usize) -> __mmask64 {
    (1u64 << n) - 1
}

// What a float kernel reads, sixteen lanes at a time, as `f32`.
//
// SAFETY (of the loads): `Wide::whole` reads 16 elements and `Wide::part` the first `n`; the loop in `float_kernel!`
// asks for no more than the slice has left.
trait Wide: Copy {
    /// # Safety
    /// 16 elements must be readable at `at`, and AVX-512 F and F16C there.
    unsafe fn whole(at: *const Self) -> __m512;
    /// # Safety
    /// `n` elements must be readable at `at`, `n` below 16, and AVX-512 F, BW, VL and F16C there.
    unsafe fn part(at: *const Self, n: usize) -> __m512;
}

impl Wide for f32 {
    #[inline(always)]
    unsafe fn whole(at: *const Self) -> __m512 {
        // SAFETY: see the trait.
        unsafe { _mm512_loadu_ps(at) }
    }
    #[inline(always)]
    unsafe fn part(at: *const Self, n: usize) -> __m512 {
        // SAFETY: see the trait; masked lanes are not read.
        unsafe { _mm512_maskz_loadu_ps(mask16(n), at) }
    }
}

// Under the current rounding, which widening has no use for, a conversion may read its halves from memory itself;
// `_mm512_cvtph_ps` names a rounding, cannot, and takes a shuffle more.
impl Wide for f16 {
    #[inline(always)]
    unsafe fn whole(at: *const Self) -> __m512 {
        // SAFETY: see the trait.
        unsafe { _mm512_cvt_roundph_ps::<_MM_FROUND_CUR_DIRECTION>(_mm256_loadu_si256(at.cast())) }
    }
    #[inline(always)]
    unsafe fn part(at: *const Self, n: usize) -> __m512 {
        // SAFETY: see the trait; masked lanes are not read.
        unsafe { _mm512_cvt_roundph_ps::<_MM_FROUND_CUR_DIRECTION>(_mm256_maskz_loadu_epi16(mask16(n), at.cast())) }
    }
}

impl Wide for i8 {
    #[inline(always)]
    unsafe fn whole(at: *const Self) -> __m512 {
        // SAFETY: see the trait.
        unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(at.cast()))) }
    }
    #[inline(always)]
    unsafe fn part(at: *const Self, n: usize) -> __m512 {
        // SAFETY: see the trait; masked lanes are not read.
        unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(mask16(n), at.cast()))) }
    }
}

macro_rules! float_kernel {
    ($name:ident, $rows:ident, $b:ty, |$sum:ident, $x:ident, $y:ident $(, $scale:ident)?| $step:expr) => {
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,f16c,fma")]
        fn $name(a: &[f32], b: &[$b] $(, $scale: f32)?) -> f32 {
            let n = a.len().min(b.len());
            let (pa, pb) = (a.as_ptr(), b.as_ptr());
            $(let $scale = _mm512_set1_ps($scale);)?
            let mut sums = [_mm512_setzero_ps(); 4];
            let mut i = 0;
            // SAFETY: every load starts at `i` and ends at `n` or before, within both slices.
            unsafe {
                while i + 64 <= n {
                    for (lane, $sum) in sums.iter_mut().enumerate() {
                        let at = i + lane * 16;
                        let ($x, $y) = (f32::whole(pa.add(at)), <$b>::whole(pb.add(at)));
                        *$sum = { let $sum = *$sum; $step };
                    }
                    i += 64;
                }
                while i + 16 <= n {
                    let ($x, $y) = (f32::whole(pa.add(i)), <$b>::whole(pb.add(i)));
                    sums[0] = { let $sum = sums[0]; $step };
                    i += 16;
                }
                if i < n {
                    let ($x, $y) = (f32::part(pa.add(i), n - i), <$b>::part(pb.add(i), n - i));
                    sums[1] = { let $sum = sums[1]; $step };
                }
            }
            let [s, t, u, v] = sums;
            _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(s, t), _mm512_add_ps(u, v)))
        }

        #[target_feature(enable = "avx512f,avx512bw,avx512vl,f16c,fma")]
        fn $rows(query: &[f32], rows: &[$b], out: &mut [f32]) {
            let n = query.len();
            let (fours, rest) = out.as_chunks_mut::<FOUR>();
            let (four_rows, rest_rows) = rows.split_at(fours.len() * FOUR * n);
            for (rows, out) in four_rows.chunks_exact(FOUR * n).zip(fours) {
                let (pq, pr) = (query.as_ptr(), rows.as_ptr());
                let mut sums = [[_mm512_setzero_ps(); 4]; FOUR];
                let mut i = 0;
                // SAFETY: every load starts at `i` of the query or of one of the four rows and ends at `n` or before.
                unsafe {
                    while i + 64 <= n {
                        for lane in 0..4 {
                            let at = i + lane * 16;
                            let $x = f32::whole(pq.add(at));
                            for (row, sums) in sums.iter_mut().enumerate() {
                                let $y = <$b>::whole(pr.add(row * n + at));
                                sums[lane] = { let $sum = sums[lane]; $step };
                            }
                        }
                        i += 64;
                    }
                    while i + 16 <= n {
                        let $x = f32::whole(pq.add(i));
                        for (row, sums) in sums.iter_mut().enumerate() {
                            let $y = <$b>::whole(pr.add(row * n + i));
                            sums[0] = { let $sum = sums[0]; $step };
                        }
                        i += 16;
                    }
                    if i < n {
                        let $x = f32::part(pq.add(i), n - i);
                        for (row, sums) in sums.iter_mut().enumerate() {
                            let $y = <$b>::part(pr.add(row * n + i), n - i);
                            sums[1] = { let $sum = sums[1]; $step };
                        }
                    }
                }
                for (out, [s, t, u, v]) in out.iter_mut().zip(sums) {
                    *out = _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(s, t), _mm512_add_ps(u, v)));
                }
            }
            for (row, out) in rest_rows.chunks_exact(n).zip(rest) {
                *out = $name(query, row);
            }
        }
    };
    ($name:ident, $b:ty, |$sum:ident, $x:ident, $y:ident, $scale:ident| $step:expr) => {
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,f16c,fma")]
        fn $name(a: &[f32], b: &[$b], $scale: f32) -> f32 {
            let n = a.len().min(b.len());
            let (pa, pb) = (a.as_ptr(), b.as_ptr());
            let $scale = _mm512_set1_ps($scale);
            let mut $sum = _mm512_setzero_ps();
            let mut i = 0;
            // SAFETY: every load starts at `i` and ends at `n` or before, within both slices.
            unsafe {
                while i + 16 <= n {
                    let ($x, $y) = (f32::whole(pa.add(i)), <$b>::whole(pb.add(i)));
                    $sum = $step;
                    i += 16;
                }
                if i < n {
                    let ($x, $y) = (f32::part(pa.add(i), n - i), <$b>::part(pb.add(i), n - i));
                    $sum = $step;
                }
            }
            _mm512_reduce_add_ps($sum)
        }
    };
}

float_kernel!(dot_f32, dot_f32_rows, f32, |sum, x, y| _mm512_fmadd_ps(x, y, sum));
float_kernel!(dot_f16, dot_f16_rows, f16, |sum, x, y| _mm512_fmadd_ps(x, y, sum));
float_kernel!(l2_f32, l2_f32_rows, f32, |sum, x, y| {
    let d = _mm512_sub_ps(x, y);
    _mm512_fmadd_ps(d, d, sum)
});
float_kernel!(l2_f16, l2_f16_rows, f16, |sum, x, y| {
    let d = _mm512_sub_ps(x, y);
    _mm512_fmadd_ps(d, d, sum)
});
float_kernel!(dot_f32_i8, i8, |sum, x, y, scale| _mm512_fmadd_ps(x, _mm512_mul_ps(y, scale), sum));
float_kernel!(l2_f32_i8, i8, |sum, x, y, scale| {
    let d = _mm512_fnmadd_ps(y, scale, x);
    _mm512_fmadd_ps(d, d, sum)
});

/// The sum of (b + 128) * a.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn dot_biased(a: &[i8], b: &[i8]) -> i32 {
    let n = a.len().min(b.len());
    let (pa, pb) = (a.as_ptr(), b.as_ptr());
    let flip = _mm512_set1_epi8(-128);
    let (mut s, mut t) = (_mm512_setzero_si512(), _mm512_setzero_si512());
    let mut i = 0;
    // SAFETY: every load starts at `i` and ends at `n` or before, within both slices; masked lanes are not read.
    unsafe {
        while i + 128 <= n {
            let x = _mm512_loadu_si512(pa.add(i).cast());
            let y = _mm512_xor_si512(_mm512_loadu_si512(pb.add(i).cast()), flip);
            s = _mm512_dpbusd_epi32(s, y, x);
            let x = _mm512_loadu_si512(pa.add(i + 64).cast());
            let y = _mm512_xor_si512(_mm512_loadu_si512(pb.add(i + 64).cast()), flip);
            t = _mm512_dpbusd_epi32(t, y, x);
            i += 128;
        }
        if i + 64 <= n {
            let x = _mm512_loadu_si512(pa.add(i).cast());
            let y = _mm512_xor_si512(_mm512_loadu_si512(pb.add(i).cast()), flip);
            s = _mm512_dpbusd_epi32(s, y, x);
            i += 64;
        }
        if i < n {
            let mask = mask64(n - i);
            let x = _mm512_maskz_loadu_epi8(mask, pa.add(i));
            let y = _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, pb.add(i)), flip);
            t = _mm512_dpbusd_epi32(t, y, x);
        }
    }
    _mm512_reduce_add_epi32(_mm512_add_epi32(s, t))
}

/// 128 times the sum of a.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn bias(a: &[i8]) -> i32 {
    let flip = _mm512_set1_epi8(-128);
    let (blocks, rest) = a.as_chunks::<64>();
    let mut sum = _mm512_setzero_si512();
    for block in blocks {
        // SAFETY: the block is 64 bytes.
        sum = _mm512_dpbusd_epi32(sum, flip, unsafe { _mm512_loadu_si512(block.as_ptr().cast()) });
    }
    _mm512_reduce_add_epi32(sum) + rest.iter().map(|x| i32::from(*x)).sum::<i32>() * 128
}

// The biased sum may wrap at the largest dimensions; taking the bias off wraps it back.

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn dot_i8(a: &[i8], b: &[i8]) -> i32 {
    dot_biased(a, b).wrapping_sub(bias(a))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn l2_i8(a: &[i8], b: &[i8]) -> i32 {
    let n = a.len().min(b.len());
    let (pa, pb) = (a.as_ptr(), b.as_ptr());
    let (mut s, mut t) = (_mm512_setzero_si512(), _mm512_setzero_si512());
    let mut i = 0;
    // SAFETY: every load starts at `i` and ends at `n` or before, within both slices; masked lanes are not read.
    unsafe {
        while i + 64 <= n {
            let x = _mm512_cvtepi8_epi16(_mm256_loadu_si256(pa.add(i).cast()));
            let y = _mm512_cvtepi8_epi16(_mm256_loadu_si256(pb.add(i).cast()));
            let d = _mm512_sub_epi16(x, y);
            s = _mm512_dpwssd_epi32(s, d, d);
            let x = _mm512_cvtepi8_epi16(_mm256_loadu_si256(pa.add(i + 32).cast()));
            let y = _mm512_cvtepi8_epi16(_mm256_loadu_si256(pb.add(i + 32).cast()));
            let d = _mm512_sub_epi16(x, y);
            t = _mm512_dpwssd_epi32(t, d, d);
            i += 64;
        }
        if i < n {
            let mask = mask64(n - i);
            let x = _mm512_maskz_loadu_epi8(mask, pa.add(i));
            let y = _mm512_maskz_loadu_epi8(mask, pb.add(i));
            for (x, y) in [
                (_mm512_castsi512_si256(x), _mm512_castsi512_si256(y)),
                (_mm512_extracti64x4_epi64::<1>(x), _mm512_extracti64x4_epi64::<1>(y)),
            ] {
                let d = _mm512_sub_epi16(_mm512_cvtepi8_epi16(x), _mm512_cvtepi8_epi16(y));
                s = _mm512_dpwssd_epi32(s, d, d);
            }
        }
    }
    _mm512_reduce_add_epi32(_mm512_add_epi32(s, t))
}

/// The sums of neighbouring lanes, of the first register in the even lanes and of the second in the odd ones.
#[inline]
#[target_feature(enable = "avx512f")]
fn paired(a: __m512i, b: __m512i) -> __m512i {
    _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b))
}

/// The sums of the lanes of each, less `bias`: all four are added up at once, where one by one would take a shuffle more
/// for each row.
#[inline]
#[target_feature(enable = "avx512f,avx2")]
fn sums(s: __m512i, t: __m512i, u: __m512i, v: __m512i, bias: i32) -> [i32; FOUR] {
    let (st, uv) = (paired(s, t), paired(u, v));
    let quarters = _mm512_add_epi32(_mm512_unpacklo_epi64(st, uv), _mm512_unpackhi_epi64(st, uv));
    let half = _mm256_add_epi32(_mm512_castsi512_si256(quarters), _mm512_extracti64x4_epi64::<1>(quarters));
    let all = _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256::<1>(half));
    let mut out = [0; FOUR];
    // SAFETY: the array is sixteen bytes.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), _mm_sub_epi32(all, _mm_set1_epi32(bias))) };
    out
}

/// What a step of 64 codes adds to a sum: (b + 128) * a.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn add_product(sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
    _mm512_dpbusd_epi32(sum, _mm512_xor_si512(b, _mm512_set1_epi8(-128)), a)
}

/// What a step of 64 codes adds to a sum: (a - b)^2.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn add_square(sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
    let low = _mm512_sub_epi16(
        _mm512_cvtepi8_epi16(_mm512_castsi512_si256(a)),
        _mm512_cvtepi8_epi16(_mm512_castsi512_si256(b)),
    );
    let high = _mm512_sub_epi16(
        _mm512_cvtepi8_epi16(_mm512_extracti64x4_epi64::<1>(a)),
        _mm512_cvtepi8_epi16(_mm512_extracti64x4_epi64::<1>(b)),
    );
    _mm512_dpwssd_epi32(_mm512_dpwssd_epi32(sum, low, low), high, high)
}

// One row and four rows of codes at a time, in a row or here and there. Written out: closures and iterators over registers
// are not inlined into functions with features of their own.
macro_rules! code_rows {
    ($rows:ident, $gather:ident, $four:ident, $add:ident, $one:ident, $bias:expr) => {
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2")]
        fn $four(query: &[i8], [b, c, d, e]: [&[i8]; FOUR], bias: i32) -> [i32; FOUR] {
            let n = query.len().min(b.len()).min(c.len()).min(d.len()).min(e.len());
            let (q, b, c, d, e) = (query.as_ptr(), b.as_ptr(), c.as_ptr(), d.as_ptr(), e.as_ptr());
            let zero = _mm512_setzero_si512();
            let (mut s, mut t, mut u, mut v) = (zero, zero, zero, zero);
            let mut i = 0;
            // SAFETY: every load starts at `i` and ends at `n` or before, within all slices; masked lanes are not read.
            unsafe {
                while i + 64 <= n {
                    let x = _mm512_loadu_si512(q.add(i).cast());
                    s = $add(s, x, _mm512_loadu_si512(b.add(i).cast()));
                    t = $add(t, x, _mm512_loadu_si512(c.add(i).cast()));
                    u = $add(u, x, _mm512_loadu_si512(d.add(i).cast()));
                    v = $add(v, x, _mm512_loadu_si512(e.add(i).cast()));
                    i += 64;
                }
                if i < n {
                    let mask = mask64(n - i);
                    let x = _mm512_maskz_loadu_epi8(mask, q.add(i));
                    s = $add(s, x, _mm512_maskz_loadu_epi8(mask, b.add(i)));
                    t = $add(t, x, _mm512_maskz_loadu_epi8(mask, c.add(i)));
                    u = $add(u, x, _mm512_maskz_loadu_epi8(mask, d.add(i)));
                    v = $add(v, x, _mm512_maskz_loadu_epi8(mask, e.add(i)));
                }
            }
            sums(s, t, u, v, bias)
        }

        #[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2")]
        fn $rows(query: &[i8], rows: &[i8], out: &mut [i32]) {
            let (dim, bias) = (query.len(), $bias(query));
            let (fours, rest) = out.as_chunks_mut::<FOUR>();
            let done = (fours.len() * FOUR) as u32;
            for (at, out) in (0..).step_by(FOUR).zip(fours) {
                let four = [row(rows, dim, at), row(rows, dim, at + 1), row(rows, dim, at + 2), row(rows, dim, at + 3)];
                *out = $four(query, four, bias);
            }
            for (at, out) in (done..).zip(rest) {
                *out = $one(query, row(rows, dim, at)).wrapping_sub(bias);
            }
        }

        #[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2")]
        fn $gather(query: &[i8], codes: &[i8], positions: &[u32], out: &mut [i32]) {
            let (dim, bias) = (query.len(), $bias(query));
            for position in positions.iter().take(AHEAD) {
                prefetch(row(codes, dim, *position));
            }
            let mut ahead = positions.iter().skip(AHEAD);
            let (fours, rest) = positions.as_chunks::<FOUR>();
            let (out_fours, out_rest) = out.as_chunks_mut::<FOUR>();
            for ([a, b, c, d], out) in fours.iter().zip(out_fours) {
                for position in ahead.by_ref().take(FOUR) {
                    prefetch(row(codes, dim, *position));
                }
                let four = [row(codes, dim, *a), row(codes, dim, *b), row(codes, dim, *c), row(codes, dim, *d)];
                *out = $four(query, four, bias);
            }
            for (position, out) in rest.iter().zip(out_rest) {
                *out = $one(query, row(codes, dim, *position)).wrapping_sub(bias);
            }
        }
    };
}

code_rows!(dot_i8_rows, dot_i8_gather, dot_i8_four, add_product, dot_biased, bias);
code_rows!(l2_i8_rows, l2_i8_gather, l2_i8_four, add_square, l2_i8, |_: &[i8]| 0);

/// The number of bits in which two codes differ, 64 bytes at a time.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vpopcntdq")]
fn hamming_wide(a: &[u8], b: &[u8]) -> u32 {
    let n = a.len().min(b.len());
    let mut sum = _mm512_setzero_si512();
    let mut i = 0;
    // SAFETY: every load starts at `i` and ends at `n` or before, within both slices; masked lanes are not read.
    unsafe {
        while i < n {
            let mask = if n - i < 64 { mask64(n - i) } else { u64::MAX };
            let x = _mm512_maskz_loadu_epi8(mask, a.as_ptr().add(i).cast());
            let y = _mm512_maskz_loadu_epi8(mask, b.as_ptr().add(i).cast());
            sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(_mm512_xor_si512(x, y)));
            i += 64;
        }
    }
    _mm512_reduce_add_epi64(sum) as u32
}

#[target_feature(enable = "avx512f,avx512bw,avx512vpopcntdq")]
fn hamming_wide_rows(query: &[u8], rows: &[u8], out: &mut [u32]) {
    for (row, out) in rows.chunks_exact(query.len()).zip(out) {
        *out = hamming_wide(query, row);
    }
}

#[target_feature(enable = "avx512f,popcnt")]
fn hamming(a: &[u8], b: &[u8]) -> u32 {
    super::avx2::hamming_words(a, b)
}

#[target_feature(enable = "avx512f,popcnt")]
fn hamming_rows(query: &[u8], rows: &[u8], out: &mut [u32]) {
    for (row, out) in rows.chunks_exact(query.len()).zip(out) {
        *out = super::avx2::hamming_words(query, row);
    }
}

/// The number of bits that two bit vectors share, 64 bytes at a time.
#[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt")]
fn and_count_wide(a: &[u64], b: &[u64]) -> u64 {
    let shared = a.len().min(b.len());
    let (a, a_rest) = a[..shared].as_chunks::<8>();
    let (b, b_rest) = b[..shared].as_chunks::<8>();
    let (mut even, mut odd) = (_mm512_setzero_si512(), _mm512_setzero_si512());
    for (a, b) in a.iter().zip(b) {
        // SAFETY: both are 64 bytes.
        let both =
            unsafe { _mm512_and_si512(_mm512_loadu_si512(a.as_ptr().cast()), _mm512_loadu_si512(b.as_ptr().cast())) };
        // Two sums in turn, so that one addition need not wait for the other.
        (even, odd) = (odd, _mm512_add_epi64(even, _mm512_popcnt_epi64(both)));
    }
    _mm512_reduce_add_epi64(_mm512_add_epi64(even, odd)) as u64 + super::avx2::and_count_words(a_rest, b_rest)
}

#[target_feature(enable = "popcnt")]
fn and_count(a: &[u64], b: &[u64]) -> u64 {
    super::avx2::and_count_words(a, b)
}
