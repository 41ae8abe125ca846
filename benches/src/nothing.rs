//! Nothing found: each conversation is asked its own questions and those of all others, by the default recall.
//!
//! | asked | what should be |
//! |---|---|
//! | own | covered |
//! | foreign | not covered: the answer is in another conversation |
//! | foreign, renamed | the same, with the other speakers' names replaced by this conversation's |
//!
//! A renamed question keeps the vector of its original text.

use crate::Result;
use crate::dataset::{Asked, Dataset, Question};
use holotype::Snapshot;
use holotype::answer::Output;
use holotype::query::{ParamValue, Params};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;

/// Questions asked, and answers that were covered.
#[derive(Default)]
struct Tally {
    asked: u32,
    covered: u32,
}

pub(crate) fn run(data: &Path) -> Result<()> {
    let dataset = Dataset::load(data)?;
    let snapshot = dataset.database.snapshot();
    let speakers = dataset.asked.iter().map(|asked| speakers(&snapshot, asked)).collect::<Result<Vec<_>>>()?;
    let (mut own, mut foreign, mut renamed) = (Tally::default(), Tally::default(), Tally::default());
    for (here, asked) in dataset.asked.iter().enumerate() {
        for (there, from) in dataset.asked.iter().enumerate() {
            for question in &from.questions {
                if here == there {
                    own.add(covered(&snapshot, asked, question, &question.text)?);
                    continue;
                }
                foreign.add(covered(&snapshot, asked, question, &question.text)?);
                let text = rename(&question.text, &speakers[there], &speakers[here]);
                renamed.add(covered(&snapshot, asked, question, &text)?);
            }
        }
    }
    for (questions, tally) in [("own", own), ("foreign", foreign), ("foreign, renamed", renamed)] {
        let covered = f64::from(tally.covered) / f64::from(tally.asked.max(1));
        let covered = (covered * 10_000.0).round() / 10_000.0;
        println!("{}", json!({"bench": "nothing", "questions": questions, "asked": tally.asked, "covered": covered}));
    }
    Ok(())
}

impl Tally {
    fn add(&mut self, covered: bool) {
        self.asked += 1;
        self.covered += u32::from(covered);
    }
}

fn covered(snapshot: &Snapshot, asked: &Asked, question: &Question, text: &str) -> Result<bool> {
    let both = ParamValue::TextVector { text: text.to_owned(), vector: question.vector.clone() };
    let params = Params::from([("q".to_owned(), both), ("e".to_owned(), ParamValue::Text(asked.episode.clone()))]);
    match snapshot.query("recall $q in episode $e limit 5", &params)?.pop() {
        Some(Output::Answer(answer)) => Ok(answer.answerable),
        _ => Err("a recall gave no answer".into()),
    }
}

/// The names of those who speak in a conversation.
pub(crate) fn speakers(snapshot: &Snapshot, asked: &Asked) -> Result<Vec<String>> {
    let params = Params::from([("e".to_owned(), ParamValue::Text(asked.episode.clone()))]);
    let mut names = BTreeSet::new();
    if let Some(Output::Table(table)) = snapshot.query("find turns where episode = $e return speaker", &params)?.pop() {
        for cell in table.rows.iter().flatten().flatten() {
            names.insert(cell.to_string());
        }
    }
    Ok(names.into_iter().collect())
}

/// A question with one conversation's names in place of the other's.
pub(crate) fn rename(text: &str, from: &[String], to: &[String]) -> String {
    let mut renamed = String::new();
    let mut word = String::new();
    for c in text.chars().chain([' ']) {
        if c.is_alphanumeric() {
            word.push(c);
            continue;
        }
        let known = from.iter().position(|name| *name == word);
        let other = known.and_then(|nth| to.get(nth % to.len().max(1)));
        renamed.push_str(other.unwrap_or(&word));
        word.clear();
        renamed.push(c);
    }
    renamed.trim_end().to_owned()
}
