//! Evidence recall on conversations: of the turns that answer a question, the share that the answer holds verbatim.
//!
//! A turn counts when it is a row, or when a recall that is a row brings it along. Everything an answer holds costs its
//! characters / 4 (`speaker: text`), each turn once. The mean is over questions that name evidence.

use crate::Result;
use crate::dataset::{Asked, Dataset, Question, Vectors, median};
use holotype::answer::{Answer, Output, Row};
use holotype::query::{ParamValue, Params};
use holotype::{Layer, Snapshot};
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::path::Path;

const BUDGETS: [u64; 4] = [250, 500, 1000, 2000];
const METHODS: [&str; 6] = ["turns-vector", "turns-words", "turns-hybrid", "recalls", "archive", "default"];
/// Reciprocal rank fusion, as its authors set it (Cormack, Clarke and Buettcher, 2009).
const RRF: f64 = 60.0;

#[derive(Default)]
struct Tally {
    recall: f64,
    tokens: f64,
    questions: usize,
    micros: Vec<u64>,
}

/// The content of an answer: keys of turns, and the cost in tokens.
#[derive(Default)]
struct Held {
    turns: HashSet<String>,
    tokens: u64,
    micros: u64,
}

pub(crate) fn run(data: &Path, embedder: Option<&str>) -> Result<()> {
    let vectors = match embedder {
        None => Vectors::Files,
        Some("hashing") => Vectors::hashing(),
        Some(folder) => Vectors::Made(holotype_embed::open(folder)?.embedder()),
    };
    let dataset = Dataset::load_with(data, vectors)?;
    let snapshot = dataset.database.snapshot();
    let mut tallies: HashMap<(&str, u64), Tally> = HashMap::new();
    for asked in &dataset.asked {
        for question in &asked.questions {
            let evidence: HashSet<String> = question.strings("evidence").into_iter().collect();
            let evidence: Vec<&String> =
                evidence.iter().filter(|key| snapshot.get(key).is_ok_and(|item| item.is_some())).collect();
            if evidence.is_empty() {
                continue;
            }
            for method in METHODS {
                let ranked = Ranked::of(&snapshot, method, asked, question)?;
                for budget in BUDGETS {
                    let held = ranked.within(&snapshot, asked, question, budget)?;
                    let found = evidence.iter().filter(|key| held.turns.contains(**key)).count();
                    let tally = tallies.entry((method, budget)).or_default();
                    tally.recall += found as f64 / evidence.len() as f64;
                    tally.tokens += held.tokens as f64;
                    tally.questions += 1;
                    tally.micros.push(held.micros);
                }
            }
        }
    }
    limited(&dataset)?;
    nothing_found(&dataset)?;
    for method in METHODS {
        for budget in BUDGETS {
            let Some(tally) = tallies.remove(&(method, budget)) else { continue };
            let questions = tally.questions as f64;
            let round = |value: f64| (value * 10_000.0).round() / 10_000.0;
            let line = json!({
                "bench": "locomo", "method": method, "budget": budget,
                "evidence_recall": round(tally.recall / questions), "tokens": round(tally.tokens / questions),
                "questions": tally.questions, "p50_us": median(tally.micros),
            });
            println!("{line}");
        }
    }
    Ok(())
}

/// Evidence among the first five rows, by profile.
fn limited(dataset: &Dataset) -> Result<()> {
    let snapshot = dataset.database.snapshot();
    for profile in ["archive", "default"] {
        let statement = format!("recall $q in episode $e score profile {profile} limit 5");
        let (mut recall, mut questions) = (0.0, 0_u32);
        for asked in &dataset.asked {
            for question in &asked.questions {
                let evidence: HashSet<String> = question.strings("evidence").into_iter().collect();
                let there = |key: &&String| snapshot.get(key).is_ok_and(|item| item.is_some());
                let evidence: Vec<&String> = evidence.iter().filter(there).collect();
                if evidence.is_empty() {
                    continue;
                }
                let mut held = Held::default();
                for row in ask(&snapshot, &statement, asked, question, None)?.rows {
                    held.take(&snapshot, &row, u64::MAX)?;
                }
                let found = evidence.iter().filter(|key| held.turns.contains(**key)).count();
                recall += found as f64 / evidence.len() as f64;
                questions += 1;
            }
        }
        let share = (recall / f64::from(questions) * 10_000.0).round() / 10_000.0;
        println!("{}", json!({"bench": "locomo", "method": profile, "limit": 5, "evidence_recall": share}));
    }
    Ok(())
}

/// Each conversation is asked its own questions, and those of the next one: how often is something found?
fn nothing_found(dataset: &Dataset) -> Result<()> {
    let snapshot = dataset.database.snapshot();
    let (mut own, mut foreign) = ((0_u32, 0_u32), (0_u32, 0_u32));
    for (nth, asked) in dataset.asked.iter().enumerate() {
        for (other, from) in dataset.asked.iter().enumerate() {
            let tally = if nth == other { &mut own } else { &mut foreign };
            for question in from.questions.iter().step_by(if nth == other { 1 } else { 4 }) {
                let answer = ask(&snapshot, "recall $q in episode $e limit 5", asked, question, None)?;
                tally.0 += 1;
                tally.1 += u32::from(answer.answerable);
            }
        }
    }
    let share =
        |(asked, covered): (u32, u32)| (f64::from(covered) / f64::from(asked.max(1)) * 10_000.0).round() / 10_000.0;
    println!(
        "{}",
        json!({"bench": "locomo", "method": "default", "covered_own": share(own), "covered_foreign": share(foreign)})
    );
    Ok(())
}

