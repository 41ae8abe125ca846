//! A block of the tail: immutable exact vectors, with scan codes if the block is large.
//!
//! A scan that already has k hits needs exact scores only for vectors that may enter the best k. The bounds that codes
//! prove ([`CodeBounds`]) exclude most others at a fifth of the cost. A scan with codes returns exactly what a scan
//! without them returns.
//!
//! Cost: codes take half a byte per byte of f16 vectors and about 2 us per vector to compute. A scan then costs 1 us,
//! plus one comparison of codes per vector.

use std::sync::Arc;

use crate::bitmap::Bits;
use crate::error::Result;
use crate::flat;
use crate::hit::TopHits;
use crate::quantize::{CodeBounds, CodeErrors, Codes, Quantizer, QueryCode};
use crate::rows::{ExactQuery, Rows, RowsView};
use crate::scorer::{Batch, BatchBounds, BatchQuery, BatchScorer, PartId, position_words};
use crate::spec::VectorSpec;

/// Smaller blocks have no codes: computing them would cost more than they save.
const CODED_FROM: usize = 64;

/// Sample size for the scale of a block's codes.
const SAMPLE: usize = 128;

/// A quantizer is retrained for a block where its error is this many times that of its training sample.
const WORSE: f32 = 1.25;

/// A block of vectors that no longer change.
#[derive(Debug)]
pub(super) struct Block {
    rows: Rows,
    coded: Option<Coded>,
    part_id: PartId,
}

/// The codes of a block with their errors.
#[derive(Debug)]
struct Coded {
    trained: Arc<Trained>,
    codes: Vec<i8>,
    largest_error: f32,
    error_parts: Vec<u8>,
    longest: f32,
}

/// A quantizer that several blocks may share, so that a query is encoded once for all of them.
#[derive(Debug)]
pub(super) struct Trained {
    quantizer: Quantizer,
    /// The number of rows of the block it was trained on, and the largest error in that block.
    on: usize,
    error: f32,
}

/// A query encoded for the blocks of one quantizer.
pub(super) struct Asked<'a> {
    trained: &'a Arc<Trained>,
    code: QueryCode,
}

/// Queries of a batch with their codes for the blocks of one quantizer.
pub(super) struct AskedBatch<'a> {
    pub(super) queries: &'a [ExactQuery],
    pub(super) k: usize,
    pub(super) filter: Option<&'a Bits>,
    codes: Option<(Arc<Trained>, Vec<QueryCode>)>,
}

impl<'a> AskedBatch<'a> {
    pub(super) fn new(queries: &'a [ExactQuery], k: usize, filter: Option<&'a Bits>) -> Self {
        Self { queries, k, filter, codes: None }
    }

    /// The queries' codes by a quantizer.
    fn codes(&mut self, trained: &Arc<Trained>) -> &[QueryCode] {
        if self.codes.as_ref().is_some_and(|(by, _)| !Arc::ptr_eq(by, trained)) {
            self.codes = None;
        }
        let of = |query: &ExactQuery| trained.quantizer.query_code(query.vector());
        let make = || (Arc::clone(trained), self.queries.iter().map(of).collect());
        &self.codes.get_or_insert_with(make).1
    }
}

impl Coded {
    /// Encodes `rows` with an existing quantizer, if its sample was large enough and it fits these rows nearly as well.
    fn new(rows: &Rows, at_hand: Option<&Arc<Trained>>) -> Self {
        let view = rows.view();
        if let Some(trained) = at_hand.filter(|trained| trained.on >= rows.len().min(SAMPLE)) {
            let coded = Self::by(Arc::clone(trained), &view);
            if coded.largest_error <= trained.error * WORSE {
                return coded;
            }
        }
        let quantizer = Quantizer::train_on(&view, SAMPLE);
        let (codes, largest_error, error_parts) = codes(&quantizer, &view);
        let trained = Arc::new(Trained { quantizer, on: rows.len(), error: largest_error });
        Self { trained, codes, largest_error, error_parts, longest: view.longest() }
    }

    fn by(trained: Arc<Trained>, view: &RowsView<'_>) -> Self {
        let (codes, largest_error, error_parts) = codes(&trained.quantizer, view);
        Self { trained, codes, largest_error, error_parts, longest: view.longest() }
    }

    fn bounds(&self, spec: VectorSpec, query: &QueryCode) -> CodeBounds<'_> {
        let codes = Codes::new(spec.dim, spec.metric, &self.codes);
        let errors = CodeErrors { largest: self.largest_error, parts: &self.error_parts, guard: None };
        CodeBounds::new(&self.trained.quantizer, codes, errors, self.longest, query)
    }
}

