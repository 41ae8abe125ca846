//! The statements that read, as values.

use crate::plan::Interval;
use crate::plan::{AsOf, Clauses, Predicate, Reader, Ref, Returns, Scope, Thing};
use crate::value::{ItemRef, Name, Passage, Vector};
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
        self.clauses.receipt
    }
}

/// The query of a recall: a text, a vector, both, or an item to resemble.
///
/// Exactly one of: `like` alone; `text`, `near` or both.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// The words, and perhaps the vector that came with them.
    pub text: Option<Passage>,
    /// `near $v`: the vector, which goes before the text's own.
    pub near: Option<Vector>,
    /// `like ITEM`.
    pub like: Option<ItemRef>,
}

impl Query {
    /// The words.
    pub fn words(&self) -> Option<&str> {
        Some(&self.text.as_ref()?.text)
    }

    /// The vector: that of `near`, else the one its text brought.
    pub fn vector(&self) -> Option<&Vector> {
        match &self.near {
            Some(near) => Some(near),
            None => self.text.as_ref()?.vector.as_ref(),
        }
    }
}

/// The clauses of a listing, in the order they are printed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// `in …`.
    pub scope: Option<Scope>,
    /// `where …`.
    pub filter: Option<Predicate>,
    /// `at …`.
    pub reader: Option<Reader>,
    /// `as of …`.
    pub as_of: Option<AsOf>,
    /// `order by …`; empty for the order of the things.
    pub order: Vec<OrderKey>,
    /// `limit n`: the number of rows.
    pub limit: Option<u64>,
    /// `skip n`: the number of rows to skip before them; 0 without a limit.
    pub skip: u64,
    /// `return …`.
    pub returns: Option<Returns>,
}

/// One key of an ordering.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderKey {
    /// By what.
    pub name: Name,
    /// The direction, if it was written; least first otherwise.
    pub direction: Option<Direction>,
}

/// `find THING …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Find {
    /// Of what.
    pub thing: Thing,
    /// Which and how.
    pub listing: Listing,
}

/// `count THING …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    /// Of what.
    pub thing: Thing,
    /// The measures beside the count.
    pub measures: Vec<Measure>,
    /// `by …`: one row a group; empty for one row of all.
    pub group: Vec<Bucket>,
    /// Which and how.
    pub listing: Listing,
}

/// `sum NAME` and the like.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// The function.
    pub kind: MeasureKind,
    /// Over which attribute.
    pub name: Name,
}

/// One key of a grouping.
#[derive(Clone, Debug, PartialEq)]
pub struct Bucket {
    /// The attribute.
    pub name: Name,
    /// `every …`: values closer than this fall together.
    pub every: Option<Interval>,
}

/// `sources of …` and `dependents of …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Walk {
    /// Towards the sources; towards the dependents otherwise.
    pub towards_sources: bool,
    /// From where.
    pub roots: Vec<Ref>,
    /// `by …`: along which edges; empty when not written.
    pub edges: Vec<Edge>,
    /// The number of levels.
    pub depth: Option<u64>,
    /// Which and how.
    pub listing: Listing,
}

/// `conflicts [on NAME] …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflicts {
    /// The name of the claims, in which `*` stands for anything.
    pub on: Option<String>,
    /// Which and how.
    pub listing: Listing,
}

/// `history of REF …`.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// Of what.
    pub of: Ref,
    /// Which and how.
    pub listing: Listing,
}

/// `audit [in episode …]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Audit {
    /// `in …`: the episodes whose reads and writes are measured.
    pub scope: Option<Scope>,
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
    Receipt(String),
    /// `last N`: those of the newest receipts.
    Last(u64),
}

/// The items that a replay takes away.
#[derive(Clone, Debug, PartialEq)]
pub enum Without {
    /// These items, the traces of a page, or those of an episode.
    Refs(Vec<Ref>),
    /// `each`: one source of the answer after the other.
    Each,
}

/// `verify [WHAT]`. Without a word it is `verify all`.
#[derive(Clone, Debug, PartialEq)]
pub enum Verify {
    /// One item, page or episode.
    Ref(Ref),
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
        text: String,
        /// `in …`: the traces that may be cited.
        scope: Option<Scope>,
    },
}
