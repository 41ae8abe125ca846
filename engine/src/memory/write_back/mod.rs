//! Verified write-back (TierMem 3.3, B.6): what to do with a finding, given the recalls nearest to it.
//!
//! Two roles decide, and a model may fill each of them. A [`FindingFilter`] accepts or refuses a finding (Figure 11), a
//! [`MemoryManager`] says ADD, UPDATE or SKIP. The built-in ones compare content words: words that are not on the stop
//! list, stemmed. A role that fails means SKIP, so that nothing doubtful is written.
//!
//! No model decides where a finding is linked ([`find_quote`]).

mod quote;
mod statement;
mod support;

pub(crate) use quote::without_prefix;
pub use quote::{QuoteError, find_quote};
pub use support::unsupported;

use holotype_index::words::analysis::SURFACE_MARK;
use holotype_index::words::{Analyzer, Stemming, WordQuery};
use std::collections::BTreeSet;

/// A recall near a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known<'a> {
    /// Its key.
    pub key: &'a str,
    /// Its text.
    pub text: &'a str,
}

/// The fate of a finding (TierMem B.6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Write it: nothing known says it.
    Add,
    /// Replace a known recall by one that says both.
    Update {
        /// Its index among the known recalls.
        of: usize,
        /// The merged text.
        text: String,
    },
    /// Write nothing: a known recall says it.
    Skip {
        /// The index of that recall, if there is one.
        by: Option<usize>,
    },
}

/// Decides between ADD, UPDATE and SKIP. An error means SKIP.
pub trait MemoryManager: Send + Sync {
    /// The decision on a finding, given the recalls nearest to it, best first.
    ///
    /// # Errors
    /// A text for people; nothing is written.
    fn decide(&self, finding: &str, known: &[Known<'_>]) -> Result<Decision, String>;
}

/// Accepts findings that are worth keeping (TierMem Figure 11). An error means no.
pub trait FindingFilter: Send + Sync {
    /// The reason to refuse a finding, or `None`. `evidence` are the cited texts.
    ///
    /// # Errors
    /// A text for people; nothing is written.
    fn refuse(&self, finding: &str, evidence: &[String]) -> Result<Option<String>, String>;
}

/// The built-in memory manager.
///
/// SKIP if a known recall has all content words of the finding, UPDATE by the finding's own text if the finding has all
/// of a known recall's and more, else ADD. Texts that differ in how often they deny (`not`, `no`, `never`) never cover
/// each other.
#[derive(Debug, Clone)]
pub struct ByWords {
    analyzer: Analyzer,
}

impl Default for ByWords {
    /// For English.
    fn default() -> Self {
        ByWords::new(Analyzer::new(Stemming::English))
    }
}

impl ByWords {
    pub(crate) fn new(analyzer: Analyzer) -> Self {
        ByWords { analyzer }
    }

    /// The stems of the content words of a text.
    pub(crate) fn content(&self, text: &str) -> BTreeSet<String> {
        let query = WordQuery::new(&self.analyzer, text);
        let stems = query.terms().iter().filter(|term| !term.key.starts_with(SURFACE_MARK));
        stems.map(|term| term.key.to_string()).collect()
    }
}

impl MemoryManager for ByWords {
    fn decide(&self, finding: &str, known: &[Known<'_>]) -> Result<Decision, String> {
        let new = self.content(finding);
        let denials = denials(finding);
        let known: Vec<(usize, BTreeSet<String>)> = known
            .iter()
            .enumerate()
            .filter(|(_, known)| self::denials(known.text) == denials)
            .map(|(at, known)| (at, self.content(known.text)))
            .filter(|(_, words)| !words.is_empty())
            .collect();
        if let Some((at, _)) = known.iter().find(|(_, words)| new.is_subset(words)) {
            return Ok(Decision::Skip { by: Some(*at) });
        }
        match known.iter().find(|(_, words)| words.is_subset(&new)) {
            Some((at, _)) => Ok(Decision::Update { of: *at, text: finding.to_owned() }),
            None => Ok(Decision::Add),
        }
    }
}

/// The number of negations in a text.
fn denials(text: &str) -> usize {
    let words = text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '\'' | '\u{2019}')));
    let denies = |word: &&str| {
        let word = word.to_lowercase().replace('\u{2019}', "'");
        matches!(word.as_str(), "not" | "no" | "never" | "none" | "nobody" | "nothing" | "without" | "cannot")
            || word.ends_with("n't")
    };
    words.filter(denies).count()
}

/// The built-in filter: refuses a finding without content words, one that asks a question, and one with a number that
/// none of the cited texts has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Grounded;

impl FindingFilter for Grounded {
    fn refuse(&self, finding: &str, evidence: &[String]) -> Result<Option<String>, String> {
        if finding.trim().is_empty() {
            return Ok(Some("it is empty".to_owned()));
        }
        if finding.trim_end().ends_with('?') {
            return Ok(Some("it is a question".to_owned()));
        }
        let held: BTreeSet<&str> = evidence.iter().flat_map(|text| numbers(text)).collect();
        let missing = numbers(finding).find(|number| !held.contains(number));
        Ok(missing.map(|number| format!("no cited text has the number {number}")))
    }
}

/// The numbers of a text as written, without what stands around them.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',' | ':')));
    parts.map(|part| part.trim_matches(['.', ',', ':'])).filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(finding: &str, known: &[&str]) -> Decision {
        let known: Vec<Known<'_>> = known.iter().map(|text| Known { key: "k", text }).collect();
        ByWords::default().decide(finding, &known).unwrap()
    }

    #[test]
    fn what_is_known_is_skipped_what_is_vague_updated_and_the_rest_added() {
        let known = ["Bob moved to Oslo.", "The ferry leaves at nine from pier 4."];
        assert_eq!(decide("The ferry leaves at nine.", &known), Decision::Skip { by: Some(1) });
        let text = "Bob moved to Oslo in May 2024.".to_owned();
        assert_eq!(decide(&text, &known), Decision::Update { of: 0, text: text.clone() });
        assert_eq!(decide("Bob bought a boat.", &known), Decision::Add);
        assert_eq!(decide("Bob bought a boat.", &[]), Decision::Add);
    }

    #[test]
    fn a_denial_covers_no_affirmation() {
        for (finding, known) in [
            ("The shop is not open.", "The shop is open."),
            ("The shop is open.", "The shop isn\u{2019}t open."),
            ("Nobody came to the shop.", "Bob came to the shop on Monday."),
        ] {
            assert_eq!(decide(finding, &[known]), Decision::Add, "{finding} / {known}");
        }
    }

    #[test]
    fn the_filter_says_why() {
        let refuse = |finding: &str| Grounded.refuse(finding, &["price=450.00, gate 12".to_owned()]).unwrap();
        assert_eq!(refuse("The gate is 12."), None);
        assert_eq!(refuse("It costs 450.00 at gate 12."), None);
        assert_eq!(refuse("Is it gate 12?").unwrap(), "it is a question");
        assert_eq!(refuse("The gate is 13.").unwrap(), "no cited text has the number 13");
        assert!(refuse("  ").is_some());
    }
}
