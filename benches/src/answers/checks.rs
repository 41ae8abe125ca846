//! Checks of every set: is anything hidden, are answers equal in every way of asking, how much slower than `archive` is
//! the default recall, and are questions answerable?
//!
//! | figure | meaning |
//! |---|---|
//! | `hidden` | questions whose five rows without grouping show a statement that the answer with grouping lacks |
//! | `lost` | questions whose answer by `archive` shows a right statement, and by default none |
//! | `prepared`, `repeated`, `batched`, `limited` | answers that differ from the first one in any member of any row |
//! | `default_ms`, `archive_ms` | p50 of both, asked in turns |
//! | `own` | share of the set's questions that are answerable |
//! | `foreign`, `random_codes` | refused share of foreign questions, and of own questions with unknown codes |
//!
//! A question with another code keeps the vector of its original text.

use super::report::{FIVE, Report, add, share};
use super::set::{Case, Set, answer_of};
use super::shown::{is_answerable, shown, ungrouped};
use super::{Context, quality};
use crate::Result;
use crate::measure::{quantile_us, round};
use crate::random::Random;
use holotype::answer::Answer;
use holotype::query::Params;
use holotype::{Limits, Prepared};
use serde_json::json;
use std::collections::HashSet;
use std::time::{Duration, Instant};

const ARCHIVE: &str = "score profile archive limit 5";
/// Questions of a set that are timed, at most.
const TIMED: usize = 300;
const ROUNDS: usize = 3;
/// Questions with codes that a set must have to be asked for other codes.
const CODES: usize = 10;
/// A limit that no recall reaches.
const LIMIT: Duration = Duration::from_secs(600);

/// Runs every check of a set.
pub(super) fn check(set: &Set, context: &Context, report: &mut Report) -> Result<()> {
    hidden(set, report)?;
    equal(set, report)?;
    time(set, context, report)?;
    answerable(set, report)
}

/// Is every statement of the first rows without grouping shown by the answer with grouping?
pub(super) fn hidden(set: &Set, report: &mut Report) -> Result<()> {
    let snapshot = set.snapshot();
    let (mut hidden, mut skipped, mut lost) = (0, false, 0);
    for case in &set.cases {
        let statement = case.recall(FIVE);
        let answer = case.ask_as(&snapshot, &statement)?;
        let archive = case.ask(&snapshot, ARCHIVE)?;
        lost += usize::from(quality::shows(case, &archive) && !quality::shows(case, &answer));
        let Some(statement) = ungrouped(&statement) else {
            skipped = true;
            continue;
        };
        let keys: HashSet<&str> = answer.rows.iter().flat_map(shown).collect();
        let rows = case.ask_as(&snapshot, &statement)?.rows;
        hidden += usize::from(rows.iter().any(|row| !keys.contains(row.key.as_str())));
    }
    let asked = set.cases.len();
    if !skipped {
        add(report.hidden.get_or_insert_default(), (hidden, asked));
    }
    let hidden = if skipped { json!("skipped") } else { json!(hidden) };
    report.line(json!({"set": set.name, "check": "hidden", "questions": asked, "hidden": hidden, "lost": lost}));
    Ok(())
}

/// Are answers the same alone, prepared, asked again after all others, in a batch, and within limits?
fn equal(set: &Set, report: &mut Report) -> Result<()> {
    let snapshot = set.snapshot();
    let alone: Vec<Answer> = set.cases.iter().map(|case| case.ask(&snapshot, FIVE)).collect::<Result<_>>()?;
    let limits = Limits::none().time(LIMIT);
    let mut differing = vec![false; alone.len()];
    let mut counts = Vec::new();
    let prepared = set.cases.first().map(|case| Prepared::new(&case.recall(FIVE))).transpose()?;
    let scripts: Vec<(String, Params)> = set.cases.iter().map(|case| (case.recall(FIVE), case.params())).collect();
    let scripts: Vec<(&str, &Params)> = scripts.iter().map(|(script, params)| (script.as_str(), params)).collect();
    let batched = set.dataset.database.query_batch(&scripts, &Limits::none());
    let batched = batched.into_iter().map(|outputs| answer_of(outputs?)).collect::<Result<Vec<_>>>()?;
    for way in ["prepared", "repeated", "batched", "limited"] {
        let mut unequal = 0;
        for (nth, case) in set.cases.iter().enumerate() {
            let other = match (way, &prepared) {
                ("prepared", Some(prepared)) if prepared.source() == case.recall(FIVE) => {
                    answer_of(snapshot.run(prepared, &case.params())?)?
                }
                ("batched", _) => batched[nth].clone(),
                ("limited", _) => case.ask_within(set, FIVE, &limits)?,
                _ => case.ask(&snapshot, FIVE)?,
            };
            if other.rows != alone[nth].rows || is_answerable(&other) != is_answerable(&alone[nth]) {
                unequal += 1;
                differing[nth] = true;
            }
        }
        counts.push(unequal);
    }
    add(&mut report.equal, (differing.iter().filter(|differs| !**differs).count(), alone.len()));
    report.line(json!({
        "set": set.name, "check": "equal", "questions": alone.len(), "prepared": counts[0], "repeated": counts[1],
        "batched": counts[2], "limited": counts[3],
    }));
    Ok(())
}

