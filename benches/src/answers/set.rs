//! A set: a database with questions, and for each question the statements that bear on its answer.
//!
//! A question's line may have these members; all sets are read or generated in this form.
//!
//! | member | meaning |
//! |---|---|
//! | `evidence`, `same`, `right` | keys of the statements that answer, and of older ones of the same value |
//! | `stale`, `classes` | keys of outdated statements; classes of everything said about the same thing |
//! | `at.step`, `now_step` | the reader's step; with `now_step` the reader has the version of `epistemic-dev` |
//! | `episode` | the scope, in place of that of the file; `null` is the whole database |
//! | `category` | the kind of question |
//! | `foreign` | true if nothing stored answers |

use super::Context;
use crate::Result;
use crate::dataset::{Asked, Dataset, Question};
use holotype::answer::{Answer, Output};
use holotype::query::{ParamValue, Params};
use holotype::{Limits, Snapshot};
use serde_json::Value;
use std::collections::HashSet;

/// A database with the questions asked of it.
pub(super) struct Set {
    pub(super) name: String,
    pub(super) dataset: Dataset,
    pub(super) cases: Vec<Case>,
    /// Questions that nothing stored answers.
    pub(super) foreign: Vec<Case>,
}

/// A question with its scope, its reader, and the statements that bear on it.
#[derive(Clone)]
pub(super) struct Case {
    pub(super) text: String,
    pub(super) vector: Vec<f32>,
    pub(super) episode: Option<String>,
    step: Option<i64>,
    version: Option<&'static str>,
    pub(super) category: String,
    /// Statements of the value that holds.
    pub(super) right: HashSet<String>,
    /// Statements of other values of the same thing, which held before.
    pub(super) outdated: HashSet<String>,
    /// The assistant's own guesses about it.
    pub(super) guesses: HashSet<String>,
}

impl Set {
    /// The set of a dataset, under the settings of this run.
    pub(super) fn new(name: impl Into<String>, dataset: Dataset, context: &Context) -> Result<Set> {
        for (setting, value) in &context.settings {
            dataset.database.query(&format!("set {setting} = {value}"), &Params::new())?;
        }
        let (mut cases, mut foreign) = (Vec::new(), Vec::new());
        for Asked { episode, questions } in &dataset.asked {
            for question in questions {
                let is_foreign = question.line.get("foreign").and_then(Value::as_bool).unwrap_or(false);
                let cases = if is_foreign { &mut foreign } else { &mut cases };
                cases.push(Case::new(question, episode));
            }
        }
        Ok(Set { name: name.into(), dataset, cases, foreign })
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.dataset.database.snapshot()
    }
}

impl Case {
    fn new(question: &Question, episode: &str) -> Case {
        let line = &question.line;
        let keys =
            |names: &[&str]| -> HashSet<String> { names.iter().flat_map(|name| question.strings(name)).collect() };
        let classes = line.get("classes").and_then(Value::as_object);
        let of_class = |class: &str| -> Vec<String> {
            let of = classes.into_iter().flatten().filter(|(_, value)| value.as_str() == Some(class));
            of.map(|(key, _)| key.clone()).collect()
        };
        let mut right = keys(&["evidence", "same"]);
        right.extend(line.get("right").and_then(Value::as_str).map(str::to_owned));
        let mut outdated = keys(&["stale"]);
        outdated.extend(of_class("stale"));
        let now = line.get("now_step").and_then(Value::as_i64);
        Case {
            text: question.text.clone(),
            vector: question.vector.clone(),
            episode: match line.get("episode") {
                None => Some(episode.to_owned()),
                Some(stated) => stated.as_str().map(str::to_owned),
            },
            step: now.or_else(|| line.pointer("/at/step").and_then(Value::as_i64)),
            version: now.map(|_| crate::epistemic::VERSION),
            category: line
                .get("category")
                .map(|of| of.as_str().map_or(of.to_string(), str::to_owned))
                .unwrap_or_default(),
            right,
            outdated,
            guesses: of_class("ungrounded").into_iter().collect(),
        }
    }

    /// The recall of this question with some clauses.
    pub(super) fn recall(&self, clauses: &str) -> String {
        let episode = if self.episode.is_some() { " in episode $e" } else { "" };
        let at = match (self.step, self.version) {
            (Some(_), Some(_)) => " at step $s, version $v",
            (Some(_), None) => " at step $s",
            _ => "",
        };
        format!("recall $q{episode}{at} {clauses}")
    }

    /// The parameters of [`Case::recall`].
    pub(super) fn params(&self) -> Params {
        let text = self.text.clone();
        let query = match self.vector.is_empty() {
            true => ParamValue::Text(text),
            false => ParamValue::TextVector { text, vector: self.vector.clone() },
        };
        let mut params = Params::from([("q".to_owned(), query)]);
        params.extend(self.episode.clone().map(|episode| ("e".to_owned(), ParamValue::Text(episode))));
        if let Some(step) = self.step {
            params.insert("s".to_owned(), ParamValue::Int(step));
            params.extend(self.version.map(|version| ("v".to_owned(), ParamValue::Text(version.to_owned()))));
        }
        params
    }

    /// Asks this question with some clauses.
    pub(super) fn ask(&self, snapshot: &Snapshot, clauses: &str) -> Result<Answer> {
        self.ask_as(snapshot, &self.recall(clauses))
    }

    /// Asks this question by a statement.
    pub(super) fn ask_as(&self, snapshot: &Snapshot, statement: &str) -> Result<Answer> {
        answer_of(snapshot.query(statement, &self.params())?)
    }

    /// Asks this question within limits.
    pub(super) fn ask_within(&self, set: &Set, clauses: &str, limits: &Limits) -> Result<Answer> {
        answer_of(set.dataset.database.query_within(&self.recall(clauses), &self.params(), limits)?)
    }

    /// The same question in other words, with the vector of the first ones.
    pub(super) fn reworded(&self, text: String) -> Case {
        Case { text, ..self.clone() }
    }

    /// The same question about another episode.
    pub(super) fn asked_in(self, episode: &str) -> Case {
        Case { episode: Some(episode.to_owned()), ..self }
    }
}

/// The answer of a script of one recall.
pub(super) fn answer_of(mut outputs: Vec<Output>) -> Result<Answer> {
    match outputs.pop() {
        Some(Output::Answer(answer)) => Ok(*answer),
        _ => Err("a recall gave no answer".into()),
    }
}
