//! Codes: products of unsigned and signed bytes (`vpdpbusd`), four rows at a time.
//!
//! The instruction multiplies unsigned by signed bytes: the sign bit of one operand is flipped (128 added), and the
//! surplus is subtracted at the end. Four rows at a time share each load of the query, of which as much as possible
//! stays in registers; their sums are reduced together.
//!
//! | result | computed as |
//! |---|---|
//! | a b | (b + 128) a - 128 a |
//! | (a - b)^2 | (b + 128) b + 128 b - 2 (a + 128) b + a^2 |
//!
//! A sum may wrap around at the largest dimensions; the subtraction wraps it back.
#![allow(unsafe_code)]
// Loops by index: iterators over registers are not inlined into functions with their own target features.
#![allow(clippy::needless_range_loop)]

use std::arch::x86_64::*;

use super::super::row;
use super::{AHEAD_BYTES, FOUR, fetch, mask64};
use crate::prefetch::prefetch;

/// The number of rows of a gather that are prefetched ahead of the current ones.
const AHEAD: usize = 2 * FOUR;

/// Rows of more bytes than this come from memory, since no cache near a core holds them. They are read in four streams.
const CACHED: usize = 1 << 20;

/// The number of bytes that are prefetched ahead in each of the four streams.
const QUARTERS_AHEAD: usize = 1 << 10;

/// 128 times the sum of a.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn bias(a: &[i8]) -> i32 {
    let flip = _mm512_set1_epi8(-128);
    let mut sum = _mm512_setzero_si512();
    for start in (0..a.len()).step_by(64) {
        sum = _mm512_dpbusd_epi32(sum, flip, up_to_64(&a[start..]));
    }
    _mm512_reduce_add_epi32(sum)
}

/// The sum of the squares of a: of (a + 128) a - 128 a.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn squares(a: &[i8]) -> i32 {
    let flip = _mm512_set1_epi8(-128);
    let (mut sum, mut bias) = (_mm512_setzero_si512(), _mm512_setzero_si512());
    for start in (0..a.len()).step_by(64) {
        let step = up_to_64(&a[start..]);
        sum = _mm512_dpbusd_epi32(sum, _mm512_xor_si512(step, flip), step);
        bias = _mm512_dpbusd_epi32(bias, flip, step);
    }
    _mm512_reduce_add_epi32(_mm512_sub_epi32(sum, bias))
}

/// The first 64 codes; lanes past the end are zero.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn up_to_64(a: &[i8]) -> __m512i {
    let mask = if a.len() < 64 { mask64(a.len()) } else { u64::MAX };
    // SAFETY: masked lanes are not read.
    unsafe { _mm512_maskz_loadu_epi8(mask, a.as_ptr()) }
}

