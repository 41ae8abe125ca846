//! `why`: the evidence of an item, what contradicts it and what depends on it, or its place in a recall.

use super::{Effect, Outcome, described, properties};
use crate::memory::{Call, item};
use crate::problem::Problem;
use crate::quoting::{head, name, quoted};
use crate::reply::Reply;
use crate::tools::query::{rows_of, withheld_rows};
use holotype::answer::Citation;
use holotype::plural::counted;
use holotype::{Item, Snapshot, Support, Verdict};
use rmcp::model::Tool;
use serde_json::json;

/// Rows of each part.
const ROWS: u64 = 20;

/// The tool as clients are told of it.
pub(crate) fn tool() -> Tool {
    described(
        "why",
        "Explain an item",
        "Show the evidence of an item: sources with checked quotes, contradictions, what depends on it, its \
         history. With query: why it is in or missing from that recall.",
        Effect::Reads,
        (
            properties(&["key"], json!({"key": {"type": "string"}, "query": {"type": "string"}})),
            json!({"key": {"type": "string"}, "rows": {"type": "array"}}),
        ),
    )
}

pub(crate) fn run(call: &Call<'_>) -> Result<Outcome, Problem> {
    let snapshot = call.snapshot()?;
    let item = item(&snapshot, call.arguments.needed("key")?)?;
    match call.arguments.text("query")? {
        Some(question) => in_recall(call, &item, question),
        None => of_itself(call, &snapshot, &item),
    }
}

/// The tests that put the item into the answer of a recall, or kept it out.
fn in_recall(call: &Call<'_>, item: &Item, question: &str) -> Result<Outcome, Problem> {
    let statement = format!("why $key in recall $q abstain exclude quarantined limit {}", super::recall::ROWS);
    let table = call.table(&statement, &[("key", &item.key), ("q", question)])?;
    let opening = table.notes.first().cloned().unwrap_or_default();
    let mut reply = Reply::new(opening).with("key", item.key.as_str()).listing("Ask about fewer items.");
    rows_of(&mut reply, &table, "test");
    for note in table.notes.iter().skip(1) {
        reply.note(note.clone());
    }
    Ok(reply.into())
}

fn of_itself(call: &Call<'_>, snapshot: &Snapshot, item: &Item) -> Result<Outcome, Problem> {
    let attributes = &item.attributes;
    let citations = snapshot.citations(item.id)?;
    let opening = format!(
        "[{}] {}: {}\n{}",
        name(&item.key),
        attributes.kind,
        quoted(item.content.text(), 600),
        verdict(&citations, attributes.support)
    );
    let mut reply = Reply::new(opening)
        .with("key", item.key.as_str())
        .with("text", head(item.content.text(), 600))
        .with("support", attributes.support.as_str())
        .with("active", attributes.active)
        .listing("Read single items with get, or run `sources of`, `dependents of` and `history of` with query.");
    if let Some(other) = attributes.conflict {
        let key = snapshot.key_of(other)?;
        reply = reply.with("contradicted_by", key.as_str());
        reply.note(format!("It is contradicted by [{}], which is preferred.", name(&key)));
    }
    if !attributes.active {
        reply.note("It is inactive: pruned, merged, replaced or retracted; the history has the reason.");
    }
    let parts = [
        ("source", format!("sources of $key depth 4 limit {ROWS}")),
        ("dependent", format!("dependents of $key depth 2 limit {ROWS}")),
        ("history", format!("history of $key order by since desc limit {ROWS}")),
    ];
    for (part, statement) in parts {
        let mut table = call.table(&statement, &[("key", &item.key)])?;
        withheld_rows(snapshot, &mut table);
        rows_of(&mut reply, &table, part);
    }
    Ok(reply.into())
}

/// The verdicts of all citations in a sentence.
fn verdict(citations: &[Citation], support: Support) -> String {
    let good = citations.iter().filter(|cite| cite.verdict == Verdict::Ok).count();
    let all = counted(citations.len() as u64, "citations");
    match citations.len() {
        0 => format!("It cites nothing; it is {support}."),
        count if count == good => format!("All of its {all} still say what was cited; it is {support}."),
        _ => format!("{good} of its {all} still say what was cited; it is {support}."),
    }
}
