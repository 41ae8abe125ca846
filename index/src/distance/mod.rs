//! Distance kernels: one table of functions, filled once for the machine.
//!
//! A kernel compares one query with one vector, with consecutive rows (`_rows`, for scans), or with the rows at a list
//! of positions (`_gather`, for graph walks: one call per neighbour list, with prefetch of the rows ahead). `_many`
//! compares several queries with a few rows at a time, so that rows come from memory once. Kernels compare `f32`
//! queries with vectors in their stored encoding, and codes with codes; the result is a dot product or a *squared*
//! distance. `plane_sums` compares a query of four bits a component with rows of one bit. Two more kernels count
//! (`and_count`) and list (`and_ranks`) the bits that two bit vectors share, for sets of ids.
//!
//! | table | when | how |
//! |---|---|---|
//! | [`avx512`](self) | AVX-512 F, BW and VNNI, F16C, FMA | 16 floats or 64 codes an instruction |
//! | [`avx2`](self) | AVX2, FMA and F16C | 8 floats or 16 codes |
//! | portable | everything else (NEON, SVE, old x86) | simsimd, with stored vectors widened piecewise to `f32` |
//!
//! Invariants:
//! 1. Every kernel agrees with the one of the same name in [`scalar`]: exactly for integers, up to rounding for floats.
//! 2. A table is reachable only if the machine has its instructions ([`kernels`] detects them).
//! 3. Lengths are asserted before any pointer is computed, and rows are taken as slices, so no kernel reads outside its
//!    arguments, for any positions.
//!
//! Integer sums stay within `i32` because a dimension is at most [`MAX_DIM`](crate::spec::MAX_DIM) and a code at most
//! 127 in magnitude.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;
pub mod scalar;

use std::sync::OnceLock;

use half::f16;

/// The variable of the environment that names a table, such as `avx2`, so that slower tables can be measured on a
/// machine that has faster ones. A name that the machine has no table of changes nothing; [`Kernels::name`] tells the
/// table.
pub const WANTED: &str = "HOLOTYPE_KERNELS";

/// The kernels of this machine: the fastest, or those that [`WANTED`] names.
pub fn kernels() -> &'static Kernels {
    static TABLE: OnceLock<Kernels> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut tables = available();
        let wanted = std::env::var(WANTED).ok();
        let at = wanted.and_then(|name| tables.iter().position(|table| table.name == name));
        tables.swap_remove(at.unwrap_or(0))
    })
}

/// Every table that this machine can run, the fastest first.
pub fn available() -> Vec<Kernels> {
    let mut tables = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        tables.extend(avx512::table());
        tables.extend(avx2::table());
    }
    tables.push(portable::table());
    tables
}

type Pair<A, B, R> = fn(&[A], &[B]) -> R;
type Rows<A, B, R> = fn(&[A], &[B], &mut [R]);
type Gather = fn(&[i8], &[i8], &[u32], &mut [i32]);
type PlaneSums = fn(&[[u64; PLANES]], &[[u64; SIDE_BY_SIDE]], &mut [[i32; SIDE_BY_SIDE]]);
type Ranks = fn(&[u64], &[u64], u32, &mut Vec<u32>);

/// A table of kernels; see the module.
#[derive(Clone, Debug)]
pub struct Kernels {
    name: &'static str,
    dot_f32: Pair<f32, f32, f32>,
    l2_f32: Pair<f32, f32, f32>,
    dot_f16: Pair<f32, f16, f32>,
    l2_f16: Pair<f32, f16, f32>,
    dot_f32_i8: fn(&[f32], &[i8], f32) -> f32,
    l2_f32_i8: fn(&[f32], &[i8], f32) -> f32,
    dot_i8: Pair<i8, i8, i32>,
    l2_i8: Pair<i8, i8, i32>,
    hamming: Pair<u8, u8, u32>,
    and_count: Pair<u64, u64, u64>,
    and_ranks: Ranks,
    dot_f32_rows: Rows<f32, f32, f32>,
    l2_f32_rows: Rows<f32, f32, f32>,
    dot_f16_rows: Rows<f32, f16, f32>,
    l2_f16_rows: Rows<f32, f16, f32>,
    dot_i8_rows: Rows<i8, i8, i32>,
    l2_i8_rows: Rows<i8, i8, i32>,
    hamming_rows: Rows<u8, u8, u32>,
    plane_sums: PlaneSums,
    dot_i8_gather: Gather,
    l2_i8_gather: Gather,
}

