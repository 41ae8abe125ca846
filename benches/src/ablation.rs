//! HELM's ablations (Tables 4 and 5) on generated runs: the default recall without one of its parts.
//!
//! The runs are laid out as for `epistemic`. Calls are consolidated, and each subject of a claim gets a theme, so that
//! all three layers are there. No model is run and no task is done: the score is how often the first row is right.
//!
//! | variant | |
//! |---|---|
//! | full | the default recall with the evidence of its rows |
//! | no-governance | similarity alone, nothing excluded, no version |
//! | no-provenance | without evidence: only the row itself counts |
//! | hashing | vectors of the hashing embedder in place of the given ones |
//! | no-controller | nothing was consolidated |
//! | m1, m3-m1, m3-m2 | traces alone; themes to traces; themes to recalls without grounding |
//! | window-50, window-100, window-150 | what is stale is excluded, by half, all and one and a half of the windows |
//!
//! `score`: the first row is the right trace, cites it, or is a recall that says its value. `tokens`: mean of the rows
//! with their evidence. `epierr`: the share of answers with a row that is not right and that is, or cites, a trace that
//! failed, is of another version, out of date or a guess.

use crate::Result;
use crate::dataset::{Asked, Dataset, Question, Vectors};
use crate::measure::round;
use holotype::answer::{Answer, Output, Role, Row};
use holotype::extract::normalise;
use holotype::query::{Noun, ParamValue, Params};
use holotype::{Consolidate, Durability, Holotype, Layer, NewRecall, Snapshot};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

const VERSION: &str = "v2";

/// A variant: its name, its clauses, whether it knows the version, and whether evidence counts.
struct Variant {
    name: &'static str,
    clauses: &'static str,
    governed: bool,
    grounded: bool,
}

const fn variant(name: &'static str, clauses: &'static str) -> Variant {
    Variant { name, clauses, governed: true, grounded: true }
}

/// The default recall with the evidence of its rows.
const FULL: &str = "expand depth 3 within 1500 tokens";
const PLAIN: &str =
    "include failed, stale, conflicted, unsupported score similarity 1 expand depth 3 within 1500 tokens";

const VARIANTS: [Variant; 9] = [
    variant("full", FULL),
    Variant { governed: false, ..variant("no-governance", PLAIN) },
    Variant { grounded: false, ..variant("no-provenance", "") },
    variant("m1", "through traces 5 expand depth 3 within 1500 tokens"),
    variant("m3-m1", "through themes 3 -> traces 5 expand depth 3 within 1500 tokens"),
    Variant { grounded: false, ..variant("m3-m2", "through themes 3 -> recalls 5") },
    variant("window-50", "exclude stale(100 steps, 84h) expand depth 3 within 1500 tokens"),
    variant("window-100", "exclude stale(200 steps, 7d) expand depth 3 within 1500 tokens"),
    variant("window-150", "exclude stale(300 steps, 252h) expand depth 3 within 1500 tokens"),
];

pub(crate) fn run(data: &Path) -> Result<()> {
    let dataset = Dataset::load(data)?;
    println!("{}", measure(&dataset, &Variant { name: "no-controller", ..VARIANTS[0] }, false)?);
    abstract_from(&dataset.database, &dataset.asked)?;
    for variant in &VARIANTS {
        println!("{}", measure(&dataset, variant, false)?);
    }
    let hashed = Dataset::load_with(data, Vectors::hashing())?;
    abstract_from(&hashed.database, &hashed.asked)?;
    println!("{}", measure(&hashed, &Variant { name: "hashing", ..VARIANTS[0] }, true)?);
    Ok(())
}

