//! Formats values, names and references.

use std::fmt::{self, Display, Formatter};

use super::{Quoted, commas, optional};
use crate::ast::{Excerpt, Pointer, Ref, Thing};
use crate::lexer::is_word;
use crate::span::Spanned;
use crate::value::{Arg, Duration, Id, ItemRef, Name, Number, Passage, Time, Value, ValueList, Vector};

/// Formats the values of one type where a parameter may be used instead.
trait Literal {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result;
}

impl<T: Literal> Display for Arg<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Arg::Value(value) => value.write(f),
            Arg::Param(name) => write!(f, "${name}"),
        }
    }
}

impl Literal for String {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Quoted(self).fmt(f)
    }
}

impl Literal for Id {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Quoted(&self.0).fmt(f)
    }
}

impl Literal for u64 {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.fmt(f)
    }
}

impl Literal for f64 {
    /// Whole numbers without a point; very large and small ones with an exponent.
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let text = format!("{self:?}");
        f.write_str(text.strip_suffix(".0").unwrap_or(&text))
    }
}

impl Literal for Value {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.fmt(f)
    }
}

impl Literal for ValueList {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        commas::<Spanned<Arg<Value>>>(f, self)?;
        f.write_str(")")
    }
}

impl Literal for Time {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "'{self}'")
    }
}

impl Literal for ItemRef {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.fmt(f)
    }
}

impl Literal for Passage {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.vector {
            Some(vector) => vector.write(f),
            None => Quoted(&self.text).fmt(f),
        }
    }
}

impl Literal for Vector {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "${}", self.param)
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => Quoted(text).fmt(f),
            Value::Number(number) => number.fmt(f),
            Value::Duration(duration) => duration.fmt(f),
            Value::Bool(value) => value.fmt(f),
            Value::Word(name) => name.fmt(f),
        }
    }
}

impl Display for Number {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Number::Natural(n) => n.fmt(f),
            Number::Negative(n) => n.fmt(f),
            // `Debug` keeps the point or the exponent that makes it no whole number.
            Number::Real(n) => write!(f, "{n:?}"),
        }
    }
}

impl Display for Duration {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.count(), self.unit())
    }
}

impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, part) in self.parts().iter().enumerate() {
            if index > 0 {
                f.write_str(".")?;
            }
            if is_word(part) || (self.is_all_fields() && part == "*") {
                f.write_str(part)?;
            } else {
                Quoted(part).fmt(f)?;
            }
        }
        Ok(())
    }
}

impl Display for ItemRef {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            ItemRef::Id(id) => id.fmt(f),
            ItemRef::Key(key) => Quoted(key).fmt(f),
        }
    }
}

impl Display for Ref {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Ref::Item(item) => item.fmt(f),
            Ref::Page(key) => write!(f, "page {key}"),
            Ref::Episode(id) => write!(f, "episode {id}"),
        }
    }
}

impl Display for Pointer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.target.fmt(f)?;
        optional(f, " field ", &self.field)?;
        match &self.excerpt {
            Some(Excerpt::Bytes { start, end }) => write!(f, " bytes {start} to {end}"),
            Some(Excerpt::Quoting(text)) => write!(f, " quoting {text}"),
            None => Ok(()),
        }
    }
}

impl Display for Thing {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Thing::Noun(noun) => noun.fmt(f),
            Thing::Claims => f.write_str("claims"),
            Thing::Edges => f.write_str("edges"),
            Thing::Events => f.write_str("events"),
            Thing::Receipts => f.write_str("receipts"),
        }
    }
}
