//! The story of one item: what it says, what it rests on, what changed it, what would fall with it.
//!
//! ```text
//! fare-mon  fact, trip-42 step 6, success, supported
//!   The flight to Lisbon, TJ482, costs 189 EUR
//! rests on
//!   t6  call search_flights, success
//!     text[18..23] "TJ482"  ok
//! changed
//!   commit 7  active false: superseded
//! would fall with it
//!   flights  concept, weakened
//! ```
//!
//! Every span is read from the log and hashed again for this story.

use crate::read::answer::Output;
use crate::read::snapshot::Snapshot;
use crate::state::content::Content;
use crate::{Error, ItemId, Result, time};
use holotype_query::{ParamValue, Params};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// Steps to the farthest evidence and dependents.
const MAX_DEPTH: u32 = 8;
/// Rows of each part.
const MAX_ROWS: u32 = 500;
/// Attributes whose first value is part of the item and no change.
const QUIET: [&str; 12] =
    ["key", "source", "episode", "step", "time", "version", "trust", "utility", "speaker", "tool", "log_id", "page"];

/// The story of an item, as JSON and as text ([`Snapshot::why`]).
#[derive(Debug, Clone)]
pub struct Story {
    value: Value,
}

impl Snapshot {
    /// Tells the story of an item: its key, or `#NUMBER`.
    ///
    /// ```
    /// use holotype::{Holotype, Options, params};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let database = Holotype::create(dir.path().join("memory.holo"), Options::default())?;
    /// let script = "record call 'price=450' in episode 'trip' with key = 't1';
    ///               remember fact 'it costs 450' from 't1' quoting '450' with key = 'price'";
    /// database.query(script, &params! {})?;
    /// let story = database.snapshot().why("price")?;
    /// assert!(story.to_text().contains(r#"text[6..9] "450"  ok"#));
    /// # Ok::<(), holotype::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no such item; [`Error::Damaged`] if its bytes cannot be read.
    pub fn why(&self, item: &str) -> Result<Story> {
        let id = self.item_named(item)?;
        let key = self.key_of(id)?;
        let of_item = |statement: &str| -> Result<Vec<Value>> {
            rows(self, statement, Params::from([("k".to_owned(), ParamValue::Text(key.clone()))]))
        };
        let mut rivals = Vec::new();
        for conflict in of_item(&format!("conflicts where item = $k limit {MAX_ROWS}"))? {
            let Some(name) = conflict["name"].as_str() else { continue };
            let params = Params::from([("n".to_owned(), ParamValue::Text(name.to_owned()))]);
            rivals.extend(rows(self, &format!("conflicts where name = $n limit {MAX_ROWS}"), params)?);
        }
        let value = json!({
            "commit": self.commit(),
            "item": self.item_to_json(id)?,
            "citations": self.citations_to_json(id)?,
            "sources": of_item(&format!("sources of $k depth {MAX_DEPTH} limit {MAX_ROWS}"))?,
            "dependents": of_item(&format!("dependents of $k depth {MAX_DEPTH} limit {MAX_ROWS}"))?,
            "history": of_item(&format!("history of $k limit {MAX_ROWS}"))?,
            "conflicts": rivals,
        });
        Ok(Story { value })
    }

    /// An item with its fields and attributes, as JSON.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no such item; [`Error::Damaged`] if its bytes cannot be read.
    pub fn item_to_json(&self, id: ItemId) -> Result<Value> {
        let item = self.item(id)?;
        let of = self.attributes(id)?;
        let mut object = Map::new();
        let mut set = |name: &str, value: Value| {
            if !value.is_null() {
                object.insert(name.to_owned(), value);
            }
        };
        set("item", json!(id.0));
        set("key", json!(self.key_of(id)?));
        set("layer", json!(of.kind.layer().to_string()));
        set("kind", json!(of.kind.to_string()));
        set("text", json!(item.content.text()));
        set("fields", fields(&item.content));
        set("status", json!(of.status.map(|status| status.to_string())));
        set("source", json!(of.source.map(|source| source.to_string())));
        set("episode", json!(of.episode));
        set("step", json!(of.step));
        set("time", json!(of.time.map(time::format)));
        set("version", json!(of.version));
        set("speaker", json!(of.speaker));
        set("tool", json!(of.tool));
        set("log_id", json!(of.log_id));
        set("page", json!(of.page));
        set("active", json!(of.active));
        set("redacted", json!(of.redacted));
        set("ungrounded", json!(of.ungrounded));
        set("origin", json!(of.origin.to_string()));
        set("support", json!(of.support.to_string()));
        set("trust", json!(of.trust));
        set("utility", json!(of.utility));
        set("credit", json!(of.credit));
        set("tokens", json!(of.tokens));
        set("commit", json!(of.commit));
        set("position", json!(of.lsn));
        set("has_vector", json!(of.has_vector));
        if !item.content.labels().is_empty() {
            set("labels", json!(item.content.labels()));
        }
        if let Some(conflict) = of.conflict {
            set("conflict", json!(self.key_of(conflict)?));
        }
        Ok(Value::Object(object))
    }

    /// The spans that an item cites, read and hashed again, as JSON.
    ///
    /// # Errors
    /// As [`Snapshot::citations`].
    pub fn citations_to_json(&self, id: ItemId) -> Result<Vec<Value>> {
        let mut found = Vec::new();
        for cited in self.citations(id)? {
            found.push(json!({
                "target": cited.target,
                "field": cited.field,
                "start": cited.start,
                "end": cited.end,
                "hash": cited.hash,
                "verdict": cited.verdict.to_string(),
                "text": cited.text,
            }));
        }
        Ok(found)
    }
}

