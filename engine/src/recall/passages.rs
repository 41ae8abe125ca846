//! Conversations: what a turn takes over from the log it stands in, and from its speaker (ours; profiles `default` and
//! `archive`).
//!
//! A question is about a conversation before it is about a turn of it. With m the candidate of a log that has the
//! greatest `l_sim * sim + l_words * w`, every candidate t of that log takes a share of the way to it:
//!
//! ```text
//! sim'(t) = sim(t) + context / 3 * (sim(m) - sim(t))
//! w'(t)   = w(t)   + context / 3 * (w(m) - w(t)) + [the question names the speaker of t] / 8
//! ```
//!
//! The best of a log keeps its place, and no turn rises above it for its log. `holotype-bench locomo` measures it.
//!
//! Cost: two columns of each candidate, and one look-up for each capitalised word of the question.

use super::plan::Plan;
use crate::Result;
use crate::model::item::{ItemId, Kind};
use crate::read::snapshot::Snapshot;
use foldhash::fast::RandomState;
use std::cell::RefCell;
use std::collections::HashMap;

/// The share of the way to the best candidate of its log, by the context weight.
const LOG_SHARE: f32 = 1.0 / 3.0;
/// Added to w of a turn whose speaker the question names.
const NAMED_SPEAKER: f32 = 0.125;

/// The shares of the context weight for the first and second neighbour on each side.
const NEIGHBOUR_SHARES: [f32; 2] = [0.5, 0.25];
/// Maximum id distance of a neighbour.
const MAX_NEIGHBOUR_DISTANCE: u32 = 16;

/// The best match of a log.
#[derive(Clone, Copy)]
struct Best {
    relevance: f32,
    similarity: f32,
    words: f32,
}

/// Adds to similarity and words of traces what they take over.
pub(super) fn draw_together(logs: &Logs<'_>, ids: &[u32], similarity: &mut [f32], words: &mut [f32]) -> Result<()> {
    let (snapshot, plan) = (logs.snapshot, logs.plan);
    let weights = &plan.weights;
    if weights.context <= 0.0 {
        return Ok(());
    }
    let mut places = Vec::with_capacity(ids.len());
    let mut best: HashMap<LogOf, Best, RandomState> = HashMap::default();
    for ((id, similarity), words) in ids.iter().zip(similarity.iter()).zip(words.iter()) {
        let log = logs.of(*id)?;
        let relevance = weights.similarity * similarity + weights.words * words;
        let found = Best { relevance, similarity: *similarity, words: *words };
        if let Some(log) = log {
            let known = best.entry(log).or_insert(found);
            if found.relevance > known.relevance {
                *known = found;
            }
        }
        places.push(log);
    }
    let share = (LOG_SHARE * weights.context).min(1.0);
    let speakers = named_speakers(snapshot, plan)?;
    for (index, log) in places.into_iter().enumerate() {
        let Some(best) = log.and_then(|log| best.get(&log)) else { continue };
        similarity[index] += share * (best.similarity - similarity[index]);
        words[index] += share * (best.words - words[index]);
        if !speakers.is_empty() && is_said_by(snapshot, ids[index], &speakers)? {
            words[index] += NAMED_SPEAKER;
        }
    }
    Ok(())
}

fn is_said_by(snapshot: &Snapshot, id: u32, speakers: &[u32]) -> Result<bool> {
    let speaker = snapshot.state.attributes.speaker(ItemId(id))?;
    Ok(speaker.is_some_and(|speaker| speakers.contains(&speaker)))
}

/// The symbols that capitalised words of the question name.
fn named_speakers(snapshot: &Snapshot, plan: &Plan) -> Result<Vec<u32>> {
    let mut found = Vec::new();
    let text = plan.text.as_deref().unwrap_or_default();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.starts_with(char::is_uppercase)) {
        found.extend(snapshot.state.symbol(word)?);
    }
    Ok(found)
}

/// The episode and log of a trace, by number.
pub(super) type LogOf = (Option<u32>, Option<u32>);

/// The logs of visible traces, looked up once each.
pub(super) struct Logs<'a> {
    snapshot: &'a Snapshot,
    plan: &'a Plan,
    known: RefCell<HashMap<u32, Option<LogOf>, RandomState>>,
}

