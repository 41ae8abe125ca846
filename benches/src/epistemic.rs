//! Questions about a changing world, each asked at its own step and version: is the first row right, and how many of
//! the first five are failed, of another version, superseded, or a guess?
//!
//! The runs are read from a folder, or made here in one of three styles; then `claims_read` is the share of look-ups
//! of which the extractor reads what they state, and `forms_missed` names the forms of the others.

mod domains;
mod phrases;
mod runs;

pub(crate) use phrases::Style;

use crate::Result;
use crate::dataset::{Asked, Dataset, Question, median};
use holotype::Snapshot;
use holotype::answer::{Answer, Output};
use holotype::query::ParamValue;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The version every question is asked in.
pub(crate) const VERSION: &str = "v2";
const FAILED: &str = "failed";
const FOREIGN: &str = "foreign-version";

#[derive(Default)]
struct Tally {
    questions: usize,
    fresh: usize,
    right: usize,
    right_fresh: usize,
    rows: usize,
    bad: BTreeMap<String, usize>,
    /// Failed and foreign rows that do not say they were let back.
    unmarked: usize,
    micros: Vec<u64>,
}

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder, laid out as for `locomo`.
    #[arg(long, required_unless_present = "style")]
    data: Option<PathBuf>,
    /// Generated runs of this style instead, with vectors of the hashing embedder.
    #[arg(long, conflicts_with = "data")]
    style: Option<phrases::Style>,
    /// The seed of generated runs.
    #[arg(long, default_value_t = 1, requires = "style")]
    seed: u64,
    /// Print each question whose first row under the default profile is wrong.
    #[arg(long)]
    misses: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match (&arguments.data, arguments.style) {
        (_, Some(style)) => {
            let mut claims = runs::Claims::default();
            let runs = runs::runs(style, arguments.seed, &mut claims);
            println!("{}", claims.line(style));
            ask(&Dataset::of_runs(runs)?, arguments.misses)
        }
        (Some(data), None) => ask(&Dataset::load(data)?, arguments.misses),
        (None, None) => Err("name --data or --style".into()),
    }
}

/// Generated runs of a style, with the questions asked at their end.
pub(crate) fn generated(style: Style, seed: u64) -> Vec<(String, Asked)> {
    runs::runs(style, seed, &mut runs::Claims::default())
}

fn ask(dataset: &Dataset, misses: bool) -> Result<()> {
    let methods = [
        (
            "similarity",
            "recall $q in episode $e through traces 5 by near include failed, stale, conflicted \
             score similarity 1 at step $s, version $v limit 5",
        ),
        (
            "filtered",
            "recall $q in episode $e include conflicted score similarity 1, words 1, source 0.5 \
             at step $s, version $v limit 5",
        ),
        ("agent", "recall $q in episode $e score profile agent at step $s, version $v limit 5"),
        ("archive", "recall $q in episode $e score profile archive at step $s, version $v limit 5"),
        ("default", "recall $q in episode $e at step $s, version $v limit 5"),
    ];
    for (method, statement) in methods {
        let snapshot = dataset.database.snapshot();
        let mut all = Tally::default();
        for asked in &dataset.asked {
            let mut tally = Tally::default();
            for question in &asked.questions {
                let mut params = question.params();
                let now = question.line.get("now_step").and_then(Value::as_i64).ok_or("a question has no now_step")?;
                params.insert("e".to_owned(), ParamValue::Text(asked.episode.clone()));
                params.insert("s".to_owned(), ParamValue::Int(now));
                params.insert("v".to_owned(), ParamValue::Text(VERSION.to_owned()));
                let Some(Output::Answer(answer)) = snapshot.query(statement, &params)?.pop() else {
                    return Err("a recall gave no answer".into());
                };
                if misses && method == "default" && !first_is_right(question, &answer) {
                    println!("{}", miss(&snapshot, question, &answer)?);
                }
                tally.add(question, &answer);
            }
            println!("{}", tally.line(method, &asked.episode));
            all.merge(tally);
        }
        println!("{}", all.line(method, "all"));
    }
    Ok(())
}

fn first_is_right(question: &Question, answer: &Answer) -> bool {
    let right = question.line.get("right").and_then(Value::as_str);
    answer.rows.first().is_some_and(|row| Some(row.key.as_str()) == right)
}

/// A question with the text that is right, and the rows in its place with their classes.
fn miss(snapshot: &Snapshot, question: &Question, answer: &Answer) -> Result<Value> {
    let right = question.line.get("right").and_then(Value::as_str).unwrap_or_default();
    let text = snapshot.get(right)?.map(|item| item.content.text().to_owned()).unwrap_or_default();
    let rows: Vec<Value> = answer
        .rows
        .iter()
        .map(|row| {
            let class = question.line.get("classes").and_then(|classes| classes.get(&row.key));
            json!([row.key, class, row.score, row.text])
        })
        .collect();
    Ok(json!({"question": question.text, "right": right, "text": text, "rows": rows}))
}

impl Tally {
    fn add(&mut self, question: &Question, answer: &Answer) {
        let line = &question.line;
        let fresh = line.get("right_is_fresh").and_then(Value::as_bool).unwrap_or(false);
        let first_is_right = first_is_right(question, answer);
        self.questions += 1;
        self.fresh += usize::from(fresh);
        self.right += usize::from(first_is_right);
        self.right_fresh += usize::from(first_is_right && fresh);
        self.micros.push(answer.micros);
        for row in answer.rows.iter().take(5) {
            self.rows += 1;
            let class = line.get("classes").and_then(|classes| classes.get(&row.key)).and_then(Value::as_str);
            if let Some(class) = class.filter(|class| *class != "right") {
                *self.bad.entry(class.to_owned()).or_default() += 1;
                self.unmarked += usize::from(matches!(class, FAILED | FOREIGN) && row.relaxed.is_empty());
            }
        }
    }

    fn merge(&mut self, other: Tally) {
        self.questions += other.questions;
        self.fresh += other.fresh;
        self.right += other.right;
        self.right_fresh += other.right_fresh;
        self.rows += other.rows;
        self.unmarked += other.unmarked;
        self.micros.extend(other.micros);
        for (class, count) in other.bad {
            *self.bad.entry(class).or_default() += count;
        }
    }

    fn line(&self, method: &str, episode: &str) -> Value {
        let share = |part: usize, of: usize| {
            if of == 0 { 0.0 } else { (part as f64 / of as f64 * 10_000.0).round() / 10_000.0 }
        };
        let bad: usize = self.bad.values().sum();
        json!({
            "bench": "epistemic", "method": method, "episode": episode, "questions": self.questions,
            "right_first": share(self.right, self.questions), "right_first_fresh": share(self.right_fresh, self.fresh),
            "bad_rows": share(bad, self.rows), "bad_by_class": self.bad, "unmarked_failed_or_foreign": self.unmarked,
            "p50_us": median(self.micros.clone()),
        })
    }
}
