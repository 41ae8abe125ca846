//! Scan codes: one signed byte per component, which graph walks compare instead of exact vectors.
//!
//! A segment has one scale for all components: code = round((x - mean) / scale), clamped to -127..=127. The scale is
//! the candidate with the least squared error on a sample of the segment's components, so a few outliers are clipped
//! instead of coarsening all codes. With one scale, integer distances within a segment are comparable, and a walk needs
//! no floats.
//!
//! | metric | mean | distance of a walk, smaller is nearer |
//! |---|---|---|
//! | cosine, dot | 0 | minus the integer dot product |
//! | l2 | the mean of the sample, which changes no distance | the squared integer distance |
//!
//! Codes are off by about half a scale per component, so they rank nearly, not exactly, as the metric does. Hits are
//! rescored from exact vectors.

use crate::distance::{Kernels, kernels, row};
use crate::error::Result;
use crate::rows::RowsView;
use crate::segment::guard::CheckedSection;
use crate::segment::layout::NO_LINK;
use crate::spec::Metric;

/// The largest code.
const MAX_CODE: f32 = 127.0;

/// A factor that keeps a bound valid despite the rounding of its inputs.
const ROUNDED: f64 = 1.0 + 1e-6;

/// The number of vectors from which the scale is computed.
const SAMPLE: usize = 2048;

/// A quantizer is kept for more vectors while a new one would have a scale within these parts of its own, and a mean no
/// further off than so many scales. Codes then rank as well, and a quarter more clipping or rounding is not noticed.
const KEPT_SCALES: std::ops::RangeInclusive<f32> = 0.8..=1.25;
const KEPT_MEAN_STEPS: f32 = 8.0;

/// Vectors whose codes are made together.
const PIECE: usize = 512;

/// The number of independent sums: in a single one, each addition would wait for the previous.
const LANES: usize = 8;

/// The candidate scales, as fractions of the scale that clips nothing.
const CLIPS: [f32; 9] = [1.0, 0.85, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1];

/// The mapping of vectors to codes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Quantizer {
    metric: Metric,
    scale: f32,
    /// The mean to subtract; empty for none.
    mean: Vec<f32>,
}

impl Quantizer {
    /// A quantizer with the values of a segment's header and `MEAN` section.
    pub(crate) fn new(metric: Metric, scale: f32, mean: Vec<f32>) -> Self {
        Self { metric, scale, mean }
    }

    /// Computes scale and mean from a sample of `rows`.
    pub(crate) fn train(rows: &RowsView<'_>) -> Self {
        Self::train_on(rows, SAMPLE)
    }

    /// Computes scale and mean from a sample of `size` of `rows`.
    pub(crate) fn train_on(rows: &RowsView<'_>, size: usize) -> Self {
        let (dim, metric) = (rows.spec().dim, rows.spec().metric);
        let mut sample = Vec::new();
        let mut vector = vec![0.0; dim];
        for position in sample_positions(rows.len(), size) {
            rows.decode(position, &mut vector);
            sample.extend_from_slice(&vector);
        }
        let mut mean = Vec::new();
        if metric == Metric::L2 {
            mean = mean_of(&sample, dim);
            for vector in sample.chunks_exact_mut(dim) {
                vector.iter_mut().zip(&mean).for_each(|(x, m)| *x -= m);
            }
        }
        Self::new(metric, best_scale(&sample), mean)
    }

    /// True if `trained`, which learned from more vectors, would code them hardly better.
    pub(crate) fn serves(&self, trained: &Self) -> bool {
        let moved = self.mean.iter().zip(&trained.mean).map(|(a, b)| (a - b).abs());
        KEPT_SCALES.contains(&(trained.scale / self.scale))
            && moved.fold(0f32, f32::max) <= KEPT_MEAN_STEPS * self.scale
    }

    /// The size of one step.
    pub(crate) fn scale(&self) -> f32 {
        self.scale
    }

