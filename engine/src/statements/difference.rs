//! The difference between two commits: what was added, and whose standing changed.
//!
//! Standing is status, support, activity, utility and the item that contradicts it. The items of the earlier commit are
//! compared one by one, so the cost is that of their number.

use crate::model::item::Attributes;
use crate::read::snapshot::Snapshot;
use crate::state::conflicts::Conflicts;
use crate::state::reader_position::ReaderPosition;
use crate::statements::story::rows;
use crate::{ItemId, Result};
use holotype_query::{ParamValue, Params};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fmt::Write as _;

/// Items of a difference that are listed, at most.
const MAX_LISTED: usize = 1_000;
/// The columns of events.
const EVENTS: &str = "find events where commit > $from and commit <= $to limit 1000";

/// The changes between two commits ([`Snapshot::diff`]).
#[derive(Debug, Clone)]
pub struct Difference {
    value: Value,
}

impl Snapshot {
    /// The difference between commit `from` and commit `to`, both as they were then.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for a commit that does not exist or is older than the kept history.
    pub fn diff(&self, from: u64, to: u64) -> Result<Difference> {
        let (from, to) = (from.min(to), from.max(to));
        let (before, after) = (self.as_of(from)?, self.as_of(to)?);
        let mut changed = Vec::new();
        let mut more = 0_u64;
        for (id, changes) in changes(&before, &after)? {
            if changed.len() >= MAX_LISTED {
                more += 1;
                continue;
            }
            let kind = after.state.attributes.kind(id)?;
            changed.push(json!({
                "key": after.key_of(id)?, "kind": kind.to_string(), "text": after.item(id)?.content.text(),
                "changes": changes,
            }));
        }
        let mut added = Vec::new();
        let count = after.len() - before.len();
        for id in (before.len()..after.len()).map(ItemId).take(MAX_LISTED) {
            let of = after.attributes(id)?;
            added.push(json!({
                "key": after.key_of(id)?, "kind": of.kind.to_string(),
                "status": of.status.map(|status| status.to_string()), "text": after.item(id)?.content.text(),
            }));
        }
        let params = Params::from([
            ("from".to_owned(), ParamValue::Int(i64::try_from(from).unwrap_or(i64::MAX))),
            ("to".to_owned(), ParamValue::Int(i64::try_from(to).unwrap_or(i64::MAX))),
        ]);
        let events = rows(&after, EVENTS, params)?;
        let value = json!({
            "from": from, "to": to, "added": added, "added_count": count, "changed": changed,
            "changed_count": changed.len() as u64 + more, "events": events,
        });
        Ok(Difference { value })
    }
}

/// The items of the earlier view whose standing differs in the later one, with their changes.
///
/// Contradictions are decided name by name, so they are looked for at items with claims only.
fn changes(before: &Snapshot, after: &Snapshot) -> Result<Vec<(ItemId, Vec<Value>)>> {
    let everything = ReaderPosition::default();
    let (earlier, later) = (Conflicts::new(&before.state, &everything), Conflicts::new(&after.state, &everything));
    let claiming: HashSet<ItemId> = after.state.items_with_claims()?.into_iter().collect();
    let key = |id: Option<ItemId>| Ok::<Value, crate::Error>(json!(id.map(|id| after.key_of(id)).transpose()?));
    let mut found = Vec::new();
    for id in (0..before.len()).map(ItemId) {
        after.tick()?;
        let mut changes = standing(&before.state.attributes(id)?, &after.state.attributes(id)?);
        if claiming.contains(&id) {
            let (old, new) = (earlier.leader_over(id)?, later.leader_over(id)?);
            if old != new {
                changes.push(change("contradicted by", &key(old)?, &key(new)?));
            }
        }
        if !changes.is_empty() {
            found.push((id, changes));
        }
    }
    Ok(found)
}

fn change(attribute: &str, old: &Value, new: &Value) -> Value {
    json!({"attribute": attribute, "from": old, "to": new})
}

/// The attributes of its standing in which an item differs: name, before, after.
fn standing(old: &Attributes, new: &Attributes) -> Vec<Value> {
    let mut changes = Vec::new();
    let mut compare = |name: &str, differs: bool, value: &dyn Fn(&Attributes) -> Value| {
        if differs {
            changes.push(change(name, &value(old), &value(new)));
        }
    };
    compare("status", old.status != new.status, &|of| json!(of.status.map(|status| status.to_string())));
    compare("support", old.support != new.support, &|of| json!(of.support.to_string()));
    compare("active", old.active != new.active, &|of| json!(of.active));
    compare("redacted", old.redacted != new.redacted, &|of| json!(of.redacted));
    compare("utility", old.utility != new.utility, &|of| json!(of.utility));
    compare("credit", old.credit != new.credit, &|of| json!(of.credit));
    changes
}

impl Difference {
    /// As JSON: `from`, `to`, `added`, `changed`, `events`, and the counts of the first two.
    pub fn to_json(&self) -> &Value {
        &self.value
    }

    /// As text: a line for each item.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let of = |name: &str| self.value[name].as_array().map(Vec::as_slice).unwrap_or_default();
        let word = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let _ = writeln!(text, "commit {} to commit {}", self.value["from"], self.value["to"]);
        let _ = writeln!(text, "{} added", self.value["added_count"]);
        for row in of("added") {
            let _ = writeln!(text, "  + {}  {}: {}", word(row, "key"), word(row, "kind"), one_line(&word(row, "text")));
        }
        let _ = writeln!(text, "{} changed", self.value["changed_count"]);
        for row in of("changed") {
            let changes = row["changes"].as_array().map(Vec::as_slice).unwrap_or_default().iter().map(|change| {
                format!("{} {} -> {}", word(change, "attribute"), plain(&change["from"]), plain(&change["to"]))
            });
            let changes = changes.collect::<Vec<_>>().join(", ");
            let _ = writeln!(text, "  ~ {}  {changes}: {}", word(row, "key"), one_line(&word(row, "text")));
        }
        text
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