/// The dot product; the surplus is summed in a second register.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn dot_i8(a: &[i8], b: &[i8]) -> i32 {
    let n = a.len().min(b.len());
    let (pa, pb) = (a.as_ptr(), b.as_ptr());
    let flip = _mm512_set1_epi8(-128);
    let (mut sum, mut bias) = (_mm512_setzero_si512(), _mm512_setzero_si512());
    let mut i = 0;
    // SAFETY: every load starts at `i` and ends at `n` or before, within both slices; masked lanes are not read.
    unsafe {
        while i + 64 <= n {
            let x = _mm512_loadu_si512(pa.add(i).cast());
            let y = _mm512_xor_si512(_mm512_loadu_si512(pb.add(i).cast()), flip);
            sum = _mm512_dpbusd_epi32(sum, y, x);
            bias = _mm512_dpbusd_epi32(bias, flip, x);
            i += 64;
        }
        if i < n {
            let mask = mask64(n - i);
            let x = _mm512_maskz_loadu_epi8(mask, pa.add(i));
            let y = _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, pb.add(i)), flip);
            sum = _mm512_dpbusd_epi32(sum, y, x);
            bias = _mm512_dpbusd_epi32(bias, flip, x);
        }
    }
    _mm512_reduce_add_epi32(_mm512_sub_epi32(sum, bias))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn l2_i8(a: &[i8], b: &[i8]) -> i32 {
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

/// The sum of the lanes of each register, less `bias`.
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

// A comparison of codes: two sums for each row, and the result computed from them.
//
// SAFETY (of every call): AVX-512 F, BW and VNNI must be available.
trait Comparison {
    /// 64 codes of the query, as [`Comparison::add`] takes them.
    unsafe fn asked(query: __m512i) -> __m512i;
    /// Adds 64 codes of a row to its sums.
    unsafe fn add(sums: [__m512i; 2], asked: __m512i, row: __m512i) -> [__m512i; 2];
    /// The lanes of the result, before the bias is subtracted.
    unsafe fn end(sums: [__m512i; 2]) -> __m512i;
    /// The surplus to subtract at the end.
    unsafe fn bias(query: &[i8]) -> i32;
}

/// 64 times 128.
#[inline(always)]
fn flip() -> __m512i {
    // SAFETY: see `Comparison`.
    unsafe { _mm512_set1_epi8(-128) }
}

struct Dot;

impl Comparison for Dot {
    #[inline(always)]
    unsafe fn asked(query: __m512i) -> __m512i {
        query
    }
    #[inline(always)]
    unsafe fn add([sum, none]: [__m512i; 2], asked: __m512i, row: __m512i) -> [__m512i; 2] {
        // SAFETY: see the trait.
        unsafe { [_mm512_dpbusd_epi32(sum, _mm512_xor_si512(row, flip()), asked), none] }
    }
    #[inline(always)]
    unsafe fn end([sum, _]: [__m512i; 2]) -> __m512i {
        sum
    }
    #[inline(always)]
    unsafe fn bias(query: &[i8]) -> i32 {
        // SAFETY: see the trait.
        unsafe { bias(query) }
    }
}

struct Square;

impl Comparison for Square {
    #[inline(always)]
    unsafe fn asked(query: __m512i) -> __m512i {
        // SAFETY: see the trait.
        unsafe { _mm512_xor_si512(query, flip()) }
    }
    #[inline(always)]
    unsafe fn add([products, squares]: [__m512i; 2], asked: __m512i, row: __m512i) -> [__m512i; 2] {
        // SAFETY: see the trait.
        unsafe {
            let squares = _mm512_dpbusd_epi32(squares, _mm512_xor_si512(row, flip()), row);
            [_mm512_dpbusd_epi32(products, asked, row), _mm512_dpbusd_epi32(squares, flip(), row)]
        }
    }
    #[inline(always)]
    unsafe fn end([products, squares]: [__m512i; 2]) -> __m512i {
        // SAFETY: see the trait.
        unsafe { _mm512_sub_epi32(squares, _mm512_add_epi32(products, products)) }
    }
    #[inline(always)]
    unsafe fn bias(query: &[i8]) -> i32 {
        // SAFETY: see the trait.
        unsafe { -squares(query) }
    }
}

/// The query's first steps, kept in registers.
#[inline(always)]
unsafe fn held<C: Comparison, const HELD: usize>(query: &[i8]) -> [__m512i; HELD] {
    assert!(query.len() >= HELD * 64);
    // SAFETY: see `Comparison`; every step is within the query.
    unsafe {
        let mut steps = [_mm512_setzero_si512(); HELD];
        for at in 0..HELD {
            steps[at] = C::asked(_mm512_loadu_si512(query.as_ptr().add(at * 64).cast()));
        }
        steps
    }
}

/// The results of four rows; `held` has the query's first steps. Prefetches the line `ahead` bytes after each row,
/// unless `ahead` is 0.
#[inline(always)]
unsafe fn four<C: Comparison, const HELD: usize>(
    query: &[i8],
    held: &[__m512i; HELD],
    rows: [&[i8]; FOUR],
    bias: i32,
    ahead: usize,
) -> [i32; FOUR] {
    let [a, b, c, d] = rows;
    let n = query.len().min(a.len()).min(b.len()).min(c.len()).min(d.len());
    assert!(n >= HELD * 64);
    // SAFETY: see `Comparison`; every load starts at `i` and ends at `n` or before, within all slices; masked lanes are
    // not read, and a prefetch affects only the cache.
    unsafe {
        let mut all = [[_mm512_setzero_si512(); 2]; FOUR];
        for step in 0..HELD {
            for row in 0..FOUR {
                let at = rows[row].as_ptr().add(step * 64);
                fetch(at, ahead);
                all[row] = C::add(all[row], held[step], _mm512_loadu_si512(at.cast()));
            }
        }
        let mut i = HELD * 64;
        while i + 64 <= n {
            let asked = C::asked(_mm512_loadu_si512(query.as_ptr().add(i).cast()));
            for row in 0..FOUR {
                let at = rows[row].as_ptr().add(i);
                fetch(at, ahead);
                all[row] = C::add(all[row], asked, _mm512_loadu_si512(at.cast()));
            }
            i += 64;
        }
        if i < n {
            let mask = mask64(n - i);
            let asked = C::asked(_mm512_maskz_loadu_epi8(mask, query.as_ptr().add(i)));
            for row in 0..FOUR {
                all[row] = C::add(all[row], asked, _mm512_maskz_loadu_epi8(mask, rows[row].as_ptr().add(i)));
            }
        }
        let [s, t, u, v] = all;
        sums(C::end(s), C::end(t), C::end(u), C::end(v), bias)
    }
}

/// Compares `query` with consecutive rows.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2")]
fn code_rows<C: Comparison, const HELD: usize>(query: &[i8], rows: &[i8], out: &mut [i32]) {
    if size_of_val(rows) > CACHED && out.len() > FOUR {
        return code_quarters::<C, HELD>(query, rows, out);
    }
    let dim = query.len();
    let ahead = (FOUR * dim).max(AHEAD_BYTES);
    let (fours, last) = out.as_chunks_mut::<FOUR>();
    // SAFETY (of all three): the features are those of this function.
    let (bias, held) = unsafe { (C::bias(query), held::<C, HELD>(query)) };
    let mut rows = rows;
    for out in fours {
        let (next, rest) = rows.split_at(FOUR * dim);
        let ((a, b), (c, d)) = (next[..2 * dim].split_at(dim), next[2 * dim..].split_at(dim));
        *out = unsafe { four::<C, HELD>(query, &held, [a, b, c, d], bias, ahead) };
        rows = rest;
    }
    for (at, out) in (0..).zip(last) {
        [*out, ..] = unsafe { four::<C, 0>(query, &[], [row(rows, dim, at); FOUR], bias, 0) };
    }
}

/// Compares `query` with consecutive rows, one of each quarter at a time.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2")]
fn code_quarters<C: Comparison, const HELD: usize>(query: &[i8], rows: &[i8], out: &mut [i32]) {
    let dim = query.len();
    let each = out.len() / FOUR;
    let (fours, rest) = rows.split_at(FOUR * each * dim);
    let (out, rest_out) = out.split_at_mut(FOUR * each);
    let [a, b, c, d] = [0, 1, 2, 3].map(|quarter| &fours[quarter * each * dim..][..each * dim]);
    // SAFETY (of both): the features are those of this function.
    let (bias, held) = unsafe { (C::bias(query), held::<C, HELD>(query)) };
    for at in 0..each {
        let place = at as u32;
        let rows = [row(a, dim, place), row(b, dim, place), row(c, dim, place), row(d, dim, place)];
        let answers = unsafe { four::<C, HELD>(query, &held, rows, bias, QUARTERS_AHEAD) };
        for (quarter, answer) in answers.into_iter().enumerate() {
            out[quarter * each + at] = answer;
        }
    }
    code_rows::<C, 0>(query, rest, rest_out);
}

/// Compares `query` with the rows at `positions`.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2")]
fn code_gather<C: Comparison, const HELD: usize>(query: &[i8], codes: &[i8], positions: &[u32], out: &mut [i32]) {
    let dim = query.len();
    for position in positions.iter().take(AHEAD) {
        prefetch(row(codes, dim, *position));
    }
    let mut ahead = positions.iter().skip(AHEAD);
    let (fours, rest) = positions.as_chunks::<FOUR>();
    let (out_fours, out_rest) = out.as_chunks_mut::<FOUR>();
    // SAFETY (of all three): the features are those of this function.
    let (bias, held) = unsafe { (C::bias(query), held::<C, HELD>(query)) };
    for ([a, b, c, d], out) in fours.iter().zip(out_fours) {
        for position in ahead.by_ref().take(FOUR) {
            prefetch(row(codes, dim, *position));
        }
        let rows = [row(codes, dim, *a), row(codes, dim, *b), row(codes, dim, *c), row(codes, dim, *d)];
        *out = unsafe { four::<C, HELD>(query, &held, rows, bias, 0) };
    }
    // The last few rows are padded with copies of their first one and take one step of four.
    if let Some(first) = rest.first() {
        let mut last = [row(codes, dim, *first); FOUR];
        last.iter_mut().zip(rest).for_each(|(last, position)| *last = row(codes, dim, *position));
        let answers = unsafe { four::<C, 0>(query, &[], last, bias, 0) };
        out_rest.iter_mut().zip(answers).for_each(|(out, answer)| *out = answer);
    }
}

// Selects the function for a dimension, with as much of the query in registers as fits.
macro_rules! by_dim {
    ($name:ident, $generic:ident, $comparison:ty, ($query:ident $(, $argument:ident: $type:ty)*)) => {
        #[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2")]
        pub(super) fn $name($query: &[i8] $(, $argument: $type)*) {
            match $query.len() / 64 {
                0..2 => $generic::<$comparison, 0>($query $(, $argument)*),
                2..6 => $generic::<$comparison, 2>($query $(, $argument)*),
                6..12 => $generic::<$comparison, 6>($query $(, $argument)*),
                _ => $generic::<$comparison, 12>($query $(, $argument)*),
            }
        }
    };
}

by_dim!(dot_i8_rows, code_rows, Dot, (query, rows: &[i8], out: &mut [i32]));
by_dim!(l2_i8_rows, code_rows, Square, (query, rows: &[i8], out: &mut [i32]));
by_dim!(dot_i8_gather, code_gather, Dot, (query, codes: &[i8], positions: &[u32], out: &mut [i32]));
by_dim!(l2_i8_gather, code_gather, Square, (query, codes: &[i8], positions: &[u32], out: &mut [i32]));
