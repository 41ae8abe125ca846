//! Many queries at once: every answer is that of a single search.

use std::sync::Arc;

use crate::clusters::{self, DIM, IDENTITY, Random, clusters, open, rows, segment, spec};
use holotype_index::bitmap::Bits;
use holotype_index::scorer::{BatchScorer, CpuScorer};
use holotype_index::segment::layout;
use holotype_index::{
    BuildOptions, Encoding, Error, Metric, SearchOptions, Strategy, VectorIndex, VectorSegment, VectorTail,
    build_segment,
};
use holotype_storage::segment_file::SegmentFile;
use proptest::prelude::*;

/// Vectors of which many are equal, zero, or far longer than others.
fn awkward(count: usize, seed: u64) -> Vec<Vec<f32>> {
    let mut random = Random(seed);
    let same = clusters(1, seed).remove(0);
    let plain = clusters(count, seed + 1);
    let of = |vector: Vec<f32>| match random.below(5) {
        0 | 1 => same.clone(),
        2 => vec![0.0; DIM],
        3 => vector.iter().map(|x| x * 300.0).collect(),
        _ => vector,
    };
    plain.into_iter().map(of).collect()
}

/// A segment with a graph, one with codes alone, one with neither, and a tail. Ids are even.
fn made(metric: Metric, encoding: Encoding, vectors: &[Vec<f32>]) -> VectorIndex {
    let spec = spec(metric, encoding);
    let flat = BuildOptions { graph_from: usize::MAX, ..clusters::options() };
    let part = |from: usize, to: usize| rows(spec, &vectors[from..to], |i| 2 * (from + i) as u32);
    let segments = vec![
        segment(&part(0, 600)),
        open(build_segment(part(600, 1300), IDENTITY, &flat).unwrap(), &spec),
        open(build_segment(part(1300, 1400), IDENTITY, &flat).unwrap(), &spec),
    ];
    let tail = VectorTail::new(spec);
    for (i, vector) in vectors.iter().enumerate().skip(1400) {
        tail.push(2 * i as u32, vector).unwrap();
    }
    VectorIndex::new(segments.into_iter().map(Arc::new).collect(), tail.view()).unwrap()
}

fn compare(index: &VectorIndex, queries: &[Vec<f32>], k: usize, options: SearchOptions<'_>) {
    let asked: Vec<&[f32]> = queries.iter().map(Vec::as_slice).collect();
    let together = index.search_batch(&asked, k, options, &CpuScorer).unwrap();
    assert_eq!(together.len(), queries.len());
    for (query, found) in queries.iter().zip(together) {
        assert_eq!(found, index.search(query, k, options).unwrap(), "k {k}, {options:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(36))]

    #[test]
    fn a_batch_answers_as_single_searches_do(
        metric in prop_oneof![Just(Metric::Cosine), Just(Metric::Dot), Just(Metric::L2)],
        encoding in prop_oneof![Just(Encoding::F32), Just(Encoding::F16), Just(Encoding::I8)],
        (seed, plain, exact) in (1u64..1000, any::<bool>(), any::<bool>()),
        share in prop_oneof![Just(0.0), Just(0.01), Just(0.3), Just(0.97), Just(1.0)],
    ) {
        let vectors = if plain { clusters(1900, seed) } else { awkward(1900, seed) };
        let index = made(metric, encoding, &vectors);
        let mut queries = clusters(7, seed + 2);
        queries.extend([vectors[3].clone(), vec![0.0; DIM], vectors[1850].clone()]);
        let mut random = Random(seed);
        let filter: Bits = (0..3800).filter(|_| (random.below(1000) as f64) < share * 1000.0).collect();
        for k in [0, 1, 10, 300] {
            for filter in [None, Some(&filter)] {
                compare(&index, &queries, k, SearchOptions { filter, exact, ..SearchOptions::default() });
            }
        }
        prop_assert!(index.search_batch(&[], 5, SearchOptions::default(), &CpuScorer).unwrap().is_empty());
    }
}

#[test]
fn more_queries_than_are_compared_at_a_time_are_answered() {
    let index = made(Metric::Cosine, Encoding::F16, &clusters(1900, 5));
    let filter: Bits = (0..3800).filter(|id| id % 3 == 0).collect();
    compare(&index, &clusters(300, 6), 10, SearchOptions { filter: Some(&filter), ..SearchOptions::default() });
}

#[test]
fn a_wrong_query_is_refused_as_by_a_single_search() {
    let index = made(Metric::Dot, Encoding::F32, &clusters(1500, 7));
    let asked: [&[f32]; 2] = [&[1.0; DIM], &[1.0; DIM - 1]];
    let refused = index.search_batch(&asked, 3, SearchOptions::default(), &CpuScorer);
    assert!(matches!(refused, Err(Error::Dimension { expected: DIM, found: 63 })), "{refused:?}");
}

#[test]
fn damage_is_stepped_around_or_told_as_by_single_searches() {
    let spec = spec(Metric::Cosine, Encoding::F32);
    let vectors = clusters(800, 8);
    let built = build_segment(rows(spec, &vectors, |i| i as u32), IDENTITY, &clusters::options()).unwrap();
    let mut bytes = built.into_bytes();
    // A component of the vector at position 500.
    let wanted: Vec<u8> = spec.prepare(&vectors[500]).iter().flat_map(|x| x.to_le_bytes()).collect();
    let at = bytes.windows(wanted.len()).position(|window| window == wanted).unwrap();
    bytes[at + 9] ^= 0x40;
    let fresh = || {
        let file = SegmentFile::from_bytes(bytes.clone(), layout::KIND, &IDENTITY).unwrap();
        clusters::index(vec![VectorSegment::open(file, &spec).unwrap()])
    };
    let queries = clusters(5, 9);
    let asked: Vec<&[f32]> = queries.iter().map(Vec::as_slice).collect();
    let options = SearchOptions { exact: true, skip_damaged: true, ..SearchOptions::default() };
    let single = fresh();
    let want: Vec<_> = queries.iter().map(|query| single.search(query, 10, options).unwrap().hits).collect();
    let found = fresh().search_batch(&asked, 10, options, &CpuScorer).unwrap();
    assert!(found.iter().all(|search| search.parts[0].strategy == Strategy::SkipDamaged));
    assert_eq!(found.into_iter().map(|search| search.hits).collect::<Vec<_>>(), want);
    let strict = SearchOptions { skip_damaged: false, ..options };
    assert!(matches!(fresh().search_batch(&asked, 10, strict, &CpuScorer), Err(Error::Corrupt { .. })));
}

#[test]
fn only_parts_that_are_compared_as_a_whole_share_a_scan() {
    let tail = VectorTail::new(spec(Metric::Cosine, Encoding::F16));
    let walked = clusters::index(vec![segment(&rows(tail.spec(), &clusters(700, 3), |i| i as u32))]);
    assert!(!walked.shares_scan(&SearchOptions::default()).unwrap());
    assert!(walked.shares_scan(&SearchOptions { exact: true, ..SearchOptions::default() }).unwrap());
    for (i, vector) in clusters(300, 4).iter().enumerate() {
        tail.push(i as u32, vector).unwrap();
    }
    assert!(VectorIndex::new(Vec::new(), tail.view()).unwrap().shares_scan(&SearchOptions::default()).unwrap());
    assert!(CpuScorer.name().starts_with("cpu ("));
}