    /// The mean that is subtracted before coding; empty for none.
    pub(crate) fn mean(&self) -> &[f32] {
        &self.mean
    }

    /// The code of a vector of the segment.
    pub(crate) fn encode(&self, vector: &[f32], code: &mut [i8]) {
        self.encode_scaled(vector, self.scale, code);
    }

    /// The vector that a code stands for.
    pub(crate) fn decode(&self, code: &[i8]) -> Vec<f32> {
        let mut vector: Vec<f32> = code.iter().map(|code| f32::from(*code) * self.scale).collect();
        vector.iter_mut().zip(&self.mean).for_each(|(x, m)| *x += m);
        vector
    }

    /// The code of a prepared query. Under the dot metric a query may have any length, so it has its own scale, which
    /// does not change the order.
    pub(crate) fn encode_query(&self, query: &[f32]) -> Vec<i8> {
        let mut code = vec![0; query.len()];
        let scale = self.query_scale(query);
        if scale > 0.0 {
            self.encode_scaled(query, scale, &mut code);
        }
        code
    }

    /// The code of a prepared query with the values that bounds need.
    pub(crate) fn query_code(&self, query: &[f32]) -> QueryCode {
        let (code, scale) = (self.encode_query(query), self.query_scale(query));
        let squares: i64 = code.iter().map(|c| i64::from(i32::from(*c).pow(2))).sum();
        let mut centred = query.to_vec();
        self.centre(&mut centred);
        QueryCode {
            of_code: (squares as f64).sqrt() * f64::from(scale),
            error: error(&centred, scale, &code),
            length: error(query, 0.0, &code),
            code,
            scale,
        }
    }

    /// The codes of `rows` with their errors, in memory.
    pub(crate) fn encode_rows(&self, rows: &RowsView<'_>) -> (Vec<i8>, CodingErrors) {
        let mut all = Vec::with_capacity(rows.len() * rows.spec().dim);
        let errors = self.encode_pieces(rows, None, |codes| {
            all.extend_from_slice(codes);
            Ok(())
        });
        (all, errors.unwrap_or_default())
    }

    /// Gives the codes of `rows` to `write`, in order, many at a time; returns their errors. Codes that `known` has by
    /// this quantizer are copied.
    ///
    /// # Errors
    /// Those of `write`.
    pub(crate) fn encode_pieces(
        &self,
        rows: &RowsView<'_>,
        known: Option<&KnownCodes<'_>>,
        mut write: impl FnMut(&[i8]) -> Result<()>,
    ) -> Result<CodingErrors> {
        let dim = rows.spec().dim;
        let known = known.map(|known| (known, known.by_position(rows.len())));
        let part = known.as_ref().map_or(0.0, |(known, _)| f64::from(known.errors.largest) / 255.0);
        let mut errors = Vec::with_capacity(rows.len());
        let (mut vector, mut code) = (vec![0.0; dim], vec![0; dim]);
        let mut piece = Vec::with_capacity(PIECE.min(rows.len()) * dim);
        for position in 0..rows.len() {
            match known.as_ref().map(|(known, old)| (known, old[position])).filter(|(_, old)| *old != NO_LINK) {
                Some((known, old)) => {
                    piece.extend_from_slice(known.codes.code(old));
                    errors.push(f64::from(known.errors.parts[old as usize]) * part);
                }
                None => {
                    rows.decode(position, &mut vector);
                    self.encode(&vector, &mut code);
                    self.centre(&mut vector);
                    errors.push(error(&vector, self.scale, &code));
                    piece.extend_from_slice(&code);
                }
            }
            if piece.len() >= PIECE * dim {
                write(&piece)?;
                piece.clear();
            }
        }
        write(&piece)?;
        Ok(in_parts(errors))
    }

    /// Subtracts the mean.
    fn centre(&self, vector: &mut [f32]) {
        vector.iter_mut().zip(&self.mean).for_each(|(x, m)| *x -= m);
    }

