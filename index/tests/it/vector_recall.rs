//! A walk finds what a scan finds, for every metric and encoding.

use crate::clusters;
use crate::clusters::{clusters, index, options, recall, rows, segment, spec};
use holotype_index::{BuildOptions, Encoding, Metric, Rows, SearchOptions, Strategy, VectorIndex, build_segment};
use std::collections::HashSet;
use std::sync::Arc;

#[test]
fn recall_at_10_is_at_least_95_percent_for_every_metric_and_encoding() {
    let (vectors, queries) = (clusters(3000, 1), clusters(60, 2));
    for metric in [Metric::Cosine, Metric::Dot, Metric::L2] {
        for encoding in [Encoding::F32, Encoding::F16, Encoding::I8] {
            let rows = rows(spec(metric, encoding), &vectors, |i| i as u32 * 3 + 1);
            let index = index(vec![segment(&rows)]);
            let search = index.search(&queries[0], 10, SearchOptions::default()).unwrap();
            assert_eq!(search.parts[0].strategy, Strategy::Walk);
            let recall = recall(&index, &queries, SearchOptions::default());
            assert!(recall >= 0.95, "{} {}: {recall}", metric.name(), encoding.name());
        }
    }
}

#[test]
fn a_parallel_build_finds_as_much() {
    let (vectors, queries) = (clusters(4000, 3), clusters(60, 4));
    let rows = rows(spec(Metric::Cosine, Encoding::F16), &vectors, |i| i as u32);
    let file = build_segment(rows.clone(), clusters::IDENTITY, &BuildOptions { threads: 4, ..options() }).unwrap();
    let segment = clusters::open(file, &rows.spec());
    assert!(segment.unreachable_ids().unwrap().is_empty());
    let index = index(vec![segment]);
    let recall = recall(&index, &queries, SearchOptions::default());
    assert!(recall >= 0.95, "{recall}");
}

#[test]
fn a_larger_k_than_there_are_vectors_returns_all_of_them() {
    let vectors = clusters(700, 5);
    let rows = rows(spec(Metric::L2, Encoding::F32), &vectors, |i| i as u32);
    let index = index(vec![segment(&rows)]);
    for exact in [false, true] {
        let search = index.search(&vectors[0], 1000, SearchOptions { exact, ..SearchOptions::default() }).unwrap();
        // Every node can be reached, and the beam has room for all; what is scored again is cut only beyond k.
        assert_eq!(search.hits.len(), 700, "exact: {exact}");
    }
}

#[test]
fn an_index_of_nothing_answers_nothing() {
    let tail = holotype_index::TailView::empty(spec(Metric::Dot, Encoding::F32));
    let index = holotype_index::VectorIndex::new(Vec::new(), tail).unwrap();
    assert!(index.is_empty());
    assert!(index.search(&[0.5; clusters::DIM], 10, SearchOptions::default()).unwrap().hits.is_empty());
    assert_eq!(index.vector(0).unwrap(), None);
    assert_eq!(index.ef_for_recall(0.9), None);
}

#[test]
fn a_query_of_another_space_is_refused() {
    let vectors = clusters(10, 6);
    let index = index(vec![segment(&rows(spec(Metric::Dot, Encoding::F32), &vectors, |i| i as u32))]);
    assert!(index.search(&[1.0], 10, SearchOptions::default()).is_err());
    assert!(index.search(&[f32::NAN; clusters::DIM], 10, SearchOptions::default()).is_err());
    assert!(index.scores(&[1.0], &[0]).is_err());
}

#[test]
fn more_recall_is_calibrated_to_no_smaller_ef() {
    let vectors = clusters(2000, 7);
    let rows = rows(spec(Metric::Cosine, Encoding::F16), &vectors, |i| i as u32);
    let index = index(vec![segment(&rows)]);
    let efs: Vec<usize> = [0.5, 0.9, 0.95, 0.99, 1.0].map(|recall| index.ef_for_recall(recall).unwrap()).to_vec();
    assert!(efs.is_sorted(), "{efs:?}");
}

#[test]
fn questions_from_outside_find_as_much_as_was_asked_for() {
    let vectors = clusters(4600, 8);
    let (inside, outside) = vectors.split_at(4000);
    let rows = rows(spec(Metric::L2, Encoding::F16), inside, |i| i as u32);
    let index = index(vec![segment(&rows)]);
    for asked in [0.9, 0.99] {
        let ef = index.ef_for_recall(asked).unwrap();
        let ids = |query: &Vec<f32>, exact| -> Vec<u32> {
            let search = index.search(query, 10, SearchOptions { ef, exact, ..SearchOptions::default() }).unwrap();
            search.hits.iter().map(|hit| hit.id).collect()
        };
        let found: usize = outside
            .iter()
            .map(|query| {
                let truth = ids(query, true);
                ids(query, false).iter().filter(|id| truth.contains(id)).count()
            })
            .sum();
        let recall = found as f32 / (outside.len() * 10) as f32;
        assert!(recall >= asked - 0.01, "{recall} with ef {ef}, {asked} asked for");
    }
}

