//! Conditions on rows for [`RecallBuilder::filter`](crate::RecallBuilder::filter), and flaws to exclude or include.
//!
//! ```
//! use holotype::condition::{attribute, cites, flaw};
//! use holotype::query::FlawKind;
//!
//! let cheap = attribute("fields.price").below(400) & attribute("text").contains("UA123");
//! let sound = !flaw(FlawKind::Failed) & cites("t1");
//! assert_eq!(
//!     (cheap & sound).to_string(),
//!     "fields.price < 400 and text contains 'UA123' and not failed and cites 't1'"
//! );
//! ```
//!
//! Names and types are checked when the recall runs, as in the language.

use crate::model::edge::Edge;
use holotype_query::plan::{self, Bound, Predicate, Ref, Test};
use holotype_query::{AttributeId, Duration, FlawKind, ItemRef, Name, Number, Op, Value};
use std::fmt;
use std::ops::{BitAnd, BitOr, Not};

/// A condition; `&`, `|` and `!` combine them.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition(Predicate);

/// A value to compare an attribute with: a text, a number, `true` or `false`, or a length of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Literal(Value);

/// An attribute of an item; its methods are the tests of the language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute(Name);

/// A flaw, to exclude or to include rows with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Flaw(plan::Flaw);

/// The attribute of this name: `step`, `status`, `fields.price`.
pub fn attribute(name: &str) -> Attribute {
    Attribute(name_of(name))
}

/// True of items with the flaw.
pub fn flaw(flaw: impl Into<Flaw>) -> Condition {
    test(Test::Flaw(flaw.into().0))
}

/// True of items whose text was forgotten.
pub fn redacted() -> Condition {
    test(Test::Redacted)
}

/// True of items that cite the item of a key.
pub fn cites(key: &str) -> Condition {
    edge(Edge::Cites, key)
}

/// True of items with such an edge to the item of a key.
pub fn edge(edge: Edge, key: &str) -> Condition {
    let target = Ref::Item(ItemRef::Key(key.to_owned()));
    let target = plan::Pointer { target, field: None, excerpt: None };
    test(Test::Edge { edge: edge.into(), target: Some(target) })
}

/// True of items with any such edge.
pub fn any_edge(edge: Edge) -> Condition {
    test(Test::Edge { edge: edge.into(), target: None })
}

/// True of items that claim something under this name.
pub fn claims(name: &str) -> Condition {
    test(Test::Claims { name: name.to_owned(), value: None })
}

/// True of items whose claim of this name compares so with a value.
pub fn claims_value(name: &str, op: Op, value: impl Into<Literal>) -> Condition {
    test(Test::Claims { name: name.to_owned(), value: Some((op, value.into().0)) })
}

pub(super) fn name_of(name: &str) -> Name {
    match name.strip_prefix("fields.") {
        Some(field) => Name::new([AttributeId::Fields.as_str().to_owned(), field.to_owned()]),
        None => Name::new(name.split('.').map(str::to_owned).collect::<Vec<_>>()),
    }
}

fn test(test: Test) -> Condition {
    Condition(Predicate::Test(Box::new(test)))
}

impl Attribute {
    fn compare(self, op: Op, value: impl Into<Literal>) -> Condition {
        test(Test::Compare { name: self.0, op, value: value.into().0 })
    }

    /// `NAME = VALUE`.
    pub fn is(self, value: impl Into<Literal>) -> Condition {
        self.compare(Op::Eq, value)
    }

    /// `NAME != VALUE`: present and another.
    pub fn is_not(self, value: impl Into<Literal>) -> Condition {
        self.compare(Op::Ne, value)
    }

    /// `NAME < VALUE`.
    pub fn below(self, value: impl Into<Literal>) -> Condition {
        self.compare(Op::Lt, value)
    }

    /// `NAME <= VALUE`.
    pub fn at_most(self, value: impl Into<Literal>) -> Condition {
        self.compare(Op::Le, value)
    }

    /// `NAME > VALUE`.
    pub fn above(self, value: impl Into<Literal>) -> Condition {
        self.compare(Op::Gt, value)
    }

    /// `NAME >= VALUE`.
    pub fn at_least(self, value: impl Into<Literal>) -> Condition {
        self.compare(Op::Ge, value)
    }

    /// `NAME in (VALUE, …)`.
    pub fn one_of<V: Into<Literal>>(self, values: impl IntoIterator<Item = V>) -> Condition {
        let list = values.into_iter().map(|value| value.into().0).collect();
        test(Test::In { name: self.0, not: false, list })
    }

