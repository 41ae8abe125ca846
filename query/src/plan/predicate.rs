//! Conditions, and the things they point at, as values.

use crate::value::{Duration, ItemRef, Name, Value};
use crate::words::{Edge, FlawKind, Op};

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// One of them holds; two or more, none of them an `Or`.
    Or(Vec<Predicate>),
    /// All of them hold; two or more, none of them an `And`.
    And(Vec<Predicate>),
    /// It does not hold.
    Not(Box<Predicate>),
    /// A single test.
    Test(Box<Test>),
}

/// A single test.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// `NAME op VALUE`.
    Compare {
        /// The attribute.
        name: Name,
        /// The comparison.
        op: Op,
        /// With what.
        value: Value,
    },
    /// `NAME [not] in (…)`.
    In {
        /// The attribute.
        name: Name,
        /// True if `not` was written.
        not: bool,
        /// The values, or the parameter that lists them.
        list: Vec<Value>,
    },
    /// `NAME [not] between VALUE and VALUE`, both included.
    Between {
        /// The attribute.
        name: Name,
        /// True if `not` was written.
        not: bool,
        /// The lower end.
        low: Value,
        /// The upper end.
        high: Value,
    },
    /// `NAME [not] contains TEXT`, in any case.
    Contains {
        /// The attribute.
        name: Name,
        /// True if `not` was written.
        not: bool,
        /// The text.
        text: String,
    },
    /// `NAME [not] matches GLOB`.
    Matches {
        /// The attribute.
        name: Name,
        /// True if `not` was written.
        not: bool,
        /// The pattern, in which `*` stands for any text and `?` for any character.
        glob: String,
    },
    /// `has NAME`: the attribute is there.
    Has(Name),
    /// A flaw.
    Flaw(Flaw),
    /// `redacted`.
    Redacted,
    /// `EDGE POINTER` or `EDGE any`.
    Edge {
        /// The type of the edge.
        edge: Edge,
        /// To what; nothing for `any`.
        target: Option<Pointer>,
    },
    /// `claims NAME [op VALUE]`.
    Claims {
        /// The claim's name.
        name: String,
        /// The comparison of its value.
        value: Option<(Op, Value)>,
    },
}

/// A flaw, with the window of `stale`.
#[derive(Clone, Debug, PartialEq)]
pub struct Flaw {
    /// Which flaw.
    pub kind: FlawKind,
    /// `stale ( … )`: what counts as stale; empty when not written, and for every
    /// other flaw.
    pub window: Vec<Bound>,
}

/// One criterion of staleness.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// `n steps`: more than that many steps before the reader.
    Steps(u64),
    /// A duration: older than that.
    Age(Duration),
    /// `version`: of another version than the reader's.
    Version,
}

/// An item, a page or an episode.
#[derive(Clone, Debug, PartialEq)]
pub enum Ref {
    /// An item, by key or id.
    Item(ItemRef),
    /// `page KEY`.
    Page(String),
    /// `episode ID`.
    Episode(String),
}

/// A piece of evidence: a whole thing, a field of it, or a span of a field.
#[derive(Clone, Debug, PartialEq)]
pub struct Pointer {
    /// The item, page or episode.
    pub target: Ref,
    /// `field NAME`; the field `text` when not written.
    pub field: Option<String>,
    /// Which bytes of the field; all when not written.
    pub excerpt: Option<Excerpt>,
}

/// Which bytes of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Excerpt {
    /// `bytes n to n`: offsets of the first byte and after the last.
    Bytes {
        /// Offset of the first byte.
        start: u64,
        /// Offset after the last.
        end: u64,
    },
    /// `quoting TEXT`: where this text stands.
    Quoting(String),
}