/// The rows of a method in its order, to be cut to each budget; the default recall cuts for itself.
enum Ranked {
    Rows(Vec<Row>, u64),
    Recall(&'static str),
}

impl Ranked {
    fn of(snapshot: &Snapshot, method: &str, asked: &Asked, question: &Question) -> Result<Ranked> {
        let vector = "recall near $v in episode $e through traces 5000 by near pool 5000 score similarity 1 limit 5000";
        let words = "recall $t in episode $e through traces 5000 by words pool 5000 score words 1 limit 5000";
        let recalls = "recall $q in episode $e through recalls 5000 by near, words pool 5000 \
        score similarity 1, words 1 limit 5000";
        let ask = |statement| ask(snapshot, statement, asked, question, None);
        Ok(match method {
            "turns-vector" => Ranked::rows(ask(vector)?),
            "turns-words" => Ranked::rows(ask(words)?),
            "recalls" => Ranked::rows(ask(recalls)?),
            "turns-hybrid" => {
                let (by_vector, by_words) = (ask(vector)?, ask(words)?);
                let micros = by_vector.micros + by_words.micros;
                Ranked::Rows(fuse(by_vector.rows, by_words.rows), micros)
            }
            "archive" => Ranked::Recall("archive"),
            _ => Ranked::Recall("default"),
        })
    }

    fn rows(answer: Answer) -> Ranked {
        Ranked::Rows(answer.rows, answer.micros)
    }

    /// The rows that fit the budget: in order and whole, skipping rows that do not fit.
    fn within(&self, snapshot: &Snapshot, asked: &Asked, question: &Question, budget: u64) -> Result<Held> {
        let mut held = Held::default();
        match self {
            Ranked::Recall(profile) => {
                let statement = format!("recall $q in episode $e score profile {profile} budget $n tokens");
                let answer = ask(snapshot, &statement, asked, question, Some(budget))?;
                held.micros = answer.micros;
                for row in &answer.rows {
                    held.tokens += u64::from(row.tokens);
                    held.turns.insert(row.key.clone());
                }
                assert!(held.tokens <= budget, "a budget is a hard limit");
            }
            Ranked::Rows(rows, micros) => {
                held.micros = *micros;
                for row in rows {
                    held.take(snapshot, row, budget)?;
                }
            }
        }
        Ok(held)
    }
}

impl Held {
    /// Takes a row with the turns it cites, if all of it fits.
    fn take(&mut self, snapshot: &Snapshot, row: &Row, budget: u64) -> Result<()> {
        let mut cost = u64::from(row.tokens);
        let mut turns = vec![row.key.clone()];
        if row.layer == Layer::Recall {
            for citation in &row.citations {
                if let Some(turn) = snapshot.get(&citation.target)?.filter(|_| !self.turns.contains(&citation.target)) {
                    cost += u64::from(turn.attributes.tokens);
                    turns.push(turn.key);
                }
            }
        }
        if self.tokens + cost <= budget && !self.turns.contains(&row.key) {
            self.tokens += cost;
            self.turns.extend(turns);
        }
        Ok(())
    }
}

fn ask(
    snapshot: &Snapshot,
    statement: &str,
    asked: &Asked,
    question: &Question,
    budget: Option<u64>,
) -> Result<Answer> {
    let mut params: Params = question.params();
    params.insert("e".to_owned(), ParamValue::Text(asked.episode.clone()));
    params.insert("v".to_owned(), ParamValue::Vector(question.vector.clone()));
    params.insert("t".to_owned(), ParamValue::Text(question.text.clone()));
    params.extend(budget.map(|budget| ("n".to_owned(), ParamValue::Int(budget as i64))));
    params.retain(|name, _| statement.contains(&format!("${name} ")));
    match snapshot.query(statement, &params)?.pop() {
        Some(Output::Answer(answer)) => Ok(*answer),
        _ => Err("a recall gave no answer".into()),
    }
}

/// Reciprocal rank fusion of two rankings.
fn fuse(a: Vec<Row>, b: Vec<Row>) -> Vec<Row> {
    let mut scores: HashMap<u32, f64> = HashMap::new();
    let mut rows: HashMap<u32, Row> = HashMap::new();
    for ranking in [a, b] {
        for (rank, row) in ranking.into_iter().enumerate() {
            *scores.entry(row.item.0).or_default() += 1.0 / (RRF + rank as f64 + 1.0);
            rows.insert(row.item.0, row);
        }
    }
    let mut rows: Vec<Row> = rows.into_values().collect();
    rows.sort_by(|a, b| scores[&b.item.0].total_cmp(&scores[&a.item.0]).then(b.item.cmp(&a.item)));
    rows
}