    /// `NAME between LOW and HIGH`, both included.
    pub fn between(self, low: impl Into<Literal>, high: impl Into<Literal>) -> Condition {
        let (low, high) = (low.into().0, high.into().0);
        test(Test::Between { name: self.0, not: false, low, high })
    }

    /// `NAME contains TEXT`, in any case.
    pub fn contains(self, text: &str) -> Condition {
        test(Test::Contains { name: self.0, not: false, text: text.to_owned() })
    }

    /// `NAME matches GLOB`: `*` stands for any text, `?` for any character.
    pub fn matches(self, glob: &str) -> Condition {
        test(Test::Matches { name: self.0, not: false, glob: glob.to_owned() })
    }

    /// `has NAME`: the item has the attribute.
    pub fn exists(self) -> Condition {
        test(Test::Has(self.0))
    }
}

impl Condition {
    pub(super) fn into_predicate(self) -> Predicate {
        self.0
    }
}

impl BitAnd for Condition {
    type Output = Condition;

    fn bitand(self, other: Condition) -> Condition {
        let parts = |predicate| match predicate {
            Predicate::And(parts) => parts,
            one => vec![one],
        };
        Condition(Predicate::And([parts(self.0), parts(other.0)].concat()))
    }
}

impl BitOr for Condition {
    type Output = Condition;

    fn bitor(self, other: Condition) -> Condition {
        let parts = |predicate| match predicate {
            Predicate::Or(parts) => parts,
            one => vec![one],
        };
        Condition(Predicate::Or([parts(self.0), parts(other.0)].concat()))
    }
}

impl Not for Condition {
    type Output = Condition;

    fn not(self) -> Condition {
        Condition(Predicate::Not(Box::new(self.0)))
    }
}

/// The condition as it stands behind `where`.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Flaw {
    /// Stale by the settings; the methods below narrow it.
    pub fn stale() -> Flaw {
        FlawKind::Stale.into()
    }

    /// Stale if more than so many steps before the reader.
    pub fn steps(mut self, steps: u64) -> Flaw {
        self.0.window.push(Bound::Steps(steps));
        self
    }

    /// Stale if older than this.
    pub fn age(mut self, age: std::time::Duration) -> Flaw {
        self.0.window.push(Bound::Age(length(age)));
        self
    }

    /// Stale if of another version than the reader's.
    pub fn version(mut self) -> Flaw {
        self.0.window.push(Bound::Version);
        self
    }

    pub(super) fn into_plan(self) -> plan::Flaw {
        self.0
    }
}

impl From<FlawKind> for Flaw {
    fn from(kind: FlawKind) -> Flaw {
        Flaw(plan::Flaw { kind, window: Vec::new() })
    }
}

/// A length of time in the language's units, rounded down to milliseconds and cut at its longest.
pub(super) fn length(length: std::time::Duration) -> Duration {
    Duration::from_millis(u64::try_from(length.as_millis()).unwrap_or(u64::MAX))
}

macro_rules! literals {
    ($($from:ty, $value:ident => $made:expr;)+) => {
        $(impl From<$from> for Literal {
            fn from($value: $from) -> Literal {
                Literal($made)
            }
        })+
    };
}

literals! {
    &str, value => Value::Text(value.to_owned());
    String, value => Value::Text(value);
    &String, value => Value::Text(value.clone());
    bool, value => Value::Bool(value);
    i32, value => Value::Number(Number::from(i64::from(value)));
    i64, value => Value::Number(Number::from(value));
    u32, value => Value::Number(Number::Natural(u64::from(value)));
    u64, value => Value::Number(Number::Natural(value));
    usize, value => Value::Number(Number::Natural(value as u64));
    f32, value => Value::Number(Number::Real(f64::from(value)));
    f64, value => Value::Number(Number::Real(value));
    std::time::Duration, value => Value::Duration(length(value));
    crate::Status, value => Value::Word(Name::from(value.as_str()));
    crate::Source, value => Value::Word(Name::from(value.as_str()));
    crate::Kind, value => Value::Word(Name::from(value.as_str()));
    crate::Layer, value => Value::Word(Name::from(value.as_str()));
    crate::Support, value => Value::Word(Name::from(value.as_str()));
    crate::Origin, value => Value::Word(Name::from(value.as_str()));
}
