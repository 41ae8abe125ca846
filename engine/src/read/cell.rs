//! Cells: the values that statements compare, sort by and return.
//!
//! Logic is two-valued: a test on an absent attribute is false, whatever the operator (memory model, section 2).

use crate::model::time;
use holotype_query::{AttributeId, Name, Number, Op, Value};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// One value of a row.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Cell {
    /// A text, or the name of an enumerated value.
    Text(String),
    /// A floating-point number.
    Number(f64),
    /// A whole number.
    Integer(i64),
    /// A boolean.
    Bool(bool),
    /// An instant, in microseconds since the epoch, UTC.
    Time(i64),
    /// A duration in microseconds.
    Duration(i64),
    /// Several values.
    List(Vec<Cell>),
    /// A JSON object.
    Json(serde_json::Map<String, serde_json::Value>),
}

/// The cells of a row that is not an item, by column.
pub(crate) type Cells = BTreeMap<AttributeId, Cell>;

/// The cell with this name.
pub(crate) fn named(row: &Cells, name: &Name) -> Option<Cell> {
    row.get(&name.attribute()?).cloned()
}

impl Cell {
    /// A cell of a text.
    pub fn text(text: impl Into<String>) -> Cell {
        Cell::Text(text.into())
    }

    /// The cell of a JSON value; `None` for null, which is absent.
    pub fn of_json(value: &serde_json::Value) -> Option<Cell> {
        use serde_json::Value;
        Some(match value {
            Value::Null => return None,
            Value::Bool(yes) => Cell::Bool(*yes),
            Value::Number(number) => match number.as_i64() {
                Some(whole) => Cell::Integer(whole),
                None => Cell::Number(number.as_f64()?),
            },
            Value::String(text) => Cell::text(text.as_str()),
            Value::Array(values) => Cell::List(values.iter().filter_map(Cell::of_json).collect()),
            Value::Object(members) => Cell::Json(members.clone()),
        })
    }

    /// A cell of a count.
    pub fn count(count: u64) -> Cell {
        Cell::Integer(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// Compares two cells; `None` if their types are not comparable.
    pub fn compare(&self, other: &Cell) -> Option<Ordering> {
        match (self, other) {
            (Cell::Text(a), Cell::Text(b)) => Some(a.cmp(b)),
            (Cell::Integer(a), Cell::Integer(b))
            | (Cell::Time(a), Cell::Time(b))
            | (Cell::Duration(a), Cell::Duration(b)) => Some(a.cmp(b)),
            (Cell::Bool(a), Cell::Bool(b)) => Some(a.cmp(b)),
            (Cell::List(a), Cell::List(b)) => {
                let first_difference =
                    a.iter().zip(b).map(|(a, b)| a.compare(b)).find(|order| *order != Some(Ordering::Equal));
                first_difference.unwrap_or_else(|| Some(a.len().cmp(&b.len())))
            }
            _ => self.as_number()?.partial_cmp(&other.as_number()?),
        }
    }

    /// A total order over all cells, which agrees with [`Cell::compare`] within a type. A single value sorts like a
    /// list of it.
    pub fn order(&self, other: &Cell) -> Ordering {
        let sort = |cell: &Cell| match cell {
            Cell::Bool(_) => 0,
            Cell::Number(_) | Cell::Integer(_) => 1,
            Cell::Duration(_) => 2,
            Cell::Time(_) => 3,
            Cell::Text(_) => 4,
            Cell::List(_) => 5,
            Cell::Json(_) => 6,
        };
        match (self, other) {
            (Cell::Json(_), Cell::Json(_)) => self.to_string().cmp(&other.to_string()),
            (Cell::List(a), Cell::List(b)) => {
                let pairs = a.iter().zip(b).map(|(a, b)| a.order(b));
                pairs.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
            }
            (Cell::List(a), b) => a.first().map_or(Ordering::Less, |a| a.order(b)).then(a.len().cmp(&1)),
            (_, Cell::List(_)) => other.order(self).reverse(),
            (Cell::Integer(a), Cell::Integer(b)) => a.cmp(b),
            (Cell::Number(_) | Cell::Integer(_), Cell::Number(_) | Cell::Integer(_)) => {
                // The two zeros are one number.
                let number = |cell: &Cell| cell.as_number().unwrap_or(f64::NAN) + 0.0;
                number(self).total_cmp(&number(other))
            }
            _ => sort(self).cmp(&sort(other)).then_with(|| self.compare(other).unwrap_or(Ordering::Equal)),
        }
    }

    fn as_number(&self) -> Option<f64> {
        match self {
            Cell::Number(number) => Some(*number),
            Cell::Integer(number) => Some(*number as f64),
            _ => None,
        }
    }

    /// The cell as JSON.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Cell::Text(text) => text.as_str().into(),
            Cell::Number(number) => round(*number).into(),
            Cell::Integer(number) => {
                if number.unsigned_abs() > 1 << 53 {
                    number.to_string().into()
                } else {
                    (*number).into()
                }
            }
            Cell::Bool(yes) => (*yes).into(),
            Cell::Time(micros) => time::format(*micros).into(),
            Cell::Duration(micros) => duration(*micros).into(),
            Cell::List(cells) => cells.iter().map(Cell::to_json).collect(),
            Cell::Json(members) => members.clone().into(),
        }
    }
}

