//! Questions that need several passages: of the first ten rows, do they support all passages that answer a question?
//!
//! A row supports the trace it is and those it cites. Answers of two sizes are compared, each with what one shot finds
//! at that size: facts as rows (sentences) and traces as rows (passages). Beside the routed figure stands the best one
//! shot of the same size, with their difference and its interval from a paired bootstrap over the questions (95 %).

use crate::Result;
use crate::dataset::{Asked, Dataset, Question, median};
use crate::random::Random;
use holotype::Snapshot;
use holotype::answer::Output;
use holotype::query::{ParamValue, Params};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

/// Rows of an answer.
const ROWS: usize = 10;
/// Samples of a bootstrap.
const SAMPLES: usize = 10_000;
const SIZES: [&str; 2] = ["facts", "traces"];
/// One shot each, but for the last.
const METHODS: [&str; 4] = ["vectors", "words", "hybrid", "routed"];

/// The statement of a method at a size.
fn statement(method: &str, size: &str) -> String {
    match method {
        "vectors" => format!("recall near $v in episode $e through {size} 10 by near score similarity 1 limit 10"),
        "words" => format!("recall $t in episode $e through {size} 10 by words score words 1 limit 10"),
        "hybrid" => format!("recall $q in episode $e through {size} 10 score similarity 1, words 1 limit 10"),
        _ => format!(
            "recall $q in episode $e through {size} 20 -> (concepts 8 -> {size} 20) up to 1 hops \
             score similarity 1, words 1 limit 10"
        ),
    }
}

/// Which questions a method answers with all their passages.
#[derive(Default)]
struct Outcome {
    supported: Vec<bool>,
    tokens: u64,
    micros: Vec<u64>,
}

impl Outcome {
    fn share(&self) -> f64 {
        share(self.supported.iter().copied())
    }
}

fn share(outcomes: impl Iterator<Item = bool> + Clone) -> f64 {
    let all = outcomes.clone().count().max(1);
    outcomes.filter(|supported| *supported).count() as f64 / all as f64
}

pub(crate) fn run(data: &Path) -> Result<()> {
    let dataset = Dataset::load(data)?;
    let snapshot = dataset.database.snapshot();
    for asked in &dataset.asked {
        for size in SIZES {
            let mut outcomes = BTreeMap::new();
            for method in METHODS {
                outcomes.insert(method, ask_all(&snapshot, &statement(method, size), asked)?);
            }
            report(asked, size, &outcomes);
        }
    }
    Ok(())
}

fn report(asked: &Asked, size: &str, outcomes: &BTreeMap<&str, Outcome>) {
    let round = |value: f64| (value * 10_000.0).round() / 10_000.0;
    let types = by_type(asked);
    for method in METHODS {
        let Some(outcome) = outcomes.get(method) else { continue };
        let of_type = |places: &[usize]| round(share(places.iter().map(|at| outcome.supported[*at])));
        let by_type: BTreeMap<&str, f64> = types.iter().map(|(name, places)| (*name, of_type(places))).collect();
        let questions = outcome.supported.len();
        let mut line = json!({
            "bench": "multihop", "corpus": asked.episode, "rows": size, "method": method,
            "supported": round(outcome.share()), "by_type": by_type, "questions": questions,
            "tokens": outcome.tokens / questions.max(1) as u64, "p50_us": median(outcome.micros.clone()),
        });
        if method == "routed" {
            let shots =
                METHODS.iter().filter(|name| **name != method).filter_map(|name| Some((name, outcomes.get(name)?)));
            if let Some((name, best)) = shots.max_by(|a, b| a.1.share().total_cmp(&b.1.share())) {
                let (low, high) = interval(&outcome.supported, &best.supported);
                line["best_one_shot"] = json!(name);
                line["above_best"] = json!(round(outcome.share() - best.share()));
                line["interval"] = json!([round(low), round(high)]);
            }
        }
        println!("{line}");
    }
}

/// The places of the questions of each type.
fn by_type(asked: &Asked) -> BTreeMap<&str, Vec<usize>> {
    let mut types: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, question) in asked.questions.iter().enumerate() {
        types.entry(question.line.get("type").and_then(Value::as_str).unwrap_or("any")).or_default().push(at);
    }
    types
}

/// The 95 % interval of the difference of two shares over the same questions.
fn interval(a: &[bool], b: &[bool]) -> (f64, f64) {
    let differences: Vec<i32> = a.iter().zip(b).map(|(a, b)| i32::from(*a) - i32::from(*b)).collect();
    let count = differences.len().max(1);
    let mut random = Random(7);
    let mut means: Vec<f64> = (0..SAMPLES)
        .map(|_| {
            let sample = (0..count).filter_map(|_| differences.get(random.below(count)));
            f64::from(sample.sum::<i32>()) / count as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    (means[SAMPLES / 40], means[SAMPLES - SAMPLES / 40 - 1])
}

fn ask_all(snapshot: &Snapshot, statement: &str, asked: &Asked) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for question in &asked.questions {
        let (found, tokens, micros) = ask(snapshot, statement, asked, question)?;
        outcome.supported.push(question.strings("evidence").iter().all(|key| found.contains(key)));
        outcome.tokens += tokens;
        outcome.micros.push(micros);
    }
    Ok(outcome)
}

/// The traces that an answer supports, its tokens and the microseconds it took.
fn ask(
    snapshot: &Snapshot,
    statement: &str,
    asked: &Asked,
    question: &Question,
) -> Result<(HashSet<String>, u64, u64)> {
    let mut params: Params = question.params();
    params.insert("e".to_owned(), ParamValue::Text(asked.episode.clone()));
    params.insert("v".to_owned(), ParamValue::Vector(question.vector.clone()));
    params.insert("t".to_owned(), ParamValue::Text(question.text.clone()));
    params.retain(|name, _| statement.contains(&format!("${name} ")));
    let Some(Output::Answer(answer)) = snapshot.query(statement, &params)?.pop() else {
        return Err("a recall gave no answer".into());
    };
    let rows = answer.rows.iter().take(ROWS);
    let cited = rows.clone().flat_map(|row| row.citations.iter().map(|citation| citation.target.clone()));
    let found = rows.clone().map(|row| row.key.clone()).chain(cited).collect();
    Ok((found, rows.map(|row| u64::from(row.tokens)).sum(), answer.micros))
}
