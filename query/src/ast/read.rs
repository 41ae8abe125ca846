//! The statements that read.

use crate::ast::Interval;
use crate::ast::{AsOf, Clauses, Limit, Predicate, Reader, Ref, Returns, Scope, Thing};
use crate::span::Spanned;
use crate::value::{Arg, Id, ItemRef, Name, Passage, Vector};
use crate::words::{Direction, Edge, MeasureKind};

/// `recall QUERY CLAUSES`.
#[derive(Clone, Debug, PartialEq)]
pub struct Recall {
    /// The query.
    pub query: Query,
    /// The clauses.
    pub clauses: Clauses,
}

impl Recall {
    /// True if it keeps a receipt.
    pub fn has_receipt(&self) -> bool {
        self.clauses.receipt.is_some()
    }
}

/// The query of a recall: a text, a vector, both, or an item to resemble.
///
/// Exactly one of: `like` alone; `text`, `near` or both.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// The words, and perhaps the vector that came with them.
    pub text: Option<Spanned<Arg<Passage>>>,
    /// `near $v`: the vector, which goes before the text's own.
    pub near: Option<Spanned<Arg<Vector>>>,
    /// `like ITEM`.
    pub like: Option<Spanned<Arg<ItemRef>>>,
}

/// The clauses of a listing, in the order they are printed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// `in …`.
    pub scope: Option<Spanned<Scope>>,
    /// `where …`.
    pub filter: Option<Spanned<Predicate>>,
    /// `at …`.
    pub reader: Option<Spanned<Reader>>,
    /// `as of …`.
    pub as_of: Option<Spanned<AsOf>>,
    /// `order by …`.
    pub order: Option<Spanned<Vec<Spanned<OrderKey>>>>,
    /// `limit n [skip n]`.
    pub limit: Option<Spanned<Limit>>,
    /// `return …`.
    pub returns: Option<Spanned<Returns>>,
}

/// One key of an ordering.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderKey {
    /// By what.
    pub name: Spanned<Name>,
    /// The direction, if it was written; least first otherwise.
    pub direction: Option<Direction>,
}

/// `find THING …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Find {
    /// Of what.
    pub thing: Spanned<Thing>,
    /// Which and how.
    pub listing: Listing,
}

/// `count THING …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    /// Of what.
    pub thing: Spanned<Thing>,
    /// The measures beside the count.
    pub measures: Vec<Spanned<Measure>>,
    /// `by …`: one row a group.
    pub group: Option<Spanned<Vec<Spanned<Bucket>>>>,
    /// Which and how.
    pub listing: Listing,
}

/// `sum NAME` and the like.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// The function.
    pub kind: MeasureKind,
    /// Over which attribute.
    pub name: Spanned<Name>,
}

/// One key of a grouping.
#[derive(Clone, Debug, PartialEq)]
pub struct Bucket {
    /// The attribute.
    pub name: Spanned<Name>,
    /// `every …`: values closer than this fall together.
    pub every: Option<Spanned<Interval>>,
}

/// `sources of …` and `dependents of …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Walk {
    /// Towards the sources; towards the dependents otherwise.
    pub towards_sources: bool,
    /// From where.
    pub roots: Vec<Spanned<Ref>>,
    /// `by …`: along which edges; empty when not written.
    pub edges: Vec<Spanned<Edge>>,
    /// The number of levels.
    pub depth: Option<Spanned<Arg<u64>>>,
    /// Which and how.
    pub listing: Listing,
}

/// `conflicts [on NAME] …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflicts {
    /// The name of the claims, in which `*` stands for anything.
    pub on: Option<Spanned<Arg<String>>>,
    /// Which and how.
    pub listing: Listing,
}

/// `history of REF …`.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// Of what.
    pub of: Spanned<Ref>,
    /// Which and how.
    pub listing: Listing,
}

/// `audit [in episode …]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Audit {
    /// `in …`: the episodes whose reads and writes are measured.
    pub scope: Option<Spanned<Scope>>,
}

/// `replay RECEIPT` or `replay last N`, `[without …]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// The answers that are given again.
    pub of: Replayed,
    /// The items that are taken away before.
    pub without: Option<Without>,
}

/// The answers that are given again.
#[derive(Clone, Debug, PartialEq)]
pub enum Replayed {
    /// That of a receipt, by its id.
    Receipt(Spanned<Arg<Id>>),
    /// `last N`: those of the newest receipts.
    Last(Spanned<Arg<u64>>),
}

/// The items that a replay takes away.
#[derive(Clone, Debug, PartialEq)]
pub enum Without {
    /// These items, the traces of a page, or those of an episode.
    Refs(Vec<Spanned<Ref>>),
    /// `each`: one source of the answer after the other.
    Each,
}

/// `verify [WHAT]`. Without a word it is `verify all`.
#[derive(Clone, Debug, PartialEq)]
pub enum Verify {
    /// One item, page or episode.
    Ref(Spanned<Ref>),
    /// The log.
    Log,
    /// The catalog.
    Catalog,
    /// The derived segments.
    Segments,
    /// Everything.
    All,
    /// The citations of a text.
    Citations {
        /// The text, with its `<memory>` blocks.
        text: Spanned<Arg<String>>,
        /// `in …`: the traces that may be cited.
        scope: Option<Spanned<Scope>>,
    },
}
