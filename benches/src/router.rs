//! Router decisions scored by the paper's reward (TierMem D.7, Table 11): 1 for a path that suffices and -1.5 for one
//! that does not, less 0.1 for raw pages and 0.4 for raw pages that were not needed; an answer that does not parse
//! scores -1.
//!
//! | method | decides |
//! |---|---|
//! | `threshold` | by the built-in router |
//! | `fitted` | by a linear router fitted, with its threshold, to the other conversations |
//! | `always`, `never` | to escalate every question, none |
//! | `random` | to escalate at the rate of `threshold`; the mean of 20 draws |
//! | `oracle` | for the path with the greater reward |
//!
//! A first tier suffices (`c_S`) if it holds every turn that answers the question, raw pages (`c_R`) if they do at the
//! largest budget, or hold more than the first tier.

use crate::Result;
use crate::random::Random;
use crate::tiermem::{self, Measured};
use holotype::router::{Action, Label, LinearRouter, Reward, Router, Score};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Draws of `random`; their seeds count from 1.
const DRAWS: u64 = 20;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder, laid out as for `locomo`.
    #[arg(long, required_unless_present = "labels")]
    data: Option<PathBuf>,
    /// Instead, the lines that `tiermem --labels FILE` wrote.
    #[arg(long, conflicts_with = "data")]
    labels: Option<PathBuf>,
}

/// A question's conversation and label.
pub(crate) struct Labelled {
    conversation: u64,
    label: Label,
}

impl From<&Measured> for Labelled {
    fn from(question: &Measured) -> Labelled {
        Labelled { conversation: question.conversation as u64, label: tiermem::label(question) }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match (&arguments.data, &arguments.labels) {
        (_, Some(labels)) => report(&read(labels)?),
        (Some(data), None) => report(&tiermem::measure_all(data)?.iter().map(Labelled::from).collect::<Vec<_>>()),
        (None, None) => Err("name a folder with --data, or a file with --labels".into()),
    }
}

/// The labels of a file.
fn read(path: &Path) -> Result<Vec<Labelled>> {
    let mut labelled = Vec::new();
    for line in BufReader::new(File::open(path)?).lines() {
        let line = line?;
        let conversation = serde_json::from_str::<Value>(&line)?.get("conversation").and_then(Value::as_u64);
        let conversation = conversation.ok_or("a label names no conversation")?;
        labelled.push(Labelled { conversation, label: Label::from_json(&line)? });
    }
    Ok(labelled)
}

/// Prints a line a method.
fn report(labelled: &[Labelled]) -> Result<()> {
    let labels: Vec<Label> = labelled.iter().map(|question| question.label).collect();
    let built_in = LinearRouter::default();
    let threshold: Vec<Action> =
        labels.iter().map(|label| built_in.decide("", &[], &label.signals)).collect::<Result<_, String>>()?;
    print("threshold", &score(&labels, &threshold), 1);
    print("fitted", &score(&labels, &fitted(labelled)?), 1);
    for (method, action) in [("always", Action::Escalate), ("never", Action::Answer)] {
        print(method, &score(&labels, &vec![action; labels.len()]), 1);
    }
    let rate = score(&labels, &threshold).rate();
    let mut all = Vec::new();
    let mut actions = Vec::new();
    for seed in 1..=DRAWS {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for label in &labels {
            let draw = random.below(1_000_000) as f64 / 1e6;
            all.push(*label);
            actions.push(if draw < rate { Action::Escalate } else { Action::Answer });
        }
    }
    print("random", &score(&all, &actions), DRAWS);
    let reward = Reward::default();
    let best = |label: &Label| {
        let of = |action| reward.of(Some(action), label.summaries_suffice, label.raw_suffices);
        if of(Action::Escalate) > of(Action::Answer) { Action::Escalate } else { Action::Answer }
    };
    print("oracle", &score(&labels, &labels.iter().map(best).collect::<Vec<_>>()), 1);
    Ok(())
}

/// The decisions of a router fitted, for each conversation, to all others.
pub(crate) fn fitted(labelled: &[Labelled]) -> Result<Vec<Action>> {
    let mut actions = Vec::with_capacity(labelled.len());
    let mut router = (u64::MAX, LinearRouter::default());
    for question in labelled {
        if router.0 != question.conversation {
            let others = labelled.iter().filter(|other| other.conversation != question.conversation);
            let labels: Vec<Label> = others.map(|other| other.label).collect();
            let fit = LinearRouter::fit(&labels, 0.5).map(|fit| fit.with_best_threshold(&labels, &Reward::default()));
            router = (question.conversation, fit.unwrap_or_default());
        }
        actions.push(router.1.decide("", &[], &question.label.signals)?);
    }
    Ok(actions)
}

fn score(labels: &[Label], actions: &[Action]) -> Score {
    let mut score = Score::default();
    for (label, action) in labels.iter().zip(actions) {
        score.add(&Reward::default(), *action, label.summaries_suffice, label.raw_suffices);
    }
    score
}

fn print(method: &str, score: &Score, draws: u64) {
    let round = |value: f64| (value * 10_000.0).round() / 10_000.0;
    println!(
        "{}",
        json!({"bench": "router", "method": method, "reward": round(score.mean_reward()),
        "rate": round(score.rate()), "recall_at_hard": round(score.recall_at_hard()),
        "repair_rate": round(score.repair_rate()), "regress_rate": round(score.regress_rate()),
        "uor": round(score.omission_rate()), "questions": score.decisions / draws})
    );
}