#[test]
fn a_walk_ends_early_where_the_answers_stand_alone_and_misses_no_more() {
    let unit = |vectors: Vec<Vec<f32>>| -> Vec<Vec<f32>> {
        let length = |vector: &[f32]| vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        vectors.iter().map(|vector| vector.iter().map(|x| x / length(vector)).collect()).collect()
    };
    let (vectors, queries) = (unit(clusters(4000, 13)), unit(clusters(60, 14)));
    // Of vectors of length one both metrics make the same graph; from dot products alone no distance is known.
    let of = |metric| {
        let index = index(vec![segment(&rows(spec(metric, Encoding::F16), &vectors, |i| i as u32))]);
        let options = SearchOptions { ef: 128, ..SearchOptions::default() };
        let searches = queries.iter().map(|query| index.search(query, 10, options).unwrap());
        (searches.map(|search| search.parts[0].compared).sum::<u64>(), recall(&index, &queries, options))
    };
    let ((whole, found), (early, found_early)) = (of(Metric::Dot), of(Metric::Cosine));
    assert!(early * 4 < whole * 3, "{early} compared, {whole} by a walk to its end");
    assert!(found_early >= found - 0.01, "{found_early} found, {found} by a walk to its end");
}

#[test]
fn a_walk_that_may_keep_as_many_as_there_are_misses_nothing() {
    let (vectors, queries) = (clusters(900, 15), clusters(40, 16));
    for metric in [Metric::Cosine, Metric::Dot, Metric::L2] {
        let index = index(vec![segment(&rows(spec(metric, Encoding::F32), &vectors, |i| i as u32))]);
        let all = SearchOptions { ef: 900, ..SearchOptions::default() };
        assert_eq!(index.search(&queries[0], 10, all).unwrap().parts[0].strategy, Strategy::Walk);
        assert_eq!(recall(&index, &queries, all), 1.0, "{}", metric.name());
    }
}

/// Two segments, the second with a fifth of the vectors; a vector belongs to it by `is_late`.
fn in_two(vectors: &[Vec<f32>], is_late: impl Fn(usize) -> bool) -> VectorIndex {
    let spec = spec(Metric::Cosine, Encoding::F16);
    let part = |late: bool| {
        let mut rows = Rows::new(spec);
        for (i, vector) in vectors.iter().enumerate().filter(|(i, _)| is_late(*i) == late) {
            rows.push(i as u32, vector).unwrap();
        }
        segment(&rows)
    };
    index(vec![part(false), part(true)])
}

#[test]
fn a_small_segment_is_walked_less_far_and_nothing_is_missed_for_it() {
    let (vectors, queries) = (clusters(5000, 11), clusters(80, 12));
    let search = |index: &VectorIndex, query: &[f32]| index.search(query, 10, SearchOptions::default()).unwrap();
    // Vectors lie in the segments at random: the small one is walked less far than if it were alone.
    let at_random = in_two(&vectors, |i| i % 7 == 3 || i % 11 == 5);
    let found = recall(&at_random, &queries, SearchOptions::default());
    assert!(found >= 0.95, "{found}");
    let tail = holotype_index::TailView::empty(spec(Metric::Cosine, Encoding::F16));
    let alone = VectorIndex::new(vec![Arc::clone(&at_random.segments()[1])], tail).unwrap();
    let compared = |index: &VectorIndex, part: usize| -> u64 {
        queries.iter().map(|query| search(index, query).parts[part].compared).sum()
    };
    let (beside, alone) = (compared(&at_random, 1), compared(&alone, 0));
    assert!(beside < alone, "{beside} compared beside a larger one, {alone} alone");
    // The small one holds some clusters whole, so that all that is near a query may lie in it.
    let by_cluster = in_two(&vectors, |i| i % 40 < 8);
    let found = recall(&by_cluster, &queries, SearchOptions::default());
    assert!(found >= 0.95, "{found}");
    for query in &queries {
        let hits = search(&by_cluster, query).hits;
        let ids: HashSet<u32> = hits.iter().map(|hit| hit.id).collect();
        assert_eq!((hits.len(), ids.len()), (10, 10));
    }
}
