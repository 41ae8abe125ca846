//! The syntax tree: what a statement says, with the place each word was written at.
//!
//! One type a production of the grammar (`docs/query-language.md`). Everything a
//! message may have to point at is [`Spanned`]; everything a parameter may stand for
//! is an [`Arg`].
//!
//! Invariants:
//!
//! 1. `parse(format(tree)) == tree`, ignoring spans, for every tree the parser makes.
//! 2. [`Predicate::And`] and [`Predicate::Or`] hold two or more predicates and never
//!    one of their own sort: `a and (b and c)` is one `And` of three.
//! 3. [`Statement::Explain`] never holds another `Explain`, nor a [`Statement::Why`].
//! 4. Every list the grammar asks for has at least one member.

mod clauses;
mod predicate;
mod read;
mod write;

pub use clauses::*;
pub use predicate::*;
pub use read::*;
pub use write::*;

use crate::span::Spanned;
use crate::value::{Arg, ItemRef};
use crate::words::ShowTarget;

/// A sequence of statements: one transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// The statements in order; at least one.
    pub statements: Vec<Spanned<Statement>>,
    /// The comments, kept so that formatting a file loses none.
    pub comments: Vec<Comment>,
}

/// A `--` comment and the statement it is printed with.
#[derive(Clone, Debug, PartialEq)]
pub struct Comment {
    /// Index of the statement it stands above or behind; the number of statements
    /// for a comment after the last.
    pub statement: usize,
    /// True if it stands behind the statement, on its last line.
    pub trailing: bool,
    /// The text after the dashes, trimmed.
    pub text: String,
}

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
    Show(Spanned<ShowTarget>),
    /// `show graph as of …`: the memory graph after an earlier commit.
    ShowGraph(Spanned<AsOf>),
    /// `show page KEY`: a page as text.
    ShowPage(Spanned<Arg<String>>),
    /// `replay RECEIPT`: the receipt's id.
    Replay(Spanned<Arg<String>>),
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

impl Statement {
    /// The word the statement is known by: `recall`, `find`, `sources`, `unlink` …
    pub fn verb(&self) -> &'static str {
        match self {
            Statement::Explain(_) => "explain",
            Statement::Why(_) => "why",
            Statement::Recall(_) => "recall",
            Statement::Find(_) => "find",
            Statement::Count(_) => "count",
            Statement::Walk(walk) if walk.towards_sources => "sources",
            Statement::Walk(_) => "dependents",
            Statement::Conflicts(_) => "conflicts",
            Statement::History(_) => "history",
            Statement::Verify(_) => "verify",
            Statement::Audit(_) => "audit",
            Statement::Show(_) | Statement::ShowGraph(_) | Statement::ShowPage(_) => "show",
            Statement::Replay(_) => "replay",
            Statement::Record(_) => "record",
            Statement::Remember(_) => "remember",
            Statement::Learn(_) => "learn",
            Statement::Reflect(_) => "reflect",
            Statement::Induce(_) => "induce",
            Statement::Update(_) => "update",
            Statement::Retract(_) => "retract",
            Statement::Mark(_) => "mark",
            Statement::Link(link) if link.remove => "unlink",
            Statement::Link(_) => "link",
            Statement::Consolidate(_) => "consolidate",
            Statement::Merge(_) => "merge",
            Statement::Prune(_) => "prune",
            Statement::Decay(_) => "decay",
            Statement::Compress(_) => "compress",
            Statement::Forget(_) => "forget",
            Statement::Episode(EpisodeStatement { close: false, .. }) => "open",
            Statement::Episode(EpisodeStatement { close: true, .. }) => "close",
            Statement::Set(_) => "set",
        }
    }

    /// True if running the statement changes the database. `explain analyze` of a
    /// write runs it and rolls back: it does not.
    pub fn is_write(&self) -> bool {
        matches!(
            self,
            Statement::Record(_)
                | Statement::Remember(_)
                | Statement::Learn(_)
                | Statement::Reflect(_)
                | Statement::Induce(_)
                | Statement::Update(_)
                | Statement::Retract(_)
                | Statement::Mark(_)
                | Statement::Link(_)
                | Statement::Consolidate(_)
                | Statement::Merge(_)
                | Statement::Prune(_)
                | Statement::Decay(_)
                | Statement::Compress(_)
                | Statement::Forget(_)
                | Statement::Episode(_)
                | Statement::Set(_)
        )
    }
}

/// `explain [analyze] STATEMENT`.
#[derive(Clone, Debug, PartialEq)]
pub struct Explain {
    /// True if to run it and say what happened, not only what would.
    pub analyze: bool,
    /// The statement explained.
    pub statement: Box<Spanned<Statement>>,
}

/// `why [not] ITEM in recall …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Why {
    /// True if the question is why the item is missing.
    pub not: bool,
    /// The item.
    pub item: Spanned<Arg<ItemRef>>,
    /// The question asked.
    pub recall: Recall,
}