    /// The likely bound of scores for `query`, if no vector is longer than `longest`.
    pub(crate) fn likely(&self, query: &[f32], longest: f32) -> LikelyScore {
        let rounded = STANDARD_ERRORS / 12f32.sqrt();
        match self.metric {
            Metric::L2 => LikelyScore {
                metric: self.metric,
                step: self.scale,
                margin: self.scale * rounded * std::f32::consts::SQRT_2,
            },
            Metric::Cosine | Metric::Dot => {
                let own = self.query_scale(query);
                let length = query.iter().map(|x| x * x).sum::<f32>().sqrt();
                let margin = (self.scale * length).hypot(own * longest) * rounded;
                LikelyScore { metric: self.metric, step: self.scale * own, margin }
            }
        }
    }

    /// The step of a query's code.
    fn query_scale(&self, query: &[f32]) -> f32 {
        match self.metric {
            Metric::Dot => query.iter().fold(0f32, |max, x| max.max(x.abs())) / MAX_CODE,
            Metric::Cosine | Metric::L2 => self.scale,
        }
    }

    fn encode_scaled(&self, vector: &[f32], scale: f32, code: &mut [i8]) {
        let inverse = 1.0 / scale;
        let quantize = |x: f32| nearest_whole((x * inverse).clamp(-MAX_CODE, MAX_CODE)) as i8;
        if self.mean.is_empty() {
            code.iter_mut().zip(vector).for_each(|(c, x)| *c = quantize(*x));
        } else {
            let centred = vector.iter().zip(&self.mean).map(|(x, m)| x - m);
            code.iter_mut().zip(centred).for_each(|(c, x)| *c = quantize(x));
        }
    }
}

/// The quantisation errors, which are the distances of vectors from their decoded codes: the largest, and each as a
/// fraction of it in 255ths, rounded up.
pub(crate) type CodingErrors = (f32, Vec<u8>);

/// Codes of some of the vectors that are to be coded by the same quantizer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownCodes<'a> {
    pub(crate) codes: Codes<'a>,
    pub(crate) errors: CodeErrors<'a>,
    /// The position of each among all vectors, or [`NO_LINK`].
    pub(crate) positions: &'a [u32],
}

impl KnownCodes<'_> {
    /// For each of `count` vectors, the index of its code here, or [`NO_LINK`].
    fn by_position(&self, count: usize) -> Vec<u32> {
        let mut old = vec![NO_LINK; count];
        for (at, position) in (0..).zip(self.positions).filter(|(_, position)| **position != NO_LINK) {
            old[*position as usize] = at;
        }
        old
    }
}

/// The largest of `errors`, and each in parts of 255 of that, rounded up.
fn in_parts(errors: Vec<f64>) -> CodingErrors {
    let largest = (errors.iter().copied().fold(0.0, f64::max) * ROUNDED) as f32;
    let part = |error: f64| (error / f64::from(largest) * 255.0).ceil().min(255.0) as u8;
    (largest, errors.into_iter().map(|error| if largest > 0.0 { part(error) } else { 0 }).collect())
}

/// The distance of a centred vector from its decoded code.
fn error(centred: &[f32], scale: f32, code: &[i8]) -> f64 {
    let scale = f64::from(scale);
    let lost = |x: f32, c: i8| (f64::from(x) - f64::from(c) * scale).powi(2);
    let ((vectors, numbers), (codes, rest)) = (centred.as_chunks::<LANES>(), code.as_chunks::<LANES>());
    let mut sums = [0f64; LANES];
    for (xs, cs) in vectors.iter().zip(codes) {
        for ((sum, x), c) in sums.iter_mut().zip(xs).zip(cs) {
            *sum += lost(*x, *c);
        }
    }
    let rest = numbers.iter().zip(rest).map(|(x, c)| lost(*x, *c));
    (sums.iter().sum::<f64>() + rest.sum::<f64>()).sqrt()
}