/// The fields of an item in the order in which they were written; bytes as their number.
fn fields(content: &Content) -> Value {
    let field = |name: &str| match content.field_text(name) {
        Some(text) => json!({"name": name, "text": text}),
        None => json!({"name": name, "bytes": content.field_bytes(name).map(<[u8]>::len)}),
    };
    Value::Array(content.field_names().map(field).collect())
}

/// The rows of a statement as objects.
pub(crate) fn rows(snapshot: &Snapshot, statement: &str, params: Params) -> Result<Vec<Value>> {
    match snapshot.query(statement, &params)?.pop() {
        Some(Output::Table(table)) => Ok(table.rows_to_json()),
        _ => Err(Error::Invalid(format!("{statement}: expected a table"))),
    }
}

impl Story {
    /// As JSON: `item`, `citations`, `sources`, `dependents`, `history`, `conflicts`.
    pub fn to_json(&self) -> &Value {
        &self.value
    }

    /// As a text tree.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let item = &self.value["item"];
        line(&mut text, 0, &headline(item));
        for part in said(item).lines() {
            line(&mut text, 1, part);
        }
        self.write_evidence(&mut text);
        self.write_changes(&mut text);
        self.write_dependents(&mut text);
        self.write_conflicts(&mut text);
        text
    }

    fn part(&self, name: &str) -> &[Value] {
        self.value[name].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    fn write_evidence(&self, text: &mut String) {
        let sources = self.part("sources");
        match (sources.is_empty(), self.value["item"]["layer"].as_str() == Some("trace")) {
            (true, true) => return line(text, 0, "rests on nothing: it is what happened"),
            (true, false) => return line(text, 0, "rests on nothing: it was stored without a source"),
            _ => line(text, 0, "rests on"),
        }
        let mut told: Vec<(&str, &str)> = Vec::new();
        for source in sources {
            let depth = source["depth"].as_u64().unwrap_or(1) as usize;
            let (root, key) = (str_of(source, "root"), str_of(source, "key"));
            if told.contains(&(root, key)) {
                continue;
            }
            told.push((root, key));
            line(text, 2 * depth - 1, &headline(source));
            match depth {
                1 => self.write_spans(text, key),
                _ => line(text, 2 * depth, said(source)),
            }
        }
    }

    /// The spans that are cited of a direct source, with their bytes.
    fn write_spans(&self, text: &mut String, target: &str) {
        for cited in self.part("citations").iter().filter(|cited| cited["target"] == target) {
            let quote = cited["text"].as_str().map(|quote| format!(" {quote:?}")).unwrap_or_default();
            let place = format!("{}[{}..{}]", str_of(cited, "field"), cited["start"], cited["end"]);
            line(text, 2, &format!("{place}{quote}  {}", str_of(cited, "verdict")));
        }
    }

    fn write_changes(&self, text: &mut String) {
        let first = self.value["item"]["commit"].as_u64().unwrap_or(0);
        line(text, 0, "changed");
        line(text, 1, &format!("commit {first}  written"));
        for row in self.part("history") {
            let since = row["since"].as_u64().unwrap_or(0);
            let name = str_of(row, "attribute");
            if since <= first || (QUIET.contains(&name) && name != "trust") {
                continue;
            }
            let why = row["because"].as_str().map(|why| format!(": {why}")).unwrap_or_default();
            line(text, 1, &format!("commit {since}  {name} {}{why}", plain(&row["value"])));
        }
    }

    fn write_dependents(&self, text: &mut String) {
        let dependents = self.part("dependents");
        if dependents.is_empty() {
            return line(text, 0, "nothing rests on it");
        }
        line(text, 0, "would fall with it");
        let mut told: Vec<&str> = Vec::new();
        for row in dependents {
            let key = str_of(row, "key");
            if !told.contains(&key) {
                told.push(key);
                let depth = row["depth"].as_u64().unwrap_or(1) as usize;
                line(text, depth, &format!("{}: {}", headline(row), said(row)));
            }
        }
    }

    fn write_conflicts(&self, text: &mut String) {
        let conflicts = self.part("conflicts");
        if conflicts.is_empty() {
            return;
        }
        line(text, 0, "said otherwise");
        for row in conflicts {
            let won = row["won"].as_str().map(|by| format!("  lost to {by}")).unwrap_or_default();
            let told = format!("{} = {}  {}{won}", str_of(row, "name"), plain(&row["value"]), str_of(row, "item"));
            line(text, 1, &told);
        }
    }
}

fn str_of<'v>(row: &'v Value, name: &str) -> &'v str {
    row[name].as_str().unwrap_or_default()
}

/// The text of a row in one line.
fn said(row: &Value) -> &str {
    str_of(row, "text")
}

/// Key, kind, tool, place and standing.
fn headline(row: &Value) -> String {
    let mut parts = vec![[str_of(row, "kind"), str_of(row, "tool")].join(" ").trim().to_owned()];
    if let Some(episode) = row["episode"].as_str() {
        parts.push(match row["step"].as_u64() {
            Some(step) => format!("{episode} step {step}"),
            None => episode.to_owned(),
        });
    }
    parts.extend(row["time"].as_str().map(str::to_owned));
    parts.extend(row["status"].as_str().map(str::to_owned));
    parts.extend(row["support"].as_str().filter(|support| *support != "supported").map(str::to_owned));
    if row["active"] == json!(false) {
        parts.push("inactive".to_owned());
    }
    format!("{}  {}", str_of(row, "key"), parts.join(", "))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn line(text: &mut String, depth: usize, what: &str) {
    let _ = writeln!(text, "{:1$}{what}", "", 2 * depth);
}
