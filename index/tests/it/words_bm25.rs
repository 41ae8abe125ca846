//! Scores are those of BM25 by the book, and do not depend on how the documents are spread over segments and tails.

use std::sync::LazyLock;

use crate::words_model::*;
use holotype_index::Hit;
use holotype_index::bitmap::Bits;
use holotype_index::words::{Analyzer, WordIndex};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn equals_the_naive_index_for_any_spread_and_bound(
        analyzer in analyzer(),
        documents in documents(40),
        places in proptest::collection::vec(any::<u8>(), 40),
        bound in 0u32..120,
        query in text(),
    ) {
        let index = spread(analyzer, &documents, &places, bound);
        let wanted = naive(analyzer, &documents, bound, &query);
        let query = index.query(&query);
        let scorer = index.scorer(&query).unwrap();
        let hits = scorer.top(None, usize::MAX).unwrap();
        prop_assert!(agrees(&hits, &wanted.hits), "{:?}\n{:?}", hits, wanted.hits);

        // To the last bit as though all were in one tail.
        let together = WordIndex::new(analyzer, vec![], vec![tail_of(analyzer, &documents)], bound).unwrap();
        prop_assert_eq!(&together.top(&query, None, usize::MAX).unwrap(), &hits);
        prop_assert_eq!(together.stats().unwrap(), index.stats().unwrap());

        // Looked up one by one, in any order, and unknown ones too.
        let ids: Vec<u32> = (0..130).rev().collect();
        let scores = scorer.scores(&ids).unwrap();
        for (id, score) in ids.iter().zip(&scores) {
            let hit = hits.iter().find(|hit| hit.id == *id);
            prop_assert_eq!(*score, hit.map_or(0.0, |hit| hit.score));
        }
        for (id, covered) in ids.iter().zip(scorer.coverage(&ids).unwrap()) {
            let wanted = wanted.coverage.get(id).copied().unwrap_or(0.0);
            prop_assert!(near(f64::from(covered), wanted), "{id}: {covered} {wanted}");
        }
        let joint = scorer.joint_coverage(&ids).unwrap();
        let evidence = |matched_only: bool| -> f32 {
            let terms = scorer.terms().iter().filter(|term| !term.surface && (term.df > 0 || !matched_only));
            terms.map(|term| term.weight * term.idf).sum()
        };
        let share_of_matched_terms = if evidence(false) > 0.0 { evidence(true) / evidence(false) } else { 0.0 };
        prop_assert_eq!(joint, share_of_matched_terms.min(1.0));
        prop_assert_eq!(joint > 0.0, !hits.is_empty());
        prop_assert_eq!(scorer.top(None, 1).unwrap(), hits.iter().copied().take(1).collect::<Vec<_>>());
    }

    #[test]
    fn a_filter_narrows_and_changes_no_score(
        documents in documents(40),
        places in proptest::collection::vec(any::<u8>(), 40),
        filter in proptest::collection::btree_set(0u32..120, 0..60),
        query in text(),
        k in 0usize..20,
    ) {
        let index = spread(Analyzer::default(), &documents, &places, u32::MAX);
        let scorer = index.scorer(&index.query(&query)).unwrap();
        let filter: Bits = filter.into_iter().collect();
        let all = scorer.top(None, usize::MAX).unwrap();
        let wanted: Vec<Hit> = all.into_iter().filter(|hit| filter.contains(hit.id)).take(k).collect();
        prop_assert_eq!(scorer.top(Some(&filter), k).unwrap(), wanted);
    }
}

/// Documents of many windows and blocks, in two segments and two tails: words from one that most hold down to some that
/// few do, short and long ones, many alike.
fn crowd() -> &'static Vec<Document> {
    static CROWD: LazyLock<Vec<Document>> = LazyLock::new(|| {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut document = |id: u32| {
            let len = [1, 2, 3, 3, 5, 8, 30][random(7) as usize];
            let words: Vec<String> = (0..len).map(|_| format!("w{}", random(24) * random(24) / 24)).collect();
            // Some stretches speak of one thing over and over.
            let often = if id / 700 % 5 == 2 { " topic".repeat(1 + random(6) as usize) } else { String::new() };
            Document {
                id: id * 2 + id / 5000,
                pieces: vec![(words.join(" ") + &often, [0.5, 1.0, 1.0][random(3) as usize])],
            }
        };
        (0..14_000).map(&mut document).collect()
    });
    &CROWD
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_best_few_are_those_of_all(
        words in proptest::collection::vec(0u32..24, 1..7),
        topic in any::<bool>(),
        bound in prop_oneof![Just(u32::MAX), 1u32..28_500],
        filter in filter(),
        k in prop_oneof![1usize..4, 1usize..300],
    ) {
        static INDEX: LazyLock<WordIndex> = LazyLock::new(|| {
            let places: Vec<u8> = (0..14_000u32).map(|at| [0, 1, 1, 1, 1, 1, 0, 0, 1, 0, 1, 1, 2, 3][at as usize / 1000]).collect();
            spread(Analyzer::default(), crowd(), &places, u32::MAX)
        });
        let index = INDEX.clone().at(bound);
        let words = words.iter().map(|word| format!("w{word}")).chain(topic.then(|| "topic".to_owned()));
        let query = index.query(&words.collect::<Vec<_>>().join(" "));
        let scorer = index.scorer(&query).unwrap();
        let mut wanted = scorer.top(None, usize::MAX).unwrap();
        wanted.retain(|hit| filter.as_ref().is_none_or(|filter| filter.contains(hit.id)));
        let ids: Vec<u32> = wanted.iter().map(|hit| hit.id).collect();
        prop_assert!(wanted.iter().map(|hit| hit.score).eq(scorer.scores(&ids).unwrap()));
        wanted.truncate(k);
        prop_assert_eq!(scorer.top(filter.as_ref(), k).unwrap(), wanted);
    }
}

