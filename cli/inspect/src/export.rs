//! One file that shows a memory and checks itself: the page with its data inside.
//!
//! The data are the stories of items, packed by gzip and base64. The page unpacks them, hashes nothing it has not got:
//! it finds each quote in the text that it cites and compares the bytes. It works from a file, without a network, and
//! says how many items were left out.

use crate::rows::rows;
use crate::views::{self, Query};
use crate::{Error, Result, page};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use holotype::query::Params;
use holotype::{ItemId, Snapshot};
use serde_json::{Map, Value, json};
use std::io::Write as _;

/// The content of a file.
#[derive(Debug, Clone)]
pub struct ExportOptions {
    /// A condition of the language on items; without one, all.
    pub condition: Option<String>,
    /// Items, at most; the newest.
    pub max_items: u32,
    /// Texts are replaced by their lengths.
    pub redact: bool,
}

impl Default for ExportOptions {
    fn default() -> Self {
        ExportOptions { condition: None, max_items: 20_000, redact: false }
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
        if let Some(item) = row["item"].as_u64() {
            write(snapshot.why(&format!("#{item}"))?.to_json())?;
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
    let filter = options.condition.as_deref().map(|condition| format!(" where {condition}")).unwrap_or_default();
    let listed = format!("find items{filter} order by item desc limit {} return item", options.max_items.max(1));
    let ids: Vec<ItemId> = rows(snapshot, &listed, Params::new())?
        .iter()
        .filter_map(|row| row["item"].as_u64().and_then(|id| u32::try_from(id).ok()).map(ItemId))
        .collect();
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
    for row in rows(snapshot, "find edges limit 1000000 return from, edge, to", Params::new())? {
        edges.push(json!([row["from"], row["edge"], row["to"]]));
    }
    edges.dedup();
    let mut overview = views::overview(snapshot, &Query::new(""))?;
    let left_out = u64::from(snapshot.len()).saturating_sub(items.len() as u64);
    let mut data = Map::new();
    let count = items.len() as u64;
    overview["left_out"] = json!(left_out);
    data.insert("overview".to_owned(), overview);
    data.insert("items".to_owned(), Value::Array(items));
    data.insert("edges".to_owned(), Value::Array(edges));
    let packed = pack(&Value::Object(data).to_string())?;
    Ok(Exported { html: page::whole(&format!("\"{packed}\"")), items: count, left_out })
}

/// Replaces the texts of an item by their lengths.
fn redact(item: &mut Value) {
    let hidden = |text: &Value| json!(format!("({} characters)", text.as_str().map_or(0, |text| text.chars().count())));
    item["text"] = hidden(&item["text"]);
    for field in item["fields"].as_array_mut().into_iter().flatten() {
        field["text"] = hidden(&field["text"]);
    }
}

fn pack(text: &str) -> Result<String> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes()).map_err(Error::Io)?;
    Ok(STANDARD.encode(encoder.finish().map_err(Error::Io)?))
}