/// The bits of a component of a query that is compared with rows of one bit.
pub const PLANES: usize = 4;

/// Rows of bits whose words stand side by side, so that they are compared with the same word of a query at once.
pub const SIDE_BY_SIDE: usize = 8;

/// The length of the rows that all queries are compared with before the next rows: they stay in the nearest cache.
const MANY_BYTES: usize = 16 << 10;

/// The number of these rows is a multiple of this, since kernels compare several at a time.
const MANY_MULTIPLE: usize = 4;

macro_rules! pair {
    ($(#[$doc:meta] $name:ident($a:ty, $b:ty) -> $r:ty;)*) => {$(
        #[$doc]
        ///
        /// # Panics
        /// If the lengths differ.
        #[inline]
        pub fn $name(&self, a: &[$a], b: &[$b]) -> $r {
            assert_eq!(a.len(), b.len(), "vectors of different lengths");
            (self.$name)(a, b)
        }
    )*};
}

macro_rules! rows {
    ($(#[$doc:meta] $name:ident($a:ty, $b:ty) -> $r:ty;)*) => {$(
        #[$doc]
        ///
        /// # Panics
        /// If `rows` is not exactly one row of `query.len()` for each element of `out`.
        #[inline]
        pub fn $name(&self, query: &[$a], rows: &[$b], out: &mut [$r]) {
            assert_eq!(query.len() * out.len(), rows.len(), "rows and answers differ in number");
            (self.$name)(query, rows, out);
        }
    )*};
}

macro_rules! many {
    ($($name:ident($a:ty, $b:ty) -> $r:ty, by $rows:ident;)*) => {$(
        #[doc = concat!("[`", stringify!($rows), "`](Self::", stringify!($rows), ") for each of several queries of `dim`.")]
        /// Answers are in order of the queries, and for each in order of the rows.
        ///
        /// # Panics
        /// If `queries` or `rows` is not a whole number of vectors of `dim`, or `out` has not one element for each
        /// pair.
        pub fn $name(&self, queries: &[$a], dim: usize, rows: &[$b], out: &mut [$r]) {
            let (query_count, count) = counts(queries.len(), rows.len(), dim, out.len());
            let few = (MANY_BYTES / size_of::<$b>() / dim).max(1).next_multiple_of(MANY_MULTIPLE);
            let step = if query_count > 1 { few } else { count.max(1) };
            for start in (0..count).step_by(step) {
                let end = (start + step).min(count);
                for query in 0..query_count {
                    let out = &mut out[query * count..][start..end];
                    self.$rows(&queries[query * dim..][..dim], &rows[start * dim..end * dim], out);
                }
            }
        }
    )*};
}

/// The numbers of queries and rows.
fn counts(queries: usize, rows: usize, dim: usize, out: usize) -> (usize, usize) {
    assert!(dim > 0 && queries.is_multiple_of(dim) && rows.is_multiple_of(dim), "vectors are cut off");
    assert_eq!((queries / dim) * (rows / dim), out, "pairs and answers differ in number");
    (queries / dim, rows / dim)
}

