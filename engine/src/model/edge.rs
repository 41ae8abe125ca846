//! Edges: typed, directed links between items, traversable both ways.
//!
//! An edge has two catalog rows, one under each end, so that a traversal in either direction is a range scan.
//! Symmetric edges are stored once and returned from both ends.

use crate::error::UnknownName;
use crate::model::item::names;
use std::fmt;
use std::str::FromStr;

names! {
    /// The type of an edge (memory model, section 3).
    Edge, "edge" {
        /// An item was made from another.
        DerivedFrom = 0,
        /// An item cites a span of another.
        Cites = 1,
        /// A fact mentions a concept.
        Mentions = 2,
        /// A procedure solves an intent.
        Solves = 3,
        /// Two items say the same kind of thing (symmetric).
        Sibling = 4,
        /// An item replaces another, which becomes inactive.
        Supersedes = 5,
        /// Two items disagree (symmetric).
        ConflictsWith = 6,
        /// A recall belongs to a theme.
        Parent = 7,
    }
}

impl Edge {
    /// Returns true if the edge means the same in both directions.
    pub const fn is_symmetric(self) -> bool {
        matches!(self, Edge::Sibling | Edge::ConflictsWith)
    }

    /// Returns true if the target is a source of the item in the sense of support and trust.
    pub const fn is_lineage(self) -> bool {
        matches!(self, Edge::DerivedFrom | Edge::Cites)
    }
}
