//! The work of a round on its pages: facts are drawn from new pages (Integrate), pages are put in order (B.7), and
//! the next searches follow from the facts and from what is still uncovered (Plan; TierMem Algorithm 1, B.5).

use crate::read::escalation::{Command, Fact};
use crate::recall::words::WordIndexes;
use std::collections::BTreeSet;

/// The state of an escalation, as a planner sees it.
#[derive(Debug, Clone, Copy)]
pub struct PlanView<'p> {
    /// The question, Q.
    pub question: &'p str,
    /// The facts that were drawn from pages so far, E; empty without an integrator.
    pub facts: &'p [Fact],
    /// The words of the question that no selected page contains.
    pub uncovered: &'p [&'p str],
    /// The share of the question's words that the selected pages contain.
    pub coverage: f32,
    /// The searches issued so far, H.
    pub history: &'p [Command],
}

/// Decides what the next round asks. An error means DONE.
pub trait Planner: Send + Sync {
    /// The next searches; none for DONE. Each operator may have a text of its own; one that ran before does not run
    /// again.
    ///
    /// # Errors
    /// A text for people; the loop ends.
    fn next(&self, view: &PlanView<'_>) -> Result<Vec<Command>, String>;
}

/// The built-in planner: asks both operators for the uncovered words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UncoveredWords;

impl Planner for UncoveredWords {
    fn next(&self, view: &PlanView<'_>) -> Result<Vec<Command>, String> {
        Ok(if view.uncovered.is_empty() { Vec::new() } else { Command::both(&view.uncovered.join(" ")) })
    }
}

/// Draws the facts that help to answer a question from pages (Figure 7). An error means no facts.
pub trait Integrator: Send + Sync {
    /// The facts of pages, each with the words of the page that say it.
    ///
    /// # Errors
    /// A text for people; the pages give no facts.
    fn integrate(&self, question: &str, pages: &[&str]) -> Result<Vec<(String, String)>, String>;
}

/// Puts pages in the order in which they help to answer a question (B.7). An error leaves the order of the scores.
pub trait PageRanker: Send + Sync {
    /// The indices of the pages, best first.
    ///
    /// # Errors
    /// A text for people.
    fn rank(&self, question: &str, pages: &[&str]) -> Result<Vec<usize>, String>;
}

/// The words of a question with a term among `keys`, in order, each once.
pub(super) fn words_with<'q>(indexes: &WordIndexes, question: &'q str, keys: &BTreeSet<&str>) -> Vec<&'q str> {
    let mut words: Vec<&str> = Vec::new();
    for word in question.split_whitespace() {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        if !words.contains(&word) && indexes.keys(word).iter().any(|key| keys.contains(key.as_str())) {
            words.push(word);
        }
    }
    words
}