impl Kernels {
    /// The name of the table's instruction set.
    pub fn name(&self) -> &'static str {
        self.name
    }

    pair! {
        /// The dot product.
        dot_f32(f32, f32) -> f32;
        /// The squared Euclidean distance.
        l2_f32(f32, f32) -> f32;
        /// The dot product with a vector of 16-bit floats.
        dot_f16(f32, f16) -> f32;
        /// The squared distance to a vector of 16-bit floats.
        l2_f16(f32, f16) -> f32;
        /// The dot product of two codes, the first of which has no component of -128: quantizing makes none.
        dot_i8(i8, i8) -> i32;
        /// The squared distance of two codes.
        l2_i8(i8, i8) -> i32;
        /// The number of bits in which two binary codes differ.
        hamming(u8, u8) -> u32;
    }

    rows! {
        /// The dot product with each row.
        dot_f32_rows(f32, f32) -> f32;
        /// The squared distance to each row.
        l2_f32_rows(f32, f32) -> f32;
        /// The dot product with each row of 16-bit floats.
        dot_f16_rows(f32, f16) -> f32;
        /// The squared distance to each row of 16-bit floats.
        l2_f16_rows(f32, f16) -> f32;
        /// The dot product of a code without a component of -128 with each row of codes.
        dot_i8_rows(i8, i8) -> i32;
        /// The squared distance to each row of codes.
        l2_i8_rows(i8, i8) -> i32;
        /// The number of bits in which each row of binary codes differs.
        hamming_rows(u8, u8) -> u32;
    }

    many! {
        dot_f32_many(f32, f32) -> f32, by dot_f32_rows;
        l2_f32_many(f32, f32) -> f32, by l2_f32_rows;
        dot_f16_many(f32, f16) -> f32, by dot_f16_rows;
        l2_f16_many(f32, f16) -> f32, by l2_f16_rows;
        dot_i8_many(i8, i8) -> i32, by dot_i8_rows;
        l2_i8_many(i8, i8) -> i32, by l2_i8_rows;
        hamming_many(u8, u8) -> u32, by hamming_rows;
    }

    /// The dot product with the vector `scale * b`.
    ///
    /// # Panics
    /// If the lengths differ.
    #[inline]
    pub fn dot_f32_i8(&self, a: &[f32], b: &[i8], scale: f32) -> f32 {
        assert_eq!(a.len(), b.len(), "vectors of different lengths");
        (self.dot_f32_i8)(a, b, scale)
    }

    /// The squared distance to the vector `scale * b`.
    ///
    /// # Panics
    /// If the lengths differ.
    #[inline]
    pub fn l2_f32_i8(&self, a: &[f32], b: &[i8], scale: f32) -> f32 {
        assert_eq!(a.len(), b.len(), "vectors of different lengths");
        (self.l2_f32_i8)(a, b, scale)
    }

    /// The number of bits that two bit vectors share, up to the length of the shorter.
    #[inline]
    pub fn and_count(&self, a: &[u64], b: &[u64]) -> u64 {
        (self.and_count)(a, b)
    }

    /// Appends to `out`, for each bit of `a` that `b` has too, `below` plus the number of bits of `a` before it. Stops
    /// at the end of the shorter.
    #[inline]
    pub fn and_ranks(&self, a: &[u64], b: &[u64], below: u32, out: &mut Vec<u32>) {
        (self.and_ranks)(a, b, below, out);
    }

    /// For each row of bits the sum of those components of a query whose bit is set. A component is a whole number from
    /// -8 to 7. `planes` has for every 64 components their first bits, their second bits, and so on; the last count -8.
    /// `blocks` has as many words of each row, those of [`SIDE_BY_SIDE`] rows side by side.
    ///
    /// # Panics
    /// If `blocks` are not as many as the blocks of `out`.
    #[inline]
    pub fn plane_sums(
        &self,
        planes: &[[u64; PLANES]],
        blocks: &[[u64; SIDE_BY_SIDE]],
        out: &mut [[i32; SIDE_BY_SIDE]],
    ) {
        assert_eq!(planes.len() * out.len(), blocks.len(), "rows and answers differ in number");
        (self.plane_sums)(planes, blocks, out);
    }

    /// The dot product with the rows of `codes` at `positions`.
    ///
    /// # Panics
    /// If `out` is not as long as `positions`, or a position is past the last row.
    #[inline]
    pub fn dot_i8_gather(&self, query: &[i8], codes: &[i8], positions: &[u32], out: &mut [i32]) {
        assert_eq!(positions.len(), out.len(), "positions and answers differ in number");
        (self.dot_i8_gather)(query, codes, positions, out);
    }

    /// The squared distance to the rows of `codes` at `positions`.
    ///
    /// # Panics
    /// If `out` is not as long as `positions`, or a position is past the last row.
    #[inline]
    pub fn l2_i8_gather(&self, query: &[i8], codes: &[i8], positions: &[u32], out: &mut [i32]) {
        assert_eq!(positions.len(), out.len(), "positions and answers differ in number");
        (self.l2_i8_gather)(query, codes, positions, out);
    }
}

