//! The eight tools: what a client is told of them, and the functions that run them.
//!
//! Invariants:
//!
//! 1. The list takes at most [`LIST_BYTES`] and has a fixed order: a client sends it to its model on every turn, and
//!    one that changes loses the model's cache.
//! 2. A tool has at most 6 properties, 3 of them required; a set of words is spelled out. Arguments are checked
//!    against this list ([`crate::arguments`]), so that it is the only one.

pub(crate) mod forget;
pub(crate) mod get;
pub(crate) mod mark;
pub(crate) mod query;
pub(crate) mod recall;
pub(crate) mod record;
pub(crate) mod remember;
pub(crate) mod why;

use crate::memory::Call;
use crate::problem::Problem;
use crate::reply::Reply;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use std::sync::Arc;

/// The most bytes of the answer to `tools/list`.
pub const LIST_BYTES: usize = 6_000;

/// The outcome of a tool.
pub(crate) enum Outcome {
    /// It ran.
    Done(Reply),
    /// Its effect needs the consent of a person.
    Consent(forget::Dry),
}

impl From<Reply> for Outcome {
    fn from(reply: Reply) -> Outcome {
        Outcome::Done(reply)
    }
}

/// The function of a tool.
pub(crate) type Run = fn(&Call<'_>) -> Result<Outcome, Problem>;

/// The function of the tool with that name.
pub(crate) fn run_of(name: &str) -> Option<Run> {
    Some(match name {
        "record" => record::run,
        "remember" => remember::run,
        "recall" => recall::run,
        "why" => why::run,
        "get" => get::run,
        "mark" => mark::run,
        "forget" => forget::run,
        "query" => query::run,
        _ => return None,
    })
}

/// The effect of a tool on the memory.
enum Effect {
    Reads,
    Writes,
    Sets,
    Erases,
}

/// All tools, in the order in which clients get them.
pub(crate) fn list() -> Vec<Tool> {
    vec![
        record::tool(),
        remember::tool(),
        recall::tool(),
        why::tool(),
        get::tool(),
        mark::tool(),
        forget::tool(),
        query::tool(),
    ]
}

fn words(words: &[&str]) -> Value {
    json!({"enum": words})
}

fn properties(required: &[&str], properties: Value) -> Value {
    match required {
        [] => json!({"type": "object", "properties": properties}),
        _ => json!({"type": "object", "properties": properties, "required": required}),
    }
}

fn described(
    name: &'static str,
    title: &'static str,
    description: &'static str,
    effect: Effect,
    (input, output): (Value, Value),
) -> Tool {
    let annotations = match effect {
        Effect::Reads => ToolAnnotations::new().read_only(true),
        Effect::Writes => ToolAnnotations::new().destructive(false),
        Effect::Sets => ToolAnnotations::new().destructive(false).idempotent(true),
        Effect::Erases => ToolAnnotations::new().destructive(true),
    };
    let output = json!({"type": "object", "properties": output});
    Tool::new(name, description, object(input))
        .with_title(title)
        .with_raw_output_schema(object(output))
        .with_annotations(annotations.open_world(false))
}

fn object(value: Value) -> Arc<JsonObject> {
    match value {
        Value::Object(object) => Arc::new(object),
        _ => Arc::default(),
    }
}
