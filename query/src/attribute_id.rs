//! The names of attributes and columns, each written once.
//!
//! An attribute can be asked in a condition; a column is shown in a row. Most names are both. [`AttributeId`] stands
//! for the name, so that predicates and columns are resolved when a statement is parsed and not row by row.

use crate::words::words;
use std::fmt;

words! {
    /// An attribute of a stored thing, or a column that a row shows beside its attributes.
    AttributeId {
        /// The item; the one that claims, or the one that an event happened to.
        Item = "item",
        /// The caller's own id.
        Key = "key",
        /// The distance from the events.
        Layer = "layer",
        /// The kind of item.
        Kind = "kind",
        /// The text; of a trace, its field `text`.
        Text = "text",
        /// The length of the text in tokens.
        Tokens = "tokens",
        /// The episode's id.
        Episode = "episode",
        /// The key of the page that a trace lies in.
        Page = "page",
        /// The step of the episode.
        Step = "step",
        /// The time on the clock.
        Time = "time",
        /// The time between the item and the reader.
        Age = "age",
        /// The commit that wrote it.
        Commit = "commit",
        /// The version of the task or the tool's schema.
        Version = "version",
        /// The outcome that the tool's wrapper reported.
        Status = "status",
        /// The producer.
        Source = "source",
        /// The speaker.
        Speaker = "speaker",
        /// The tool called.
        Tool = "tool",
        /// The log that a trace was read from.
        LogId = "log_id",
        /// The least source weight in the lineage.
        Trust = "trust",
        /// The state of its sources.
        Support = "support",
        /// The mean of the rewards that were reported.
        Utility = "utility",
        /// The number of reports behind the utility.
        Reports = "reports",
        /// The mean credit over rollouts.
        Credit = "credit",
        /// The number of rollouts behind the credit.
        Rollouts = "rollouts",
        /// From 1 to 10, of procedures.
        ReturnScore = "return_score",
        /// The origin of a recall.
        Origin = "origin",
        /// False after prune, merge, supersede and retract.
        Active = "active",
        /// The names that an item carries.
        Labels = "labels",
        /// A named field: `fields.NAME`.
        Fields = "fields",
        /// The state of a page: with or without a summary.
        State = "state",
        /// The hash of the content, in hexadecimal.
        Hash = "hash",
        /// The task of an episode.
        Task = "task",
        /// True while an episode goes on.
        Open = "open",
        /// The name of a claim.
        Name = "name",
        /// The value claimed.
        Value = "value",
        /// The scope in which a claim competes.
        Scope = "scope",
        /// The item that contradicts a claim and is preferred to it.
        Won = "won",
        /// The item that an edge begins at.
        From = "from",
        /// The type of an edge.
        Edge = "edge",
        /// The item that an edge ends at.
        To = "to",
        /// The field that it points into.
        Field = "field",
        /// The offset of the first byte that it points at.
        Start = "start",
        /// The offset after the last.
        End = "end",
        /// The operation of an event.
        Op = "op",
        /// The reason.
        Because = "because",
        /// The attribute that changed.
        Attribute = "attribute",
        /// The commit from which a value held.
        Since = "since",
        /// The commit that ended it; absent while it holds.
        Until = "until",
        /// The receipt's id.
        Receipt = "receipt",
        /// The question.
        Statement = "statement",
        /// The number of rows answered.
        Rows = "rows",
        /// The commit as of which it was answered.
        AsOf = "as_of",
        /// The governed score.
        Score = "score",
        /// Its part from the cosine.
        Similarity = "similarity",
        /// Its part from BM25.
        Words = "words",
        /// Its part from the age.
        Recency = "recency",
        /// Its part from the status.
        StatusScore = "status_score",
        /// Its part from the source.
        SourceScore = "source_score",
        /// Its part from the utility.
        UtilityScore = "utility_score",
        /// Its part from a conflict.
        ConflictScore = "conflict_score",
        /// True if the item is stale for the reader.
        Stale = "stale",
        /// The quarantine of the text, or its reason.
        Quarantined = "quarantined",
        /// The item that contradicts a claim of this one and is preferred to it.
        Conflict = "conflict",
        /// The flaws despite which a row is included.
        Relaxed = "relaxed",
        /// The items through which a row was reached.
        Path = "path",
        /// Keys of items with the same words.
        Folded = "folded",
        /// Other statements of the same frame.
        Lines = "lines",
        /// The number of statements of the frame that are not shown.
        More = "more",
        /// The citations, verified.
        Citations = "citations",
        /// Hit or evidence.
        Role = "role",
        /// The number of edges from a root.
        Depth = "depth",
        /// The root that a walk began at.
        Root = "root",
        /// The result of verifying a citation.
        Verdict = "verdict",
        /// True if the text was erased.
        Redacted = "redacted",
        /// True if it was written without a source.
        Ungrounded = "ungrounded",
        /// The number of traces.
        Traces = "traces",
        /// The number of pages.
        Pages = "pages",
    }
}

impl AttributeId {
    /// The attribute or column that is written exactly so.
    pub fn named(word: &str) -> Option<AttributeId> {
        AttributeId::ALL.iter().copied().find(|id| id.as_str() == word)
    }

    /// The names of several, in their order.
    pub const fn names<const N: usize>(ids: [AttributeId; N]) -> [&'static str; N] {
        let mut names = [""; N];
        let mut at = 0;
        while at < N {
            names[at] = ids[at].as_str();
            at += 1;
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_and_only_as_it_is_written() {
        for id in AttributeId::ALL {
            assert_eq!(AttributeId::named(id.as_str()), Some(*id));
            assert_eq!(AttributeId::WORDS.iter().filter(|word| **word == id.as_str()).count(), 1);
        }
        assert_eq!(AttributeId::named("Status"), None);
    }
}