/// The codes of `rows`, the largest error, and each error as a fraction of it.
fn codes(quantizer: &Quantizer, view: &RowsView<'_>) -> (Vec<i8>, f32, Vec<u8>) {
    let (codes, (largest, parts)) = quantizer.encode_rows(view);
    (codes, largest, parts)
}

impl Block {
    /// A block of `rows`, encoded if it is large enough, with the quantizer `at_hand` if that fits.
    pub(super) fn new(rows: Rows, at_hand: Option<&Arc<Trained>>) -> Self {
        let coded = (rows.len() >= CODED_FROM).then(|| Coded::new(&rows, at_hand));
        Self { rows, coded, part_id: PartId::next() }
    }

    /// Its quantizer.
    pub(super) fn trained(&self) -> Option<&Arc<Trained>> {
        self.coded.as_ref().map(|coded| &coded.trained)
    }

    /// A block without codes, which is scanned rarely.
    pub(super) fn uncoded(rows: Rows) -> Self {
        Self { rows, coded: None, part_id: PartId::next() }
    }

    /// The exact vectors.
    pub(super) fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Offers all vectors that pass `filter` and may enter the best k to `top`; returns the number that pass.
    /// `asked` caches the encoded query from the previous block.
    pub(super) fn scan<'a>(
        &'a self,
        query: &ExactQuery,
        filter: Option<&Bits>,
        asked: &mut Option<Asked<'a>>,
        top: &mut TopHits,
    ) -> u64 {
        let (rows, ids) = (self.rows.view(), self.rows.ids());
        let matching = filter.map_or(ids.len(), |filter| count_in(filter, ids));
        // A filter that matches everything costs nothing.
        let filter = filter.filter(|_| matching < ids.len());
        let coded = match &self.coded {
            Some(coded) if matching >= ids.len() / flat::SPARSE => coded,
            _ => return flat::scan(&rows, query, filter, top),
        };
        let trained = &coded.trained;
        if asked.as_ref().is_some_and(|asked| !Arc::ptr_eq(asked.trained, trained)) {
            *asked = None;
        }
        let asked = asked.get_or_insert_with(|| Asked { trained, code: trained.quantizer.query_code(query.vector()) });
        flat::scan_coded(&rows, &coded.bounds(rows.spec(), &asked.code), query, filter, top);
        matching as u64
    }
}

impl Block {
    /// As [`Block::scan`] for each query of a batch, with the best of each in `tops`. Returns the number of vectors
    /// that pass, and whether an accelerator compared them.
    pub(super) fn scan_batch(
        &self,
        asked: &mut AskedBatch<'_>,
        scorer: &dyn BatchScorer,
        tops: &mut [TopHits],
    ) -> Result<(u64, bool)> {
        let ids = self.rows.ids();
        let matching = asked.filter.map_or(ids.len(), |filter| count_in(filter, ids));
        if matching == 0 {
            return Ok((0, false));
        }
        let filter = asked.filter.filter(|_| matching < ids.len());
        let words = filter.map(|filter| position_words(ids.len(), flat::matching(ids, filter)));
        let (exact, k) = (asked.queries, asked.k);
        let queries: Vec<BatchQuery<'_>> = match &self.coded {
            None => exact.iter().map(|exact| BatchQuery { exact, bounds: BatchBounds::None }).collect(),
            Some(coded) => {
                let codes = exact.iter().zip(asked.codes(&coded.trained));
                let bounds = |code| BatchBounds::Known(Box::new(coded.bounds(self.rows.spec(), code)));
                codes.map(|(exact, code)| BatchQuery { exact, bounds: bounds(code) }).collect()
            }
        };
        let (part, rows) = (self.part_id, self.rows.view());
        let batch = Batch { part, rows, matching: words.as_deref(), queries: &queries, k };
        Ok((matching as u64, scorer.scan(&batch, tops)?))
    }
}

