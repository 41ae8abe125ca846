//! The planner (TierMem B.5): what to search for next, given what the evidence still lacks.

use crate::read::escalation::Command;
use crate::recall::words::WordIndexes;
use std::collections::BTreeSet;

/// Decides what the next round asks. An error means DONE.
pub trait Planner: Send + Sync {
    /// The text of the next round's searches, or `None` for DONE. `uncovered` are the words of the question that no
    /// selected page contains; `history` are the searches issued so far.
    ///
    /// # Errors
    /// A text for people; the loop ends.
    fn next(&self, question: &str, uncovered: &[&str], history: &[Command]) -> Result<Option<String>, String>;
}

/// The built-in planner: asks for the uncovered words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UncoveredWords;

impl Planner for UncoveredWords {
    fn next(&self, _: &str, uncovered: &[&str], _: &[Command]) -> Result<Option<String>, String> {
        Ok((!uncovered.is_empty()).then(|| uncovered.join(" ")))
    }
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
