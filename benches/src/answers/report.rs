//! The lines of a run and its table: the goals of the default recall with the measured figures.

use crate::measure::round;
use serde_json::{Value, json};

/// The clauses of the default recall whose rows are judged.
pub(super) const FIVE: &str = "limit 5";

/// A row of the table.
pub(super) struct Goal {
    what: String,
    goal: String,
    measured: String,
    /// `None` if it was not measured.
    met: Option<bool>,
}

/// Everything that was measured in a run.
#[derive(Default)]
pub(super) struct Report {
    goals: Vec<Goal>,
    /// Questions whose answer hid a row, and questions asked; nothing if no answer could be given ungrouped.
    pub(super) hidden: Option<Share>,
    /// Answers equal in every way of asking, and questions asked.
    pub(super) equal: Share,
    /// Refused questions with unknown codes, and questions with unknown codes.
    pub(super) codes: Share,
    times: Vec<Times>,
}

/// A count, and the count of which it is a part.
pub(super) type Share = (usize, usize);

/// The p50 of the default recall and of `archive` in milliseconds.
struct Times {
    set: String,
    default: f64,
    archive: f64,
}

impl Times {
    fn more(&self) -> f64 {
        round(self.default - self.archive, 3)
    }

    fn ratio(&self) -> f64 {
        round(self.default / self.archive.max(f64::MIN_POSITIVE), 2)
    }

    fn is_met(&self) -> bool {
        self.more() <= 0.1 && self.ratio() <= 1.3
    }

    fn text(&self) -> String {
        let (set, default, archive, more, ratio) = (&self.set, self.default, self.archive, self.more(), self.ratio());
        format!("{set}: {default:.3} ms beside {archive:.3}, {more:+.3} ms, {ratio:.2} times")
    }
}

/// Adds a count of a set to that of all.
pub(super) fn add(all: &mut Share, (part, of): Share) {
    *all = (all.0 + part, all.1 + of);
}

impl Report {
    /// Prints a line of figures.
    pub(super) fn line(&self, figures: Value) {
        let mut line = json!({"bench": "answers"});
        for (name, figure) in figures.as_object().into_iter().flatten() {
            line[name] = figure.clone();
        }
        println!("{line}");
    }

    /// A figure that should be at least the goal.
    pub(super) fn at_least(&mut self, what: impl Into<String>, goal: f64, measured: f64) {
        self.push(what, format!("at least {}", number(goal)), number(measured), Some(round(measured, 4) >= goal));
    }

    /// A figure that should be at most the goal.
    pub(super) fn at_most(&mut self, what: impl Into<String>, goal: f64, measured: f64) {
        self.push(what, format!("at most {}", number(goal)), number(measured), Some(round(measured, 4) <= goal));
    }

    /// A count that should be reached by all.
    pub(super) fn all(&mut self, what: impl Into<String>, (right, of): Share) {
        self.push(what, "all".to_owned(), format!("{right} of {of}"), Some(right == of));
    }

    /// A row of the table.
    pub(super) fn push(&mut self, what: impl Into<String>, goal: String, measured: String, met: Option<bool>) {
        self.goals.push(Goal { what: what.into(), goal, measured, met });
    }

    /// Notes the p50 of a set in milliseconds.
    pub(super) fn time(&mut self, set: &str, default: f64, archive: f64) {
        self.times.push(Times { set: set.to_owned(), default, archive });
    }

    /// Adds the rows that all sets share, and prints the table to standard error.
    pub(super) fn finish(mut self) {
        let of_sets = std::mem::take(&mut self.goals);
        match self.hidden {
            Some((hidden, asked)) => {
                let measured = format!("{hidden} of {asked}");
                self.push("answers that hide a row, all sets", "0".to_owned(), measured, Some(hidden == 0));
            }
            None => {
                let reason = "skipped: no clause `lines none`".to_owned();
                self.push("answers that hide a row, all sets", "0".to_owned(), reason, None);
            }
        }
        self.all("batched, prepared, repeated, limited answers equal single ones", self.equal);
        self.goals.extend(of_sets);
        if self.codes.1 > 0 {
            self.all("questions with unknown codes refused, all sets", self.codes);
        }
        let times = std::mem::take(&mut self.times);
        if let Some(worst) = times.iter().max_by(|a, b| a.ratio().total_cmp(&b.ratio())) {
            let (met, of) = (times.iter().filter(|times| times.is_met()).count(), times.len());
            let goal = "+0.1 ms, 1.3 times".to_owned();
            self.push("p50 beside `archive`, worst set", goal.clone(), worst.text(), Some(worst.is_met()));
            self.push("p50 beside `archive`, sets within", goal, format!("{met} of {of}"), Some(met == of));
        }
        eprint!("{}", self.table());
    }

    fn table(&self) -> String {
        let width = |column: fn(&Goal) -> &str| self.goals.iter().map(|goal| column(goal).chars().count()).max();
        let what = width(|goal| &goal.what).unwrap_or(0);
        let aim = width(|goal| &goal.goal).unwrap_or(0);
        let rows = self.goals.iter().map(|goal| {
            let met = goal.met.map_or(" ", |met| if met { "+" } else { "-" });
            format!("{met} {:what$}  {:aim$}  {}\n", goal.what, goal.goal, goal.measured)
        });
        rows.collect()
    }
}

fn number(value: f64) -> String {
    format!("{}", round(value, 4))
}

/// A share of a count, 0 of none.
pub(super) fn share(part: usize, of: usize) -> f64 {
    if of == 0 { 0.0 } else { round(part as f64 / of as f64, 4) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_says_which_goals_are_met() {
        let mut report = Report::default();
        report.at_least("right first", 0.9, 0.91);
        report.at_most("old", 0.04, 0.5);
        report.push("cases", "all".to_owned(), "elsewhere".to_owned(), None);
        let rows = [
            "+ right first  at least 0.9  0.91\n",
            "- old          at most 0.04  0.5\n",
            "  cases        all           elsewhere\n",
        ];
        assert_eq!(report.table(), rows.concat());
    }
}
