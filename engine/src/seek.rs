//! Seeking: the few items a predicate can hold for at all, found by their keys or numbers before any column is scanned.
//!
//! A conjunction that asks for a key or a number has at most as many answers as it names. They are looked up and then
//! asked about the rest one by one; a set of all items is never made.
//!
//! Invariant: `seek(p)` holds every item for which `p` holds, whenever it gives anything.

use crate::Result;
use crate::item::ItemId;
use crate::state::State;
use holotype_query::ast::{Predicate, Test};
use holotype_query::{Arg, Op, Spanned, Value};

/// The items a predicate may hold for, ascending; nothing when it may hold for any.
pub(crate) fn seek(state: &State, predicate: &Predicate) -> Result<Option<Vec<ItemId>>> {
    match predicate {
        Predicate::And(parts) => {
            let mut fewest: Option<Vec<ItemId>> = None;
            for part in parts {
                let found = seek(state, part)?;
                fewest = match (fewest, found) {
                    (Some(a), Some(b)) => Some(if b.len() < a.len() { b } else { a }),
                    (a, b) => a.or(b),
                };
            }
            Ok(fewest)
        }
        Predicate::Or(parts) => {
            let mut all = Vec::new();
            for part in parts {
                match seek(state, part)? {
                    Some(found) => all.extend(found),
                    None => return Ok(None),
                }
            }
            all.sort_unstable();
            all.dedup();
            Ok(Some(all))
        }
        Predicate::Not(_) => Ok(None),
        Predicate::Test(test) => of_test(state, &test.node),
    }
}

fn of_test(state: &State, test: &Test) -> Result<Option<Vec<ItemId>>> {
    let (name, values): (_, Vec<&Value>) = match test {
        Test::Compare { name, op: Op::Eq, value } => (name, vec![value.node.bound()]),
        Test::In { name, not: false, list } => (name, list.node.bound().iter().map(bound).collect()),
        _ => return Ok(None),
    };
    let mut found = Vec::with_capacity(values.len());
    for value in values {
        match (name.node.word(), value) {
            (Some("key"), Value::Text(key)) => found.extend(state.item_by_key(key)?),
            (Some("item"), Value::Number(number)) => {
                let id = number.as_i64().and_then(|id| u32::try_from(id).ok());
                found.extend(id.filter(|id| *id < state.bound()).map(ItemId));
            }
            _ => return Ok(None),
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(Some(found))
}

fn bound(value: &Spanned<Arg<Value>>) -> &Value {
    value.node.bound()
}
