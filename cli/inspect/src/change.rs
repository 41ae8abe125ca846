//! Changes from the page, with `--allow-write`: a mark, a retraction, or the receipt of a question.
//!
//! Each is one statement in a commit of its own. Its text is fixed here; what the page sends is a parameter.

use crate::views::asked as recall;
use crate::{Error, Result};
use holotype::Holotype;
use holotype::answer::Output;
use holotype::query::{ParamValue, Params};
use serde_json::{Value, json};

/// Marks or retracts an item: `{"key", "as": "failed" | "success" | "unknown" | "retracted", "because"}`.
pub(crate) fn change(database: &Holotype, asked: &Value) -> Result<Value> {
    let text = |name: &str| asked[name].as_str().unwrap_or_default().trim().to_owned();
    let (key, because) = (text("key"), text("because"));
    if key.is_empty() || because.is_empty() {
        return Err(Error::Invalid("a change needs a key and a reason".to_owned()));
    }
    let statement = match text("as").as_str() {
        "failed" => "mark $k failed because $b",
        "success" => "mark $k success because $b",
        "unknown" => "mark $k unknown because $b",
        "retracted" => "retract $k because $b",
        other => {
            return Err(Error::Invalid(format!("expected failed, success, unknown or retracted, found {other:?}")));
        }
    };
    let params = Params::from([("k".to_owned(), ParamValue::Text(key)), ("b".to_owned(), ParamValue::Text(because))]);
    match database.query(statement, &params)?.pop() {
        Some(Output::Table(table)) => Ok(json!({"rows": table.rows_to_json(), "notes": table.notes})),
        _ => Ok(json!({"rows": [], "notes": []})),
    }
}

/// Asks a question and keeps the receipt of its answer.
pub(crate) fn keep_receipt(database: &Holotype, asked: &Value) -> Result<Value> {
    let (statement, params) = recall(asked)?;
    match database.query(&format!("{statement} with receipt"), &params)?.pop() {
        Some(Output::Answer(answer)) => Ok(json!({"receipt": answer.receipt})),
        _ => Err(Error::Invalid("expected a recall".to_owned())),
    }
}
