//! Filters of many matches: walks over all vectors where the query is among them, scans and walks over the matches
//! where not.
//!
//! The vectors are few-dimensional, so that a segment large enough for this strategy is built quickly.

use crate::clusters;
use crate::clusters::{IDENTITY, Random, open, options};
use holotype_index::bitmap::Bits;
use holotype_index::{BuildOptions, Encoding, Metric, Rows, SearchOptions, Strategy, VectorSpec, build_segment};

const COUNT: u32 = 100_000;
const DIM: usize = 12;

#[test]
fn walks_over_matches_keep_recall_for_filters_spread_out_near_and_far() {
    let spec = VectorSpec::new(DIM, Metric::L2, Encoding::F16).unwrap();
    let mut random = Random(21);
    let mut rows = Rows::new(spec);
    // The first component is the region: a filter by region is a slab near or far from the query.
    for id in 0..COUNT {
        let mut vector: Vec<f32> = (0..DIM).map(|_| random.normal()).collect();
        vector[0] += (id % 6) as f32 * 2.0;
        rows.push(id, &vector).unwrap();
    }
    let options = BuildOptions { ef_construction: 40, m: 12, threads: 2, ..options() };
    let segment = open(build_segment(rows, IDENTITY, &options).unwrap(), &spec);
    assert!(segment.unreachable_ids().unwrap().is_empty());
    let index = clusters::index(vec![segment]);
    let queries: Vec<Vec<f32>> = (0..25).map(|_| (0..DIM).map(|_| random.normal()).collect()).collect();
    let spread: Bits = (0..COUNT).filter(|_| random.below(1000) < 170).collect();
    let near: Bits = (0..COUNT).filter(|id| id % 6 == 0).collect();
    let far: Bits = (0..COUNT).filter(|id| id % 6 == 5).collect();
    let most_far: Bits = (0..COUNT).filter(|id| id % 6 >= 2).collect();
    for (name, filter) in [("spread", spread), ("near", near), ("far", far), ("most and far", most_far)] {
        let options = SearchOptions { filter: Some(&filter), ..SearchOptions::default() };
        let search = index.search(&queries[0], 10, options).unwrap();
        let expected = match name {
            "far" => Strategy::ScanMatching,
            "most and far" => Strategy::WalkMatching,
            _ => Strategy::WalkCollecting,
        };
        assert_eq!(search.parts[0].strategy, expected, "{name}");
        let recall = clusters::recall(&index, &queries, options);
        assert!(recall >= 0.95, "{name}: {recall}");
    }
}

/// Vectors around 240 centres, of which those about the first 60 are far away from the others.
#[test]
fn a_far_group_of_clusters_keeps_recall_walked_or_scanned() {
    let spec = VectorSpec::new(DIM, Metric::L2, Encoding::F16).unwrap();
    let mut random = Random(22);
    let centres: Vec<Vec<f32>> = (0..240).map(|_| (0..DIM).map(|_| 4.0 * random.normal()).collect()).collect();
    let mut near = |centre: usize| -> Vec<f32> {
        let mut vector: Vec<f32> = centres[centre].iter().map(|c| c + random.normal()).collect();
        vector[0] += if centre < 60 { 20.0 } else { 0.0 };
        vector
    };
    let mut rows = Rows::new(spec);
    (0..COUNT).for_each(|id| rows.push(id, &near(id as usize % 240)).unwrap());
    let queries: Vec<Vec<f32>> = (0..25).map(|i| near(60 + i)).collect();
    let options = BuildOptions { ef_construction: 40, m: 12, threads: 1, ..options() };
    let index = clusters::index(vec![open(build_segment(rows, IDENTITY, &options).unwrap(), &spec)]);
    let far: Bits = (0..COUNT).filter(|id| id % 240 < 60).collect();
    let half_of_far: Bits =
        (0..COUNT).filter(|id| id % 240 < 60 && Random(u64::from(*id) + 1).next() & 1 == 1).collect();
    for (name, filter, least) in [("far", far, 10), ("half of far", half_of_far, 1)] {
        let options = SearchOptions { ef: 32, filter: Some(&filter), ..SearchOptions::default() };
        let searches = queries.iter().map(|query| index.search(query, 10, options).unwrap().parts[0].strategy);
        let walked = searches.filter(|strategy| *strategy == Strategy::WalkMatching).count();
        let recall = clusters::recall(&index, &queries, options);
        assert!((least..25).contains(&walked), "{name}: {walked} of 25 are walks");
        assert!(recall >= 0.95, "{name}: {recall}");
    }
}
