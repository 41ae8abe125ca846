//! `holotype judge`: the sufficiency router of `escalate` (TierMem D).
//!
//! `fit` learns a linear router from labels, one JSON object a line:
//! `{"signals":{"terms":0.5},"c_s":false,"c_r":true}`, where `c_s` and `c_r` say if the first
//! tier and if raw pages sufficed. `export --training router` writes such lines.
//! `label` stores the labels of routed recalls in the database that logged them:
//! `{"route":"rc-1","c_s":true,"c_r":true}`. `use` makes a fitted router the setting `router` of a database.

use crate::failure::{Failure, Problem, Status};
use crate::render::{self, Format};
use crate::{database, script};
use holotype::interchange::json::{JsonError, Parser, quoted};
use holotype::plural::counted;
use holotype::query::Params;
use holotype::router::{Label, LinearRouter, Reward, Router, Score};
use holotype::{Durability, RouteLabel};
use serde_json::json;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Fit a linear router to labels
    Fit {
        /// One JSON object a line, with `signals`, `c_s` and `c_r`; `-` is stdin
        labels: PathBuf,
        /// The file to write the router to, as JSON
        #[arg(short, long, value_name = "JUDGE")]
        output: PathBuf,
        /// The estimated sufficiency from which it answers [default: the best by the reward of TierMem D.7]
        #[arg(long, value_name = "P", conflicts_with = "bound")]
        threshold: Option<f32>,
        /// Bound the share of questions that a first tier answers which lacks what raw pages have: the threshold is
        /// set on every other label by conformal risk control, and the router fitted to the others
        #[arg(long, value_name = "SHARE")]
        bound: Option<f64>,
    },
    /// Store labels of routed recalls
    Label {
        /// The database
        db: PathBuf,
        /// One JSON object a line, with `route` (a receipt or the key of an event), `c_s` and `c_r`; `-` is stdin
        labels: PathBuf,
    },
    /// Have `escalate` decide by a fitted router
    Use {
        /// The database
        db: PathBuf,
        /// The router, as `judge fit` wrote it; `built-in` for the built-in one
        judge: PathBuf,
    },
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    match &args.action {
        Action::Fit { labels, output, threshold, bound } => fit(labels, output, *threshold, *bound, format),
        Action::Label { db, labels } => label(db, labels, format),
        Action::Use { db, judge } => use_judge(db, judge),
    }
}

/// Each line that is not blank, with its number and the name of the file.
fn lines<T>(path: &Path, read: impl Fn(&str) -> Result<T, (usize, String)>) -> Result<Vec<T>, Failure> {
    let (text, name) = script::read_named(path)?;
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        found.push(read(line).map_err(|(offset, message)| {
            let column = line.get(..offset).unwrap_or(line).chars().count() as u64 + 1;
            Problem::input("line", message).file(&name).at(number as u64 + 1, column)
        })?);
    }
    Ok(found)
}

fn fit(
    labels: &Path,
    output: &Path,
    threshold: Option<f32>,
    bound: Option<f64>,
    format: Format,
) -> Result<Status, Failure> {
    if bound.is_some_and(|bound| !(0.0..1.0).contains(&bound)) {
        let hint = "such as 0.05: at most one question in twenty is answered wrongly from the first tier";
        return Err(Problem::input("usage", "--bound must be from 0 to below 1").hint(hint).into());
    }
    if threshold.is_some_and(|threshold| !(0.0..=1.0).contains(&threshold)) {
        let hint = "a router answers from the first tier if its estimate reaches the threshold";
        return Err(Problem::input("usage", "--threshold must be from 0 to 1").hint(hint).into());
    }
    let labels: Vec<Label> = lines(labels, |line| Label::from_json(line).map_err(|error| (0, error.to_string())))?;
    let reward = Reward::default();
    let fitted = match (threshold, bound) {
        (Some(threshold), _) => LinearRouter::fit(&labels, threshold)?,
        (None, None) => LinearRouter::fit(&labels, 0.5)?.with_best_threshold(&labels, &reward),
        (None, Some(bound)) => {
            let half = |rest: usize| -> Vec<Label> { labels.iter().skip(rest).step_by(2).copied().collect() };
            LinearRouter::fit(&half(0), 0.5)?.with_bounded_threshold(&half(1), bound)
        }
    };
    let score = |router: &LinearRouter| {
        let mut score = Score::default();
        for label in &labels {
            if let Ok(action) = router.decide("", &[], &label.signals) {
                score.add(&reward, action, label.summaries_suffice, label.raw_suffices);
            }
        }
        score
    };
    let (ours, before) = (score(&fitted), score(&LinearRouter::default()));
    let mut text = fitted.to_json().to_string();
    text.push('\n');
    std::fs::write(output, text).map_err(|error| Problem::io(output, "write", &error))?;
    let fact = json!({"labels": labels.len(), "reward": ours.mean_reward(), "r_rate": ours.rate(),
        "recall_at_hard": ours.recall_at_hard(), "built_in_reward": before.mean_reward(),
        "threshold": fitted.threshold, "bound": bound});
    let told = format!(
        "fitted to {}: reward {:.3} on them (built-in router {:.3}), {:.0} % escalated, written to {}",
        counted(labels.len() as u64, "labels"),
        ours.mean_reward(),
        before.mean_reward(),
        100.0 * ours.rate(),
        output.display()
    );
    render::write_fact(&mut io::stdout().lock(), &fact, &told, format)?;
    Ok(Status::Done)
}

fn label(db: &Path, labels: &Path, format: Format) -> Result<Status, Failure> {
    let labels: Vec<RouteLabel> =
        lines(labels, |line| read_label(line).map_err(|error| (error.offset, error.message)))?;
    let database = database::to_write(db)?;
    let mut transaction = database.begin()?;
    transaction.label_routes(&labels)?;
    transaction.commit(Durability::Sync)?;
    database::close(database)?;
    let told = format!("{} labelled", counted(labels.len() as u64, "routed recalls"));
    render::write_fact(&mut io::stdout().lock(), &json!({"labelled": labels.len()}), &told, format)?;
    Ok(Status::Done)
}

fn read_label(line: &str) -> Result<RouteLabel, JsonError> {
    let (mut route, mut c_s, mut c_r) = (None, None, None);
    let mut parser = Parser::new(line);
    parser.object(|parser, name| {
        match name.text {
            "route" => route = Some(parser.string()?.into_owned()),
            "c_s" => c_s = Some(parser.boolean()?),
            "c_r" => c_r = Some(parser.boolean()?),
            _ => {
                let message = format!("unknown member {}; expected route, c_s and c_r", quoted(name.text));
                return Err(JsonError::new(name.offset, message));
            }
        }
        Ok(())
    })?;
    parser.end()?;
    let missing = |name: &str| JsonError::new(0, format!("the line has no `{name}`"));
    Ok(RouteLabel {
        route: route.ok_or_else(|| missing("route"))?,
        summaries_suffice: c_s.ok_or_else(|| missing("c_s"))?,
        raw_suffices: c_r.ok_or_else(|| missing("c_r"))?,
    })
}

fn use_judge(db: &Path, judge: &Path) -> Result<Status, Failure> {
    let value = match judge.to_str() {
        Some("built-in") => "built-in".to_owned(),
        _ => LinearRouter::from_json(script::read_file(judge)?.trim())?.to_json().to_string(),
    };
    let database = database::to_write(db)?;
    let quoted = value.replace('\'', "''");
    database.query(&format!("set router = '{quoted}'"), &Params::new())?;
    database::close(database)?;
    Ok(Status::Done)
}
