//! Key lookup: finds the items a predicate can match by their keys or ids, without scanning columns.
//!
//! A conjunction that tests a key or an id for equality matches at most the items it names. They are looked up and
//! then tested one by one, so no set over all items is built.
//!
//! Invariant: if `look_up_keys(p)` returns a lookup, it contains every item that matches `p`; an exact lookup
//! contains no other.

use crate::Result;
use crate::model::item::ItemId;
use crate::state::State;
use holotype_query::plan::{Predicate, Test};
use holotype_query::{Op, Value};

/// Items found without a scan.
pub(crate) struct KeyLookup {
    /// Sorted by id, each with the key it was found by.
    pub(crate) ids: Vec<(ItemId, Option<String>)>,
    /// All items match the whole predicate.
    pub(crate) exact: bool,
}

/// Looks up the items that may match; `None` if any item may.
pub(crate) fn look_up_keys(state: &State, predicate: &Predicate) -> Result<Option<KeyLookup>> {
    match predicate {
        Predicate::And(parts) => {
            let mut fewest: Option<KeyLookup> = None;
            for part in parts {
                let found = look_up_keys(state, part)?;
                fewest = match (fewest, found) {
                    (Some(a), Some(b)) => Some(if b.ids.len() < a.ids.len() { b } else { a }),
                    (a, b) => a.or(b),
                };
            }
            // The other parts of the conjunction remain to be tested.
            Ok(fewest.map(|lookup| KeyLookup { exact: false, ..lookup }))
        }
        Predicate::Or(parts) => {
            let mut all = KeyLookup { ids: Vec::new(), exact: true };
            for part in parts {
                let Some(found) = look_up_keys(state, part)? else { return Ok(None) };
                all.ids.extend(found.ids);
                all.exact &= found.exact;
            }
            sort_unique(&mut all.ids);
            Ok(Some(all))
        }
        Predicate::Not(_) => Ok(None),
        Predicate::Test(test) => of_test(state, test),
    }
}

fn of_test(state: &State, test: &Test) -> Result<Option<KeyLookup>> {
    let (name, values): (_, Vec<&Value>) = match test {
        Test::Compare { name, op: Op::Eq, value } => (name, vec![value]),
        Test::In { name, not: false, list } => (name, list.iter().collect()),
        _ => return Ok(None),
    };
    let mut found = Vec::with_capacity(values.len());
    for value in values {
        match (name.word(), value) {
            (Some("key"), Value::Text(key)) => found.extend(state.item_by_key(key)?.map(|id| (id, Some(key.clone())))),
            (Some("item"), Value::Number(number)) => {
                let id = number.as_i64().and_then(|id| u32::try_from(id).ok());
                found.extend(id.filter(|id| *id < state.bound()).map(|id| (ItemId(id), None)));
            }
            _ => return Ok(None),
        }
    }
    sort_unique(&mut found);
    Ok(Some(KeyLookup { ids: found, exact: true }))
}

/// Sorts by id and removes duplicates.
fn sort_unique(ids: &mut Vec<(ItemId, Option<String>)>) {
    ids.sort_unstable();
    ids.dedup_by_key(|(id, _)| *id);
}
