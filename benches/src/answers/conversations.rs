//! Conversations (LoCoMo): the default recall beside `archive`, which neither groups nor orders by time.
//!
//! Evidence recall is the mean over questions of the share of their turns that an answer shows; with five rows, the
//! turns that a recall cites count, too. `renamed` are the questions of the other conversations with this one's names.

use super::Context;
use super::checks::{check, refused};
use super::report::{Report, share};
use super::set::{Case, Set};
use super::shown::{shown, tokens};
use crate::Result;
use crate::dataset::{Dataset, Vectors};
use crate::measure::round;
use crate::nothing::{rename, speakers};
use holotype::Layer;
use holotype::answer::Answer;
use serde_json::json;
use std::collections::HashSet;

const BUDGETS: [u64; 4] = [250, 500, 1_000, 2_000];
/// The most by which the default recall may find less.
const WITHIN: f64 = 0.003;

pub(super) fn run(context: &Context, report: &mut Report) -> Result<()> {
    let Some(data) = context.folder("locomo-dev") else { return Ok(()) };
    let names = if context.smoke { &["friends"][..] } else { &["26", "30", "41", "42", "43"] };
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut set = Set::new("conversations", Dataset::load_named(&data, &names, Vectors::Files, &mut Some)?, context)?;
    let snapshot = set.snapshot();
    for case in &mut set.cases {
        case.right.retain(|key| snapshot.get(key).is_ok_and(|item| item.is_some()));
    }
    set.cases.retain(|case| !case.right.is_empty());
    for budget in BUDGETS {
        compare(&set, &format!("budget {budget} tokens"), Some(budget), report)?;
    }
    compare(&set, "limit 5", None, report)?;
    dated(&set, report)?;
    renamed(&set, report)?;
    check(&set, context, report)
}

fn compare(set: &Set, clauses: &str, budget: Option<u64>, report: &mut Report) -> Result<()> {
    let default = recall(set, clauses, budget)?;
    let archive = recall(set, &format!("score profile archive {clauses}"), budget)?;
    let less = round(archive - default, 4);
    report.line(json!({
        "set": set.name, "clauses": clauses, "questions": set.cases.len(), "default": round(default, 4),
        "archive": round(archive, 4), "less": less,
    }));
    let measured = format!("{default:.4} beside {archive:.4}: {:+.4}", default - archive);
    let goal = format!("within {WITHIN}");
    report.push(format!("conversations, {clauses}: default beside archive"), goal, measured, Some(less <= WITHIN));
    Ok(())
}

/// Questions that name a year: what a window of time adds.
fn dated(set: &Set, report: &mut Report) -> Result<()> {
    let names_year = |text: &str| {
        text.split(|c: char| !c.is_alphanumeric())
            .any(|word| word.len() == 4 && word.parse::<u16>().is_ok_and(|y| y > 1900))
    };
    let snapshot = set.snapshot();
    for budget in BUDGETS {
        let (mut default, mut archive, mut asked) = (0.0, 0.0, 0);
        for case in set.cases.iter().filter(|case| names_year(&case.text)) {
            for (sum, profile) in [(&mut default, ""), (&mut archive, "score profile archive ")] {
                let answer = case.ask(&snapshot, &format!("{profile}budget {budget} tokens"))?;
                let held = held(&answer, false);
                let found = case.right.iter().filter(|key| held.contains(key.as_str())).count();
                *sum += found as f64 / case.right.len() as f64;
            }
            asked += 1;
        }
        let mean = |sum: f64| round(sum / f64::from(asked.max(1)), 4);
        report.line(json!({
            "set": set.name, "of": "dated", "budget": budget, "questions": asked, "default": mean(default),
            "archive": mean(archive),
        }));
    }
    Ok(())
}

/// The mean share of a question's turns that its answer shows.
fn recall(set: &Set, clauses: &str, budget: Option<u64>) -> Result<f64> {
    let snapshot = set.snapshot();
    let mut sum = 0.0;
    for case in &set.cases {
        let answer = case.ask(&snapshot, clauses)?;
        let spent: u64 = answer.rows.iter().map(tokens).sum();
        if budget.is_some_and(|budget| spent > budget) {
            return Err(format!("{}: {spent} tokens with {clauses}: {}", set.name, case.text).into());
        }
        let held = held(&answer, budget.is_none());
        sum += case.right.iter().filter(|key| held.contains(key.as_str())).count() as f64 / case.right.len() as f64;
    }
    Ok(sum / set.cases.len().max(1) as f64)
}

/// The turns of an answer; on request, the turns that its recalls cite, too.
fn held(answer: &Answer, cited: bool) -> HashSet<&str> {
    let mut held: HashSet<&str> = answer.rows.iter().flat_map(shown).collect();
    let recalls = answer.rows.iter().filter(|row| cited && row.layer == Layer::Recall);
    held.extend(recalls.flat_map(|row| &row.citations).map(|citation| citation.target.as_str()));
    held
}

/// Questions of the other conversations, with this one's names: how many are refused?
fn renamed(set: &Set, report: &mut Report) -> Result<()> {
    let snapshot = set.snapshot();
    let asked = &set.dataset.asked;
    let speakers = asked.iter().map(|asked| speakers(&snapshot, asked)).collect::<Result<Vec<_>>>()?;
    let mut cases: Vec<Case> = Vec::new();
    for (here, own) in asked.iter().enumerate() {
        for (there, other) in asked.iter().enumerate().filter(|(there, _)| *there != here) {
            for case in set.cases.iter().filter(|case| case.episode.as_ref() == Some(&other.episode)) {
                let text = rename(&case.text, &speakers[there], &speakers[here]);
                cases.push(case.reworded(text).asked_in(&own.episode));
            }
        }
    }
    if cases.is_empty() {
        return Ok(());
    }
    let (refused, asked) = refused(set, cases.into_iter())?;
    report.line(json!({"set": set.name, "of": "renamed", "questions": asked, "refused": share(refused, asked)}));
    report.at_least("conversations: foreign questions with own names refused", 0.6, share(refused, asked));
    Ok(())
}
