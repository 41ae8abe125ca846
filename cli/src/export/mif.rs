//! `holotype export --to mif`: the items in use as a document of the Memory Interchange Format, version 2.
//!
//! A memory has the id, content and time that the format asks for; the key is its `external_id`, and what else an item
//! has is `metadata`. Evidence becomes `related_memory_ids`. The format has no place for spans, hashes and history: it
//! hands memories to other programs, and is no backup.
//!
//! The id of an item is the same in each export: the one that it was imported with, else one made of its key.

use holotype::{Edge, Item, ItemId, Snapshot, time};
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// The start of the keys that the import of this format gives.
const PREFIX: &str = "mif/";
/// The version of the format.
const VERSION: &str = "2.0";

/// The reason why nothing was written.
pub(super) enum Fault {
    Database(holotype::Error),
    Output(io::Error),
}

impl From<holotype::Error> for Fault {
    fn from(error: holotype::Error) -> Fault {
        Fault::Database(error)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault::Output(error)
    }
}

/// Writes the document, a memory a line; returns the numbers of memories and vectors.
pub(super) fn write(snapshot: &Snapshot, out: &mut impl Write) -> Result<(u64, u64), Fault> {
    let generator = json!({"name": "holotype", "version": env!("CARGO_PKG_VERSION")});
    let meta = json!({"created_at": time::format(snapshot.clock())});
    write!(out, "{{\"mif_version\":\"{VERSION}\",\"generator\":{generator},\"export_meta\":{meta},\"memories\":[")?;
    let model = snapshot.space()?.map(|space| space.model);
    let (mut memories, mut vectors) = (0, 0);
    for id in (0..snapshot.len()).map(ItemId) {
        let attributes = snapshot.attributes(id)?;
        if !attributes.active || attributes.redacted {
            continue;
        }
        let item = snapshot.item(id)?;
        // A trace that only keeps what an item was read from says nothing, and the format has no empty memory.
        if item.content.text().trim().is_empty() {
            continue;
        }
        let mut memory = memory(snapshot, &item)?;
        if let (Some(model), Some(vector)) = (&model, snapshot.vector(id)?) {
            let embeddings = json!({"model": model, "dimensions": vector.len(), "vector": vector});
            memory.insert("embeddings".into(), embeddings);
            vectors += 1;
        }
        let comma = if memories == 0 { "" } else { "," };
        write!(out, "{comma}\n{}", Value::Object(memory))?;
        memories += 1;
    }
    writeln!(out, "\n]}}")?;
    Ok((memories, vectors))
}

fn memory(snapshot: &Snapshot, item: &Item) -> holotype::Result<Map<String, Value>> {
    let of = &item.attributes;
    let mut memory = Map::new();
    memory.insert("id".into(), uuid(&item.key).into());
    memory.insert("content".into(), item.content.text().into());
    memory.insert("memory_type".into(), of.kind.as_str().into());
    memory.insert("created_at".into(), time::format(of.time.unwrap_or_else(|| snapshot.clock())).into());
    memory.insert("external_id".into(), item.key.as_str().into());
    let labels = item.content.labels();
    if !labels.is_empty() {
        memory.insert("tags".into(), labels.into());
    }
    let mut mentions = Vec::new();
    for concept in snapshot.linked(item.id, Edge::Mentions)? {
        mentions.push(json!({"name": snapshot.item(concept)?.content.text()}));
    }
    if !mentions.is_empty() {
        memory.insert("entities".into(), mentions.into());
    }
    let mut source = Map::new();
    source.extend(of.source.map(|source| ("source_type".to_owned(), source.as_str().into())));
    source.extend(of.episode.as_ref().map(|episode| ("session_id".to_owned(), episode.as_str().into())));
    source.extend(of.speaker.as_ref().map(|speaker| ("agent_name".to_owned(), speaker.as_str().into())));
    if !source.is_empty() {
        memory.insert("source".into(), source.into());
    }
    let mut related = Vec::new();
    for edge in [Edge::Cites, Edge::DerivedFrom] {
        for far in snapshot.linked(item.id, edge)? {
            related.push(uuid(&snapshot.key_of(far)?));
        }
    }
    related.sort();
    related.dedup();
    if !related.is_empty() {
        memory.insert("related_memory_ids".into(), related.into());
    }
    let metadata = metadata(item);
    if !metadata.is_empty() {
        memory.insert("metadata".into(), metadata.into());
    }
    Ok(memory)
}

/// The other things that are known of an item.
fn metadata(item: &Item) -> Map<String, Value> {
    let of = &item.attributes;
    let mut metadata = Map::new();
    for (name, value) in [
        ("status", of.status.map(|status| Value::from(status.as_str()))),
        ("tool", of.tool.as_deref().map(Value::from)),
        ("step", of.step.map(Value::from)),
        ("version", of.version.as_deref().map(Value::from)),
        ("support", (of.kind.layer() != holotype::Layer::Trace).then(|| of.support.as_str().into())),
        ("ungrounded", of.ungrounded.then_some(Value::Bool(true))),
        ("time_unknown", of.time.is_none().then_some(Value::Bool(true))),
    ] {
        metadata.extend(value.map(|value| (name.to_owned(), value)));
    }
    let mut fields = Map::new();
    for name in item.content.field_names().filter(|name| *name != "text") {
        // Bytes have no form in JSON.
        fields.extend(item.content.field_value(name).map(|value| (name.to_owned(), value)));
    }
    if !fields.is_empty() {
        metadata.insert("fields".into(), fields.into());
    }
    metadata
}

/// The id of a key: that of the import, else a UUID of version 8 with the key's hash.
fn uuid(key: &str) -> String {
    if let Some(id) = key.strip_prefix(PREFIX).filter(|id| is_uuid(id)) {
        return id.to_ascii_lowercase();
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&blake3::hash(key.as_bytes()).as_bytes()[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = holotype::hex(&bytes);
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

fn is_uuid(id: &str) -> bool {
    let parts: Vec<&str> = id.split('-').collect();
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12])
        && parts.iter().all(|part| part.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_uuids_and_stay() {
        let known = "6f1c1f0e-7a4b-4c1e-9d2a-000000000001";
        assert_eq!(uuid(&format!("mif/{known}")), known);
        for key in ["a", "mif/x", "~12"] {
            let id = uuid(key);
            assert!(is_uuid(&id) && id.as_bytes()[14] == b'8', "{id}");
            assert_eq!(uuid(key), id);
        }
        assert_ne!(uuid("a"), uuid("b"));
    }
}