/// Rounds `x`, whose magnitude is below 2^22, with a few additions; `round` would be a call.
#[inline]
fn nearest_whole(x: f32) -> f32 {
    const SHIFT: f32 = 12_582_912.0;
    (x + SHIFT) - SHIFT
}

/// A likely bound of a score, from a code.
///
/// A rounded component has a standard error of about scale / sqrt(12), and so has a sum of many components weighted by
/// a vector of length one. Clipped components may have a larger error, so this bounds most scores; [`CodeBounds`]
/// bounds all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LikelyScore {
    metric: Metric,
    step: f32,
    margin: f32,
}

/// The number of standard errors within which a score is likely to be.
pub(crate) const STANDARD_ERRORS: f32 = 4.0;

impl LikelyScore {
    /// The likely upper bound of the score of a vector at that integer distance.
    #[inline]
    pub(crate) fn most(&self, distance: i32) -> f32 {
        match self.metric {
            Metric::L2 => 1.0 / (1.0 + ((distance as f32).sqrt() * self.step - self.margin).max(0.0)),
            Metric::Cosine | Metric::Dot => -(distance as f32) * self.step + self.margin,
        }
    }
}

/// At most `wanted` of `count` positions, without a pattern, since the sampled values may be periodic.
pub(crate) fn sample_positions(count: usize, wanted: usize) -> impl Iterator<Item = usize> {
    let all = count <= wanted;
    (0..wanted.min(count)).map(move |i| if all { i } else { (mix(i as u64) % count as u64) as usize })
}

/// The finaliser of splitmix64: every bit of the answer depends on every bit of `x`.
pub(crate) fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The mean of vectors of `dim`.
pub(crate) fn mean_of(sample: &[f32], dim: usize) -> Vec<f32> {
    let mut sums = vec![0f64; dim];
    for vector in sample.chunks_exact(dim) {
        sums.iter_mut().zip(vector).for_each(|(sum, x)| *sum += f64::from(*x));
    }
    let count = (sample.len() / dim).max(1) as f64;
    sums.iter().map(|sum| (sum / count) as f32).collect()
}

/// The scale with the least squared error on `sample`; 1 for a sample of zeros.
fn best_scale(sample: &[f32]) -> f32 {
    let max = sample.iter().fold(0f32, |max, x| max.max(x.abs()));
    let error = |scale: f32| -> f64 {
        let lost = sample.iter().map(|x| {
            let kept = nearest_whole((x / scale).clamp(-MAX_CODE, MAX_CODE)) * scale;
            f64::from(x - kept).powi(2)
        });
        lost.sum()
    };
    let candidates = CLIPS.iter().map(|clip| max / MAX_CODE * clip);
    candidates
        .filter(|scale| scale.is_normal())
        .map(|scale| (error(scale), scale))
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map_or(1.0, |(_, scale)| scale)
}

/// The codes of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Codes<'a> {
    dim: usize,
    metric: Metric,
    codes: &'a [i8],
    kernels: &'static Kernels,
    guard: Option<CheckedSection<'a>>,
}

impl<'a> Codes<'a> {
    pub(crate) fn new(dim: usize, metric: Metric, codes: &'a [i8]) -> Self {
        Self { dim, metric, codes, kernels: kernels(), guard: None }
    }

    /// The same codes, verified as [`Codes::distances`] and [`Codes::distances_from`] read them.
    pub(crate) fn checked(self, guard: Option<CheckedSection<'a>>) -> Self {
        Self { guard, ..self }
    }

    /// The number of vectors.
    pub(crate) fn len(&self) -> usize {
        self.codes.len() / self.dim
    }

