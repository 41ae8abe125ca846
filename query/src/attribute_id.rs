//! The names of attributes and columns, each written once.
//!
//! An attribute can be asked in a condition; a column is shown in a row. Most names are both. [`AttributeId`] stands
//! for the name, so that predicates and columns are resolved when a statement is parsed and not row by row.

use crate::words::words;
use std::fmt;

words! {
    /// An attribute of a stored thing, or a column that a row shows beside its attributes.
    AttributeId {
        /// The item; the one that claims, or the one it happened to.
        Item = "item",
        /// The caller's own id.
        Key = "key",
        /// How far from what happened.
        Layer = "layer",
        /// What sort of item.
        Kind = "kind",
        /// The text; of a trace, its field `text`.
        Text = "text",
        /// How long the text is, in tokens.
        Tokens = "tokens",
        /// The episode's id.
        Episode = "episode",
        /// The key of the page a trace lies in.
        Page = "page",
        /// When, in steps of the episode.
        Step = "step",
        /// When, on the clock.
        Time = "time",
        /// How long before the reader.
        Age = "age",
        /// The commit that wrote it.
        Commit = "commit",
        /// Version of the task or tool schema.
        Version = "version",
        /// What the tool's wrapper said.
        Status = "status",
        /// Who produced it.
        Source = "source",
        /// Who spoke.
        Speaker = "speaker",
        /// The tool called.
        Tool = "tool",
        /// The log a trace was read from.
        LogId = "log_id",
        /// Least source weight in the lineage.
        Trust = "trust",
        /// How good its sources are.
        Support = "support",
        /// Mean credit.
        Utility = "utility",
        /// 1 to 10, of procedures.
        ReturnScore = "return_score",
        /// How a recall came about.
        Origin = "origin",
        /// False after prune, merge, supersede, retract.
        Active = "active",
        /// A named field of a trace: fields.NAME.
        Fields = "fields",
        /// Whether a summary is written.
        State = "state",
        /// Hash of the content, in hexadecimal.
        Hash = "hash",
        /// What the episode is about.
        Task = "task",
        /// Whether it still goes on.
        Open = "open",
        /// What is claimed about.
        Name = "name",
        /// What is claimed.
        Value = "value",
        /// Where it competes.
        Scope = "scope",
        /// The item it lost against.
        Won = "won",
        /// Whether it is not clear which claim won.
        Contested = "contested",
        /// Where the edge begins.
        From = "from",
        /// Its type.
        Edge = "edge",
        /// Where it ends.
        To = "to",
        /// The field it points into.
        Field = "field",
        /// Offset of the first byte it points at.
        Start = "start",
        /// Offset after the last.
        End = "end",
        /// What happened.
        Op = "op",
        /// Why.
        Because = "because",
        /// What of it changed.
        Attribute = "attribute",
        /// The commit from which it held.
        Since = "since",
        /// The commit that ended it; absent while it holds.
        Until = "until",
        /// The receipt's id.
        Receipt = "receipt",
        /// What was asked.
        Statement = "statement",
        /// How many rows were answered.
        Rows = "rows",
        /// The commit it was answered as of.
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
        /// Its part from a lost contest.
        ConflictScore = "conflict_score",
        /// Whether the item is stale for the reader.
        Stale = "stale",
        /// Whether or why the text is quarantined.
        Quarantined = "quarantined",
        /// The item that won over a claim of this one.
        Conflict = "conflict",
        /// The flaws despite which a row is included.
        Relaxed = "relaxed",
        /// The items through which a row was reached.
        Path = "path",
        /// The rows that this one stands for.
        Folded = "folded",
        /// The citations, verified.
        Citations = "citations",
        /// Hit or evidence.
        Role = "role",
        /// How many edges from a root.
        Depth = "depth",
        /// The root that a walk began at.
        Root = "root",
        /// The result of verifying a citation.
        Verdict = "verdict",
        /// Whether the text was erased.
        Redacted = "redacted",
        /// Whether it was written without a source.
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
