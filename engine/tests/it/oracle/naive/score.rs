//! S, and the BM25 in it.

use super::values::number;
use super::{DAY, Exported, ReaderPosition, Row};
use holotype::Source;
use holotype::query::Part;
use holotype::query::plan::{Interval, Recall, Score, ScoreBase};
use std::collections::{BTreeMap, BTreeSet};

impl Exported {
    /// S of each item, less what is taken off for relaxed tests; and the weight of status, which that is measured by.
    pub(super) fn score(
        &self,
        recall: &Recall,
        standing: &ReaderPosition,
        layer: &str,
        ids: &[u32],
        lifts: bool,
        visible: &BTreeSet<u32>,
    ) -> Vec<(u32, f64, f64)> {
        let weights = Weights::of(recall.clauses.score.as_ref());
        let citing = |id: u32| -> Vec<u32> {
            if !(lifts && layer == "trace") {
                return Vec::new();
            }
            let rests = |recall: &u32| {
                self.edges.contains(&(*recall, "derived-from", id)) || self.edges.contains(&(*recall, "cites", id))
            };
            visible.iter().copied().filter(|recall| self.layer(*recall) == "recall" && rests(recall)).collect()
        };
        let words = |id: u32| {
            recall.query.words().map_or(0.0, |text| {
                let lent: Vec<&Row> = citing(id).iter().map(|recall| &self.items[*recall as usize]).collect();
                self.bm25_of(layer, text, &self.items[id as usize], &lent)
            })
        };
        let best = ids.iter().map(|id| words(*id)).fold(0.0, f64::max);
        let similarity = |id: u32| {
            let Some(query) = recall.query.vector() else { return 0.0 };
            let all = [id].into_iter().chain(citing(id));
            let cosines =
                all.filter_map(|id| Some(cosine(&query.components, self.items[id as usize].vector.as_ref()?)));
            cosines.reduce(f64::max).unwrap_or(0.0)
        };
        let of = |id: &u32| {
            let halvings = match weights.half_life {
                HalfLife::Clock(length) => standing
                    .time
                    .zip(self.whole(*id, "time"))
                    .map(|(now, then)| (now - then).max(0) as f64 / length as f64),
                HalfLife::Steps(length) => self.step_distance(*id, standing).map(|steps| steps as f64 / length as f64),
            };
            let status = match self.text(*id, "status") {
                Some("unknown") => -0.1,
                Some("failed") => -1.0,
                _ => 0.0,
            };
            let source = self
                .text(*id, "source")
                .map_or(0.0, |name| f64::from(name.parse::<Source>().expect("a source").weight()));
            let utility = self.cell(*id, "utility").and_then(number).unwrap_or(0.0);
            let share = if best > 0.0 { words(*id) / best } else { 0.0 };
            let score = weights.similarity * similarity(*id)
                + weights.words * share
                + weights.recency * halvings.map_or(0.0, |halvings| (-halvings).exp2())
                + weights.status * status
                + weights.source * source
                + weights.utility * utility;
            (*id, score, weights.status)
        };
        ids.iter().map(of).collect()
    }

    /// BM25 of every item of a layer.
    pub(super) fn bm25(&self, layer: &str, query: &str) -> BTreeMap<u32, f64> {
        let of_layer = self.ids().filter(|id| self.layer(*id) == layer);
        of_layer.map(|id| (id, self.bm25_of(layer, query, &self.items[id as usize], &[]))).collect()
    }

    /// BM25 of an item with what others lend it, with the statistics of a layer: k1 1.2, b 0.75.
    fn bm25_of(&self, layer: &str, query: &str, row: &Row, lent: &[&Row]) -> f64 {
        let documents: Vec<&Row> =
            self.ids().filter(|id| self.layer(*id) == layer).map(|id| &self.items[id as usize]).collect();
        let count = documents.len() as f64;
        let average = documents.iter().map(|row| row.words.len()).sum::<usize>() as f64 / count;
        let all: Vec<&String> = row.words.iter().chain(lent.iter().flat_map(|row| &row.words)).collect();
        let terms: BTreeSet<&str> = query.split_whitespace().collect();
        let of_term = |term: &&str| {
            let df = documents.iter().filter(|row| row.words.iter().any(|word| word == term)).count() as f64;
            let idf = (1.0 + (count - df + 0.5) / (df + 0.5)).ln();
            let weight = query.split_whitespace().filter(|word| word == term).count() as f64;
            let f = all.iter().filter(|word| word.as_str() == *term).count() as f64;
            weight * idf * 2.2 * f / (f + 1.2 * (0.25 + 0.75 * all.len() as f64 / average))
        };
        terms.iter().map(of_term).sum()
    }
}

enum HalfLife {
    Clock(i64),
    Steps(u64),
}

struct Weights {
    similarity: f64,
    words: f64,
    recency: f64,
    status: f64,
    source: f64,
    utility: f64,
    half_life: HalfLife,
}

impl Weights {
    fn of(score: Option<&Score>) -> Weights {
        let half_life = HalfLife::Clock(DAY);
        let mut weights =
            Weights { similarity: 1.0, words: 1.0, recency: 1.0, status: 10.0, source: 1.0, utility: 0.0, half_life };
        let Some(score) = score else { return weights };
        assert!(score.base == ScoreBase::Zero, "weights are named");
        (weights.similarity, weights.words, weights.recency, weights.status, weights.source) =
            (0.0, 0.0, 0.0, 0.0, 0.0);
        for term in &score.terms {
            let weight = term.weight;
            match term.part {
                Part::Similarity => weights.similarity = weight,
                Part::Words => weights.words = weight,
                Part::Recency => weights.recency = weight,
                Part::Status => weights.status = weight,
                Part::Source => weights.source = weight,
                Part::Utility => weights.utility = weight,
                part => panic!("no statement weighs {part}"),
            }
            match term.half_life.as_ref() {
                Some(Interval::Clock(length)) => weights.half_life = HalfLife::Clock(length.micros() as i64),
                Some(Interval::Steps(length)) => weights.half_life = HalfLife::Steps(*length),
                None => {}
            }
        }
        weights
    }
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}
