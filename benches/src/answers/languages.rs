//! Updates in twelve languages: facts of daily life and work that changed, each told in one sentence twice.
//!
//! `benches/data/answers/LANGUAGE.tsv` has a fact a line: the old sentence, the new one, a question, and for some a
//! later sentence of the same form about another subject. All old sentences are told first, the new ones ten days
//! later, then the others.
//!
//! `others_beside` counts the sentences about another subject that share a row with the fact: they are other facts.

use super::Context;
use super::checks::check;
use super::log::{DAY_US, Log, SECOND_US, START_US, remark};
use super::quality::Quality;
use super::report::{FIVE, Report, add};
use super::set::Set;
use super::shown::shown;
use crate::Result;
use crate::dataset::{Asked, Dataset};
use crate::measure::round;
use holotype::Row;
use serde_json::json;

const BUDGET: u64 = 500;
const LANGUAGES: [(&str, &str); 12] = [
    ("en", include_str!("../../data/answers/en.tsv")),
    ("de", include_str!("../../data/answers/de.tsv")),
    ("fr", include_str!("../../data/answers/fr.tsv")),
    ("es", include_str!("../../data/answers/es.tsv")),
    ("pt", include_str!("../../data/answers/pt.tsv")),
    ("it", include_str!("../../data/answers/it.tsv")),
    ("nl", include_str!("../../data/answers/nl.tsv")),
    ("pl", include_str!("../../data/answers/pl.tsv")),
    ("ru", include_str!("../../data/answers/ru.tsv")),
    ("zh", include_str!("../../data/answers/zh.tsv")),
    ("ja", include_str!("../../data/answers/ja.tsv")),
    ("ar", include_str!("../../data/answers/ar.tsv")),
];

/// A fact that changed.
struct Fact<'t> {
    old: &'t str,
    new: &'t str,
    question: &'t str,
    other: Option<&'t str>,
}

pub(super) fn run(context: &Context, report: &mut Report) -> Result<()> {
    let (mut right, mut outdated, mut questions) = (0.0, 0.0, 0.0);
    let mut apart = (0, 0);
    for (language, table) in LANGUAGES {
        let facts = facts(language, table)?;
        let set = Set::new(language, Dataset::of_runs(vec![log(language, &facts)])?, context)?;
        let quality = Quality::ask(&set, "", BUDGET, |_| true)?;
        let mut line = quality.line(language, "updates", BUDGET);
        let (others, beside) = others(&set, &facts)?;
        (line["others"], line["others_beside"]) = (json!(others), json!(beside));
        report.line(line);
        let asked = quality.questions as f64;
        questions += asked;
        right += quality.right_first() * asked;
        outdated += quality.outdated_in_five() * asked;
        add(&mut apart, (others - beside, others));
        check(&set, context, report)?;
    }
    report.at_least("updates in 12 languages: newest first", 0.95, round(right / questions, 4));
    report.at_most("updates in 12 languages: old rows in five", 0.04, round(outdated / questions, 4));
    report.all("updates in 12 languages: other subjects in other rows", apart);
    Ok(())
}

/// The facts of a table.
fn facts<'t>(language: &str, table: &'t str) -> Result<Vec<Fact<'t>>> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    let fact = |line: &'t str| match line.split('\t').collect::<Vec<_>>()[..] {
        [old, new, question] => Ok(Fact { old, new, question, other: None }),
        [old, new, question, other] => Ok(Fact { old, new, question, other: Some(other) }),
        _ => Err(format!("{language}.tsv: expected three or four columns: {line}").into()),
    };
    lines.map(fact).collect()
}

fn log(language: &str, facts: &[Fact<'_>]) -> (String, Asked) {
    let mut log = Log::new(language);
    let mut tell = |day: i64, texts: Vec<&str>| -> Vec<String> {
        let at = |nth: i64| Some(START_US + day * DAY_US + nth * 60 * SECOND_US);
        (0..).zip(texts).map(|(nth, text)| log.add(remark(), at(nth), text)).collect()
    };
    let old = tell(0, facts.iter().map(|fact| fact.old).collect());
    let new = tell(10, facts.iter().map(|fact| fact.new).collect());
    tell(20, facts.iter().filter_map(|fact| fact.other).collect());
    for ((fact, old), new) in facts.iter().zip(old).zip(new) {
        log.ask(fact.question, json!({"evidence": [new], "stale": [old]}));
    }
    log.finish()
}

/// The number of sentences about other subjects, and of sentences among them that share a row with the fact.
fn others(set: &Set, facts: &[Fact<'_>]) -> Result<(usize, usize)> {
    let snapshot = set.snapshot();
    let (mut others, mut shared) = (0, 0);
    for (case, fact) in set.cases.iter().zip(facts) {
        if fact.other.is_none() {
            continue;
        }
        let other = format!("{}/{}", set.name, 2 * facts.len() + others);
        others += 1;
        let rows = case.ask(&snapshot, FIVE)?.rows;
        let about_fact = |key: &str| case.right.contains(key) || case.outdated.contains(key);
        let shares = |row: &Row| shown(row).any(|key| key == other) && shown(row).any(about_fact);
        shared += usize::from(rows.iter().any(shares));
    }
    Ok((others, shared))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_twenty_facts_and_some_other_subjects() {
        for (language, table) in LANGUAGES {
            let facts = facts(language, table).expect("a table of three or four columns");
            assert!(facts.len() >= 20, "{language}: {}", facts.len());
            assert!(facts.iter().filter(|fact| fact.other.is_some()).count() >= 4, "{language}");
            assert!(facts.iter().all(|fact| fact.old != fact.new), "{language}");
        }
    }
}