impl<'a> Logs<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, plan: &'a Plan) -> Self {
        Logs { snapshot, plan, known: RefCell::default() }
    }

    /// Prepares to look so many traces up.
    pub(super) fn reserve(&self, traces: usize) {
        self.known.borrow_mut().reserve(traces);
    }

    /// Adds the nearest traces of the same episode and log on one side, with their shares.
    pub(super) fn neighbours(&self, id: u32, upward: bool, found: &mut Vec<(u32, f32)>) -> Result<()> {
        let Some(own) = self.of(id)? else { return Ok(()) };
        let mut shares = NEIGHBOUR_SHARES.into_iter();
        for distance in 1..=MAX_NEIGHBOUR_DISTANCE {
            let at = if upward { id.checked_add(distance) } else { id.checked_sub(distance) };
            let Some(at) = at.filter(|at| *at < self.snapshot.state.bound()) else { break };
            if self.of(at)? != Some(own) {
                continue;
            }
            match shares.next() {
                Some(share) => found.push((at, share)),
                None => break,
            }
            if shares.len() == 0 {
                break;
            }
        }
        Ok(())
    }

    /// The log of a visible trace that shares words with its neighbours.
    pub(super) fn of(&self, id: u32) -> Result<Option<LogOf>> {
        if let Some(log) = self.known.borrow().get(&id) {
            return Ok(*log);
        }
        let mut log = None;
        let attributes = &self.snapshot.state.attributes;
        let lends = self.plan.weights.context_of_calls || attributes.kind(ItemId(id))? != Kind::Call;
        if lends && self.plan.traces.contains(id) {
            log = Some(attributes.log(ItemId(id))?);
        }
        self.known.borrow_mut().insert(id, log);
        Ok(log)
    }
}

#[cfg(test)]
mod tests {
    use super::{LOG_SHARE, NAMED_SPEAKER};
    use crate::read::answer::Row;
    use crate::{Durability, Holotype, NewTrace, Options, Source, Space, Weights};
    use holotype_query::Part;

    const LOGS: usize = 3;
    const TURNS: usize = 24;

    fn vector(nth: usize) -> Vec<f32> {
        let angle = (nth * 37 % 90) as f32 / 57.3;
        vec![angle.cos(), angle.sin()]
    }

    fn memory(folder: &tempfile::TempDir) -> Holotype {
        let options = Options::with_space(Space::new("plane", 2));
        let database = Holotype::create(folder.path().join("m.holo"), options).unwrap();
        let mut transaction = database.begin().unwrap();
        for nth in 0..TURNS {
            let text = ["The lake was cold.", "We swam.", "Rain again."][nth % 3];
            let turn = NewTrace::turn("e", text).log_id(format!("log-{}", nth % LOGS)).source(Source::User);
            transaction.record(turn.speaker(["Ann", "Bob"][nth / 3 % 2]).vector(vector(nth))).unwrap();
        }
        transaction.commit(Durability::None).unwrap();
        database
    }

    /// All rows, by number.
    fn rows(database: &Holotype, text: &str, profile: &str, context: f64) -> Vec<Row> {
        let snapshot = database.snapshot();
        let weights = Weights::profile(profile).weight(Part::Context, context);
        let recall = snapshot.recall(text).near(vec![1.0, 0.0]).score(weights).limit(TURNS as u64);
        let mut rows = recall.run().unwrap().rows;
        rows.sort_by_key(|row| row.item.0);
        rows
    }

    #[test]
    fn a_turn_takes_over_a_third_of_the_way_to_the_best_of_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let database = memory(&folder);
        let drawn = rows(&database, "weather", "archive", 1.0);
        assert!(drawn.len() > LOGS);
        for row in &drawn {
            let nth = row.item.0 as usize;
            let of_log = (nth % LOGS..TURNS).step_by(LOGS).map(|nth| vector(nth)[0]);
            let best = of_log.fold(f32::MIN, f32::max);
            let expected = vector(nth)[0] + LOG_SHARE * (best - vector(nth)[0]);
            assert!((row.parts.similarity - expected).abs() < 1e-3, "{row:?}, expected {expected}");
        }
        for row in rows(&database, "weather", "archive", 0.0) {
            assert!((row.parts.similarity - vector(row.item.0 as usize)[0]).abs() < 1e-3, "{row:?}");
        }
    }

    #[test]
    fn a_speaker_whom_the_question_names_counts() {
        let folder = tempfile::tempdir().unwrap();
        let database = memory(&folder);
        let (named, unnamed) = (
            rows(&database, "did anyone say what Bob thought?", "archive", 1.0),
            rows(&database, "did anyone say what bob thought?", "archive", 1.0),
        );
        let mut of_bob = 0;
        for (row, other) in named.iter().zip(&unnamed) {
            assert_eq!(row.item, other.item);
            let added = if row.speaker.as_deref() == Some("Bob") { NAMED_SPEAKER } else { 0.0 };
            of_bob += u32::from(added > 0.0);
            assert!((row.parts.words - other.parts.words - added).abs() < 1e-5, "{row:?}, {other:?}");
        }
        assert!(of_bob > 0);
    }
}
