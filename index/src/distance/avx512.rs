//! Kernels for AVX-512 with VNNI.
//!
//! Rows are compared four at a time: the query is read once for four rows, and their sums are reduced together.
//! Reducing them one by one would cost more than the products.
//!
//! The hardware prefetcher stops at the end of a page and then starts again. So of consecutive rows of floats, the four
//! rows are one of each quarter: while one of the four streams restarts, the others continue. Rows of codes are short,
//! so that storing four results in separate places costs more than it gains, except for rows that come from memory.
//!
//! Floats are added in four independent sums, so that additions do not wait for each other, with a masked last step. A
//! row has the same sums in the same order alone and with others, so that its score is bit-identical.
#![allow(unsafe_code)]

mod codes;

use std::arch::x86_64::*;

use half::f16;

use self::codes::{dot_i8, dot_i8_gather, dot_i8_rows, l2_i8, l2_i8_gather, l2_i8_rows};
use super::{Kernels, PLANES, SIDE_BY_SIDE};

/// The number of rows that are compared at a time.
const FOUR: usize = 4;

/// The number of bytes that are prefetched ahead of consecutive codes; at least four rows.
const AHEAD_BYTES: usize = 3 << 10;

pub(super) fn table() -> Option<Kernels> {
    let found = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vnni")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("popcnt");
    // These instructions are newer than the others.
    let popcnt = is_x86_feature_detected!("avx512vpopcntdq");
    let compress = is_x86_feature_detected!("avx512vbmi2") && is_x86_feature_detected!("bmi2");
    // SAFETY (of every entry): the instructions were detected above, and only this table exposes these functions.
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
        and_ranks: if compress {
            |a, b, below, out| unsafe { and_ranks_wide(a, b, below, out) }
        } else {
            |a, b, below, out| unsafe { super::avx2::and_ranks(a, b, below, out) }
        },
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
        plane_sums: if popcnt {
            |planes, blocks, out| unsafe { plane_sums_wide(planes, blocks, out) }
        } else {
            |planes, blocks, out| unsafe { super::avx2::plane_sums(planes, blocks, out) }
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

// A stored type that float kernels load as `f32`, sixteen lanes at a time.
//
// SAFETY (of the loads): `Wide::whole` reads 16 elements and `Wide::part` the first `n`; the loop in `float_kernel!`
// asks for no more than the slice has left.
trait Wide: Copy {
    /// The number of bytes that are prefetched ahead in each stream of rows. If a cache line takes more work than a
    /// load and an addition, the processor alone has too few loads in flight.
    const AHEAD: usize;

    /// # Safety
    /// 16 elements must be readable at `at`, and AVX-512 F and F16C there.
    unsafe fn whole(at: *const Self) -> __m512;
    /// # Safety
    /// `n` elements must be readable at `at`, `n` below 16, and AVX-512 F, BW, VL and F16C there.
    unsafe fn part(at: *const Self, n: usize) -> __m512;
}

impl Wide for f32 {
    const AHEAD: usize = 0;

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

// Widening never rounds. With the current rounding mode the conversion can take its operand from memory;
// `_mm512_cvtph_ps`, which names a rounding mode, cannot, and needs a shuffle more.
impl Wide for f16 {
    const AHEAD: usize = 1 << 10;

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
    const AHEAD: usize = 0;

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

/// Prefetches the cache line `ahead` bytes after `at`, unless `ahead` is 0.
#[inline(always)]
fn fetch<T>(at: *const T, ahead: usize) {
    if ahead > 0 {
        // SAFETY: a prefetch of any address affects only the cache.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast::<i8>().wrapping_add(ahead)) };
    }
}

/// The rows of index `at` in the four quarters, which have `each` rows of `dim`.
///
/// # Safety
/// `at` must be less than `each`, and four times `each` rows of `dim` must begin at `rows`.
#[inline(always)]
unsafe fn of_quarters<T>(rows: *const T, dim: usize, each: usize, at: usize) -> [*const T; FOUR] {
    // SAFETY: each is one of those rows.
    unsafe {
        [
            rows.add(at * dim),
            rows.add((each + at) * dim),
            rows.add((2 * each + at) * dim),
            rows.add((3 * each + at) * dim),
        ]
    }
}

/// The total of the four sums of one row.
#[inline]
#[target_feature(enable = "avx512f")]
fn total([s, t, u, v]: [__m512; 4]) -> __m512 {
    _mm512_add_ps(_mm512_add_ps(s, t), _mm512_add_ps(u, v))
}

/// The sum of the lanes, added in the order of [`sums_ps`].
#[inline]
#[target_feature(enable = "avx512f,avx2")]
fn sum_ps(v: __m512) -> f32 {
    let v = _mm512_add_ps(v, _mm512_permute_ps::<0b01_00_11_10>(v));
    _mm_cvtss_f32(quarters_ps(_mm512_add_ps(v, _mm512_permute_ps::<0b10_11_00_01>(v))))
}

/// The sum of the lanes of each register.
#[inline]
#[target_feature(enable = "avx512f,avx2")]
fn sums_ps([s, t, u, v]: [__m512; FOUR]) -> [f32; FOUR] {
    let st = _mm512_castps_pd(_mm512_add_ps(_mm512_unpacklo_ps(s, t), _mm512_unpackhi_ps(s, t)));
    let uv = _mm512_castps_pd(_mm512_add_ps(_mm512_unpacklo_ps(u, v), _mm512_unpackhi_ps(u, v)));
    let (low, high) = (_mm512_unpacklo_pd(st, uv), _mm512_unpackhi_pd(st, uv));
    let mut out = [0.0; FOUR];
    // SAFETY: the array is sixteen bytes.
    unsafe {
        let sums = quarters_ps(_mm512_add_ps(_mm512_castpd_ps(low), _mm512_castpd_ps(high)));
        _mm_storeu_ps(out.as_mut_ptr(), sums);
    }
    out
}

/// The sum of the four quarters.
#[inline]
#[target_feature(enable = "avx512f,avx2")]
fn quarters_ps(v: __m512) -> __m128 {
    let high = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(v)));
    let half = _mm256_add_ps(_mm512_castps512_ps256(v), high);
    _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps::<1>(half))
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
            sum_ps(total(sums))
        }

        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,f16c,fma")]
        fn $rows(query: &[f32], rows: &[$b], out: &mut [f32]) {
            let n = query.len();
            let each = out.len() / FOUR;
            let (fours, rest) = rows.split_at(FOUR * each * n);
            let (out, rest_out) = out.split_at_mut(FOUR * each);
            for at in 0..each {
                let pq = query.as_ptr();
                let mut sums = [[_mm512_setzero_ps(); 4]; FOUR];
                let mut i = 0;
                // SAFETY: `fours` are the rows of four quarters; every load starts at `i` of the query or of a row and
                // ends at `n` or before.
                unsafe {
                    let pr = of_quarters(fours.as_ptr(), n, each, at);
                    while i + 64 <= n {
                        for row in 0..FOUR {
                            for line in (0..64).step_by(64 / size_of::<$b>()) {
                                fetch(pr[row].add(i + line), <$b>::AHEAD);
                            }
                        }
                        for lane in 0..4 {
                            let at = i + lane * 16;
                            let $x = f32::whole(pq.add(at));
                            for (row, sums) in sums.iter_mut().enumerate() {
                                let $y = <$b>::whole(pr[row].add(at));
                                sums[lane] = { let $sum = sums[lane]; $step };
                            }
                        }
                        i += 64;
                    }
                    while i + 16 <= n {
                        let $x = f32::whole(pq.add(i));
                        for (row, sums) in sums.iter_mut().enumerate() {
                            fetch(pr[row].add(i), <$b>::AHEAD);
                            let $y = <$b>::whole(pr[row].add(i));
                            sums[0] = { let $sum = sums[0]; $step };
                        }
                        i += 16;
                    }
                    if i < n {
                        let $x = f32::part(pq.add(i), n - i);
                        for (row, sums) in sums.iter_mut().enumerate() {
                            fetch(pr[row].add(i), <$b>::AHEAD);
                            let $y = <$b>::part(pr[row].add(i), n - i);
                            sums[1] = { let $sum = sums[1]; $step };
                        }
                    }
                }
                let answers = sums_ps([total(sums[0]), total(sums[1]), total(sums[2]), total(sums[3])]);
                for (quarter, answer) in answers.into_iter().enumerate() {
                    out[quarter * each + at] = answer;
                }
            }
            for (row, out) in rest.chunks_exact(n).zip(rest_out) {
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

/// The sums of planes, eight rows at a time.
#[target_feature(enable = "avx512f,avx512vl,avx512vpopcntdq")]
fn plane_sums_wide(planes: &[[u64; PLANES]], blocks: &[[u64; SIDE_BY_SIDE]], out: &mut [[i32; SIDE_BY_SIDE]]) {
    for (block, out) in blocks.chunks_exact(planes.len().max(1)).zip(out) {
        let mut counts = [_mm512_setzero_si512(); PLANES];
        for (bits, planes) in block.iter().zip(planes) {
            // SAFETY: eight words are 64 bytes.
            let bits = unsafe { _mm512_loadu_si512(bits.as_ptr().cast()) };
            for (count, plane) in counts.iter_mut().zip(planes) {
                let shared = _mm512_and_si512(bits, _mm512_set1_epi64(*plane as i64));
                *count = _mm512_add_epi64(*count, _mm512_popcnt_epi64(shared));
            }
        }
        let [ones, twos, fours, eights] = counts;
        let double = |counts: __m512i| _mm512_slli_epi64::<1>(counts);
        let high = _mm512_sub_epi64(fours, double(eights));
        let sums = _mm512_add_epi64(ones, double(_mm512_add_epi64(twos, double(high))));
        // SAFETY: eight sums are 32 bytes.
        unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), _mm512_cvtepi64_epi32(sums)) };
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

/// Lists the ranks, among the bits of `a`, of the bits that `b` has too. Words without shared bits are skipped four at
/// a time.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi2,popcnt")]
fn and_ranks_wide(a: &[u64], b: &[u64], below: u32, out: &mut Vec<u32>) {
    let shared = a.len().min(b.len());
    let (a, a_rest) = a[..shared].as_chunks::<FOUR>();
    let (b, b_rest) = b[..shared].as_chunks::<FOUR>();
    let mut below = below;
    for (a, b) in a.iter().zip(b) {
        let some = (a[0] & b[0]) | (a[1] & b[1]) | (a[2] & b[2]) | (a[3] & b[3]) != 0;
        for word in 0..FOUR {
            if some {
                push_ranks(a[word], b[word], below, out);
            }
            below += a[word].count_ones();
        }
    }
    for (a, b) in a_rest.iter().zip(b_rest) {
        push_ranks(*a, *b, below, out);
        below += a.count_ones();
    }
}

/// Appends the ranks of a word at once: the bits of `b` at the set bits of `a` are compacted, and select from the
/// numbers 0 to 63.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi2,popcnt")]
fn push_ranks(a: u64, b: u64, below: u32, out: &mut Vec<u32>) {
    const NUMBERS: [u8; 64] = {
        let mut numbers = [0; 64];
        let mut number = 0;
        while number < 64 {
            numbers[number] = number as u8;
            number += 1;
        }
        numbers
    };
    let shared = _pext_u64(b, a);
    // SAFETY: the array is 64 bytes.
    let ranks = _mm512_maskz_compress_epi8(shared, unsafe { _mm512_loadu_si512(NUMBERS.as_ptr().cast()) });
    let count = shared.count_ones() as usize;
    out.reserve(64);
    let (len, base) = (out.len(), _mm512_set1_epi32(below as i32));
    // SAFETY: there is room for 64 ranks, of which the first `count` are written.
    unsafe {
        let at = out.as_mut_ptr().add(len);
        let write = |from: usize, ranks: __m128i| {
            let ranks = _mm512_add_epi32(base, _mm512_cvtepu8_epi32(ranks));
            _mm512_storeu_si512(at.add(from).cast(), ranks);
        };
        write(0, _mm512_castsi512_si128(ranks));
        if count > 16 {
            write(16, _mm512_extracti32x4_epi32::<1>(ranks));
            write(32, _mm512_extracti32x4_epi32::<2>(ranks));
            write(48, _mm512_extracti32x4_epi32::<3>(ranks));
        }
        out.set_len(len + count);
    }
}