/// No filter, ids spread over all, or a stretch of ids.
fn filter() -> impl Strategy<Value = Option<Bits>> {
    prop_oneof![
        Just(None),
        (1u32..40).prop_map(|share| Some((0..28_500).filter(|id| id * 7919 % share < 2).collect())),
        (0u32..28_500, 1u32..6_000).prop_map(|(first, count)| Some((first..first + count).collect())),
    ]
}

/// A filter that is small against the postings is looked up instead of walked: the answers are the same.
#[test]
fn a_small_filter_gives_the_same_answers() {
    let pieces = |id: u32| vec![(format!("common word {} {}", id % 7, "x ".repeat(id as usize % 11)), 1.0)];
    let documents: Vec<Document> = (0..3000).map(|id| Document { id, pieces: pieces(id) }).collect();
    let places: Vec<u8> = (0..3000u32).map(|id| (id / 800) as u8).collect();
    let index = spread(Analyzer::default(), &documents, &places, 2900);
    let scorer = index.scorer(&index.query("common word 3 x")).unwrap();
    let all = scorer.top(None, usize::MAX).unwrap();
    assert_eq!(all.len(), 2900);
    for count in [1, 5, 20, 200, 2000] {
        let filter: Bits = (0..count).map(|i| i * 7919 % 3000).collect();
        let wanted: Vec<Hit> = all.iter().copied().filter(|hit| filter.contains(hit.id)).collect();
        assert_eq!(scorer.top(Some(&filter), usize::MAX).unwrap(), wanted, "{count}");
    }
}

#[test]
fn equal_scores_come_newest_first() {
    let document = |id| Document { id, pieces: vec![("same text".into(), 1.0)] };
    let documents: Vec<Document> = (0..9).map(document).collect();
    let index = spread(Analyzer::default(), &documents, &[0, 1, 2, 3, 0, 1, 2, 3, 0], 9);
    let hits = index.top(&index.query("text"), None, 4).unwrap();
    assert_eq!(hits.iter().map(|hit| hit.id).collect::<Vec<_>>(), [8, 7, 6, 5]);
}

/// The purpose of the roles, in one table: the ids of the documents in the order they are found.
#[test]
fn codes_forms_and_accents_are_found() {
    let texts = [
        "flight UA123 leaves",                 // 0
        "flight UA 123 leaves",                // 1
        "flight UA999 leaves",                 // 2
        "she was running",                     // 3
        "she runs there",                      // 4
        "a hotel in Málaga",                   // 5
        "a hotel in Malaga",                   // 6
        "order SKU-4411 shipped",              // 7
        "order SKU-9999 shipped",              // 8
        "the meeting is at 10:30 on Monday",   // 9
        "30 people came at 10 in the morning", // 10
        "send me an e-mail today",             // 11
        "send me an email today",              // 12
    ];
    let document = |(id, text): (u32, &&str)| Document { id, pieces: vec![((*text).into(), 1.0)] };
    let documents: Vec<Document> = (0..).zip(&texts).map(document).collect();
    let index = spread(Analyzer::default(), &documents, &[0, 1, 2, 3], u32::MAX);
    let table: [(&str, &[u32]); 10] = [
        ("UA123", &[0, 1, 2]),
        ("123", &[0, 1]),
        ("running", &[3, 4]),
        ("runs", &[4, 3]),
        ("Málaga", &[5, 6]),
        ("malaga", &[6, 5]),
        ("SKU-4411", &[7, 8]),
        ("4411", &[7]),
        ("10:30", &[9, 10]),
        ("e-mail", &[11, 12]),
    ];
    for (query, wanted) in table {
        let hits = index.top(&index.query(query), None, 10).unwrap();
        let found: Vec<u32> = hits.iter().map(|hit| hit.id).collect();
        assert_eq!(found.iter().filter(|id| wanted.contains(id)).count(), wanted.len(), "{query}: {found:?}");
        assert_eq!(found.first(), wanted.first(), "{query}: {found:?}");
    }
}
