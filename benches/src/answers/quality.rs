//! How good the answers to a set's questions are.
//!
//! | figure | share of questions |
//! |---|---|
//! | `right_first` | whose first row states the value that holds |
//! | `outdated_first` | whose first row is outdated |
//! | `outdated_in_five` | with an outdated statement as one of the first five rows; lines below a row do not count |
//! | `guesses_in_five` | the same of the assistant's guesses |
//! | `hit_at_five` | that show a right statement with five rows: as a row, as a line of one, or folded into it |
//! | `evidence_at_n` | that show one within n tokens |
//! | `outdated_rows`, `guess_rows` | of the first five rows instead of the questions |
//!
//! `changed` are the questions that have outdated statements: only their answers can be out of date.

use super::report::{FIVE, share};
use super::set::{Case, Set};
use super::shown::{shown, tokens};
use crate::Result;
use holotype::answer::Answer;
use serde_json::{Value, json};

/// Counts of questions and rows.
#[derive(Default, Clone, Copy)]
pub(super) struct Quality {
    pub(super) questions: usize,
    right_first: usize,
    hit_at_five: usize,
    within_budget: usize,
    outdated_first: usize,
    outdated: usize,
    guesses: usize,
    rows: usize,
    outdated_rows: usize,
    guess_rows: usize,
}

impl Quality {
    /// Asks the questions of a set that are wanted, with some more clauses.
    pub(super) fn ask(set: &Set, clauses: &str, budget: u64, wanted: impl Fn(&Case) -> bool) -> Result<Quality> {
        let snapshot = set.snapshot();
        let mut quality = Quality::default();
        for case in set.cases.iter().filter(|case| wanted(case)) {
            let answer = case.ask(&snapshot, &format!("{clauses} {FIVE}"))?;
            quality.add(case, &answer);
            let answer = case.ask(&snapshot, &format!("{clauses} budget {budget} tokens"))?;
            let spent: u64 = answer.rows.iter().map(tokens).sum();
            if spent > budget {
                return Err(format!("{}: {spent} tokens in a budget of {budget}: {}", set.name, case.text).into());
            }
            quality.within_budget += usize::from(shows(case, &answer));
        }
        Ok(quality)
    }

    fn add(&mut self, case: &Case, answer: &Answer) {
        let rows = &answer.rows[..answer.rows.len().min(5)];
        let outdated = rows.iter().filter(|row| case.outdated.contains(&row.key)).count();
        let guesses = rows.iter().filter(|row| case.guesses.contains(&row.key)).count();
        self.questions += 1;
        self.right_first += usize::from(first_is_right(case, answer));
        self.hit_at_five += usize::from(shows(case, answer));
        self.outdated_first += usize::from(rows.first().is_some_and(|row| case.outdated.contains(&row.key)));
        self.outdated += usize::from(outdated > 0);
        self.guesses += usize::from(guesses > 0);
        self.rows += rows.len();
        self.outdated_rows += outdated;
        self.guess_rows += guesses;
    }

    pub(super) fn right_first(&self) -> f64 {
        share(self.right_first, self.questions)
    }

    pub(super) fn firsts(&self) -> (usize, usize) {
        (self.right_first, self.questions)
    }

    pub(super) fn outdated_in_five(&self) -> f64 {
        share(self.outdated, self.questions)
    }

    pub(super) fn guesses_in_five(&self) -> f64 {
        share(self.guesses, self.questions)
    }

    pub(super) fn hit_at_five(&self) -> f64 {
        share(self.hit_at_five, self.questions)
    }

    pub(super) fn within_budget(&self) -> f64 {
        share(self.within_budget, self.questions)
    }

    /// The figures of some questions of a set.
    pub(super) fn line(&self, set: &str, of: &str, budget: u64) -> Value {
        let evidence = format!("evidence_at_{budget}");
        json!({
            "set": set, "of": of, "questions": self.questions, "right_first": self.right_first(),
            "outdated_first": share(self.outdated_first, self.questions),
            "outdated_in_five": self.outdated_in_five(), "guesses_in_five": self.guesses_in_five(),
            "hit_at_five": self.hit_at_five(), evidence: self.within_budget(),
            "outdated_rows": share(self.outdated_rows, self.rows), "guess_rows": share(self.guess_rows, self.rows),
        })
    }
}

/// True if the first row states the value that holds.
pub(super) fn first_is_right(case: &Case, answer: &Answer) -> bool {
    answer.rows.first().is_some_and(|row| case.right.contains(&row.key))
}

/// True if an answer shows a statement of the value that holds.
pub(super) fn shows(case: &Case, answer: &Answer) -> bool {
    answer.rows.iter().flat_map(shown).any(|key| case.right.contains(key))
}
