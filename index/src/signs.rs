//! Signs: one bit per component, which rule most vectors out before their scan codes are read.
//!
//! A scan by codes reads a byte per component of every vector. Signs are an eighth of that. They prove no bound, but
//! the error of their estimate is known (RaBitQ, Gao and Long 2024):
//!
//! | symbol | meaning |
//! |---|---|
//! | m | about the mean of the segment's vectors |
//! | s | for each component of a vector x, 1 if it is above that of m, else -1 |
//! | f | the factor of x: the squared length of x - m by the sum of its magnitudes, so that f s is nearly x - m |
//! | q·m + f (q·s) | the estimate of q·x, with q rounded to four bits a component: q·s takes a few counts of bits |
//! | f e times the length of q | the standard error of the estimate, by that of the segment, e |
//!
//! e is measured when the segment is written, on pairs of its own vectors, so it also holds where components are not
//! alike. If too many vectors could still be the best of the sample, the segment has no signs.
//!
//! A scan compares codes, and then exact vectors, of those whose estimate and [`STANDARD_ERRORS`] of its errors reach
//! the best k so far, the most likely first. So it may miss a vector, as a graph walk may, though far more rarely.
//! Under the l2 metric there are no signs: the estimate would need the length of each vector, too.
//!
//! Cost: at 384 dimensions 52 bytes a vector, and 0.5 us to make. A vector that is ruled out costs a fifth of a
//! comparison of codes where eight words are counted at once, as AVX-512 does. With AVX2 it costs as much, unless codes
//! come from memory.

use crate::bitmap::Bits;
use crate::distance::{PLANES, SIDE_BY_SIDE, kernels};
use crate::error::Result;
use crate::hit::{Hit, TopHits};
use crate::quantize::{CodeBounds, STANDARD_ERRORS, mean_of, sample_positions};
use crate::rows::{ExactQuery, RowsView};
use crate::spec::{Metric, VectorSpec};

/// Smaller segments have no signs: a scan by codes is fast, and remains exact.
const SIGNED_FROM: usize = 2048;

/// Vectors from which the mean and the error are learnt, and those of them that are asked about the others.
const SAMPLE: usize = 1024;
const ASKED: usize = 32;

/// Signs are not worth reading where more than one in this many vectors would have to be compared by codes, too.
const LEFT_OF: usize = 10;

/// Vectors whose signs are written together.
const PIECE: usize = 512;

/// Vectors whose signs are compared in one call.
const RUN: usize = 8192;

/// The most likely vectors, so many and so many more for each hit, are compared before the others: the score that they
/// reach rules most of those out.
const FIRST: usize = 256;
const FIRST_BY_HIT: usize = 8;

/// Vectors whose codes are compared in one call.
const GATHERED: usize = 32;

/// The number of sums that are added up beside each other, and of signs in a byte.
const LANES: usize = 8;

/// The largest component of a query, rounded.
const MAX_LEVEL: f32 = 7.0;

/// The same word of the signs of eight vectors. A block of eight has one for each word of a vector.
pub(crate) type Lanes = [u64; SIDE_BY_SIDE];

/// The words of a vector's signs.
fn words(dim: usize) -> usize {
    dim.div_ceil(64)
}

/// The mapping of vectors to signs.
#[derive(Clone, Debug)]
pub(crate) struct Signer {
    mean: Vec<f32>,
    /// The standard error of an estimate, for a factor of 1 and a query of length 1.
    error: f32,
}

