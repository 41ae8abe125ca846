//! `record`: an event, word for word.

use super::{Effect, Outcome, described, properties, words};
use crate::memory::Call;
use crate::problem::Problem;
use crate::quoting;
use crate::reply::Reply;
use holotype::{Durability, Kind, NewTrace, Source, Status};
use rmcp::model::Tool;
use serde_json::json;

/// The tool as clients are told of it.
pub(crate) fn tool() -> Tool {
    described(
        "record",
        "Record an event",
        "Store what just happened, verbatim: a message, a tool call with its output, an observation. The returned \
         key can be cited.",
        Effect::Writes,
        (
            properties(
                &["text"],
                json!({
                    "text": {"type": "string"},
                    "kind": words(&["turn", "call", "observation"]),
                    "source": words(&["user", "assistant", "tool", "environment", "document", "system"]),
                    "tool": {"type": "string", "description": "name of the tool that was called"},
                    "status": words(&["success", "failed", "unknown"]),
                    "episode": {"type": "string", "description": "session; default: the current one"},
                }),
            ),
            json!({"key": {"type": "string"}, "episode": {"type": "string"}}),
        ),
    )
}

pub(crate) fn run(call: &Call<'_>) -> Result<Outcome, Problem> {
    let arguments = &call.arguments;
    call.memory.check_writable()?;
    let text = arguments.needed("text")?;
    let tool = arguments.text("tool")?;
    let kind = match arguments.word("kind")? {
        Some(kind) => kind.parse::<Kind>().map_err(holotype::Error::from)?,
        None if tool.is_some() => Kind::Call,
        None => Kind::Turn,
    };
    if tool.is_some() && kind != Kind::Call {
        let cause = format!("`tool` belongs to a call, and `kind` is {kind}");
        return Err(Problem::new(cause, "leave out `tool`, or record the kind `call`"));
    }
    let episode = arguments.text("episode")?.unwrap_or(&call.memory.episode);
    let mut trace = NewTrace::new(kind, episode, text);
    let source = match arguments.word("source")? {
        Some(source) => Some(source.parse::<Source>().map_err(holotype::Error::from)?),
        None if kind == Kind::Call => Some(Source::Tool),
        None if kind == Kind::Observation => Some(Source::Environment),
        None => None,
    };
    if let Some(source) = source {
        trace = trace.source(source);
        if kind == Kind::Turn && matches!(source, Source::User | Source::Assistant) {
            trace = trace.speaker(source.as_str());
        }
    }
    if let Some(status) = arguments.word("status")? {
        trace = trace.status(status.parse::<Status>().map_err(holotype::Error::from)?);
    }
    if let Some(tool) = tool {
        trace = trace.tool(tool);
    }
    if let Some(vector) = call.memory.vector(text) {
        trace = trace.vector(vector);
    }
    let mut transaction = call.memory.database.begin()?;
    let id = transaction.record(trace)?;
    let commit = transaction.commit(Durability::Sync)?;
    let key = call.snapshot()?.key_of(id)?;
    let opening = format!("Recorded [{}] in the episode {}.", quoting::name(&key), quoting::quoted(episode, 200));
    let mut reply = Reply::new(opening).with("key", key).with("episode", episode).with("commit", commit.number);
    if source.is_none() {
        reply.note("Nobody is known to have said it: give `source` next time, since rows are ranked by it.");
    }
    Ok(reply.into())
}
