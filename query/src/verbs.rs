//! The verb of a statement and the access it needs, for trees and for plans.

/// Implements the questions that trees and plans of statements answer alike.
macro_rules! verbs {
    ($statement:ident) => {
        impl $statement {
            /// The word the statement is known by: `recall`, `find`, `sources`, `unlink` …
            pub fn verb(&self) -> &'static str {
                match self {
                    $statement::Explain(_) => "explain",
                    $statement::Why(_) => "why",
                    $statement::Recall(_) => "recall",
                    $statement::Find(_) => "find",
                    $statement::Count(_) => "count",
                    $statement::Walk(walk) if walk.towards_sources => "sources",
                    $statement::Walk(_) => "dependents",
                    $statement::Conflicts(_) => "conflicts",
                    $statement::History(_) => "history",
                    $statement::Verify(_) => "verify",
                    $statement::Audit(_) => "audit",
                    $statement::Show(_) | $statement::ShowGraph(_) | $statement::ShowPage(_) => "show",
                    $statement::Replay(_) => "replay",
                    $statement::Record(_) => "record",
                    $statement::Remember(_) => "remember",
                    $statement::Learn(_) => "learn",
                    $statement::Reflect(_) => "reflect",
                    $statement::Induce(_) => "induce",
                    $statement::Update(_) => "update",
                    $statement::Retract(_) => "retract",
                    $statement::Mark(_) => "mark",
                    $statement::Link(link) if link.remove => "unlink",
                    $statement::Link(_) => "link",
                    $statement::Consolidate(_) => "consolidate",
                    $statement::Merge(_) => "merge",
                    $statement::Prune(_) => "prune",
                    $statement::Decay(_) => "decay",
                    $statement::Compress(_) => "compress",
                    $statement::Forget(_) => "forget",
                    $statement::Episode(episode) if episode.close => "close",
                    $statement::Episode(_) => "open",
                    $statement::Set(_) => "set",
                }
            }

            /// True if running the statement changes the database. `explain analyze` of a write runs it and rolls
            /// back: it does not.
            pub fn is_write(&self) -> bool {
                matches!(
                    self,
                    $statement::Record(_)
                        | $statement::Remember(_)
                        | $statement::Learn(_)
                        | $statement::Reflect(_)
                        | $statement::Induce(_)
                        | $statement::Update(_)
                        | $statement::Retract(_)
                        | $statement::Mark(_)
                        | $statement::Link(_)
                        | $statement::Consolidate(_)
                        | $statement::Merge(_)
                        | $statement::Prune(_)
                        | $statement::Decay(_)
                        | $statement::Compress(_)
                        | $statement::Forget(_)
                        | $statement::Episode(_)
                        | $statement::Set(_)
                )
            }

            /// True if running the statement needs a transaction: it writes, it explains a write, or it is a recall
            /// with a receipt.
            pub fn needs_transaction(&self) -> bool {
                match self {
                    $statement::Explain(explain) => explain.statement.is_write(),
                    $statement::Recall(recall) => recall.has_receipt(),
                    statement => statement.is_write(),
                }
            }
        }
    };
}
pub(crate) use verbs;