impl Signer {
    /// Learns from a sample of `count` vectors, which `decode` gives by position. `None` if signs would not pay.
    pub(crate) fn train(spec: VectorSpec, count: usize, mut decode: impl FnMut(usize, &mut [f32])) -> Option<Self> {
        if count < SIGNED_FROM || spec.metric == Metric::L2 {
            return None;
        }
        let positions: Vec<usize> = sample_positions(count, SAMPLE).collect();
        let mut sample = vec![0.0; SAMPLE * spec.dim];
        let vectors = sample.chunks_exact_mut(spec.dim);
        positions.iter().zip(vectors).for_each(|(position, vector)| decode(*position, vector));
        let mut signer = Self { mean: mean_of(&sample, spec.dim), error: 0.0 };
        let words = words(spec.dim);
        let mut signs = vec![Lanes::default(); SAMPLE / SIDE_BY_SIDE * words];
        let mut encode =
            |(at, vector)| signer.encode(vector, &mut signs[at / SIDE_BY_SIDE * words..][..words], at % SIDE_BY_SIDE);
        let factors: Vec<f32> = sample.chunks_exact(spec.dim).enumerate().map(&mut encode).collect();
        let (mut pairs, mut truth, mut sums) = (Vec::new(), vec![0.0; SAMPLE], Vec::new());
        let (mut lost, mut of) = (0.0, 0.0);
        for (asked, query) in sample.chunks_exact(spec.dim).take(ASKED).enumerate() {
            let likely = SignEstimate::new(&signer.mean, 0.0, 0.0, query);
            likely.sums(&signs, &mut sums);
            kernels().dot_f32_rows(query, &sample, &mut truth);
            for (at, (sum, truth)) in
                sums.as_flattened().iter().zip(&truth).enumerate().filter(|(at, _)| positions[*at] != positions[asked])
            {
                let pair = Pair {
                    asked,
                    truth: *truth,
                    estimate: likely.score(*sum, factors[at]),
                    weight: factors[at] * likely.length,
                };
                lost += f64::from(pair.truth - pair.estimate).powi(2);
                of += f64::from(pair.weight).powi(2);
                pairs.push(pair);
            }
        }
        signer.error = if of > 0.0 { (lost / of).sqrt() as f32 } else { 0.0 };
        let left: usize = pairs.chunk_by(|a, b| a.asked == b.asked).map(|pairs| left(pairs, signer.error)).sum();
        (left * LEFT_OF <= pairs.len()).then_some(signer)
    }

    /// Writes the signs of a vector into its lane of a block, and returns its factor.
    fn encode(&self, vector: &[f32], block: &mut [Lanes], lane: usize) -> f32 {
        // In a single sum, each addition would wait for the previous.
        let (mut squares, mut magnitudes) = ([0f32; LANES], [0f32; LANES]);
        let mut add = |at: usize, xs: &[f32; LANES], means: &[f32; LANES]| {
            let mut bits = 0;
            for i in 0..LANES {
                let centred = xs[i] - means[i];
                squares[i] += centred * centred;
                magnitudes[i] += centred.abs();
                bits |= u64::from(centred > 0.0) << i;
            }
            block[at / 8][lane] |= bits << (at % 8 * LANES);
        };
        let ((vectors, xs), (means, rest)) = (vector.as_chunks(), self.mean.as_chunks());
        vectors.iter().zip(means).enumerate().for_each(|(at, (xs, means))| add(at, xs, means));
        if !rest.is_empty() {
            let padded = |some: &[f32]| std::array::from_fn(|lane| some.get(lane).copied().unwrap_or_default());
            add(vectors.len(), &padded(xs), &padded(rest));
        }
        let (squares, magnitudes) = (squares.iter().sum::<f32>(), magnitudes.iter().sum::<f32>());
        if magnitudes > 0.0 { squares / magnitudes } else { 0.0 }
    }

    /// Gives the signs of `count` vectors to `write`, in order, many at a time; returns the section `SEST`.
    ///
    /// # Errors
    /// Those of `write`.
    pub(crate) fn encode_all(
        &self,
        count: usize,
        mut decode: impl FnMut(usize, &mut [f32]),
        mut write: impl FnMut(&[Lanes]) -> Result<()>,
    ) -> Result<Vec<f32>> {
        let mut estimate = Vec::with_capacity(1 + self.mean.len() + count);
        estimate.push(self.error);
        estimate.extend_from_slice(&self.mean);
        let mut vector = vec![0.0; self.mean.len()];
        let words = words(self.mean.len());
        let mut piece = Vec::with_capacity(PIECE / SIDE_BY_SIDE * words);
        for start in (0..count).step_by(PIECE) {
            let positions = start..count.min(start + PIECE);
            piece.clear();
            piece.resize(positions.len().div_ceil(SIDE_BY_SIDE) * words, Lanes::default());
            for (at, position) in positions.enumerate() {
                decode(position, &mut vector);
                let block = &mut piece[at / SIDE_BY_SIDE * words..][..words];
                estimate.push(self.encode(&vector, block, at % SIDE_BY_SIDE));
            }
            write(&piece)?;
        }
        Ok(estimate)
    }
}

