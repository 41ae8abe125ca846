//! Equal and nearly equal vectors, many of them, hide no others and are found themselves.

use crate::clusters::{self, DIM, Random, index, merged, options, recall, rows, segment, spec};
use holotype_index::bitmap::Bits;
use holotype_index::{Encoding, Metric, Rows, SearchOptions, VectorIndex, VectorSegment};

/// `single` vectors, and as many twins around `around` vectors as given, each component moved by about `spread`; ids
/// in random order.
fn made(single: usize, twins: usize, around: usize, spread: f32, seed: u64) -> (Vec<Vec<f32>>, Vec<bool>) {
    let mut random = Random(seed);
    let mut vector = |centre: Option<&Vec<f32>>, spread: f32| -> Vec<f32> {
        (0..DIM).map(|at| centre.map_or(0.0, |centre| centre[at]) + spread * random.normal()).collect()
    };
    let centres: Vec<Vec<f32>> = (0..around).map(|_| vector(None, 1.0)).collect();
    let mut all: Vec<(Vec<f32>, bool)> = (0..single).map(|_| (vector(None, 1.0), false)).collect();
    all.extend((0..twins).map(|at| (vector(Some(&centres[at % around]), spread), true)));
    let mut order = Random(seed + 1);
    for at in (1..all.len()).rev() {
        all.swap(at, order.below(at + 1));
    }
    all.into_iter().unzip()
}

/// Vectors near some of `vectors`.
fn near(vectors: &[Vec<f32>], of: impl Fn(usize) -> bool, random: &mut Random) -> Vec<Vec<f32>> {
    let of: Vec<usize> = (0..vectors.len()).filter(|at| of(*at)).collect();
    let mut moved = |at: usize| vectors[at].iter().map(|x| x + 0.05 * random.normal()).collect();
    (0..40).map(|place| moved(of[place * of.len() / 40])).collect()
}

fn found(index: &VectorIndex, queries: &[Vec<f32>], filter: Option<&Bits>) -> f64 {
    recall(index, queries, SearchOptions { filter, ..SearchOptions::default() })
}

#[test]
fn twins_hide_no_others_and_are_found_themselves() {
    // Nearly equal ones are many: among some dozens about as near, codes under cosine may tell too little.
    for (single, twins, around, spread, metric) in [
        (800, 2000, 1, 0.0, Metric::Cosine),
        (800, 2000, 1, 0.001, Metric::Cosine),
        (800, 2000, 1, 0.02, Metric::L2),
        (2000, 100, 3, 0.0, Metric::Cosine),
        (2000, 100, 3, 0.001, Metric::L2),
    ] {
        let (vectors, is_twin) = made(single, twins, around, spread, 5);
        let index = index(vec![segment(&rows(spec(metric, Encoding::F16), &vectors, |i| i as u32))]);
        assert!(index.segments()[0].unreachable_ids().unwrap().is_empty());
        let mut random = Random(77);
        let count = vectors.len() as u32;
        let half: Bits = (0..count).filter(|_| random.below(2) == 0).collect();
        let few: Bits = (0..count).filter(|_| random.below(20) == 0).collect();
        let singles: Bits = (0..count).filter(|at| !is_twin[*at as usize]).collect();
        for (name, queries) in [
            ("single", near(&vectors, |at| !is_twin[at], &mut random)),
            ("twin", near(&vectors, |at| is_twin[at], &mut random)),
        ] {
            for (filter_name, filter) in
                [("none", None), ("half", Some(&half)), ("few", Some(&few)), ("singles", Some(&singles))]
            {
                let recall = found(&index, &queries, filter);
                let case = format!("{twins} twins of {spread} beside {single}, {}", metric.name());
                assert!(recall >= 0.98, "{case}: {recall} near a {name}, filter {filter_name}");
            }
        }
    }
}

/// Two segments of the same vectors every other time, with twins in both.
fn halves(vectors: &[Vec<f32>], spec: holotype_index::VectorSpec) -> [VectorSegment; 2] {
    [0, 1].map(|half| {
        let mut rows = Rows::new(spec);
        for (at, vector) in vectors.iter().enumerate().filter(|(at, _)| at % 2 == half) {
            rows.push(at as u32, vector).unwrap();
        }
        segment(&rows)
    })
}

#[test]
fn a_merge_joins_twins_and_one_of_them_takes_over_from_a_leader_that_is_left_out() {
    let (vectors, is_twin) = made(800, 800, 4, 0.0, 8);
    for encoding in [Encoding::F16, Encoding::I8] {
        let [a, b] = halves(&vectors, spec(Metric::Cosine, encoding));
        let count = vectors.len() as u32;
        let first_twin = is_twin.iter().position(|is| *is).unwrap() as u32;
        // Of the twins, those with the smallest ids are left out, which the others were linked through.
        let keep: Bits = (0..count).filter(|at| *at > first_twin + 60 || at % 5 == 1).collect();
        for keep in [None, Some(&keep)] {
            let merged = merged(&[&a, &b], keep, &options()).unwrap();
            assert!(merged.unreachable_ids().unwrap().is_empty());
            let again = clusters::merged(&[&merged], keep, &options()).unwrap();
            let queries = near(&vectors, |at| at % 3 == 0, &mut Random(9));
            for segment in [merged, again] {
                let recall = found(&index(vec![segment]), &queries, None);
                assert!(recall >= 0.98, "{recall}");
            }
        }
    }
}

#[test]
fn of_equal_vectors_the_newest_are_found_within_a_filter_too() {
    let vectors = vec![vec![0.25; DIM]; 3000];
    let index = index(vec![segment(&rows(spec(Metric::Cosine, Encoding::F32), &vectors, |i| i as u32))]);
    let all: Bits = (0..3000).collect();
    let older: Bits = (0..2500).collect();
    let odd: Bits = (0..2900).filter(|id| id % 2 == 1).collect();
    for (filter, newest) in [(None, 2999), (Some(&all), 2999), (Some(&older), 2499), (Some(&odd), 2899)] {
        let search = index.search(&vectors[0], 5, SearchOptions { filter, ..SearchOptions::default() }).unwrap();
        let step = if newest == 2899 { 2 } else { 1 };
        let wanted: Vec<u32> = (0..5).map(|at| newest - at * step).collect();
        assert_eq!(search.hits.iter().map(|hit| hit.id).collect::<Vec<_>>(), wanted);
    }
}
