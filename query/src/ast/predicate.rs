//! Conditions, and the things they point at.

use crate::span::Spanned;
use crate::value::{Arg, Duration, Id, ItemRef, Name, Value, ValueList};
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
    Test(Box<Spanned<Test>>),
}

/// A single test.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// `NAME op VALUE`.
    Compare {
        /// The attribute.
        name: Spanned<Name>,
        /// The comparison.
        op: Op,
        /// With what.
        value: Spanned<Arg<Value>>,
    },
    /// `NAME [not] in (…)`.
    In {
        /// The attribute.
        name: Spanned<Name>,
        /// True if `not` was written.
        not: bool,
        /// The values, or the parameter that lists them.
        list: Spanned<Arg<ValueList>>,
    },
    /// `NAME [not] between VALUE and VALUE`, both included.
    Between {
        /// The attribute.
        name: Spanned<Name>,
        /// True if `not` was written.
        not: bool,
        /// The lower end.
        low: Spanned<Arg<Value>>,
        /// The upper end.
        high: Spanned<Arg<Value>>,
    },
    /// `NAME [not] contains TEXT`, in any case.
    Contains {
        /// The attribute.
        name: Spanned<Name>,
        /// True if `not` was written.
        not: bool,
        /// The text.
        text: Spanned<Arg<String>>,
    },
    /// `NAME [not] matches GLOB`.
    Matches {
        /// The attribute.
        name: Spanned<Name>,
        /// True if `not` was written.
        not: bool,
        /// The pattern, in which `*` stands for any text and `?` for any character.
        glob: Spanned<Arg<String>>,
    },
    /// `has NAME`: the attribute is there.
    Has(Spanned<Name>),
    /// A flaw.
    Flaw(Flaw),
    /// `redacted`.
    Redacted,
    /// `EDGE POINTER` or `EDGE any`.
    Edge {
        /// The type of the edge.
        edge: Spanned<Edge>,
        /// To what; nothing for `any`.
        target: Option<Spanned<Pointer>>,
    },
    /// `claims NAME [op VALUE]`.
    Claims {
        /// The claim's name.
        name: Spanned<Arg<String>>,
        /// The comparison of its value.
        value: Option<(Op, Spanned<Arg<Value>>)>,
    },
}

/// A flaw, with the window of `stale`.
#[derive(Clone, Debug, PartialEq)]
pub struct Flaw {
    /// Which flaw.
    pub kind: FlawKind,
    /// `stale ( … )`: what counts as stale; empty when not written, and for every
    /// other flaw.
    pub window: Vec<Spanned<Bound>>,
}

/// One criterion of staleness.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// `n steps`: more than that many steps before the reader.
    Steps(Spanned<Arg<u64>>),
    /// A duration: older than that.
    Age(Duration),
    /// `version`: of another version than the reader's.
    Version,
}

/// An item, a page or an episode.
#[derive(Clone, Debug, PartialEq)]
pub enum Ref {
    /// An item, by key or id.
    Item(Arg<ItemRef>),
    /// `page KEY`.
    Page(Arg<Id>),
    /// `episode ID`.
    Episode(Arg<Id>),
}

/// A piece of evidence: a whole thing, a field of it, or a span of a field.
#[derive(Clone, Debug, PartialEq)]
pub struct Pointer {
    /// The item, page or episode.
    pub target: Spanned<Ref>,
    /// `field NAME`; the field `text` when not written.
    pub field: Option<Spanned<Arg<String>>>,
    /// Which bytes of the field; all when not written.
    pub excerpt: Option<Excerpt>,
}

/// Which bytes of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Excerpt {
    /// `bytes n to n`: offsets of the first byte and after the last.
    Bytes {
        /// Offset of the first byte.
        start: Spanned<Arg<u64>>,
        /// Offset after the last.
        end: Spanned<Arg<u64>>,
    },
    /// `quoting TEXT`: where this text stands.
    Quoting(Spanned<Arg<String>>),
}
