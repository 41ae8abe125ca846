//! Plans of statements, as values: no parameters, no places in a source.
//!
//! [`bind`](crate::bind()) makes plans of the statements of a script and its parameters; builders make one directly.
//! One type a production of the grammar (`docs/query-language.md`), as in [`ast`](crate::ast). `Display` gives the
//! canonical text, in which a vector is the parameter that it came from.
//!
//! Invariants:
//!
//! 1. A plan is complete: running it needs neither parameters nor the tree.
//! 2. The text of a bound statement parses, and binds to the same plan.

mod clauses;
mod predicate;
mod read;
mod write;

pub use crate::attributes::Thing;
pub use clauses::*;
pub use predicate::*;
pub use read::*;
pub use write::*;

use crate::value::ItemRef;
use crate::verbs::verbs;
use crate::words::ShowTarget;

/// One statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// `explain [analyze] STATEMENT`.
    Explain(Explain),
    /// `why [not] ITEM in recall …`.
    Why(Box<Why>),
    /// `recall …`.
    Recall(Box<Recall>),
    /// `find THING …`.
    Find(Find),
    /// `count THING …`.
    Count(Count),
    /// `sources of …` and `dependents of …`.
    Walk(Walk),
    /// `conflicts [on NAME] …`.
    Conflicts(Conflicts),
    /// `history of REF …`.
    History(History),
    /// `verify [WHAT]`.
    Verify(Verify),
    /// `audit [in episode …]`.
    Audit(Audit),
    /// `show WHAT`.
    Show(ShowTarget),
    /// `show graph as of …`: the memory graph after an earlier commit.
    ShowGraph(AsOf),
    /// `show page KEY`: a page as text.
    ShowPage(String),
    /// `replay RECEIPT …` and `replay last N …`.
    Replay(Replay),
    /// `record KIND TEXT in episode …`.
    Record(Record),
    /// `remember KIND TEXT from …`.
    Remember(Remember),
    /// `learn TEXT from …`.
    Learn(Learn),
    /// `reflect TEXT from …`.
    Reflect(Reflect),
    /// `induce NOUN …`.
    Induce(Induce),
    /// `update ITEM to TEXT …`.
    Update(Update),
    /// `retract REF, … because TEXT`.
    Retract(Retract),
    /// `mark REF STATE`.
    Mark(MarkStatement),
    /// `link ITEM EDGE POINTER` and `unlink …`.
    Link(Link),
    /// `consolidate NOUN …`.
    Consolidate(Consolidate),
    /// `merge …`.
    Merge(Merge),
    /// `prune NOUN [to n] …`.
    Prune(Prune),
    /// `decay NOUN …`.
    Decay(Decay),
    /// `compress NOUN …`.
    Compress(Compress),
    /// `forget … because TEXT`.
    Forget(Forget),
    /// `open episode …` and `close episode …`.
    Episode(EpisodeStatement),
    /// `set NAME = VALUE`.
    Set(Set),
}

verbs!(Statement);

/// `explain [analyze] STATEMENT`.
#[derive(Clone, Debug, PartialEq)]
pub struct Explain {
    /// True if to run it and say what happened, not only what would.
    pub analyze: bool,
    /// The statement explained.
    pub statement: Box<Statement>,
}

/// `why [not] ITEM in recall …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Why {
    /// True if the question is why the item is missing.
    pub not: bool,
    /// The item.
    pub item: ItemRef,
    /// The question asked.
    pub recall: Recall,
}