/// The middle duration of the default recall and of `archive`, in turns that change places.
pub(super) fn time(set: &Set, context: &Context, report: &mut Report) -> Result<()> {
    let snapshot = set.snapshot();
    let step = set.cases.len().div_ceil(TIMED).max(1);
    let mut times: [Vec<Duration>; 2] = Default::default();
    for round in 0..if context.smoke { 1 } else { ROUNDS } {
        for (nth, case) in set.cases.iter().step_by(step).enumerate() {
            for turn in 0..2 {
                let which = (round + nth + turn) % 2;
                let (statement, params) = (case.recall([FIVE, ARCHIVE][which]), case.params());
                let started = Instant::now();
                snapshot.query(&statement, &params)?;
                times[which].push(started.elapsed());
            }
        }
    }
    let [default, archive] = times.map(|times| quantile_us(&times, 0.5) / 1e3);
    report.line(json!({
        "set": set.name, "check": "time", "default_ms": round(default, 4), "archive_ms": round(archive, 4),
        "more_ms": round(default - archive, 4), "times": round(default / archive.max(f64::MIN_POSITIVE), 3),
    }));
    report.time(&set.name, default, archive);
    Ok(())
}

/// Is it known that own questions have an answer, and that others have none?
fn answerable(set: &Set, report: &mut Report) -> Result<()> {
    let own = refused(set, set.cases.iter().cloned())?;
    let foreign = refused(set, set.foreign.iter().cloned())?;
    let mut random = Random(0xc0de);
    let other = set.cases.iter().filter_map(|case| Some(case.reworded(with_other_codes(&case.text, &mut random)?)));
    let codes = refused(set, other)?;
    let found = round(1.0 - share(own.0, own.1), 4);
    let mut line = json!({"set": set.name, "check": "answerable", "questions": own.1, "own": found});
    if foreign.1 > 0 {
        (line["foreign"], line["foreign_questions"]) = (json!(share(foreign.0, foreign.1)), json!(foreign.1));
        report.all(format!("{}: foreign questions refused", set.name), foreign);
    }
    if codes.1 >= CODES {
        (line["random_codes"], line["random_codes_questions"]) = (json!(share(codes.0, codes.1)), json!(codes.1));
        add(&mut report.codes, codes);
    }
    report.line(line);
    if matches!(set.name.as_str(), "conversations" | "xquad-de" | "ru") {
        report.at_least(format!("{}: own questions answerable", set.name), 0.99, found);
    }
    Ok(())
}

/// Answers that are said to be missing, and questions.
pub(super) fn refused(set: &Set, cases: impl Iterator<Item = Case>) -> Result<(usize, usize)> {
    let snapshot = set.snapshot();
    let (mut refused, mut asked) = (0, 0);
    for case in cases {
        asked += 1;
        refused += usize::from(!is_answerable(&case.ask(&snapshot, FIVE)?));
    }
    Ok((refused, asked))
}

/// A question with random characters of the same class in its codes; nothing if it names no code.
fn with_other_codes(text: &str, random: &mut Random) -> Option<String> {
    // Neither ordinals nor sizes: `20th`, `16th-century`, `500kg`.
    let is_code = |word: &str| {
        let has = |of: fn(&u8) -> bool| word.as_bytes().iter().any(of);
        word.len() > 4 && has(u8::is_ascii_digit) && has(|byte| byte.is_ascii_uppercase() || *byte == b'_')
    };
    let belongs = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let mut changed = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if is_code(word) {
            changed.extend(word.chars().map(|c| other(c, random)));
        } else {
            changed.push_str(word);
        }
        let gap = after.find(belongs).unwrap_or(after.len());
        changed.push_str(&after[..gap]);
        rest = &after[gap..];
    }
    (changed != text).then_some(changed)
}

fn other(c: char, random: &mut Random) -> char {
    let mut within = |first: u8, count: usize| char::from(first + random.below(count) as u8);
    match c {
        'a'..='z' => within(b'a', 26),
        'A'..='Z' => within(b'A', 26),
        '0'..='9' => within(b'0', 10),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_get_other_characters_of_the_same_class() {
        let mut random = Random(7);
        let text = "Is reservation 1N99U6 of mia_li_3668 for 2 on the 20th?";
        let changed = with_other_codes(text, &mut random).expect("there are codes");
        assert_eq!(changed.len(), text.len());
        assert!(changed.starts_with("Is reservation ") && changed.ends_with(" for 2 on the 20th?"), "{changed}");
        assert!(!changed.contains("1N99U6") && !changed.contains("mia_li_3668"), "{changed}");
        assert_eq!(changed.matches('_').count(), 2);
        assert_eq!(with_other_codes("Where is Mary?", &mut random), None);
    }
}
