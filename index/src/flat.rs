//! Exact search by scanning.
//!
//! Three cases use it: small sets, where a scan at memory speed beats a graph; filters with few matches, which a graph
//! walk would miss; and callers that ask for an exact answer.
//!
//! Cost: one distance per scanned vector, plus O(log k) for each that enters the best k.

use crate::bitmap::Bits;
use crate::hit::{Hit, TopHits};
use crate::quantize::CodeBounds;
use crate::rows::{ExactQuery, RowsView};
use std::ops::Range;

/// The number of rows scored in one kernel call.
const CHUNK: usize = 256;

/// The greatest number of rows whose codes are compared in one call: from a mebibyte on, a call reads memory in several
/// streams.
const LONGEST_RUN: usize = 8 << 10;

/// If fewer than one in this many vectors match a filter, only matches are compared, and codes are not used.
pub(crate) const SPARSE: usize = 8;

/// Compares every vector of `rows` that matches `filter`, and returns their number.
pub(crate) fn scan(rows: &RowsView<'_>, query: &ExactQuery, filter: Option<&Bits>, top: &mut TopHits) -> u64 {
    match filter {
        None => scan_all(rows, query, top),
        Some(filter) => {
            rows.touch_ids(0, rows.len());
            let positions = matching(rows.ids(), filter).map(|at| at as u32);
            scan_positions(rows, query, positions, top)
        }
    }
}

fn scan_all(rows: &RowsView<'_>, query: &ExactQuery, top: &mut TopHits) -> u64 {
    scan_run(rows, query, &mut [0.0; CHUNK], top)
}

/// Offers every vector of `rows` that matches `filter` and may be among the best. The result equals that of a scan, at
/// less than half the cost: `bounds` exclude most vectors without reading them.
pub(crate) fn scan_coded(
    rows: &RowsView<'_>,
    bounds: &CodeBounds<'_>,
    query: &ExactQuery,
    filter: Option<&Bits>,
    top: &mut TopHits,
) {
    let ids = rows.ids();
    let mut distances = Vec::new();
    for Range { start, end } in runs(ids.len()) {
        let Some(threshold) = top.threshold() else {
            scan(&rows.slice(start, end), query, filter, top);
            continue;
        };
        bounds.distances_from(start, end - start, &mut distances);
        let cutoff = bounds.cutoff(threshold);
        for (position, distance) in (start..end).zip(&distances) {
            let may_be_best = *distance <= cutoff
                && filter.is_none_or(|filter| filter.contains(ids[position]))
                && top.threshold().is_none_or(|least| bounds.similarity(position as u32, *distance).1 >= least);
            if may_be_best {
                top.push(Hit { id: ids[position], score: query.score(rows, position) });
            }
        }
    }
}

/// The runs of positions in which codes of `len` rows are compared: short runs first, which give a threshold that
/// excludes most later rows.
pub(crate) fn runs(len: usize) -> impl Iterator<Item = Range<usize>> {
    let (mut start, mut longest) = (0, CHUNK);
    std::iter::from_fn(move || {
        let run = start..len.min(start + longest);
        (start, longest) = (run.end, LONGEST_RUN.min(2 * longest));
        (!run.is_empty()).then_some(run)
    })
}

/// Compares every vector of `rows`, which are at most as many as `scores` has elements.
fn scan_run(rows: &RowsView<'_>, query: &ExactQuery, scores: &mut [f32; CHUNK], top: &mut TopHits) -> u64 {
    for start in (0..rows.len()).step_by(CHUNK) {
        let chunk = rows.slice(start, (start + CHUNK).min(rows.len()));
        let scores = &mut scores[..chunk.len()];
        query.score_rows(&chunk, scores);
        for (id, score) in chunk.ids().iter().zip(scores) {
            top.push(Hit { id: *id, score: *score });
        }
    }
    rows.len() as u64
}

