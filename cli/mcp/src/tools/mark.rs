//! `mark`: an outcome, feedback, or a retraction.

use super::{Effect, Outcome, described, properties, words};
use crate::memory::{Call, item};
use crate::problem::Problem;
use crate::quoting::name;
use crate::reply::Reply;
use holotype::Layer;
use holotype::plural::counted;
use rmcp::model::Tool;
use serde_json::json;

/// Dependents that are counted.
const DEPENDENTS: usize = 1_000;

/// The tool as clients are told of it.
pub(crate) fn tool() -> Tool {
    described(
        "mark",
        "Mark an item",
        "Give feedback on an item: success or failed, useful or useless, or inactive to retract what is wrong or \
         outdated (it stays in the history).",
        Effect::Sets,
        (
            properties(
                &["key", "as"],
                json!({
                    "key": {"type": "string"},
                    "as": words(&["success", "failed", "unknown", "useful", "useless", "inactive"]),
                    "because": {"type": "string"},
                }),
            ),
            json!({"key": {"type": "string"}, "as": {"type": "string"}}),
        ),
    )
}

pub(crate) fn run(call: &Call<'_>) -> Result<Outcome, Problem> {
    call.memory.check_writable()?;
    let arguments = &call.arguments;
    let snapshot = call.snapshot()?;
    let item = item(&snapshot, arguments.needed("key")?)?;
    let Some(mark) = arguments.word("as")? else {
        return Err(Problem::new("mark needs the argument `as`", "call mark again with `as`"));
    };
    let written = match mark {
        "useful" => "reward 1",
        "useless" => "reward 0",
        mark => mark,
    };
    let key = name(&item.key);
    if written.starts_with("reward") && item.attributes.kind.layer() == Layer::Trace {
        let cause = format!("[{key}] is a {}: what happened takes no feedback", item.attributes.kind);
        return Err(Problem::new(cause, "mark the claim that rests on it, or mark this one success or failed"));
    }
    let because = arguments.text("because")?;
    let mut params = vec![("key", item.key.as_str())];
    let mut statement = format!("mark $key {written}");
    if let Some(because) = because {
        statement += " because $because";
        params.push(("because", because));
    }
    call.table(&statement, &params)?;
    let mut reply = Reply::new(format!("[{key}] is marked {mark}; its history keeps what it was."))
        .with("key", item.key.as_str())
        .with("as", mark);
    if matches!(mark, "failed" | "inactive") {
        let dependents =
            call.table(&format!("dependents of $key depth 10 limit {DEPENDENTS}"), &[("key", &item.key)])?;
        let count = dependents.rows.len() as u64;
        reply = reply.with("dependents", count);
        if count > 0 {
            reply.note(format!("{} on it: `why` shows which, and recall says so.", counted(count, "items rest")));
        }
    }
    Ok(reply.into())
}
