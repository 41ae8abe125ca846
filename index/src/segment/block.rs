//! A block of a tail: exact vectors that no longer change, and beside many of them scan codes.
//!
//! A scan that has k hits already needs the exact score only of vectors that may be among the best k. What codes prove
//! ([`CodeBounds`]) rules out most of the others at a fifth of the cost, and nothing else: a scan by codes finds exactly what
//! one without them finds.
//!
//! Cost: codes take half a byte for each byte of f16, and about 2 us a vector to make; a scan takes 1 us and then a
//! comparison of codes for each vector.

use crate::bitmap::Bits;
use crate::flat;
use crate::hit::TopHits;
use crate::quantize::{CodeBounds, CodeErrors, Codes, Quantizer};
use crate::rows::{ExactQuery, Rows};

/// Fewer vectors than this have no codes: coding the query would cost more than codes save.
const CODED_FROM: usize = 512;

/// Vectors that the scale of a block's codes is learnt from.
const SAMPLE: usize = 128;

/// Vectors that no longer change.
#[derive(Debug)]
pub(super) struct Block {
    rows: Rows,
    coded: Option<Coded>,
}

/// The codes of a block, and what bounds are reckoned from.
#[derive(Debug)]
struct Coded {
    quantizer: Quantizer,
    codes: Vec<i8>,
    largest_error: f32,
    error_parts: Vec<u8>,
    longest: f32,
}

impl Coded {
    fn new(rows: &Rows) -> Self {
        let view = rows.view();
        let quantizer = Quantizer::train_on(&view, SAMPLE);
        let codes = quantizer.encode_rows(&view);
        let (largest_error, error_parts) = quantizer.errors(&view, &codes);
        Self { quantizer, codes, largest_error, error_parts, longest: view.longest() }
    }
}

impl Block {
    /// A block of `rows`, coded where that pays.
    pub(super) fn new(rows: Rows) -> Self {
        let coded = (rows.len() >= CODED_FROM).then(|| Coded::new(&rows));
        Self { rows, coded }
    }

    /// A block that is not scanned often.
    pub(super) fn uncoded(rows: Rows) -> Self {
        Self { rows, coded: None }
    }

    /// The exact vectors.
    pub(super) fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Offers every vector that `filter` lets through and that may be among the best; returns how many it lets through.
    pub(super) fn scan(&self, query: &ExactQuery, filter: Option<&Bits>, top: &mut TopHits) -> u64 {
        let (rows, ids) = (self.rows.view(), self.rows.ids());
        let matching = filter.map_or(ids.len(), |filter| count_in(filter, ids));
        // A filter that lets everything through is none.
        let filter = filter.filter(|_| matching < ids.len());
        let coded = match &self.coded {
            Some(coded) if matching >= ids.len() / flat::SPARSE => coded,
            _ => return flat::scan(&rows, query, filter, top),
        };
        let spec = rows.spec();
        let codes = Codes::new(spec.dim, spec.metric, &coded.codes);
        let errors = CodeErrors { largest: coded.largest_error, parts: &coded.error_parts, guard: None };
        let bounds = CodeBounds::new(&coded.quantizer, codes, errors, coded.longest, query.vector());
        flat::scan_coded(&rows, &bounds, query, filter, top);
        matching as u64
    }
}

/// How many of `ids`, which ascend, are in `filter`.
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
    use crate::spec::{Encoding, Metric, VectorSpec};

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
                let block = Block::new(rows);
                assert!(block.coded.is_some());
                let rows = block.rows.view();
                for (asked, k) in [(3, 1), (1000, 10), (2222, 10), (5, 300), (7, 1500)] {
                    let query = ExactQuery::new(rows.spec(), &vector(asked, DIM)).unwrap();
                    for filter in filters {
                        let filter: Bits = (0..3000).filter(|id| filter(*id)).collect();
                        for filter in [None, Some(&filter)] {
                            let (mut want, mut found) = (TopHits::new(k), TopHits::new(k));
                            let count = flat::scan(&rows, &query, filter, &mut want);
                            assert_eq!(block.scan(&query, filter, &mut found), count);
                            assert_eq!(found.into_sorted(), want.into_sorted(), "{metric:?} {encoding:?} {asked} {k}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn codes_rule_most_of_a_block_out() {
        const DIM: usize = 64;
        let mut rows = Rows::new(VectorSpec::new(DIM, Metric::Cosine, Encoding::F16).unwrap());
        for i in 0..1024 {
            rows.push(i, &vector(i as usize, DIM)).unwrap();
        }
        let block = Block::new(rows);
        let query = ExactQuery::new(block.rows.spec(), &vector(41, DIM)).unwrap();
        let mut top = TopHits::new(10);
        block.scan(&query, None, &mut top);
        let threshold = top.threshold().unwrap();
        let coded = block.coded.as_ref().unwrap();
        let codes = Codes::new(DIM, Metric::Cosine, &coded.codes);
        let errors = CodeErrors { largest: coded.largest_error, parts: &coded.error_parts, guard: None };
        let bounds = CodeBounds::new(&coded.quantizer, codes, errors, coded.longest, query.vector());
        let mut distances = Vec::new();
        bounds.distances_from(0, 1024, &mut distances);
        let left = (0..).zip(&distances).filter(|(at, distance)| bounds.similarity(*at, **distance).1 >= threshold);
        let left = left.count();
        assert!((10..100).contains(&left), "{left} of 1024 are left");
    }
}