/// Compares the vectors at `positions`, which ascend, and returns their number. Adjacent vectors are compared in one
/// call, since most filters match nearly everything.
pub(crate) fn scan_positions(
    rows: &RowsView<'_>,
    query: &ExactQuery,
    positions: impl Iterator<Item = u32>,
    top: &mut TopHits,
) -> u64 {
    let mut scores = [0.0; CHUNK];
    let mut positions = positions.peekable();
    let mut scanned = 0;
    while let Some(position) = positions.next() {
        let mut end = position + 1;
        while positions.next_if_eq(&end).is_some() {
            end += 1;
        }
        if let Some(next) = positions.peek() {
            query.prefetch(rows, *next as usize);
        }
        if end > position + 1 {
            scanned += scan_run(&rows.slice(position as usize, end as usize), query, &mut scores, top);
        } else {
            top.push(Hit { id: rows.ids()[position as usize], score: query.score(rows, position as usize) });
            scanned += 1;
        }
    }
    scanned
}

/// The positions in `ids` (ascending) of the ids in `filter`.
pub(crate) fn matching<'a>(ids: &'a [u32], filter: &'a Bits) -> Box<dyn Iterator<Item = usize> + 'a> {
    // A look-up of each match costs a binary search, a test of each id a bit test.
    let sparse = filter.count().saturating_mul(16) < ids.len() as u64;
    if !sparse {
        let all = ids.iter().enumerate();
        return Box::new(all.filter(|(_, id)| filter.contains(**id)).map(|(at, _)| at));
    }
    let mut rest = 0;
    Box::new(filter.iter().filter_map(move |id| {
        rest += ids[rest..].partition_point(|other| *other < id);
        (ids.get(rest) == Some(&id)).then_some(rest)
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rows::Rows;
    use crate::spec::{Encoding, Metric, VectorSpec};

    proptest! {
        #[test]
        fn matching_positions_are_those_in_the_filter(
            ids in proptest::collection::btree_set(0u32..3000, 0..200),
            wanted in proptest::collection::btree_set(0u32..3000, 0..200),
        ) {
            let ids: Vec<u32> = ids.into_iter().collect();
            let few: Bits = wanted.iter().copied().take(3).collect();
            for filter in [wanted.iter().copied().collect::<Bits>(), few] {
                let want: Vec<usize> = (0..ids.len()).filter(|at| filter.contains(ids[*at])).collect();
                prop_assert_eq!(matching(&ids, &filter).collect::<Vec<_>>(), want);
            }
        }
    }

    #[test]
    fn a_filtered_scan_is_the_filtered_list() {
        let spec = VectorSpec::new(2, Metric::L2, Encoding::F32).unwrap();
        let mut rows = Rows::new(spec);
        for i in 0..1000u32 {
            rows.push(i * 2, &[i as f32, 1.0]).unwrap();
        }
        let query = ExactQuery::new(spec, &[500.2, 1.0]).unwrap();
        // Single ones, runs of some, runs longer than a chunk.
        let tests: [fn(u32) -> bool; 7] = [
            |_| true,
            |id| id % 7 == 0,
            |id| id % 100 == 0,
            |id| id % 700 == 0,
            |id| id % 20 < 16,
            |id| id % 1000 != 998,
            |id| (300..1400).contains(&id),
        ];
        for test in tests {
            let filter: Bits = (0..2000).filter(|id| test(*id)).collect();
            let mut filtered = TopHits::new(5);
            let scanned = scan(&rows.view(), &query, Some(&filter), &mut filtered);
            assert_eq!(scanned, (0..1000).filter(|i| test(i * 2)).count() as u64);
            let mut all = TopHits::new(1000);
            scan(&rows.view(), &query, None, &mut all);
            let mut want = all.into_sorted();
            want.retain(|hit| test(hit.id));
            want.truncate(5);
            assert_eq!(filtered.into_sorted(), want);
        }
    }

    #[test]
    fn runs_cover_every_position_once_in_order() {
        for len in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 3 * LONGEST_RUN + 5] {
            let covered: Vec<usize> = runs(len).flatten().collect();
            assert_eq!(covered, (0..len).collect::<Vec<_>>());
            assert!(runs(len).all(|run| run.len() <= LONGEST_RUN));
            assert!(runs(len).next().is_none_or(|first| first.len() <= CHUNK));
        }
        assert!(runs(3 * LONGEST_RUN).any(|run| run.len() == LONGEST_RUN));
    }
}