/// Two vectors of a sample.
struct Pair {
    asked: usize,
    truth: f32,
    estimate: f32,
    /// The estimate's error by the segment's.
    weight: f32,
}

/// The number of vectors that may be as near as the nearest one.
fn left(pairs: &[Pair], error: f32) -> usize {
    let best = pairs.iter().map(|pair| pair.truth).fold(f32::NEG_INFINITY, f32::max);
    pairs.iter().filter(|pair| pair.estimate + STANDARD_ERRORS * error * pair.weight >= best).count()
}

/// The signs of a segment: sections `SIGN` and `SEST`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signs<'a> {
    signs: &'a [Lanes],
    error: f32,
    mean: &'a [f32],
    factors: &'a [f32],
}

impl<'a> Signs<'a> {
    /// The signs of `count` vectors, if the sections have as many.
    pub(crate) fn new(spec: VectorSpec, count: usize, signs: &'a [Lanes], estimate: &'a [f32]) -> Option<Self> {
        let (error, rest) = estimate.split_first()?;
        let (mean, factors) = rest.split_at_checked(spec.dim)?;
        let fits = signs.len() == count.div_ceil(SIDE_BY_SIDE) * words(spec.dim) && factors.len() == count;
        (fits && spec.metric != Metric::L2).then_some(Self { signs, error: *error, mean, factors })
    }

    /// Offers the vectors of `rows` that match `filter` and are likely to be among the best.
    pub(crate) fn scan(
        &self,
        (rows, bounds): (&RowsView<'_>, &CodeBounds<'_>),
        query: &ExactQuery,
        filter: Option<&Bits>,
        longest: f32,
        top: &mut TopHits,
    ) {
        let estimate = SignEstimate::new(self.mean, self.error, longest, query.vector());
        let matches = |at: u32| filter.is_none_or(|filter| filter.contains(rows.ids()[at as usize]));
        let mut first = Likely::new(top, FIRST + FIRST_BY_HIT * top.wanted());
        self.collect(&estimate, matches, &mut first);
        first.compare((rows, bounds), query, top);
        let is_any_left = first.left_out > f32::NEG_INFINITY;
        if is_any_left && top.threshold().is_none_or(|least| first.left_out >= least) {
            let mut others = Likely::new(top, usize::MAX);
            self.collect(&estimate, matches, &mut others);
            others.found.retain(|(score, _)| *score <= first.left_out);
            others.compare((rows, bounds), query, top);
        }
    }

    /// Gives `likely` the matching vectors that reach its least score.
    fn collect(&self, estimate: &SignEstimate, matches: impl Fn(u32) -> bool, likely: &mut Likely) {
        let mut sums = Vec::new();
        let blocks = self.signs.chunks(RUN / SIDE_BY_SIDE * estimate.planes.len());
        for (start, (blocks, factors)) in (0..).step_by(RUN).zip(blocks.zip(self.factors.chunks(RUN))) {
            estimate.sums(blocks, &mut sums);
            let factors = factors.chunks(SIDE_BY_SIDE);
            for (start, (sums, factors)) in (start..).step_by(SIDE_BY_SIDE).zip(sums.iter().zip(factors)) {
                let scores = estimate.scores(sums, factors);
                // Without a branch for each of eight.
                if scores.iter().fold(false, |any, score| any | (*score >= likely.least)) {
                    for (at, score) in (start..).zip(scores) {
                        if score >= likely.least && matches(at) {
                            likely.push(score, at);
                        }
                    }
                }
            }
        }
    }
}

/// Vectors with their likely scores: some of the best of those that reach a score.
struct Likely {
    least: f32,
    /// About so many are kept.
    most: usize,
    found: Vec<(f32, u32)>,
    /// The best score of a vector that was not kept.
    left_out: f32,
}

impl Likely {
    /// At least the best `most` of those that may be among the hits.
    fn new(top: &TopHits, most: usize) -> Self {
        let least = top.threshold().unwrap_or(f32::NEG_INFINITY);
        Self { least, most, found: Vec::new(), left_out: f32::NEG_INFINITY }
    }

