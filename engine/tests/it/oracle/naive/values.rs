//! The order of values, and what a limit leaves.

use holotype::cell::Cell;
use holotype::query::plan::Listing;
use holotype::query::{Op, Value};
use std::cmp::Ordering;

pub(crate) fn shown(cell: &Option<Cell>) -> String {
    cell.as_ref().map_or("-".to_owned(), |cell| format!("{cell:?}"))
}

pub(super) fn cut<T>(ids: Vec<T>, listing: &Listing) -> Vec<T> {
    let limit = listing.limit.map_or(usize::MAX, |limit| limit as usize);
    ids.into_iter().skip(listing.skip as usize).take(limit).collect()
}

/// The texts of a cell: its own, or those of a list.
pub(super) fn texts(cell: Option<&Cell>) -> Vec<String> {
    match cell {
        None => Vec::new(),
        Some(Cell::List(cells)) => cells.iter().map(ToString::to_string).collect(),
        Some(cell) => vec![cell.to_string()],
    }
}

pub(super) fn number(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Number(number) => Some(*number),
        Cell::Integer(number) => Some(*number as f64),
        _ => None,
    }
}

/// The order of two cells of one sort.
pub(super) fn compared(a: &Cell, b: &Cell) -> Option<Ordering> {
    match (a, b) {
        (Cell::Text(a), Cell::Text(b)) => Some(a.cmp(b)),
        (Cell::Time(a), Cell::Time(b)) | (Cell::Duration(a), Cell::Duration(b)) => Some(a.cmp(b)),
        (Cell::Bool(a), Cell::Bool(b)) => Some(a.cmp(b)),
        (Cell::List(a), Cell::List(b)) => {
            let first = a.iter().zip(b).filter_map(|(a, b)| compared(a, b)).find(|order| order.is_ne());
            Some(first.unwrap_or_else(|| a.len().cmp(&b.len())))
        }
        (Cell::List(_), one) => compared(a, &Cell::List(vec![one.clone()])),
        (one, Cell::List(_)) => compared(&Cell::List(vec![one.clone()]), b),
        _ => number(a)?.partial_cmp(&number(b)?),
    }
}

/// True if a cell stands so to a value. A list does when one of its members does.
pub(super) fn compares(cell: &Cell, op: Op, value: &Value) -> bool {
    if let Cell::List(cells) = cell {
        return cells.iter().any(|cell| compares(cell, op, value));
    }
    let order = match (cell, value) {
        (Cell::Time(at), Value::Text(text)) => holotype::time::parse(text).ok().map(|time| at.cmp(&time)),
        (Cell::Time(at), Value::Number(micros)) => micros.as_i64().map(|micros| at.cmp(&micros)),
        (Cell::Duration(length), Value::Duration(with)) => Some(length.cmp(&(with.micros() as i64))),
        (Cell::Bool(yes), Value::Bool(with)) => Some(yes.cmp(with)),
        (Cell::Text(text), Value::Text(with)) => Some(text.cmp(with)),
        (Cell::Text(text), Value::Word(name)) => Some(text.cmp(&name.dotted())),
        (Cell::Text(text), Value::Number(with)) => {
            text.trim().parse().ok().and_then(|it: f64| it.partial_cmp(&with.as_f64()))
        }
        (cell, Value::Number(with)) => number(cell).and_then(|it| it.partial_cmp(&with.as_f64())),
        _ => None,
    };
    match op {
        Op::Eq => order == Some(Ordering::Equal),
        Op::Ne => order != Some(Ordering::Equal),
        Op::Lt => order == Some(Ordering::Less),
        Op::Le => order.is_some_and(Ordering::is_le),
        Op::Gt => order == Some(Ordering::Greater),
        Op::Ge => order.is_some_and(Ordering::is_ge),
    }
}

/// True if a glob matches a text of plain letters.
pub(super) fn matches(glob: &[u8], text: &[u8]) -> bool {
    match (glob.first(), text.first()) {
        (None, None) => true,
        (Some(b'*'), _) => matches(&glob[1..], text) || !text.is_empty() && matches(glob, &text[1..]),
        (Some(b'?'), Some(_)) => matches(&glob[1..], &text[1..]),
        (Some(a), Some(b)) => a.eq_ignore_ascii_case(b) && matches(&glob[1..], &text[1..]),
        _ => false,
    }
}
