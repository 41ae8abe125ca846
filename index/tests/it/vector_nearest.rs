//! A resumed search gives out each id once, everything in the end, and the nearest first.

use crate::clusters::{clusters, recall, rows, segment, spec};
use holotype_index::bitmap::Bits;
use holotype_index::{Encoding, Metric, SearchOptions, VectorIndex, VectorTail};
use std::sync::Arc;

/// Two segments with graphs, a small one without, and a tail; ids are spread over them in turn.
fn parts(vectors: &[Vec<f32>]) -> VectorIndex {
    let spec = spec(Metric::Cosine, Encoding::F16);
    let part = |from: usize, to: usize| Arc::new(segment(&rows(spec, &vectors[from..to], |i| (from + i) as u32 * 2)));
    let tail = VectorTail::new(spec);
    for (i, vector) in vectors.iter().enumerate().skip(3900) {
        tail.push(i as u32 * 2, vector).unwrap();
    }
    VectorIndex::new(vec![part(0, 2000), part(2000, 3600), part(3600, 3900)], tail.view()).unwrap()
}

#[test]
fn each_id_once_and_everything_in_the_end_under_any_filter() {
    let vectors = clusters(4000, 61);
    let index = parts(&vectors);
    let every: Bits = (0..8000).collect();
    let half: Bits = (0..8000).filter(|id| id % 3 != 0).collect();
    let few: Bits = (0..8000).filter(|id| id % 97 == 0).collect();
    let one: Bits = [4444].into_iter().collect();
    for (query, exact) in clusters(3, 62).iter().zip([false, false, true]) {
        for filter in [None, Some(&every), Some(&half), Some(&few), Some(&one), Some(&Bits::new())] {
            let options = SearchOptions { filter, exact, ..SearchOptions::default() };
            let nearest = index.nearest(query, options).unwrap();
            let hits: Vec<_> = nearest.map(Result::unwrap).collect();
            let mut ids: Vec<u32> = hits.iter().map(|hit| hit.id).collect();
            let scores: Vec<Option<f32>> = hits.iter().map(|hit| Some(hit.score)).collect();
            assert_eq!(index.scores(query, &ids).unwrap(), scores, "scores are exact");
            if exact {
                assert!(hits.is_sorted_by(|a, b| a.best_first(b).is_lt()));
            }
            ids.sort_unstable();
            let wanted = (0..8000).filter(|id| id % 2 == 0 && filter.is_none_or(|filter| filter.contains(*id)));
            assert!(ids.into_iter().eq(wanted));
        }
    }
}

#[test]
fn its_beginning_is_as_good_as_a_search() {
    let vectors = clusters(4000, 63);
    let index = parts(&vectors);
    let queries = clusters(40, 64);
    let (mut found, mut found_later) = (0, 0);
    for query in &queries {
        let truth = index.search(query, 200, SearchOptions { exact: true, ..SearchOptions::default() }).unwrap().hits;
        let mut nearest = index.nearest(query, SearchOptions::default()).unwrap();
        let first: Vec<u32> = nearest.by_ref().take(10).map(|hit| hit.unwrap().id).collect();
        found += truth[..10].iter().filter(|hit| first.contains(&hit.id)).count();
        // Resumed: what comes next is what comes next, not what was given out.
        let later: Vec<u32> = nearest.by_ref().take(190).map(|hit| hit.unwrap().id).collect();
        assert!(later.iter().all(|id| !first.contains(id)));
        found_later += truth.iter().filter(|hit| first.contains(&hit.id) || later.contains(&hit.id)).count();
        assert!(nearest.compared() < 4000);
    }
    let searched = recall(&index, &queries, SearchOptions::default());
    let first = found as f64 / (queries.len() * 10) as f64;
    assert!(first >= 0.95 && first >= searched - 0.02, "{first}, a search {searched}");
    let later = found_later as f64 / (queries.len() * 200) as f64;
    assert!(later >= 0.95, "{later}");
}
