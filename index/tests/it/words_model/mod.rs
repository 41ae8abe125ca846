//! A word index that is a list of documents, to hold the real one against, and documents that try it.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::BTreeMap;
use std::sync::Arc;

use holotype_index::Hit;
use holotype_index::words::analysis::Role;
use holotype_index::words::{Analyzer, Stemming, WORD_SEGMENT_KIND, WordIndex, WordSegment, WordTail};
use holotype_storage::segment_file::{FileIdentity, SegmentFile, SegmentFileWriter};
use proptest::prelude::*;

/// A document: its id and its weighted pieces.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub(crate) id: u32,
    pub(crate) pieces: Vec<(String, f32)>,
}

pub(crate) const IDENTITY: FileIdentity = FileIdentity { database: *b"word index tests", generation: 7, place: 1 };

/// Words that collide as stems, surfaces, parts, wholes, joined digits and second readings.
const VOCABULARY: [&str; 32] = [
    "run",
    "running",
    "runs",
    "flight",
    "flights",
    "UA123",
    "ua",
    "123",
    "Málaga",
    "malaga",
    "10:30",
    "10",
    "30",
    "e-mail",
    "email",
    "the",
    "organ",
    "organization",
    "$450",
    "450",
    "don't",
    "Caroline's",
    "flight_id",
    "東京",
    "京",
    "zebra",
    "1",
    "500",
    "Müller",
    "в",
    "C++",
    "👍",
];

pub(crate) fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(VOCABULARY.as_slice()), 0..14).prop_map(|words| words.join(" "))
}

fn pieces() -> impl Strategy<Value = Vec<(String, f32)>> {
    let weight = proptest::sample::select([0.0f32, 0.25, 0.5, 1.0, 1.0, 1.0, 2.5].as_slice());
    proptest::collection::vec((text(), weight), 0..3)
}

/// Documents with ascending ids and gaps between them.
pub(crate) fn documents(most: usize) -> impl Strategy<Value = Vec<Document>> {
    proptest::collection::vec((1u32..5, pieces()), 0..most).prop_map(|list| {
        let mut id = 0;
        let with_id = |(gap, pieces)| {
            id += gap;
            Document { id, pieces }
        };
        list.into_iter().map(with_id).collect()
    })
}

pub(crate) fn tail_of<'a>(analyzer: Analyzer, documents: impl IntoIterator<Item = &'a Document>) -> Arc<WordTail> {
    let tail = WordTail::new(analyzer);
    for document in documents {
        push(&tail, document);
    }
    Arc::new(tail)
}

pub(crate) fn push(tail: &WordTail, document: &Document) {
    let pieces: Vec<(&str, f32)> = document.pieces.iter().map(|(text, weight)| (text.as_str(), *weight)).collect();
    tail.push(document.id, &pieces).unwrap();
}

pub(crate) fn opened(writer: SegmentFileWriter) -> Arc<WordSegment> {
    let file = SegmentFile::from_bytes(writer.into_bytes(), WORD_SEGMENT_KIND, &IDENTITY).unwrap();
    Arc::new(WordSegment::open(file).unwrap())
}

pub(crate) fn segment_of<'a>(
    analyzer: Analyzer,
    documents: impl IntoIterator<Item = &'a Document>,
) -> Arc<WordSegment> {
    opened(tail_of(analyzer, documents).build(u32::MAX, None, IDENTITY).unwrap())
}

/// Spreads the documents: place 0 and 1 are segments, 2 and 3 tails.
pub(crate) fn spread(analyzer: Analyzer, documents: &[Document], places: &[u8], bound: u32) -> WordIndex {
    let at = |place: u8| {
        let here = move |(i, document)| (places.get(i).copied().unwrap_or(0) % 4 == place).then_some(document);
        documents.iter().enumerate().filter_map(here)
    };
    let segments = vec![segment_of(analyzer, at(0)), segment_of(analyzer, at(1))];
    let tails = vec![tail_of(analyzer, at(2)), tail_of(analyzer, at(3))];
    WordIndex::new(analyzer, segments, tails, bound).unwrap()
}

/// The naive index's answer to one query.
pub(crate) struct Answer {
    /// Every document with a term, best first.
    pub(crate) hits: Vec<(u32, f64)>,
    /// Coverage of each of them.
    pub(crate) coverage: BTreeMap<u32, f64>,
}

