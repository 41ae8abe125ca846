//! Merging two facts (PlugMem C.5, Listing 14): one statement, and what becomes of the originals.

use crate::{Error, Result};
use serde_json::Value;
use std::collections::BTreeSet;

/// The relation of two facts, which decides what becomes of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// `UPDATE_SAME_FACT`: the same fact, the later one corrects it; both originals are retired.
    Update,
    /// `SAME_TOPIC_MERGE_WELL`: one statement says both well; both originals are retired.
    Topic,
    /// `WEAK_RELATED_STITCH_RISK`: retiring either would lose something; neither is.
    Stitch,
}

impl Relation {
    /// True if both originals are retired.
    pub fn retires(self) -> bool {
        self != Relation::Stitch
    }

    /// The word of the query language.
    pub fn as_str(self) -> &'static str {
        match self {
            Relation::Update => "update",
            Relation::Topic => "topic",
            Relation::Stitch => "stitch",
        }
    }
}

/// The statement that two facts become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedFact {
    /// The merged statement.
    pub text: String,
    /// The relation of the facts.
    pub relation: Relation,
}

impl MergedFact {
    /// Reads a reply of a model: exactly the object of Listing 14.
    ///
    /// # Errors
    /// [`Error::Invalid`] for other keys or types, an unknown relationship, or flags that contradict it.
    pub fn parse(reply: &str) -> Result<MergedFact> {
        let refused = |why: &str| Error::Invalid(format!("the reply of a merger {why}: {reply:?}"));
        let Ok(Value::Object(object)) = serde_json::from_str(reply) else { return Err(refused("is no JSON object")) };
        let text = object.get("merged_statement").and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        let relation = match object.get("relationship").and_then(Value::as_str) {
            Some("UPDATE_SAME_FACT") => Relation::Update,
            Some("SAME_TOPIC_MERGE_WELL") => Relation::Topic,
            Some("WEAK_RELATED_STITCH_RISK") => Relation::Stitch,
            _ => return Err(refused("names none of the three relationships")),
        };
        let flags = ["deactivate_earlier", "deactivate_later"].map(|name| object.get(name).and_then(Value::as_bool));
        if flags != [Some(relation.retires()); 2] {
            return Err(refused("retires other originals than its relationship says"));
        }
        if object.len() != 5 || !object.get("simple_reasoning").is_some_and(Value::is_string) {
            return Err(refused("has other keys than the five"));
        }
        let text = text.ok_or_else(|| refused("has no merged statement"))?.to_owned();
        Ok(MergedFact { text, relation })
    }
}

/// Merges two facts.
pub trait FactMerger {
    /// One statement that says both; the later one is preferred where they differ.
    ///
    /// # Errors
    /// An error ends the merge; nothing of it is written.
    fn merge(&self, earlier: &str, later: &str) -> Result<MergedFact>;
}

/// The built-in merger. Facts that share [`SAME_FACT`](MergeByWords::SAME_FACT) of their words are one, said by the
/// later; with [`SAME_TOPIC`](MergeByWords::SAME_TOPIC) they stand side by side in one statement that replaces them;
/// with less, the statement is written and both stay.
#[derive(Debug, Clone, Copy, Default)]
pub struct MergeByWords;

impl MergeByWords {
    /// The share of words of one fact.
    pub const SAME_FACT: f64 = 0.6;
    /// The share of words of one topic.
    pub const SAME_TOPIC: f64 = 0.3;
}

impl FactMerger for MergeByWords {
    fn merge(&self, earlier: &str, later: &str) -> Result<MergedFact> {
        let words = |text: &str| -> BTreeSet<String> {
            let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
            words.map(str::to_lowercase).collect()
        };
        let (a, b) = (words(earlier), words(later));
        let share = a.intersection(&b).count() as f64 / a.union(&b).count().max(1) as f64;
        let both = || format!("{} {}", earlier.trim(), later.trim());
        let (text, relation) = match share {
            share if share >= Self::SAME_FACT => (later.to_owned(), Relation::Update),
            share if share >= Self::SAME_TOPIC => (both(), Relation::Topic),
            _ => (both(), Relation::Stitch),
        };
        Ok(MergedFact { text, relation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_the_object_of_the_listing_or_refused() {
        let reply = |relation: &str, flags: &str| {
            format!(
                r#"{{"merged_statement":"x","relationship":"{relation}","deactivate_earlier":{flags},
                "deactivate_later":{flags},"simple_reasoning":"y"}}"#
            )
        };
        let relation = |reply: &str| MergedFact::parse(reply).map(|merged| merged.relation);
        assert_eq!(relation(&reply("UPDATE_SAME_FACT", "true")).unwrap(), Relation::Update);
        assert_eq!(relation(&reply("SAME_TOPIC_MERGE_WELL", "true")).unwrap(), Relation::Topic);
        assert_eq!(relation(&reply("WEAK_RELATED_STITCH_RISK", "false")).unwrap(), Relation::Stitch);
        assert!(relation(&reply("UPDATE_SAME_FACT", "false")).is_err());
        assert!(relation(&reply("WEAK_RELATED_STITCH_RISK", "true")).is_err());
        assert!(relation(&reply("OTHER", "true")).is_err());
        assert!(relation("[]").is_err() && relation("{}").is_err());
        assert!(relation(&reply("UPDATE_SAME_FACT", "true").replace("\"x\"", "\" \"")).is_err());
        assert!(relation(&reply("UPDATE_SAME_FACT", "true").replace("simple_reasoning", "reasoning")).is_err());
    }

    #[test]
    fn shared_words_decide() {
        let relation = |a, b| MergeByWords.merge(a, b).unwrap().relation;
        assert_eq!(relation("UA123 costs $450 today", "UA123 costs $480 today"), Relation::Update);
        assert_eq!(relation("Ann lives in Oslo", "Ann works in Oslo at a port"), Relation::Topic);
        assert_eq!(relation("Ann lives in Oslo", "Oslo has a new opera house by the sea"), Relation::Stitch);
    }
}