/// The approximate size of a row's cells in bytes.
pub(crate) fn kept_len(cells: &[Option<Cell>]) -> usize {
    let long = |cell: &Cell| match cell {
        Cell::Text(text) => text.len(),
        Cell::List(cells) => cells.iter().map(|cell| size_of::<Cell>() + cell.to_string().len()).sum(),
        Cell::Json(_) => cell.to_string().len(),
        _ => 0,
    };
    size_of_val(cells) + cells.iter().flatten().map(long).sum::<usize>()
}

/// Rounds away the noise of the last binary digits.
pub(crate) fn round(number: f64) -> f64 {
    let rounded = (number * 1e6).round() / 1e6;
    if rounded.is_finite() { rounded } else { number }
}

/// The units of durations and their microseconds, longest first.
const UNITS: [(i64, &str); 7] = [
    (604_800_000_000, "w"),
    (86_400_000_000, "d"),
    (3_600_000_000, "h"),
    (60_000_000, "m"),
    (1_000_000, "s"),
    (1_000, "ms"),
    (1, "us"),
];

/// A duration for a person: its largest unit and the next, as in `6m 13s`; what is below them is cut off.
pub(crate) fn readable_duration(micros: i64) -> String {
    let sign = if micros < 0 { "-" } else { "" };
    let micros = micros.saturating_abs();
    let Some(largest) = UNITS.iter().position(|(unit, _)| micros >= *unit) else { return "0s".to_owned() };
    let mut rest = micros;
    let mut parts = Vec::new();
    for (unit, name) in UNITS.iter().skip(largest).take(2) {
        if rest >= *unit {
            parts.push(format!("{}{name}", rest / unit));
        }
        rest %= unit;
    }
    format!("{sign}{}", parts.join(" "))
}

/// A duration in its largest whole unit, exact to the microsecond.
pub(crate) fn duration(micros: i64) -> String {
    for (unit, name) in UNITS {
        if micros != 0 && micros % unit == 0 {
            return format!("{}{name}", micros / unit);
        }
    }
    format!("{micros}us")
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Cell::Text(text) => f.write_str(text),
            Cell::Number(number) => write!(f, "{}", round(*number)),
            Cell::Integer(number) => write!(f, "{number}"),
            Cell::Bool(yes) => write!(f, "{yes}"),
            Cell::Time(micros) => f.write_str(&time::format(*micros)),
            Cell::Duration(micros) => f.write_str(&readable_duration(*micros)),
            Cell::Json(members) => f.write_str(&serde_json::Value::Object(members.clone()).to_string()),
            Cell::List(cells) => {
                for (index, cell) in cells.iter().enumerate() {
                    write!(f, "{}{cell}", if index == 0 { "" } else { ", " })?;
                }
                Ok(())
            }
        }
    }
}

