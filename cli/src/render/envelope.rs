//! Outputs as JSON: the answer envelope of a recall, and `verb`, `columns`, `rows`, `notes` of any other statement.

use holotype::answer::{Output, Table};
use serde_json::{Map, Value, json};

/// The output as one JSON object, under the caller's id if there is one.
pub(crate) fn of(output: &Output, id: Option<&str>) -> Value {
    match output {
        Output::Answer(answer) => answer.to_json(id),
        Output::Table(table) => of_table(table, id),
        other => json!({"id": id, "verb": format!("{other:?}")}),
    }
}

fn of_table(table: &Table, id: Option<&str>) -> Value {
    let mut object = Map::new();
    if let Some(id) = id {
        object.insert("id".into(), id.into());
    }
    object.insert("verb".into(), table.verb.into());
    object.insert("columns".into(), table.columns.iter().map(String::as_str).collect());
    object.insert("rows".into(), table.rows_to_json().into());
    object.insert("notes".into(), table.notes.iter().map(String::as_str).collect());
    // A check always says how it ended.
    if table.failed || table.verb == "verify" {
        object.insert("failed".into(), table.failed.into());
    }
    object.into()
}