/// BM25 by the book, in `f64`, over the documents below `bound`.
pub(crate) fn naive(analyzer: Analyzer, documents: &[Document], bound: u32, query: &str) -> Answer {
    let visible = documents.iter().filter(|document| document.id < bound);
    let analysed: Vec<(u32, BTreeMap<String, f64>, f64)> = visible
        .map(|document| {
            let (mut frequencies, mut len) = (BTreeMap::new(), 0.0);
            for (text, weight) in &document.pieces {
                for (key, role) in analyzer.analyze(text) {
                    if *weight > 0.0 {
                        *frequencies.entry(key).or_insert(0.0) += f64::from(*weight);
                    }
                    if role == Role::Word {
                        len += f64::from(*weight);
                    }
                }
            }
            (document.id, frequencies, len)
        })
        .collect();
    let count = analysed.len() as f64;
    let average = analysed.iter().map(|(.., len)| len).sum::<f64>() / count;
    let idf = |key: &str| {
        let df = analysed.iter().filter(|(_, frequencies, _)| frequencies.contains_key(key)).count() as f64;
        (1.0 + (count - df + 0.5) / (df + 0.5)).ln()
    };
    // Each term with its weight, its idf, and whether it counts for coverage.
    let mut terms: BTreeMap<String, (f64, f64, bool)> = BTreeMap::new();
    let mut word = String::new();
    let query = without_stop_words(analyzer, query);
    for (key, role) in analyzer.analyze(&query) {
        let weight = match role {
            Role::Word => 1.0,
            Role::Surface => 0.2,
            Role::Part { of } => 0.5 / f64::from(of),
            Role::Whole | Role::Pair | Role::Folded => 0.5,
            Role::Joined => 2.0,
        };
        if role == Role::Word {
            word.clone_from(&key);
        }
        let surface = role == Role::Surface;
        let idf = idf(if surface { &word } else { &key });
        terms.entry(key).or_insert((0.0, idf, !surface)).0 += weight;
    }
    let all: f64 = terms.values().filter(|(.., counts)| *counts).map(|(weight, idf, _)| weight * idf).sum();
    let (mut hits, mut coverage) = (Vec::new(), BTreeMap::new());
    for (id, frequencies, len) in &analysed {
        let (mut score, mut covered) = (0.0, 0.0);
        for (key, (weight, idf, counts)) in &terms {
            if let Some(frequency) = frequencies.get(key) {
                let norm = 1.2 * (1.0 - 0.75 + 0.75 * len / average);
                score += weight * idf * frequency * 2.2 / (frequency + norm);
                covered += if *counts { weight * idf } else { 0.0 };
            }
        }
        if score > 0.0 {
            hits.push((*id, score));
            coverage.insert(*id, covered / all);
        }
    }
    hits.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
    Answer { hits, coverage }
}

/// The query without the vocabulary's stop words, unless it has no other word.
fn without_stop_words(analyzer: Analyzer, query: &str) -> String {
    // A sign takes the place of a stop word, so that its neighbours do not become neighbours of each other.
    let stop = |word: &str| ["the", "don't"].contains(&word);
    let kept: Vec<&str> = query.split(' ').map(|word| if stop(word) { "…" } else { word }).collect();
    let english = analyzer.stemming() == Stemming::English;
    if english && kept.iter().any(|word| !["", "…"].contains(word)) { kept.join(" ") } else { query.to_owned() }
}

pub(crate) fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-5 * (1.0 + a.abs().max(b.abs()))
}

/// True if the hits are the naive ones up to rounding, in an order that rounding allows. Each term's score is rounded
/// to a part in 2^23 of what all terms could bring together, so that sums are exact: of a long question more than a
/// score's own digits.
pub(crate) fn agrees(hits: &[Hit], wanted: &[(u32, f64)]) -> bool {
    let scores: BTreeMap<u32, f64> = wanted.iter().copied().collect();
    hits.len() == wanted.len()
        && hits.iter().all(|hit| {
            scores.get(&hit.id).is_some_and(|score| (f64::from(hit.score) - score).abs() <= 1e-4 * (1.0 + score))
        })
        && hits.is_sorted_by(|a, b| a.best_first(b).is_lt())
}

pub(crate) fn analyzer() -> impl Strategy<Value = Analyzer> {
    prop_oneof![Just(Analyzer::new(Stemming::English)), Just(Analyzer::new(Stemming::None))]
}
