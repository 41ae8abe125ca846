//! One file that shows a memory and checks itself: the page with its data inside.
//!
//! The data are the stories of items, packed by gzip and base64. The page unpacks them, hashes nothing it has not got:
//! it finds each quote in the text that it cites and compares the bytes. It works from a file, without a network, and
//! says how many items were left out.

use crate::rows::{item_of, rows, table};
use crate::views::{self, Query};
use crate::{Error, Result, page};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use holotype::answer::Output;
use holotype::query::{ParamValue, Params};
use holotype::{ItemId, Snapshot};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::io::Write as _;

/// The content of a file.
#[derive(Debug, Clone)]
pub struct ExportOptions {
    /// The items.
    pub items: Items,
    /// Items, at most; the newest.
    pub max_items: u32,
    /// Texts are replaced by their lengths.
    pub redact: bool,
    /// The data are not packed, for browsers that cannot unpack them.
    pub plain: bool,
    /// The head of the log as a signed note, shown by the page.
    pub note: Option<String>,
}

/// The items of a file.
#[derive(Debug, Clone)]
pub enum Items {
    /// All.
    All,
    /// Those of a condition of the language.
    Where(String),
    /// Those that were written after a commit.
    Since(u64),
    /// One, with what it rests on and what would fall with it.
    Around(String),
    /// The rows of a statement that reads, with what they rest on.
    Found(String),
}

impl Default for ExportOptions {
    fn default() -> Self {
        ExportOptions { items: Items::All, max_items: 20_000, redact: false, plain: false, note: None }
    }
}

/// A file and what is in it.
#[derive(Debug, Clone)]
pub struct Exported {
    /// The document.
    pub html: String,
    /// Items inside.
    pub items: u64,
    /// Items that were left out.
    pub left_out: u64,
}

/// Calls back with the story of each item of a condition, in the order of their numbers: the item whole, what it rests
/// on, what changed it, and what rests on it. Returns their number.
///
/// # Errors
/// [`Error::Database`] for a condition that is no condition, or items that cannot be read; those of the callback.
pub fn export_stories(
    snapshot: &Snapshot,
    condition: &str,
    write: &mut dyn FnMut(&Value) -> Result<()>,
) -> Result<u64> {
    let statement = format!("find items where {condition} order by item return item");
    let mut count = 0;
    for row in rows(snapshot, &statement, Params::new())? {
        if let Some(id) = item_of(&row) {
            write(snapshot.why(&format!("#{}", id.0))?.to_json())?;
            count += 1;
        }
    }
    Ok(count)
}

/// Makes the file.
///
/// # Errors
/// [`Error::Database`] for a condition that is no condition, or items that cannot be read.
pub fn export_html(snapshot: &Snapshot, options: &ExportOptions) -> Result<Exported> {
    let ids = chosen(snapshot, options)?;
    let mut items = Vec::with_capacity(ids.len());
    let mut edges = Vec::new();
    for id in &ids {
        let mut item = snapshot.item_to_json(*id)?;
        let mut cited = snapshot.citations_to_json(*id)?;
        if options.redact {
            redact(&mut item);
            cited.iter_mut().for_each(|cited| cited["text"] = Value::Null);
        }
        if let Value::Object(object) = &mut item {
            object.insert("citations".to_owned(), Value::Array(cited));
        }
        items.push(item);
    }
    let inside: HashSet<&str> = items.iter().filter_map(|item| item["key"].as_str()).collect();
    let is_inside = |key: &Value| key.as_str().is_some_and(|key| inside.contains(key));
    for row in table(snapshot, "find edges limit 1000000 return from, edge, to")? {
        if is_inside(&row["from"]) || is_inside(&row["to"]) {
            edges.push(json!([row["from"], row["edge"], row["to"]]));
        }
    }
    edges.dedup();
    let mut overview = views::overview(snapshot, &Query::new(""))?;
    if options.redact {
        overview["events"].as_array_mut().into_iter().flatten().for_each(|event| hide(&mut event["because"]));
    }
    let left_out = u64::from(snapshot.len()).saturating_sub(items.len() as u64);
    let mut data = Map::new();
    let count = items.len() as u64;
    overview["left_out"] = json!(left_out);
    overview["note"] = json!(options.note);
    data.insert("overview".to_owned(), overview);
    data.insert("items".to_owned(), Value::Array(items));
    data.insert("edges".to_owned(), Value::Array(edges));
    let data = Value::Object(data).to_string();
    // In a document a script ends at `</`, wherever it is.
    let data = if options.plain { data.replace("</", "<\\/") } else { format!("\"{}\"", pack(&data)?) };
    Ok(Exported { html: page::whole(&data), items: count, left_out })
}

/// The numbers of the items of a file, each once, newest first but for what was asked for.
fn chosen(snapshot: &Snapshot, options: &ExportOptions) -> Result<Vec<ItemId>> {
    let most = options.max_items.max(1);
    let found = |filter: &str| {
        let statement = format!("find items{filter} order by item desc limit {most} return item");
        Ok(table(snapshot, &statement)?.iter().filter_map(item_of).collect())
    };
    let mut ids: Vec<ItemId> = match &options.items {
        Items::All => return found(""),
        Items::Where(condition) => return found(&format!(" where {condition}")),
        Items::Since(commit) => return found(&format!(" where commit > {commit}")),
        Items::Around(key) => {
            let story = snapshot.why(key)?;
            let around = ["sources", "dependents"].iter().flat_map(|part| story.to_json()[*part].as_array()).flatten();
            let around = around.filter_map(|row| snapshot.item_named(row["key"].as_str()?).ok());
            std::iter::once(snapshot.item_named(key)?).chain(around).collect()
        }
        Items::Found(statement) => {
            let mut ids = rows_of(snapshot, statement)?;
            for id in ids.clone() {
                let params = Params::from([("k".to_owned(), ParamValue::Text(snapshot.key_of(id)?))]);
                let sources = rows(snapshot, "sources of $k depth 8 limit 500 return item", params)?;
                ids.extend(sources.iter().filter_map(item_of));
            }
            ids
        }
    };
    let mut known = HashSet::new();
    ids.retain(|id| known.insert(*id));
    ids.truncate(most as usize);
    Ok(ids)
}

/// The items of the rows of a statement.
fn rows_of(snapshot: &Snapshot, statement: &str) -> Result<Vec<ItemId>> {
    let rows = match snapshot.query(statement, &Params::new())?.pop() {
        Some(Output::Answer(answer)) => return Ok(answer.rows.iter().map(|row| row.item).collect()),
        Some(Output::Table(table)) => table.rows_to_json(),
        _ => Vec::new(),
    };
    let item = |row: &Value| item_of(row).or_else(|| snapshot.item_named(row["key"].as_str()?).ok());
    let none = || Error::Invalid(format!("{statement}: its rows have neither `item` nor `key`"));
    rows.iter().map(|row| item(row).ok_or_else(none)).collect()
}

/// Replaces the texts of an item by their lengths.
fn redact(item: &mut Value) {
    hide(&mut item["text"]);
    item["fields"].as_array_mut().into_iter().flatten().for_each(|field| hide(&mut field["text"]));
}

fn hide(text: &mut Value) {
    if let Some(hidden) = text.as_str() {
        *text = json!(format!("({} characters)", hidden.chars().count()));
    }
}

fn pack(text: &str) -> Result<String> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes()).map_err(Error::Io)?;
    Ok(STANDARD.encode(encoder.finish().map_err(Error::Io)?))
}