/// Consolidates the calls of every episode, below a theme for each subject.
fn abstract_from(database: &Holotype, asked: &[Asked]) -> Result<()> {
    let mut transaction = database.begin()?;
    transaction.set("consolidate.limit", "1000000")?;
    for Asked { episode, .. } in asked {
        let report = transaction.consolidate(&Consolidate::new(Noun::Calls).in_episode(episode.clone()))?;
        let made = report.done.iter().filter(|one| one.op.as_str() == "made");
        let subject = |claim: &str| claim.split_once(" of ").map(|(_, subject)| subject.to_owned());
        let themes: BTreeSet<String> = made.clone().filter_map(|one| subject(&one.claim)).collect();
        for theme in &themes {
            let recalls = made.clone().filter(|one| subject(&one.claim).as_ref() == Some(theme));
            let keys: Vec<String> = {
                let snapshot = transaction.snapshot()?;
                recalls.map(|one| snapshot.key_of(one.item)).collect::<holotype::Result<_>>()?
            };
            let child = |theme: NewRecall, key: String| theme.child(key);
            let new = NewRecall::theme(theme.clone()).key(format!("theme:{episode}:{theme}")).ungrounded();
            transaction.remember(keys.into_iter().fold(new, child))?;
        }
    }
    transaction.commit(Durability::Sync)?;
    database.checkpoint()?;
    Ok(())
}

fn measure(dataset: &Dataset, variant: &Variant, hashed: bool) -> Result<Value> {
    let snapshot = dataset.database.snapshot();
    let version = if variant.governed { ", version $v" } else { "" };
    let statement = format!("recall $q in episode $e {} at step $s{version} limit 5", variant.clauses);
    let (mut asked, mut right, mut tokens, mut bad) = (0_usize, 0_usize, 0_u64, 0_usize);
    for Asked { episode, questions } in &dataset.asked {
        for question in questions {
            let answer = ask(&snapshot, &statement, episode, question, hashed)?;
            asked += 1;
            tokens += answer.rows.iter().map(|row| u64::from(row.tokens)).sum::<u64>();
            let first = answer.rows.first();
            right += usize::from(first.is_some_and(|row| is_right(question, row, variant.grounded)));
            let is_bad = |row: &Row| {
                !is_right(question, row, true) && sources(row, true).any(|source| is_flawed(question, source))
            };
            bad += usize::from(answer.rows.iter().filter(|row| row.role != Role::Evidence).any(is_bad));
        }
    }
    let share = |part: f64| round(part / asked.max(1) as f64, 4);
    Ok(json!({"bench": "ablation", "variant": variant.name, "questions": asked, "score": share(right as f64),
        "tokens": share(tokens as f64), "epierr": share(bad as f64)}))
}

fn ask(snapshot: &Snapshot, statement: &str, episode: &str, question: &Question, hashed: bool) -> Result<Answer> {
    let mut params = match hashed {
        false => question.params(),
        true => Params::from([("q".to_owned(), ParamValue::Text(question.text.clone()))]),
    };
    let now = question.line.get("now_step").and_then(Value::as_i64).ok_or("a question has no now_step")?;
    params.insert("e".to_owned(), ParamValue::Text(episode.to_owned()));
    params.insert("s".to_owned(), ParamValue::Int(now));
    if statement.contains("$v") {
        params.insert("v".to_owned(), ParamValue::Text(VERSION.to_owned()));
    }
    match snapshot.query(statement, &params)?.pop() {
        Some(Output::Answer(answer)) => Ok(*answer),
        _ => Err("a recall gave no answer".into()),
    }
}

/// The traces that a row stands for: itself, and what it cites.
fn sources(row: &Row, grounded: bool) -> impl Iterator<Item = &str> {
    let cited = row.citations.iter().map(|citation| citation.target.as_str()).filter(move |_| grounded);
    std::iter::once(row.key.as_str()).chain(cited)
}

/// True for the right trace, a row that cites it, and a recall that says its value.
fn is_right(question: &Question, row: &Row, grounded: bool) -> bool {
    let known = |name: &str| question.line.get(name).and_then(Value::as_str);
    let says = |value: &str| row.layer == Layer::Recall && row.text.contains(&normalise(value));
    sources(row, grounded).any(|source| Some(source) == known("right")) || known("value").is_some_and(says)
}

fn is_flawed(question: &Question, key: &str) -> bool {
    let class = question.line.get("classes").and_then(|classes| classes.get(key)).and_then(Value::as_str);
    class.is_some_and(|class| class != "right")
}