/// The row at `position` of a matrix with rows of `dim`.
#[inline(always)]
pub(crate) fn row<T>(matrix: &[T], dim: usize, position: u32) -> &[T] {
    let start = position as usize * dim;
    &matrix[start..start + dim]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Dimensions around every block size, with all remainders.
    fn dims() -> impl Strategy<Value = usize> {
        prop_oneof![1usize..140, Just(256usize), Just(383), Just(384), Just(769), Just(1536)]
    }

    fn floats(n: usize) -> impl Strategy<Value = Vec<f32>> {
        proptest::collection::vec(-8.0f32..8.0, n)
    }

    fn codes(n: usize) -> impl Strategy<Value = Vec<i8>> {
        proptest::collection::vec(-127i8..=127, n)
    }

    /// The number of rows of floats: two for each of four quarters, and a remainder of three.
    const ROWS: usize = 11;

    fn float_case() -> impl Strategy<Value = (Vec<f32>, Vec<f32>)> {
        dims().prop_flat_map(|n| (floats(n), floats(n * ROWS)))
    }

    fn code_case() -> impl Strategy<Value = (Vec<i8>, Vec<i8>)> {
        dims().prop_flat_map(|n| (codes(n), codes(n * 5)))
    }

    /// Equal up to the rounding of a sum whose terms add up to `mass` in magnitude.
    fn near(a: f32, b: f32, mass: f32) -> bool {
        a.is_finite() && (a - b).abs() <= 4e-6 * mass + 1e-6
    }

    fn mass(a: &[f32], b: &[f32]) -> f32 {
        a.iter().zip(b).map(|(x, y)| (x.abs() + y.abs()).powi(2)).sum()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn float_kernels_agree_with_the_reference((query, rows) in float_case()) {
            let n = query.len();
            let halves: Vec<f16> = rows.iter().map(|x| f16::from_f32(*x)).collect();
            for table in available() {
                let mut out = [[0f32; ROWS]; 4];
                table.dot_f32_rows(&query, &rows, &mut out[0]);
                table.l2_f32_rows(&query, &rows, &mut out[1]);
                table.dot_f16_rows(&query, &halves, &mut out[2]);
                table.l2_f16_rows(&query, &halves, &mut out[3]);
                for i in 0..ROWS as u32 {
                    let (v, h) = (row(&rows, n, i), row(&halves, n, i));
                    let m = mass(&query, v);
                    let one = [
                        (table.dot_f32(&query, v), scalar::dot_f32(&query, v)),
                        (table.l2_f32(&query, v), scalar::l2_f32(&query, v)),
                        (table.dot_f16(&query, h), scalar::dot_f16(&query, h)),
                        (table.l2_f16(&query, h), scalar::l2_f16(&query, h)),
                    ];
                    for (kernel, (got, want)) in one.into_iter().enumerate() {
                        prop_assert!(near(got, want, m), "{} kernel {kernel}: {got} {want}", table.name());
                        let many = out[kernel][i as usize];
                        // Bit for bit: a score does not depend on the rows compared with it.
                        prop_assert_eq!(many.to_bits(), got.to_bits(), "{} rows {}: {} {}", table.name(), kernel, many, got);
                    }
                }
            }
        }

        #[test]
        fn mixed_kernels_agree_with_the_reference((query, rows) in float_case(), scale in 0.001f32..0.1) {
            let n = query.len();
            let code: Vec<i8> = rows[..n].iter().map(|x| (x * 15.0) as i8).collect();
            let wide: Vec<f32> = code.iter().map(|c| f32::from(*c) * scale).collect();
            let m = mass(&query, &wide);
            for table in available() {
                let (dot, l2) = (table.dot_f32_i8(&query, &code, scale), table.l2_f32_i8(&query, &code, scale));
                prop_assert!(near(dot, scalar::dot_f32_i8(&query, &code, scale), m), "{} dot {dot}", table.name());
                prop_assert!(near(l2, scalar::l2_f32_i8(&query, &code, scale), m), "{} l2 {l2}", table.name());
            }
        }

        #[test]
        fn code_kernels_agree_exactly((query, rows) in code_case(), positions in proptest::collection::vec(0u32..5, 0..40)) {
            let n = query.len();
            let bytes = |codes: &[i8]| codes.iter().map(|c| *c as u8).collect::<Vec<_>>();
            for table in available() {
                let mut out = [[0i32; 5]; 2];
                table.dot_i8_rows(&query, &rows, &mut out[0]);
                table.l2_i8_rows(&query, &rows, &mut out[1]);
                for i in 0..5 {
                    let v = row(&rows, n, i);
                    let (dot, l2) = (scalar::dot_i8(&query, v), scalar::l2_i8(&query, v));
                    prop_assert_eq!((table.dot_i8(&query, v), out[0][i as usize]), (dot, dot), "{}", table.name());
                    prop_assert_eq!((table.l2_i8(&query, v), out[1][i as usize]), (l2, l2), "{}", table.name());
                    let (a, b) = (bytes(&query), bytes(v));
                    prop_assert_eq!(table.hamming(&a, &b), scalar::hamming(&a, &b), "{}", table.name());
                }
                let mut bits = [0u32; 5];
                table.hamming_rows(&bytes(&query), &bytes(&rows), &mut bits);
                let differ = rows.chunks_exact(n).map(|row| scalar::hamming(&bytes(&query), &bytes(row)));
                prop_assert!(differ.eq(bits), "{}", table.name());
                let mut gathered = vec![0; positions.len()];
                table.dot_i8_gather(&query, &rows, &positions, &mut gathered);
                prop_assert!(positions.iter().zip(&gathered).all(|(p, d)| *d == out[0][*p as usize]));
                table.l2_i8_gather(&query, &rows, &positions, &mut gathered);
                prop_assert!(positions.iter().zip(&gathered).all(|(p, d)| *d == out[1][*p as usize]));
            }
        }

        #[test]
        fn shared_bits_are_counted_exactly(
            a in proptest::collection::vec(any::<u64>(), 0..90), b in proptest::collection::vec(any::<u64>(), 0..90),
        ) {
            for table in available() {
                prop_assert_eq!(table.and_count(&a, &b), scalar::and_count(&a, &b), "{}", table.name());
            }
        }

        #[test]
        fn sums_of_planes_agree_exactly(
            planes in proptest::collection::vec(any::<[u64; PLANES]>(), 1..20),
            blocks in proptest::collection::vec(any::<[u64; SIDE_BY_SIDE]>(), 60),
        ) {
            let blocks = &blocks[..60 / planes.len() * planes.len()];
            for table in available() {
                let mut sums = vec![[0; SIDE_BY_SIDE]; blocks.len() / planes.len()];
                table.plane_sums(&planes, blocks, &mut sums);
                let want = blocks.chunks_exact(planes.len()).map(|block| scalar::plane_sums(&planes, block));
                prop_assert!(want.eq(sums), "{}", table.name());
            }
        }

        /// For sets of different density, so that words share from no bit to all bits.
        #[test]
        fn shared_bits_are_listed_exactly(
            words in proptest::collection::vec((any::<u64>(), any::<u64>(), any::<u64>(), 0u8..4), 0..40),
            below in 0u32..1000, longer in 0usize..3,
        ) {
            let thin = |word: u64, by: u64, times: u8| [u64::MAX, word, word & by, word & by & by.rotate_left(7)][times as usize];
            let a: Vec<u64> = words.iter().map(|(a, _, by, times)| thin(*a, *by, (times + 1) % 4)).collect();
            let mut b: Vec<u64> = words.iter().map(|(_, b, by, times)| thin(*b, *by, *times)).collect();
            b.extend(vec![u64::MAX; longer]);
            let mut want = vec![77];
            scalar::and_ranks(&a, &b, below, &mut want);
            prop_assert_eq!(want.len() as u64, 1 + scalar::and_count(&a, &b));
            for table in available() {
                let mut got = vec![77];
                table.and_ranks(&a, &b, below, &mut got);
                prop_assert_eq!(&got, &want, "{}", table.name());
            }
        }

        #[test]
        fn many_queries_agree_with_one_at_a_time((rows, queries) in code_case(), copies in 1usize..60) {
            // Some cases have more rows than fit one step.
            let n = rows.len();
            let rows: Vec<i8> = (0..copies).flat_map(|i| rows.iter().map(move |c| c.wrapping_add(i as i8))).collect();
            let wide = |codes: &[i8]| -> Vec<f32> { codes.iter().map(|c| f32::from(*c)).collect() };
            let bytes = |codes: &[i8]| -> Vec<u8> { codes.iter().map(|c| *c as u8).collect() };
            let halves = |codes: &[i8]| -> Vec<f16> { codes.iter().map(|c| f16::from_f32(f32::from(*c))).collect() };
            let (table, pairs) = (kernels(), 5 * copies);
            let mut codes = [vec![0i32; pairs], vec![0; pairs]];
            table.dot_i8_many(&queries, n, &rows, &mut codes[0]);
            table.l2_i8_many(&queries, n, &rows, &mut codes[1]);
            let mut floats = vec![vec![0f32; pairs]; 4];
            table.dot_f32_many(&wide(&queries), n, &wide(&rows), &mut floats[0]);
            table.l2_f32_many(&wide(&queries), n, &wide(&rows), &mut floats[1]);
            table.dot_f16_many(&wide(&queries), n, &halves(&rows), &mut floats[2]);
            table.l2_f16_many(&wide(&queries), n, &halves(&rows), &mut floats[3]);
            let mut bits = vec![0u32; pairs];
            table.hamming_many(&bytes(&queries), n, &bytes(&rows), &mut bits);
            let both = queries.chunks_exact(n).flat_map(|query| rows.chunks_exact(n).map(move |row| (query, row)));
            for (at, (query, row)) in both.enumerate() {
                let (dot, l2) = (scalar::dot_i8(query, row), scalar::l2_i8(query, row));
                prop_assert_eq!((codes[0][at], codes[1][at]), (dot, l2));
                prop_assert_eq!(bits[at], scalar::hamming(&bytes(query), &bytes(row)));
                let m = mass(&wide(query), &wide(row));
                prop_assert!(near(floats[0][at], dot as f32, m) && near(floats[2][at], dot as f32, m));
                prop_assert!(near(floats[1][at], l2 as f32, m) && near(floats[3][at], l2 as f32, m));
            }
        }

        #[test]
        fn the_reference_agrees_with_simsimd((query, rows) in float_case()) {
            use simsimd::{BinarySimilarity, SpatialSimilarity};
            let v = &rows[..query.len()];
            let m = mass(&query, v);
            prop_assert!(near(f32::dot(&query, v).unwrap() as f32, scalar::dot_f32(&query, v), m));
            prop_assert!(near(f32::sqeuclidean(&query, v).unwrap() as f32, scalar::l2_f32(&query, v), m));
            let (a, b): (Vec<i8>, Vec<i8>) = query.iter().zip(v).map(|(x, y)| ((x * 15.9) as i8, (y * 15.9) as i8)).unzip();
            prop_assert_eq!(i8::dot(&a, &b).unwrap(), f64::from(scalar::dot_i8(&a, &b)));
            prop_assert_eq!(i8::sqeuclidean(&a, &b).unwrap(), f64::from(scalar::l2_i8(&a, &b)));
            let (a, b): (Vec<u8>, Vec<u8>) = (a.iter().map(|c| *c as u8).collect(), b.iter().map(|c| *c as u8).collect());
            prop_assert_eq!(u8::hamming(&a, &b).unwrap(), f64::from(scalar::hamming(&a, &b)));
        }
    }

    #[test]
    fn extreme_codes_do_not_overflow_at_the_largest_dimension() {
        let low = vec![-128i8; crate::spec::MAX_DIM];
        let query = vec![-127i8; crate::spec::MAX_DIM];
        let high = vec![127i8; crate::spec::MAX_DIM];
        for table in available() {
            for (a, b) in [(&query, &low), (&query, &query), (&query, &high), (&high, &low), (&high, &high)] {
                assert_eq!(table.dot_i8(a, b), scalar::dot_i8(a, b), "{}", table.name());
            }
            assert_eq!(table.l2_i8(&low, &high), scalar::l2_i8(&low, &high));
            let rows = [low.clone(), high.clone(), low.clone(), high.clone(), high.clone()].concat();
            let (mut dots, mut squares) = ([0; 5], [0; 5]);
            table.dot_i8_rows(&query, &rows, &mut dots);
            table.l2_i8_rows(&low, &rows, &mut squares);
            for (row, (dot, square)) in rows.chunks_exact(low.len()).zip(dots.into_iter().zip(squares)) {
                assert_eq!((dot, square), (scalar::dot_i8(&query, row), scalar::l2_i8(&low, row)), "{}", table.name());
            }
        }
    }

    #[test]
    fn codes_that_no_cache_held_agree_exactly() {
        // More than a mebibyte of rows, with a remainder of three after four quarters.
        let (dim, count) = (100, 10_503);
        let code = |i: usize| (i * i % 251) as i8;
        let query: Vec<i8> = (0..dim).map(|i| code(i + 7)).collect();
        let rows: Vec<i8> = (0..dim * count).map(code).collect();
        for table in available() {
            let (mut dots, mut squares) = (vec![0; count], vec![0; count]);
            table.dot_i8_rows(&query, &rows, &mut dots);
            table.l2_i8_rows(&query, &rows, &mut squares);
            for (row, (dot, square)) in rows.chunks_exact(dim).zip(dots.into_iter().zip(squares)) {
                assert_eq!(
                    (dot, square),
                    (scalar::dot_i8(&query, row), scalar::l2_i8(&query, row)),
                    "{}",
                    table.name()
                );
            }
        }
    }

    #[test]
    #[should_panic(expected = "different lengths")]
    fn different_lengths_are_refused() {
        kernels().dot_f32(&[1.0], &[1.0, 2.0]);
    }

    #[test]
    #[should_panic(expected = "cut off")]
    fn half_a_row_is_refused() {
        kernels().dot_i8_many(&[1, 2], 2, &[0; 5], &mut [0; 2]);
    }

    #[test]
    #[should_panic]
    fn a_position_past_the_rows_is_refused() {
        kernels().dot_i8_gather(&[1, 2], &[0; 8], &[4], &mut [0]);
    }
}