/// The number of `ids`, which ascend, in `filter`.
fn count_in(filter: &Bits, ids: &[u32]) -> usize {
    match ids {
        [first, .., last] if (last - first) as usize + 1 == ids.len() => {
            filter.count_in(*first..last.saturating_add(1)) as usize
        }
        _ => ids.iter().filter(|id| filter.contains(**id)).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Encoding, Metric};

    /// Vectors around a few centres, some of them ten times as long.
    fn vector(i: usize, dim: usize) -> Vec<f32> {
        let noise = |d: usize| (((i * dim + d) * (i + 7 * d + 3)) as f32 * 0.37).sin();
        let length = if i.is_multiple_of(37) { 10.0 } else { 1.0 };
        (0..dim).map(|d| ((i % 5 * dim + d) as f32 * 1.7).sin() * length + noise(d) * 0.6).collect()
    }

    #[test]
    fn a_scan_by_codes_finds_what_a_scan_without_them_finds() {
        const DIM: usize = 24;
        let filters: [fn(u32) -> bool; 3] = [|_| true, |id| id % 3 != 0, |id| id % 40 == 0];
        for metric in [Metric::Cosine, Metric::Dot, Metric::L2] {
            for encoding in [Encoding::F32, Encoding::F16, Encoding::I8] {
                let mut rows = Rows::new(VectorSpec::new(DIM, metric, encoding).unwrap());
                for i in 0..1500 {
                    rows.push(i * 2, &vector(i as usize, DIM)).unwrap();
                }
                let block = Block::new(rows, None);
                assert!(block.coded.is_some());
                let rows = block.rows.view();
                for (asked, k) in [(3, 1), (1000, 10), (2222, 10), (5, 300), (7, 1500)] {
                    let query = ExactQuery::new(rows.spec(), &vector(asked, DIM)).unwrap();
                    for filter in filters {
                        let filter: Bits = (0..3000).filter(|id| filter(*id)).collect();
                        for filter in [None, Some(&filter)] {
                            let (mut want, mut found) = (TopHits::new(k), TopHits::new(k));
                            let count = flat::scan(&rows, &query, filter, &mut want);
                            assert_eq!(block.scan(&query, filter, &mut None, &mut found), count);
                            assert_eq!(found.into_sorted(), want.into_sorted(), "{metric:?} {encoding:?} {asked} {k}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn blocks_alike_are_coded_by_the_same_and_others_are_not() {
        const DIM: usize = 24;
        let block = |first: usize, count: usize, times: f32, at_hand: Option<&Arc<Trained>>| {
            let mut rows = Rows::new(VectorSpec::new(DIM, Metric::Dot, Encoding::F16).unwrap());
            for i in first..first + count {
                let vector: Vec<f32> = vector(i, DIM).iter().map(|x| x * times).collect();
                rows.push(i as u32, &vector).unwrap();
            }
            Block::new(rows, at_hand)
        };
        let small = block(0, 64, 1.0, None);
        let large = block(0, 512, 1.0, small.trained());
        let trained = |block: &Block| Arc::clone(block.trained().unwrap());
        assert!(!Arc::ptr_eq(&trained(&small), &trained(&large)), "a few were learnt from");
        let like = block(512, 64, 1.0, large.trained());
        assert!(Arc::ptr_eq(&trained(&like), &trained(&large)));
        let longer = block(576, 64, 30.0, large.trained());
        assert!(!Arc::ptr_eq(&trained(&longer), &trained(&large)), "the codes of longer vectors are further off");
        let blocks = [&large, &like, &longer, &small];
        let query = ExactQuery::new(large.rows.spec(), &vector(99, DIM)).unwrap();
        let (mut want, mut found, mut asked) = (TopHits::new(9), TopHits::new(9), None);
        for block in blocks {
            flat::scan(&block.rows.view(), &query, None, &mut want);
            block.scan(&query, None, &mut asked, &mut found);
        }
        assert_eq!(found.into_sorted(), want.into_sorted());
    }

    #[test]
    fn codes_rule_most_of_a_block_out() {
        const DIM: usize = 64;
        let mut rows = Rows::new(VectorSpec::new(DIM, Metric::Cosine, Encoding::F16).unwrap());
        for i in 0..1024 {
            rows.push(i, &vector(i as usize, DIM)).unwrap();
        }
        let block = Block::new(rows, None);
        let query = ExactQuery::new(block.rows.spec(), &vector(41, DIM)).unwrap();
        let mut top = TopHits::new(10);
        block.scan(&query, None, &mut None, &mut top);
        let threshold = top.threshold().unwrap();
        let coded = block.coded.as_ref().unwrap();
        let code = coded.trained.quantizer.query_code(query.vector());
        let bounds = coded.bounds(block.rows.spec(), &code);
        let mut distances = Vec::new();
        bounds.distances_from(0, 1024, &mut distances);
        let left = (0..).zip(&distances).filter(|(at, distance)| bounds.similarity(*at, **distance).1 >= threshold);
        let left = left.count();
        assert!((10..100).contains(&left), "{left} of 1024 are left");
    }
}
