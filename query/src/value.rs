//! Values: what may stand where a statement needs one.
//!
//! A place that takes a value also takes a parameter, so the tree holds an
//! [`Arg`]: the value, or the name of the parameter that will give it. A
//! [`plan`](crate::plan) holds the values.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::attribute_id::AttributeId;
use crate::span::Spanned;
use crate::time;
use crate::words::Unit;

/// A value, or the parameter that will give it.
#[derive(Clone, Debug, PartialEq)]
pub enum Arg<T> {
    /// The value itself.
    Value(T),
    /// `$name`: the name, without the dollar sign.
    Param(String),
}

impl<T> Arg<T> {
    /// The value, if it is there already.
    pub fn value(&self) -> Option<&T> {
        match self {
            Arg::Value(value) => Some(value),
            Arg::Param(_) => None,
        }
    }
}

/// The id of an episode, a page, a version or a receipt: a text, also where a whole number is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Id(pub String);

/// A dotted name: an attribute, a field, a setting, a column.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    parts: Arc<[String]>,
    attribute: Option<AttributeId>,
}

impl Name {
    /// The name with these parts between the dots; the first is a word, none is missing.
    pub fn new(parts: impl Into<Arc<[String]>>) -> Name {
        let parts = parts.into();
        let attribute = match &*parts {
            // A field is asked by its own name.
            [word] => AttributeId::named(word).filter(|id| *id != AttributeId::Fields),
            [first, _, ..] if first == AttributeId::Fields.as_str() => Some(AttributeId::Fields),
            _ => None,
        };
        Name { parts, attribute }
    }

    /// The parts between the dots.
    pub fn parts(&self) -> &[String] {
        &self.parts
    }

    /// The parts with dots between them, unquoted: a column's heading.
    pub fn dotted(&self) -> String {
        self.parts.join(".")
    }

    /// The name when it has a single part.
    pub fn word(&self) -> Option<&str> {
        match &*self.parts {
            [word] => Some(word),
            _ => None,
        }
    }

    /// The attribute or column that it names, found when the name was made.
    pub fn attribute(&self) -> Option<AttributeId> {
        self.attribute
    }

    /// The path of a field when this is `fields.NAME` or `fields.NAME.MEMBER`: its name, and the members below it.
    pub fn field(&self) -> Option<&[String]> {
        match &*self.parts {
            [_, path @ ..] if self.attribute == Some(AttributeId::Fields) => Some(path),
            _ => None,
        }
    }

    /// The name of a field when this is `fields.NAME`, `fields.*` being all of them.
    pub fn is_all_fields(&self) -> bool {
        matches!(self.field(), Some([all]) if all == "*")
    }
}

impl From<&str> for Name {
    /// The name with this one part.
    fn from(word: &str) -> Name {
        Name::new([word.to_owned()])
    }
}

impl From<AttributeId> for Name {
    fn from(id: AttributeId) -> Name {
        Name::from(id.as_str())
    }
}

/// A literal value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A quoted string.
    Text(String),
    /// A number.
    Number(Number),
    /// A length of time.
    Duration(Duration),
    /// `true` or `false`.
    Bool(bool),
    /// An unquoted word: one of the known values of an attribute.
    Word(Name),
}

/// A number, exact as far as it can be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A whole number, zero or above.
    Natural(u64),
    /// A whole number below zero.
    Negative(i64),
    /// Anything else that is finite.
    Real(f64),
}

impl Number {
    /// The nearest double.
    pub fn as_f64(self) -> f64 {
        match self {
            Number::Natural(n) => n as f64,
            Number::Negative(n) => n as f64,
            Number::Real(n) => n,
        }
    }

    /// The number, if it is whole and fits.
    pub fn as_u64(self) -> Option<u64> {
        match self {
            Number::Natural(n) => Some(n),
            Number::Negative(_) | Number::Real(_) => None,
        }
    }

