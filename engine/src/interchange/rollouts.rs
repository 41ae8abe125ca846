//! Kept rollouts as training data (HiMPO): one JSON object for each write, with its credit, and one for each rollout
//! without writes, by group, rollout and step.
//!
//! The lines are those that `holotype credit` reads, with the texts `question outcome mem think call observation`, and
//! the members that it appends. Of an item that was forgotten, no text is written.

use super::export::ExportReport;
use crate::credit::{CreditOptions, Rollout, RolloutStep, Write, WriteCredit, credit};
use crate::{Error, Result, Snapshot};
use serde_json::{Value, json};
use std::io::Write as Output;
use std::path::PathBuf;

/// Writes the kept rollouts with their credit.
///
/// # Errors
/// [`Error::Invalid`] for what [`credit`] refuses; [`Error::File`] when writing fails.
pub fn export_rollouts(snapshot: &Snapshot, out: &mut impl Output, options: &CreditOptions) -> Result<ExportReport> {
    let rollouts = snapshot.rollouts()?;
    let writes: Vec<Write<'_>> = rollouts.iter().flat_map(Rollout::writes).collect();
    let credits = credit(&writes, options).map_err(|error| Error::Invalid(error.refusal.to_string()))?;
    let failed = |source| Error::File { path: PathBuf::from("the export"), source };
    let mut lines = credits.lines.iter();
    let mut report = ExportReport::default();
    for rollout in &rollouts {
        let trajectory = lines.next().map_or(0.0, |line| line.trajectory_advantage);
        let mut written = Vec::new();
        for step in &rollout.steps {
            let credit = step.scores.and_then(|_| lines.next()).and_then(|line| line.write);
            let is_forgotten = is_forgotten(snapshot, step)?;
            written.push(line(
                rollout,
                Some(step),
                is_forgotten,
                trajectory,
                credit.map(|credit| (credit, credits.beta)),
            ));
        }
        if rollout.steps.is_empty() {
            written.push(line(rollout, None, false, trajectory, None));
        }
        for line in written {
            writeln!(out, "{line}").map_err(failed)?;
            report.lines += 1;
        }
    }
    Ok(report)
}

/// True if the item that a step wrote was forgotten.
fn is_forgotten(snapshot: &Snapshot, step: &RolloutStep) -> Result<bool> {
    let Some(item) = &step.item else { return Ok(false) };
    Ok(match snapshot.get(item)? {
        Some(item) => item.attributes.redacted,
        None => false,
    })
}

fn line(
    rollout: &Rollout,
    step: Option<&RolloutStep>,
    is_forgotten: bool,
    trajectory: f64,
    credit: Option<(WriteCredit, f64)>,
) -> String {
    let mut members: Vec<(&str, Value)> = vec![("group", json!(rollout.group)), ("rollout", json!(rollout.rollout))];
    if let Some((step, scores)) = step.and_then(|step| Some((step.step, step.scores?))) {
        members.push(("step", json!(step)));
        members.extend([("s_prev", scores.s_prev), ("s_now", scores.s_now)].map(number));
        members.push(scores.log_h.map_or(("log_h", Value::Null), |log_h| number(("log_h", log_h))));
    }
    members.push(number(("reward", rollout.reward)));
    let texts = step.map(|step| &step.texts).filter(|_| !is_forgotten);
    let of_step = texts.map(|texts| {
        [("mem", &texts.memory), ("think", &texts.think), ("call", &texts.call), ("observation", &texts.observation)]
    });
    let whole = [("question", &rollout.question), ("outcome", &rollout.outcome)];
    let texts = whole.into_iter().chain(of_step.into_iter().flatten()).filter(|(_, text)| !text.is_empty());
    members.extend(texts.map(|(name, text)| (name, json!(text))));
    let item = step.and_then(|step| step.item.as_ref());
    for (name, text) in [("item", item), ("template", rollout.template.as_ref())] {
        members.extend(text.map(|text| (name, json!(text))));
    }
    if let Some((credit, beta)) = credit {
        let WriteCredit { delta, delta_hat, log_rho, gate, advantage, smoothed, token_advantage } = credit;
        let credit = [("delta", delta), ("delta_hat", delta_hat), ("log_rho", log_rho), ("beta", beta), ("gate", gate)];
        members.extend(credit.map(number));
        let advantages = [("advantage", advantage), ("smoothed", smoothed), ("trajectory_advantage", trajectory)];
        members.extend(advantages.map(number));
        members.push(number(("token_advantage", token_advantage)));
    } else {
        members.push(number(("trajectory_advantage", trajectory)));
    }
    let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", members.join(","))
}

fn number((name, value): (&'static str, f64)) -> (&'static str, Value) {
    (name, json!(value))
}