/// A statement's value converted to the type of the compared cell, if possible.
pub(crate) fn like(value: &Value, sample: &Cell) -> Option<Cell> {
    Some(match (value, sample) {
        (Value::Text(text), Cell::Time(_)) => Cell::Time(time::parse(text).ok()?),
        (Value::Text(text), Cell::Text(_)) => Cell::Text(text.clone()),
        (Value::Text(text), Cell::Bool(_)) => Cell::Bool(text.parse().ok()?),
        (Value::Text(text), Cell::Number(_) | Cell::Integer(_)) => Cell::Number(text.trim().parse().ok()?),
        (Value::Number(number), Cell::Text(text)) => {
            // A field that holds a number compares as a number; see `compare`.
            text.trim().parse::<f64>().ok()?;
            Cell::Number(number.as_f64())
        }
        (Value::Number(number), Cell::Time(_)) => number.as_i64().map_or(of_number(*number), Cell::Time),
        (Value::Number(number), _) => of_number(*number),
        (Value::Duration(duration), _) => Cell::Duration(i64::try_from(duration.micros()).ok()?),
        (Value::Bool(yes), Cell::Text(_)) => Cell::Text(yes.to_string()),
        (Value::Bool(yes), _) => Cell::Bool(*yes),
        (Value::Word(name), _) => Cell::Text(name.dotted()),
        (Value::Text(_), _) => return None,
    })
}

fn of_number(number: Number) -> Cell {
    match number.as_i64() {
        Some(whole) => Cell::Integer(whole),
        None => Cell::Number(number.as_f64()),
    }
}

/// Evaluates `cell op value`. A list passes if any member does.
pub(crate) fn holds(cell: &Cell, op: Op, value: &Value) -> bool {
    if let Cell::List(cells) = cell {
        return cells.iter().any(|cell| holds(cell, op, value));
    }
    let Some(other) = like(value, cell) else { return op == Op::Ne };
    let order = match (cell, &other) {
        (Cell::Text(text), Cell::Number(_) | Cell::Integer(_)) => {
            text.trim().parse::<f64>().ok().and_then(|number| Cell::Number(number).compare(&other))
        }
        _ => cell.compare(&other),
    };
    match (op, order) {
        (Op::Ne, order) => order != Some(Ordering::Equal),
        (_, None) => false,
        (Op::Eq, Some(order)) => order == Ordering::Equal,
        (Op::Lt, Some(order)) => order == Ordering::Less,
        (Op::Le, Some(order)) => order != Ordering::Greater,
        (Op::Gt, Some(order)) => order == Ordering::Greater,
        (Op::Ge, Some(order)) => order != Ordering::Less,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_hold_numbers_compare_as_numbers() {
        let value = |n: i64| Value::Number(n.into());
        assert!(holds(&Cell::text("450"), Op::Gt, &value(400)));
        assert!(holds(&Cell::text(" 450.5 "), Op::Gt, &value(450)));
        assert!(!holds(&Cell::text("cheap"), Op::Gt, &value(400)));
        assert!(holds(&Cell::text("450"), Op::Eq, &Value::Text("450".into())));
        assert!(holds(&Cell::Integer(3), Op::Ne, &value(4)));
    }

    #[test]
    fn the_order_agrees_with_comparing() {
        let numbers = [-1.5, -0.0, 0.0, 0.25, 3.0].map(Cell::Number);
        for (a, b) in numbers.iter().flat_map(|a| numbers.iter().map(move |b| (a, b))) {
            assert_eq!(Some(a.order(b)), a.compare(b), "{a:?} {b:?}");
        }
        assert_eq!(Cell::Integer(3).order(&Cell::Number(3.0)), Ordering::Equal);
    }

    #[test]
    fn durations_are_readable_as_text_and_exact_as_json() {
        let age = Cell::Duration(373_853_094);
        assert_eq!((age.to_string().as_str(), age.to_json()), ("6m 13s", "373853094us".into()));
        let text = |micros: i64| Cell::Duration(micros).to_string();
        assert_eq!([0, 7, 1_500, 90_000_000].map(text), ["0s", "7us", "1ms 500us", "1m 30s"]);
        assert_eq!([86_400_000_000, 694_861_000_000, -3_600_000_001].map(text), ["1d", "1w 1d", "-1h"]);
    }

    #[test]
    fn durations_are_written_in_their_largest_whole_unit() {
        assert_eq!(duration(604_800_000_000), "1w");
        assert_eq!(duration(90_000_000), "90s");
        assert_eq!(duration(1), "1us");
    }
}