    /// The number, if it is whole and fits.
    pub fn as_i64(self) -> Option<i64> {
        match self {
            Number::Natural(n) => i64::try_from(n).ok(),
            Number::Negative(n) => Some(n),
            Number::Real(_) => None,
        }
    }
}

impl From<i64> for Number {
    fn from(n: i64) -> Number {
        match u64::try_from(n) {
            Ok(n) => Number::Natural(n),
            Err(_) => Number::Negative(n),
        }
    }
}

/// A length of time, in the unit it was written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duration {
    count: u64,
    unit: Unit,
}

impl Duration {
    /// `count` units, unless that is more microseconds than an `i64` holds.
    pub fn new(count: u64, unit: Unit) -> Option<Duration> {
        let micros = count.checked_mul(unit.micros())?;
        i64::try_from(micros).ok()?;
        Some(Duration { count, unit })
    }

    /// A length of time in the largest unit that divides it, cut at the longest there is.
    pub fn from_millis(millis: u64) -> Duration {
        let millis = millis.min(i64::MAX as u64 / 1_000);
        let units = [Unit::Weeks, Unit::Days, Unit::Hours, Unit::Minutes, Unit::Seconds];
        let per = |unit: Unit| unit.micros() / 1_000;
        let divides = |unit: &Unit| millis > 0 && millis.is_multiple_of(per(*unit));
        let unit = units.into_iter().find(divides).unwrap_or(Unit::Milliseconds);
        Duration { count: millis / per(unit), unit }
    }

    /// The number of units.
    pub fn count(self) -> u64 {
        self.count
    }

    /// The unit.
    pub fn unit(self) -> Unit {
        self.unit
    }

    /// The length in microseconds; never above `i64::MAX`.
    pub fn micros(self) -> u64 {
        self.count * self.unit.micros()
    }
}

/// The text is not a duration such as `7d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a duration: expected digits and one of ms, s, m, h, d, w, as in '7d'")]
pub struct NotADuration;

impl FromStr for Duration {
    type Err = NotADuration;

    fn from_str(text: &str) -> Result<Duration, NotADuration> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (count, unit) = text.split_at(digits);
        let count = count.parse().map_err(|_| NotADuration)?;
        let unit = Unit::from_word(unit).ok_or(NotADuration)?;
        Duration::new(count, unit).ok_or(NotADuration)
    }
}

/// A moment on the clock. Written as an RFC 3339 string, printed in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    /// Microseconds since 1970-01-01T00:00:00Z.
    pub micros: i64,
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        time::write_rfc3339(self.micros, f)
    }
}

/// Which item: by the caller's key or by its internal id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ItemRef {
    /// The internal id.
    Id(u64),
    /// The caller's key.
    Key(String),
}

/// A text that may come together with its vector.
///
/// Source text gives the text only; a parameter `{"text": …, "vector": […]}` gives
/// both.
#[derive(Clone, Debug, PartialEq)]
pub struct Passage {
    /// The text.
    pub text: String,
    /// Its vector, when the parameter brought one.
    pub vector: Option<Vector>,
}

/// A vector. It has no literal form: it comes from a parameter and is printed as it.
#[derive(Clone, Debug, PartialEq)]
pub struct Vector {
    /// The parameter it came from.
    pub param: String,
    /// Its components, all finite.
    pub components: Vec<f32>,
}

/// A list of values, of which each may be a parameter of its own.
pub type ValueList = Vec<Spanned<Arg<Value>>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_told_in_the_largest_unit_that_divides_it() {
        for (millis, count, unit) in [
            (0, 0, Unit::Milliseconds),
            (1_500, 1_500, Unit::Milliseconds),
            (90_000, 90, Unit::Seconds),
            (1_209_600_000, 2, Unit::Weeks),
        ] {
            let length = Duration::from_millis(millis);
            assert_eq!((length.count(), length.unit()), (count, unit), "{millis}");
        }
        assert!(Duration::from_millis(u64::MAX).micros() <= i64::MAX as u64);
    }
}
