//! Filters of every selectivity and correlation: answers lie within them, and nothing near is missed.

use crate::clusters;
use crate::clusters::{Random, clusters, index, recall, rows, segment, spec};
use holotype_index::bitmap::Bits;
use holotype_index::{Encoding, Metric, SearchOptions, Strategy, VectorIndex};

const COUNT: usize = 12_000;

fn made(metric: Metric) -> VectorIndex {
    index(vec![segment(&rows(spec(metric, Encoding::F16), &clusters(COUNT, 11), |i| i as u32 + 100))])
}

fn random(share: f64, seed: u64) -> Bits {
    let mut random = Random(seed);
    let chosen = (100..COUNT as u32 + 100).filter(|_| (random.below(1_000_000) as f64) < share * 1e6);
    chosen.collect()
}

/// Vectors of the centres for which `of` holds; the id of vector i is i + 100.
fn centres(of: impl Fn(u32) -> bool) -> Bits {
    (0..COUNT as u32).filter(|i| of(i % 40)).map(|i| i + 100).collect()
}

fn strategy(index: &VectorIndex, filter: &Bits) -> Strategy {
    let options = SearchOptions { filter: Some(filter), ..SearchOptions::default() };
    index.search(&[0.1; clusters::DIM], 10, options).unwrap().parts[0].strategy
}

#[test]
fn random_filters_of_every_selectivity_keep_recall() {
    let index = made(Metric::Cosine);
    let queries = clusters(40, 12);
    let mut strategies = Vec::new();
    for share in [1.0, 0.9, 0.5, 0.1, 0.01, 0.001] {
        let filter = random(share, 13);
        let recall = recall(&index, &queries, SearchOptions { filter: Some(&filter), ..SearchOptions::default() });
        assert!(recall >= 0.95, "{share}: {recall}");
        strategies.push(strategy(&index, &filter));
    }
    assert_eq!(strategies[0], Strategy::Walk, "a filter of everything is none");
    assert_eq!(strategies[1], Strategy::WalkCollecting);
    assert_eq!(strategies[5], Strategy::ScanMatching);
}

#[test]
fn filters_near_the_query_and_far_from_it_keep_recall() {
    let index = made(Metric::L2);
    for i in 0..8u32 {
        let queries = [clusters(40, 14)[i as usize].clone()];
        let own = centres(|centre| centre == i);
        let others = centres(|centre| centre >= i + 20);
        let far = centres(|centre| centre == i + 20);
        for filter in [own, others, far] {
            let options = SearchOptions { filter: Some(&filter), ..SearchOptions::default() };
            let recall = recall(&index, &queries, options);
            assert!(recall >= 0.95, "query {i}, {} matches: {recall}", filter.count());
        }
    }
}

#[test]
fn one_match_is_found_wherever_it_is_and_none_is_skipped() {
    let index = made(Metric::Dot);
    for id in [100, 4321, COUNT as u32 + 99] {
        let filter: Bits = [id, 5, 1_000_000].into_iter().collect();
        let options = SearchOptions { filter: Some(&filter), ..SearchOptions::default() };
        let search = index.search(&[1.0; clusters::DIM], 10, options).unwrap();
        assert_eq!(search.hits.iter().map(|hit| hit.id).collect::<Vec<_>>(), [id]);
        assert_eq!((search.parts[0].matching, search.parts[0].compared), (1, 1));
    }
    for filter in [Bits::new(), [5, 99, 2_000_000].into_iter().collect()] {
        assert_eq!(strategy(&index, &filter), Strategy::Skip);
    }
}

#[test]
fn the_nearest_of_what_is_far_are_found_though_many_are_about_as_far() {
    for metric in [Metric::Cosine, Metric::L2, Metric::Dot] {
        let vectors = clusters(4000, 55);
        let index = index(vec![segment(&rows(spec(metric, Encoding::F16), &vectors, |i| i as u32))]);
        let (mut found, mut wanted) = (0, 0);
        for query in clusters(20, 56) {
            let all: Vec<u32> = (0..4000).collect();
            let scores = index.scores(&query, &all).unwrap();
            let mut sorted: Vec<f32> = scores.iter().flatten().copied().collect();
            sorted.sort_by(f32::total_cmp);
            // All but the nearest part: the best of the rest lie side by side.
            for share in [10, 25] {
                let bound = sorted[4000 * share / 100];
                let filter: Bits = all.iter().copied().filter(|id| scores[*id as usize].unwrap() < bound).collect();
                let options = SearchOptions { filter: Some(&filter), ..SearchOptions::default() };
                let truth = index.search(&query, 10, SearchOptions { exact: true, ..options }).unwrap().hits;
                let hits = index.search(&query, 10, options).unwrap().hits;
                found += truth.iter().filter(|hit| hits.contains(hit)).count();
                wanted += truth.len();
            }
        }
        let recall = f64::from(found as u32) / f64::from(wanted as u32);
        assert!(recall >= 0.95, "{}: {recall}", metric.name());
    }
}
