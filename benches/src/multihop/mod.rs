//! Questions that need several passages: of the first ten rows, do they support all passages that answer a question?
//!
//! A row supports the trace it is and those it cites. Answers of two sizes are compared, each with what one shot finds
//! at that size: facts as rows (sentences) and traces as rows (passages). Beside the routed figure stands the best one
//! shot of the same size, with their difference and its interval from a paired bootstrap over the questions (95 %), and
//! for each type of question the same beside hybrid. After several corpora stands what all their questions give
//! together.
//!
//! `--extract` asks a memory whose facts and concepts the built-in extractor drew; `--generated` corpora made here.

mod extract;
mod generated;

use crate::Result;
use crate::dataset::{Asked, Dataset, Question, median};
use crate::measure::round;
use crate::random::Random;
use holotype::Snapshot;
use holotype::answer::Output;
use holotype::query::{ParamValue, Params};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder, laid out as for `locomo`.
    #[arg(required_unless_present = "generated")]
    data: Option<PathBuf>,
    /// Seeds of generated corpora, which are asked instead.
    #[arg(long, value_delimiter = ',', value_name = "SEED", conflicts_with = "data")]
    generated: Vec<u64>,
    /// Questions of a generated corpus.
    #[arg(long, default_value_t = 200)]
    chains: usize,
    /// Takes only traces from the data; the built-in extractor draws facts and concepts.
    #[arg(long)]
    extract: bool,
    /// With `--extract`, facts have no vectors, even where the data has one for their text.
    #[arg(long, requires = "extract")]
    bare: bool,
    /// Prints the questions whose passages the routed answer does not support, too.
    #[arg(long)]
    missed: bool,
}

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
    /// The type of each question.
    types: Vec<String>,
    tokens: u64,
    micros: Vec<u64>,
}

impl Outcome {
    fn extend(&mut self, other: &Outcome) {
        self.supported.extend(&other.supported);
        self.types.extend(other.types.iter().cloned());
        self.tokens += other.tokens;
        self.micros.extend(&other.micros);
    }

    /// The places of the questions of each type.
    fn by_type(&self) -> BTreeMap<&str, Vec<usize>> {
        let mut types: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, name) in self.types.iter().enumerate() {
            types.entry(name).or_default().push(at);
        }
        types
    }

    fn share(&self) -> f64 {
        share(self.supported.iter().copied())
    }
}

fn share(outcomes: impl Iterator<Item = bool> + Clone) -> f64 {
    let all = outcomes.clone().count().max(1);
    outcomes.filter(|supported| *supported).count() as f64 / all as f64
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let dataset = dataset(arguments)?;
    let snapshot = dataset.database.snapshot();
    let mut all: BTreeMap<(&str, &str), Outcome> = BTreeMap::new();
    for asked in &dataset.asked {
        for size in SIZES {
            let mut outcomes = BTreeMap::new();
            for method in METHODS {
                let outcome = ask_all(&snapshot, &statement(method, size), asked)?;
                all.entry((size, method)).or_default().extend(&outcome);
                outcomes.insert(method, outcome);
            }
            report(&asked.episode, size, &outcomes);
            if let Some(routed) = outcomes.get("routed").filter(|_| arguments.missed) {
                let missed = asked.questions.iter().zip(&routed.supported).filter(|(_, supported)| !**supported);
                missed.for_each(|(question, _)| println!("{}", json!({"rows": size, "missed": question.line})));
            }
        }
    }
    if dataset.asked.len() > 1 {
        for size in SIZES {
            let of_size = METHODS.iter().filter_map(|method| Some((*method, all.remove(&(size, *method))?)));
            report("all", size, &of_size.collect());
        }
    }
    Ok(())
}

/// The memory that is asked.
fn dataset(arguments: &Arguments) -> Result<Dataset> {
    let wanted = |line: &Value| !arguments.extract || !extract::is_extracted(line);
    let Some(data) = &arguments.data else {
        let mut runs = Vec::new();
        for seed in &arguments.generated {
            let (lines, asked) = generated::corpus(*seed, arguments.chains)?;
            let mut kept = String::with_capacity(lines.len());
            for line in lines.lines() {
                if wanted(&serde_json::from_str(line)?) {
                    kept += &format!("{line}\n");
                }
            }
            runs.push((kept, asked));
        }
        let dataset = Dataset::of_runs(runs)?;
        if arguments.extract {
            extract::extract(&dataset, None)?;
        }
        return Ok(dataset);
    };
    let dataset = Dataset::load_lines(data, &wanted)?;
    if arguments.extract {
        let known = match arguments.bare {
            true => None,
            false => Some(extract::KnownTexts::of(&Dataset::load(data)?.database.snapshot())?),
        };
        extract::extract(&dataset, known.as_ref())?;
    }
    Ok(dataset)
}

fn rounded(value: f64) -> f64 {
    round(value, 4)
}

fn report(corpus: &str, size: &str, outcomes: &BTreeMap<&str, Outcome>) {
    for method in METHODS {
        let Some(outcome) = outcomes.get(method) else { continue };
        let types = outcome.by_type();
        let of_type = |places: &[usize]| rounded(share(places.iter().map(|at| outcome.supported[*at])));
        let by_type: BTreeMap<&str, f64> = types.iter().map(|(name, places)| (*name, of_type(places))).collect();
        let questions = outcome.supported.len();
        let mut line = json!({
            "bench": "multihop", "corpus": corpus, "rows": size, "method": method,
            "supported": rounded(outcome.share()), "by_type": by_type, "questions": questions,
            "tokens": outcome.tokens / questions.max(1) as u64, "p50_us": median(outcome.micros.clone()),
        });
        let none = vec![false; questions];
        line["interval"] = interval(&outcome.supported, &none);
        if method == "routed" {
            let shots =
                METHODS.iter().filter(|name| **name != method).filter_map(|name| Some((name, outcomes.get(name)?)));
            if let Some((name, best)) = shots.max_by(|a, b| a.1.share().total_cmp(&b.1.share())) {
                line["best_one_shot"] = json!(name);
                line["above_best"] = json!(rounded(outcome.share() - best.share()));
                line["above_best_interval"] = interval(&outcome.supported, &best.supported);
            }
            if let Some(hybrid) = outcomes.get("hybrid") {
                let above = types.iter().map(|(name, places)| (*name, above(outcome, hybrid, places)));
                line["above_hybrid_by_type"] = above.collect();
            }
        }
        println!("{line}");
    }
}

/// By how much one outcome is above another over some questions, with the interval.
fn above(outcome: &Outcome, other: &Outcome, places: &[usize]) -> Value {
    let [a, b] = [outcome, other].map(|of| places.iter().map(|at| of.supported[*at]).collect::<Vec<bool>>());
    json!({
        "above": rounded(share(a.iter().copied()) - share(b.iter().copied())),
        "interval": interval(&a, &b), "questions": places.len(),
    })
}

/// The 95 % interval of the difference of two shares over the same questions.
fn interval(a: &[bool], b: &[bool]) -> Value {
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
    json!([rounded(means[SAMPLES / 40]), rounded(means[SAMPLES - SAMPLES / 40 - 1])])
}

fn ask_all(snapshot: &Snapshot, statement: &str, asked: &Asked) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for question in &asked.questions {
        let (found, tokens, micros) = ask(snapshot, statement, asked, question)?;
        outcome.supported.push(question.strings("evidence").iter().all(|key| found.contains(key)));
        let name = question.line.get("type").and_then(Value::as_str).unwrap_or("any");
        outcome.types.push(name.to_owned());
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