    /// The code at `position`.
    #[inline]
    pub(crate) fn code(&self, position: u32) -> &'a [i8] {
        row(self.codes, self.dim, position)
    }

    /// The same, verified.
    pub(crate) fn verified_code(&self, position: u32) -> &'a [i8] {
        if let Some(guard) = &self.guard {
            guard.touch(position as usize * self.dim, self.dim);
        }
        self.code(position)
    }

    /// The distance of two vectors of the segment.
    #[inline]
    pub(crate) fn distance(&self, a: u32, b: u32) -> i32 {
        let (a, b) = (self.code(a), self.code(b));
        match self.metric {
            Metric::L2 => self.kernels.l2_i8(a, b),
            Metric::Cosine | Metric::Dot => -self.kernels.dot_i8(a, b),
        }
    }

    /// The distances from `query` to `count` vectors from position `start` on.
    pub(crate) fn distances_from(&self, query: &[i8], start: usize, count: usize, out: &mut Vec<i32>) {
        out.clear();
        out.resize(count, 0);
        if let Some(guard) = &self.guard {
            guard.touch(start * self.dim, count * self.dim);
        }
        let rows = &self.codes[start * self.dim..(start + count) * self.dim];
        match self.metric {
            Metric::L2 => self.kernels.l2_i8_rows(query, rows, out),
            Metric::Cosine | Metric::Dot => {
                self.kernels.dot_i8_rows(query, rows, out);
                out.iter_mut().for_each(|dot| *dot = -*dot);
            }
        }
    }

    /// The distances from `query` to the vectors at `positions`.
    #[inline]
    pub(crate) fn distances(&self, query: &[i8], positions: &[u32], out: &mut Vec<i32>) {
        if let Some(guard) = &self.guard {
            let starts = || positions.iter().map(|position| *position as usize * self.dim);
            starts().for_each(|start| guard.fetch(start, self.dim));
            starts().for_each(|start| {
                guard.touch(start, self.dim);
            });
        }
        out.clear();
        out.resize(positions.len(), 0);
        match self.metric {
            Metric::L2 => self.kernels.l2_i8_gather(query, self.codes, positions, out),
            Metric::Cosine | Metric::Dot => {
                self.kernels.dot_i8_gather(query, self.codes, positions, out);
                out.iter_mut().for_each(|dot| *dot = -*dot);
            }
        }
    }
}

/// Section `CERR` with the largest error, of which its values are fractions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodeErrors<'a> {
    pub(crate) largest: f32,
    pub(crate) parts: &'a [u8],
    /// Verifies the section as it is read.
    pub(crate) guard: Option<CheckedSection<'a>>,
}

/// A query by the codes of one quantizer.
#[derive(Clone, Debug)]
pub(crate) struct QueryCode {
    code: Vec<i8>,
    scale: f32,
    /// The length of the decoded code.
    of_code: f64,
    /// The distance of the query from its decoded code.
    error: f64,
    /// The length of the query.
    length: f64,
}

/// Proven bounds of the similarity of vectors to a query, from codes.
///
/// With e the error of a vector's code and e_q that of the query's, by the triangle inequality:
///
/// | metric | from the codes | the true one is within |
/// |---|---|---|
/// | cosine, dot | the dot product p | p ± (e * length of the query's code + e_q * longest vector) |
/// | l2 | the distance d | d ± (e + e_q) |
#[derive(Clone, Debug)]
pub(crate) struct CodeBounds<'a> {
    codes: Codes<'a>,
    errors: CodeErrors<'a>,
    query: Vec<i8>,
    /// The factor on an integer result.
    step: f32,
    /// The factor on a vector's error in 255ths, and the constant to add.
    slack: (f32, f32),
}

impl<'a> CodeBounds<'a> {
    pub(crate) fn new(
        quantizer: &Quantizer,
        codes: Codes<'a>,
        errors: CodeErrors<'a>,
        longest: f32,
        query: &QueryCode,
    ) -> Self {
        let part = f64::from(errors.largest) / 255.0;
        let (step, slack) = match codes.metric {
            Metric::L2 => (quantizer.scale, (part, query.error)),
            Metric::Cosine | Metric::Dot => {
                // The exact scores are summed in single precision.
                let rounding = query.length * f64::from(longest) * 1e-5;
                (quantizer.scale * query.scale, (part * query.of_code, query.error * f64::from(longest) + rounding))
            }
        };
        let slack = ((slack.0 * ROUNDED) as f32, (slack.1 * ROUNDED) as f32);
        Self { codes, errors, query: query.code.clone(), step, slack }
    }

