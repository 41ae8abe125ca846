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

pub use crate::attributes::Thing;
pub use crate::span::Spanned;
pub use crate::value::{Arg, Id, ValueList};

use crate::value::ItemRef;
use crate::verbs::verbs;
use crate::words::ShowTarget;

/// A sequence of statements: one transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// The statements in order; at least one.
    pub statements: Vec<Spanned<Statement>>,
    /// The comments, kept so that formatting a file loses none.
    pub comments: Vec<Comment>,
}

impl Script {
    /// The verbs of the statements: `recall`, `find`, `sources` …
    pub fn verbs(&self) -> impl Iterator<Item = &'static str> {
        self.statements.iter().map(|statement| statement.verb())
    }

    /// True if running the script needs a transaction.
    pub fn needs_transaction(&self) -> bool {
        self.statements.iter().any(|statement| statement.needs_transaction())
    }

    /// The names of the parameters that stand for the vector of a query: `near $v`.
    pub fn vector_params(&self) -> impl Iterator<Item = &str> {
        self.statements.iter().filter_map(|statement| match &recall_of(statement)?.query.near.as_ref()?.node {
            Arg::Param(name) => Some(name.as_str()),
            Arg::Value(_) => None,
        })
    }
}

/// The recall that a statement asks, explains or asks about.
fn recall_of(statement: &Statement) -> Option<&Recall> {
    match statement {
        Statement::Recall(recall) => Some(recall),
        Statement::Why(why) => Some(&why.recall),
        Statement::Explain(explain) => recall_of(&explain.statement),
        _ => None,
    }
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
    ShowPage(Spanned<Arg<Id>>),
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
