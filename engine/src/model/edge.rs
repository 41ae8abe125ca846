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
        DerivedFrom = 0 "derived-from",
        /// An item cites a span of another.
        Cites = 1 "cites",
        /// A fact mentions a concept.
        Mentions = 2 "mentions",
        /// A procedure solves an intent.
        Solves = 3 "solves",
        /// Two items say the same kind of thing (symmetric).
        Sibling = 4 "sibling",
        /// An item replaces another, which becomes inactive.
        Supersedes = 5 "supersedes",
        /// Two items disagree (symmetric).
        ConflictsWith = 6 "conflicts-with",
        /// A recall belongs to a theme.
        Parent = 7 "parent",
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

impl From<holotype_query::Edge> for Edge {
    fn from(edge: holotype_query::Edge) -> Self {
        match edge {
            holotype_query::Edge::DerivedFrom => Edge::DerivedFrom,
            holotype_query::Edge::Cites => Edge::Cites,
            holotype_query::Edge::Mentions => Edge::Mentions,
            holotype_query::Edge::Solves => Edge::Solves,
            holotype_query::Edge::Sibling => Edge::Sibling,
            holotype_query::Edge::Supersedes => Edge::Supersedes,
            holotype_query::Edge::ConflictsWith => Edge::ConflictsWith,
            holotype_query::Edge::Parent => Edge::Parent,
        }
    }
}

impl From<Edge> for holotype_query::Edge {
    fn from(edge: Edge) -> Self {
        match edge {
            Edge::DerivedFrom => holotype_query::Edge::DerivedFrom,
            Edge::Cites => holotype_query::Edge::Cites,
            Edge::Mentions => holotype_query::Edge::Mentions,
            Edge::Solves => holotype_query::Edge::Solves,
            Edge::Sibling => holotype_query::Edge::Sibling,
            Edge::Supersedes => holotype_query::Edge::Supersedes,
            Edge::ConflictsWith => holotype_query::Edge::ConflictsWith,
            Edge::Parent => holotype_query::Edge::Parent,
        }
    }
}