    fn push(&mut self, score: f32, at: u32) {
        self.found.push((score, at));
        if self.found.len() > self.most.saturating_mul(2) {
            self.found.select_nth_unstable_by(self.most, |a, b| b.0.total_cmp(&a.0));
            self.left_out = self.found[self.most].0;
            self.least = self.left_out.next_up();
            self.found.retain(|(score, _)| *score >= self.least);
        }
    }

    /// Offers the vectors, the most likely first, until none of the others is likely to be among the best.
    fn compare(&mut self, (rows, bounds): (&RowsView<'_>, &CodeBounds<'_>), query: &ExactQuery, top: &mut TopHits) {
        self.found.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        let reaches = |score: f32, top: &TopHits| top.threshold().is_none_or(|least| score >= least);
        let (mut positions, mut distances) = (Vec::with_capacity(GATHERED), Vec::new());
        for some in self.found.chunks(GATHERED) {
            if !reaches(some[0].0, top) {
                break;
            }
            positions.clear();
            positions.extend(some.iter().map(|(_, position)| *position));
            bounds.distances(&positions, &mut distances);
            for (position, distance) in positions.iter().zip(&distances) {
                if reaches(bounds.similarity(*position, *distance).1, top) {
                    let at = *position as usize;
                    top.push(Hit { id: rows.ids()[at], score: query.score(rows, at) });
                }
            }
        }
    }
}

/// A query for the signs of one segment.
struct SignEstimate {
    /// The components, rounded, as bit vectors: see [`Kernels::plane_sums`](crate::distance::Kernels::plane_sums).
    planes: Vec<[u64; PLANES]>,
    /// The value of a level, and the sum of the levels.
    step: f32,
    levels: i32,
    /// The length of the query.
    length: f32,
    /// A part of all scores, and for a factor of 1 the margin of likely ones.
    base: f32,
    margin: f32,
}

impl SignEstimate {
    /// The estimates for a prepared query, by the mean and the standard error of a segment. No vector is longer than
    /// `longest`.
    fn new(mean: &[f32], error: f32, longest: f32, query: &[f32]) -> Self {
        let step = query.iter().fold(0f32, |most, x| most.max(x.abs())) / MAX_LEVEL;
        let inverse = if step > 0.0 { 1.0 / step } else { 0.0 };
        let (mut planes, mut levels) = (vec![[0; PLANES]; words(query.len())], 0);
        for (at, x) in query.iter().enumerate() {
            let level = (x * inverse).round() as i32;
            levels += level;
            for (plane, bits) in planes[at / 64].iter_mut().enumerate() {
                *bits |= ((level >> plane & 1) as u64) << (at % 64);
            }
        }
        let length = query.iter().map(|x| x * x).sum::<f32>().sqrt();
        // Scores are summed in single precision.
        let base = kernels().dot_f32(query, mean) + length * longest * 1e-5;
        Self { planes, step, levels, length, base, margin: STANDARD_ERRORS * error * length }
    }

    /// For each vector of some blocks the sum of the query's levels where its sign is positive.
    fn sums(&self, blocks: &[Lanes], out: &mut Vec<[i32; SIDE_BY_SIDE]>) {
        out.clear();
        out.resize(blocks.len() / self.planes.len(), Default::default());
        kernels().plane_sums(&self.planes, blocks, out);
    }

    /// The likely upper bounds of the scores of vectors with these sums and factors, of which there may be fewer.
    #[inline]
    fn scores(&self, sums: &[i32; SIDE_BY_SIDE], factors: &[f32]) -> [f32; SIDE_BY_SIDE] {
        match factors.as_array::<SIDE_BY_SIDE>() {
            Some(factors) => std::array::from_fn(|lane| self.score(sums[lane], factors[lane])),
            None => {
                std::array::from_fn(|lane| factors.get(lane).map_or(f32::NAN, |factor| self.score(sums[lane], *factor)))
            }
        }
    }

    /// The likely upper bound of the score of a vector with that sum and factor.
    #[inline]
    fn score(&self, sum: i32, factor: f32) -> f32 {
        self.base + factor * ((2 * sum - self.levels) as f32 * self.step + self.margin)
    }
}
