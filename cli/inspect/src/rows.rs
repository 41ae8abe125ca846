//! The rows of statements as JSON.

use crate::{Error, Result};
use holotype::answer::Output;
use holotype::query::Params;
use holotype::{ItemId, Snapshot};
use serde_json::Value;

/// The rows of a statement as objects.
pub(crate) fn rows(snapshot: &Snapshot, statement: &str, params: Params) -> Result<Vec<Value>> {
    match snapshot.query(statement, &params)?.pop() {
        Some(Output::Table(table)) => Ok(table.rows_to_json()),
        _ => Err(Error::Invalid(format!("{statement}: expected a table"))),
    }
}

/// The rows of a statement without parameters.
pub(crate) fn table(snapshot: &Snapshot, statement: &str) -> Result<Vec<Value>> {
    rows(snapshot, statement, Params::new())
}

/// The item of a row, by its number.
pub(crate) fn item_of(row: &Value) -> Option<ItemId> {
    row["item"].as_u64().and_then(|id| u32::try_from(id).ok()).map(ItemId)
}
