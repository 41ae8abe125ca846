//! Seeking: the few items a predicate can hold for at all, found by their keys or numbers before any column is scanned.
//!
//! A conjunction that asks for a key or a number has at most as many answers as it names. They are looked up and then
//! asked about the rest one by one; a set of all items is never made.
//!
//! Invariant: `seek(p)` holds every item for which `p` holds, whenever it gives anything; and no other, when it is exact.

use crate::Result;
use crate::item::ItemId;
use crate::state::State;
use holotype_query::ast::{Predicate, Test};
use holotype_query::{Arg, Op, Spanned, Value};

/// What was found without looking at every item.
pub(crate) struct Sought {
    /// Ascending, with the key an item was found by.
    pub(crate) ids: Vec<(ItemId, Option<String>)>,
    /// The predicate holds for each of them.
    pub(crate) exact: bool,
}

/// The items a predicate may hold for; nothing when it may hold for any.
pub(crate) fn seek(state: &State, predicate: &Predicate) -> Result<Option<Sought>> {
    match predicate {
        Predicate::And(parts) => {
            let mut fewest: Option<Sought> = None;
            for part in parts {
                let found = seek(state, part)?;
                fewest = match (fewest, found) {
                    (Some(a), Some(b)) => Some(if b.ids.len() < a.ids.len() { b } else { a }),
                    (a, b) => a.or(b),
                };
            }
            // The other parts are still to be asked.
            Ok(fewest.map(|sought| Sought { exact: false, ..sought }))
        }
        Predicate::Or(parts) => {
            let mut all = Sought { ids: Vec::new(), exact: true };
            for part in parts {
                let Some(found) = seek(state, part)? else { return Ok(None) };
                all.ids.extend(found.ids);
                all.exact &= found.exact;
            }
            in_order(&mut all.ids);
            Ok(Some(all))
        }
        Predicate::Not(_) => Ok(None),
        Predicate::Test(test) => of_test(state, &test.node),
    }
}

fn of_test(state: &State, test: &Test) -> Result<Option<Sought>> {
    let (name, values): (_, Vec<&Value>) = match test {
        Test::Compare { name, op: Op::Eq, value } => (name, vec![value.node.bound()]),
        Test::In { name, not: false, list } => (name, list.node.bound().iter().map(bound).collect()),
        _ => return Ok(None),
    };
    let mut found = Vec::with_capacity(values.len());
    for value in values {
        match (name.node.word(), value) {
            (Some("key"), Value::Text(key)) => found.extend(state.item_by_key(key)?.map(|id| (id, Some(key.clone())))),
            (Some("item"), Value::Number(number)) => {
                let id = number.as_i64().and_then(|id| u32::try_from(id).ok());
                found.extend(id.filter(|id| *id < state.bound()).map(|id| (ItemId(id), None)));
            }
            _ => return Ok(None),
        }
    }
    in_order(&mut found);
    Ok(Some(Sought { ids: found, exact: true }))
}

/// Ascending, each item once.
fn in_order(ids: &mut Vec<(ItemId, Option<String>)>) {
    ids.sort_unstable();
    ids.dedup_by_key(|(id, _)| *id);
}

fn bound(value: &Spanned<Arg<Value>>) -> &Value {
    value.node.bound()
}
