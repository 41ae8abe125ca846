//! Governed top-k is the top k of the exhaustive ranking, and says when that is proved.

use crate::clusters::{Random, clusters, rows, segment, spec};
use holotype_index::bitmap::Bits;
use holotype_index::{
    Certificate, Encoding, Governed, GovernedOptions, GovernedWeights, Hit, Metric, ScalarOrder, Scalars, VectorIndex,
    VectorTail,
};
use std::sync::Arc;

const COUNT: u32 = 4000;

/// Two segments with graphs, one without, and a tail; every seventh item has no vector.
fn index(metric: Metric, encoding: Encoding) -> VectorIndex {
    let spec = spec(metric, encoding);
    let vectors = clusters(COUNT as usize, 71);
    let part = |from: u32, to: u32| {
        let mut part = rows(spec, &[], |i| i as u32);
        for id in (from..to).filter(|id| id % 7 != 0) {
            part.push(id, &vectors[id as usize]).unwrap();
        }
        Arc::new(segment(&part))
    };
    let tail = VectorTail::new(spec);
    for id in (3900..COUNT).filter(|id| id % 7 != 0) {
        tail.push(id, &vectors[id as usize]).unwrap();
    }
    VectorIndex::new(vec![part(0, 2000), part(2000, 3600), part(3600, 3900)], tail.view()).unwrap()
}

fn scalars(random: &mut Random) -> Vec<(u32, Scalars)> {
    let items = (0..COUNT).map(|id| {
        let class = random.below(6) as u16;
        let time = (random.below(20) > 0).then(|| random.below(1_000_000) as i64);
        (id, Scalars { class, time, utility: random.normal() })
    });
    // Not every vector belongs to an item.
    items.filter(|(id, _)| id % 31 != 0).collect()
}

fn weights(similarity: f32, recency: f32, utility: f32) -> GovernedWeights {
    let classes = vec![0.0, -1.0, 0.8, 0.3, -0.1, -10.0];
    GovernedWeights { similarity, classes, recency, half_life: 90_000.0, now: Some(980_000), utility }
}

/// S for every item by its definition, best first.
fn exhaustive(
    index: &VectorIndex,
    query: &[f32],
    items: &[(u32, Scalars)],
    weights: &GovernedWeights,
    options: &GovernedOptions<'_>,
) -> Vec<Hit> {
    let ids: Vec<u32> = items.iter().map(|(id, _)| *id).collect();
    let similarities = index.scores(query, &ids).unwrap();
    let mut hits = Vec::new();
    for ((id, item), similarity) in items.iter().zip(similarities) {
        if options.filter.is_some_and(|filter| !filter.contains(*id)) {
            continue;
        }
        let age = item.time.zip(weights.now).map(|(time, now)| (now - time).max(0) as f64);
        let recency = age.map_or(0.0, |age| (-age / weights.half_life).exp2() as f32);
        let scalar =
            weights.classes[usize::from(item.class)] + weights.recency * recency + weights.utility * item.utility;
        let words = options.words.iter().find(|(word, _)| word == id).map_or(0.0, |(_, value)| *value);
        hits.push(Hit { id: *id, score: weights.similarity * similarity.unwrap_or(0.0) + scalar + words });
    }
    hits.sort_by(Hit::best_first);
    hits.truncate(options.k);
    hits
}

fn shared(a: &[Hit], b: &[Hit]) -> usize {
    a.iter().filter(|hit| b.contains(hit)).count()
}

#[test]
fn scans_are_exhaustive_and_searches_agree_with_them() {
    let mut random = Random(72);
    let items = scalars(&mut random);
    let order = ScalarOrder::new(items.iter().copied()).unwrap();
    let words: Vec<(u32, f32)> = (0..COUNT).step_by(113).map(|id| (id, random.normal() * 0.3)).collect();
    let half: Bits = (0..COUNT).filter(|id| id % 2 == 0).collect();
    let few: Bits = (0..COUNT).filter(|id| id % 401 == 5).collect();
    let mut certified = [0usize; 3];
    let (mut found, mut wanted) = (0, 0);
    for (metric, encoding) in
        [(Metric::Cosine, Encoding::F16), (Metric::L2, Encoding::F32), (Metric::Dot, Encoding::I8)]
    {
        let index = index(metric, encoding);
        for (similarity, recency, utility) in
            [(1.0, 1.0, 0.0), (3.0, 0.5, 0.3), (0.0, 1.0, 1.0), (-1.0, -0.5, 0.2), (0.5, 1.0, -0.4), (1.0, 0.0, 0.0)]
        {
            let weights = weights(similarity, recency, utility);
            for (filter, words) in [(None, &[][..]), (Some(&half), &words[..]), (Some(&few), &[][..])] {
                for query in clusters(3, 73) {
                    let options = GovernedOptions { filter, words, ..GovernedOptions::default() };
                    let truth = exhaustive(&index, &query, &items, &weights, &options);
                    let scanned = index.governed_scan(&query, &order, &weights, &options).unwrap();
                    assert_eq!(scanned.certificate, Certificate::Exact);
                    assert_eq!(scanned.hits, truth, "{metric:?} {weights:?}");
                    let Governed { hits, certificate, .. } =
                        index.governed(&query, &order, &weights, &options).unwrap();
                    assert!(hits.is_sorted_by(|a, b| a.best_first(b).is_lt()), "each once, best first");
                    if certificate == Certificate::Exact {
                        assert_eq!(hits, truth, "a proof is a proof: {metric:?} {weights:?}");
                    }
                    certified[certificate as usize] += 1;
                    found += shared(&truth, &hits);
                    wanted += truth.len();
                }
            }
        }
    }
    let [exact, converged, limited] = certified;
    assert!(exact > 0 && limited == 0, "{certified:?}");
    let agreement = found as f64 / wanted as f64;
    assert!(agreement >= 0.99, "{agreement} with {exact} exact and {converged} converged");
}

#[test]
fn a_bound_on_work_is_kept_and_said() {
    let index = index(Metric::Cosine, Encoding::F16);
    let items = scalars(&mut Random(74));
    let order = ScalarOrder::new(items.iter().copied()).unwrap();
    let query = &clusters(1, 75)[0];
    let options = GovernedOptions { ef: 32, limit: 100, proof: 0, ..GovernedOptions::default() };
    let limited = index.governed(query, &order, &weights(5.0, 0.01, 0.0), &options).unwrap();
    assert_eq!(limited.certificate, Certificate::Limited);
    assert!(limited.compared < 3000, "{}", limited.compared);
    let none = GovernedOptions { k: 0, ..GovernedOptions::default() };
    assert!(index.governed(query, &order, &weights(1.0, 1.0, 0.0), &none).unwrap().hits.is_empty());
}

#[test]
fn weights_that_rank_nothing_are_refused() {
    let index = index(Metric::Cosine, Encoding::F16);
    let order = ScalarOrder::default();
    let query = &clusters(1, 76)[0];
    let options = GovernedOptions::default();
    assert!(index.governed(query, &order, &weights(f32::NAN, 1.0, 0.0), &options).is_err());
    assert!(index.governed(query, &order, &weights(1.0, f32::INFINITY, 0.0), &options).is_err());
    let words = GovernedOptions { words: &[(1, f32::NAN)], ..options };
    assert!(index.governed(query, &order, &weights(1.0, 1.0, 0.0), &words).is_err());
    assert!(index.governed(query, &order, &weights(1.0, 1.0, 0.0), &options).unwrap().hits.is_empty());
}