    /// The integer distances to `count` vectors from position `start` on.
    pub(crate) fn distances_from(&self, start: usize, count: usize, out: &mut Vec<i32>) {
        self.codes.distances_from(&self.query, start, count, out);
    }

    /// The integer distances to the vectors at `positions`.
    pub(crate) fn distances(&self, positions: &[u32], out: &mut Vec<i32>) {
        self.codes.distances(&self.query, positions, out);
    }

    /// A vector whose integer distance is beyond this cannot have a score of `wanted`.
    pub(crate) fn cutoff(&self, wanted: f32) -> i32 {
        let slack = 255.0 * self.slack.0 + self.slack.1;
        let beyond = match self.codes.metric {
            Metric::L2 if wanted > 1e-5 => {
                let furthest = 1.0 / (wanted - 1e-5) - 1.0;
                ((furthest.max(0.0) * (1.0 + 1e-4) + slack) / self.step).powi(2)
            }
            Metric::L2 => f32::INFINITY,
            Metric::Cosine | Metric::Dot => (slack - wanted + wanted.abs() * 1e-4) / self.step,
        };
        // A step of 0 gives NaN, which excludes nothing.
        if beyond < 2e9 { (beyond * (1.0 + 1e-5)).max(beyond) as i32 + 1 } else { i32::MAX }
    }

    /// Lower and upper bound of the score of the vector at `position`.
    #[inline]
    pub(crate) fn similarity(&self, position: u32, distance: i32) -> (f32, f32) {
        if let Some(guard) = &self.errors.guard {
            guard.touch(position as usize, 1);
        }
        let slack = f32::from(self.errors.parts[position as usize]) * self.slack.0 + self.slack.1;
        match self.codes.metric {
            Metric::L2 => {
                let distance = (distance as f32).sqrt() * self.step;
                let rounding = distance * 1e-5;
                let score = |distance: f32| 1.0 / (1.0 + distance.max(0.0));
                (score(distance + slack + rounding) - 1e-6, score(distance - slack - rounding) + 1e-6)
            }
            Metric::Cosine | Metric::Dot => {
                let dot = -(distance as f32) * self.step;
                let rounding = dot.abs() * 1e-6;
                (dot - slack - rounding, dot + slack + rounding)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Rows;
    use crate::spec::{Encoding, VectorSpec};

    /// Values between -1 and 1 that repeat only after a long time.
    fn wave(i: usize) -> f32 {
        ((i * i) as f32 * 0.37).sin()
    }

    fn rows(metric: Metric, shift: f32) -> Rows {
        let mut rows = Rows::new(VectorSpec::new(16, metric, Encoding::F32).unwrap());
        for id in 0..200u32 {
            let vector: Vec<f32> = (0..16).map(|d| wave(id as usize * 16 + d) + shift).collect();
            rows.push(id, &vector).unwrap();
        }
        rows
    }

    #[test]
    fn codes_order_vectors_nearly_as_the_metric_does() {
        for metric in [Metric::Cosine, Metric::Dot, Metric::L2] {
            let rows = rows(metric, 0.0);
            let quantizer = Quantizer::train(&rows.view());
            let (codes, _) = quantizer.encode_rows(&rows.view());
            let codes = Codes::new(16, metric, &codes);
            let exact = crate::rows::ExactQuery::new(rows.spec(), &[0.3; 16]).unwrap();
            let query = quantizer.encode_query(exact.vector());
            let positions: Vec<u32> = (0..200).collect();
            let mut distances = Vec::new();
            codes.distances(&query, &positions, &mut distances);
            let mut by_code = positions.clone();
            by_code.sort_by_key(|at| distances[*at as usize]);
            let best = |k: usize| {
                let mut all = positions.clone();
                all.sort_by(|a, b| {
                    let score = |at: u32| exact.score(&rows.view(), at as usize);
                    score(*b).total_cmp(&score(*a))
                });
                all.truncate(k);
                all
            };
            let found = best(10).iter().filter(|at| by_code[..12].contains(at)).count();
            assert!(found >= 9, "{metric:?}: {found} of 10");
        }
    }

    #[test]
    fn an_offset_costs_l2_nothing() {
        let near = Quantizer::train(&rows(Metric::L2, 0.0).view());
        let far = Quantizer::train(&rows(Metric::L2, 1000.0).view());
        assert!((near.scale() - far.scale()).abs() < near.scale() * 0.01);
    }

    #[test]
    fn outliers_are_clipped_rather_than_followed() {
        let mut sample: Vec<f32> = (0..200_000).map(wave).collect();
        sample.push(2.0);
        let scale = best_scale(&sample) * 127.0;
        assert!((1.0..1.5).contains(&scale), "{scale}");
    }

    #[test]
    fn vectors_that_alternate_are_all_in_the_scale() {
        let spec = VectorSpec::new(2, Metric::L2, Encoding::F32).unwrap();
        for period in [2, 4, 5] {
            let mut rows = Rows::new(spec);
            for id in 0..SAMPLE as u32 * period {
                rows.push(id, &[(id % period) as f32 * 10.0, 1.0]).unwrap();
            }
            let range = (period - 1) as f32 * 10.0 / 2.0;
            let scale = Quantizer::train(&rows.view()).scale();
            assert!((0.9..1.3).contains(&(scale * 127.0 / range)), "{period}: {scale}");
        }
    }

    #[test]
    fn zeros_have_a_scale() {
        let mut zeros = Rows::new(VectorSpec::new(4, Metric::Cosine, Encoding::F16).unwrap());
        zeros.push(0, &[0.0; 4]).unwrap();
        let quantizer = Quantizer::train(&zeros.view());
        assert_eq!(quantizer.scale(), 1.0);
        assert_eq!(quantizer.encode_rows(&zeros.view()).0, [0; 4]);
        let dot = Quantizer::new(Metric::Dot, 1.0, Vec::new());
        assert_eq!(dot.encode_query(&[0.0; 4]), [0; 4]);
    }

    #[test]
    fn what_codes_prove_holds() {
        for metric in [Metric::Cosine, Metric::Dot, Metric::L2] {
            for shift in [0.0, 3.0] {
                let rows = rows(metric, shift);
                let quantizer = Quantizer::train(&rows.view());
                let (bytes, (largest, parts)) = quantizer.encode_rows(&rows.view());
                let codes = Codes::new(16, metric, &bytes);
                let errors = CodeErrors { largest, parts: &parts, guard: None };
                for length in [0.0, 0.4, 9.0] {
                    let asked: Vec<f32> = (0..16).map(|d| wave(d * 3 + 1) * length).collect();
                    let exact = crate::rows::ExactQuery::new(rows.spec(), &asked).unwrap();
                    let bounds = CodeBounds::new(
                        &quantizer,
                        codes,
                        errors,
                        rows.view().longest(),
                        &quantizer.query_code(exact.vector()),
                    );
                    let mut all = Vec::new();
                    bounds.distances_from(0, 200, &mut all);
                    for (at, distance) in all.iter().enumerate() {
                        let (least, most) = bounds.similarity(at as u32, *distance);
                        let score = exact.score(&rows.view(), at);
                        assert!(least <= score && score <= most, "{metric:?} {length}: {least} {score} {most}");
                        assert!(*distance <= bounds.cutoff(most), "{metric:?} {length}: {distance}");
                    }
                }
            }
        }
    }
}
