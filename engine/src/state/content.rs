//! The content of an item: its log record, with long fields joined from their chunks.
//!
//! Texts, fields and vectors exist only in the log: reading one locates the record, checks and decodes it. A
//! transaction serves its own items from memory until they have a location in the log.

use crate::Error;
use crate::Result;
use crate::model::item::ItemId;
use crate::records::field;
use crate::records::record::{ChunkRecord, Field, FieldValue, ItemRecord, Record};
use crate::records::tables;
use crate::state::State;
use holotype_storage::log::{Log, Lsn};
use std::sync::Arc;

/// The written content of an item.
#[derive(Debug, Clone)]
pub struct Content {
    pub(crate) record: Arc<ItemRecord>,
}

impl Content {
    /// The text of the item: its field `text`.
    pub fn text(&self) -> &str {
        self.record.text()
    }

    /// The names of the item's fields, in the order they were written.
    pub fn field_names(&self) -> impl Iterator<Item = &str> {
        self.record.fields.iter().map(|field| field.name.as_str())
    }

    /// A field as text: a string or the text of a JSON value. `None` for bytes and for unknown fields.
    pub fn field_text(&self, name: &str) -> Option<&str> {
        match &self.field(name)?.value {
            FieldValue::Text(text) | FieldValue::Json(text) => Some(text),
            FieldValue::Bytes(_) | FieldValue::Chunks { .. } => None,
        }
    }

    /// The bytes of a field, whether it is text or not. `None` for unknown fields.
    pub fn field_bytes(&self, name: &str) -> Option<&[u8]> {
        match &self.field(name)?.value {
            FieldValue::Chunks { .. } => None,
            value => Some(value.bytes()),
        }
    }

    /// The value of a field, or of a member of one by a path such as `meta.topic`, as JSON. Bytes are an object with
    /// their base64 text, as in JSON Lines; [`Content::field_bytes`] gives them as they are.
    pub fn field_value(&self, path: &str) -> Option<serde_json::Value> {
        let parts: Vec<String> = path.split('.').map(str::to_owned).collect();
        field::at_path(&self.record.fields, &parts)
    }

    /// The labels.
    pub fn labels(&self) -> Vec<String> {
        field::labels(&self.record.fields)
    }

    /// The tool of a call, if any.
    pub fn tool(&self) -> Option<&str> {
        self.record.tool.as_deref()
    }

    /// The speaker, if known.
    pub fn speaker(&self) -> Option<&str> {
        self.record.speaker.as_deref()
    }

    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.record.field(name)
    }
}

/// The items of a transaction by number. The map shares structure, so that a savepoint copies no item.
pub(crate) type OwnItems = imbl::OrdMap<u32, Arc<ItemRecord>>;

/// Reads contents for one state: from the log, or from the transaction in progress.
#[derive(Clone)]
pub(crate) struct ContentReader {
    pub(crate) log: Arc<Log>,
    /// Items of the transaction in progress, which have no location in the log yet.
    pub(crate) own: OwnItems,
}

impl ContentReader {
    pub(crate) fn read(&self, state: &State, id: ItemId) -> Result<Content> {
        if let Some(record) = self.own.get(&id.0) {
            return Ok(Content { record: Arc::clone(record) });
        }
        let (lsn, redacted) = state.location_of(id)?;
        let record = match self.record(lsn)? {
            Record::Item(record) if record.id == id.0 && redacted => {
                Arc::new(Arc::unwrap_or_clone(record).without_content())
            }
            Record::Item(record) if record.id == id.0 => self.join_chunks(state, record)?,
            _ => return Err(Error::Corrupt { what: format!("log position {lsn} does not hold item {id}") }),
        };
        Ok(Content { record })
    }

    /// The record at a log position, without what carries it.
    pub(crate) fn record_at(&self, lsn: u64) -> Result<Record> {
        self.record(lsn)
    }

    fn record(&self, lsn: u64) -> Result<Record> {
        let record = match (self.log.payload(Lsn(lsn)), self.log.floor()) {
            // Truncation moved this record to a retained copy, which an older state does not know.
            (Err(holotype_storage::Error::NoRecord { .. }), Some(floor)) if lsn < floor.first.0 => {
                let what = "the content this snapshot needs".to_owned();
                return Err(Error::BeforeHistory { what, since: floor.head.commit.0 });
            }
            (read, _) => read?,
        };
        if record.redacted {
            return Err(Error::SnapshotForgotten);
        }
        Record::decode(record.kind, &record.bytes)?.unwrap_carrier()
    }

    fn join_chunks(&self, state: &State, record: Arc<ItemRecord>) -> Result<Arc<ItemRecord>> {
        if !is_split(&record) {
            return Ok(record);
        }
        let id = record.id;
        let mut record = Arc::unwrap_or_clone(record);
        for (number, field) in (0u32..).zip(&mut record.fields) {
            let FieldValue::Chunks { form, len } = field.value else { continue };
            let mut bytes = Vec::new();
            for (_, value) in state.scan(tables::CHUNK, &tables::numbers([id, number]))? {
                let lsn: u64 = holotype_storage::codec::decode(&value)?;
                let Record::Chunk(ChunkRecord { bytes: piece, .. }) = self.record(lsn)? else {
                    return Err(Error::Corrupt { what: format!("log position {lsn} holds no chunk of item #{id}") });
                };
                bytes.extend_from_slice(&piece);
            }
            join(id, field, form, len, bytes)?;
        }
        Ok(Arc::new(record))
    }
}

/// Joins the fields of an item from the chunk records before it in the same transaction.
pub(crate) fn join_own_chunks(record: &mut Arc<ItemRecord>, chunks: &[&ChunkRecord]) -> Result<()> {
    if !is_split(record) {
        return Ok(());
    }
    let record = Arc::make_mut(record);
    for (number, field) in (0u32..).zip(&mut record.fields) {
        let FieldValue::Chunks { form, len } = field.value else { continue };
        let pieces = chunks.iter().filter(|chunk| chunk.item == record.id && chunk.field == number);
        let bytes = pieces.flat_map(|chunk| &chunk.bytes).copied().collect();
        join(record.id, field, form, len, bytes)?;
    }
    Ok(())
}

/// Returns true if a field of the item is stored in chunk records.
fn is_split(record: &ItemRecord) -> bool {
    record.fields.iter().any(|field| matches!(field.value, FieldValue::Chunks { .. }))
}

/// Sets a field to the joined value of its chunks.
fn join(item: u32, field: &mut Field, form: u8, len: u64, bytes: Vec<u8>) -> Result<()> {
    let name = &field.name;
    if bytes.len() as u64 != len {
        let found = bytes.len();
        let what = format!("field {name:?} of item #{item} has {found} bytes in its chunks, expected {len}");
        return Err(Error::Corrupt { what });
    }
    let value = match form {
        0 => String::from_utf8(bytes).ok().map(FieldValue::Text),
        1 => String::from_utf8(bytes).ok().map(FieldValue::Json),
        2 => Some(FieldValue::Bytes(bytes)),
        _ => None,
    };
    field.value =
        value.ok_or_else(|| Error::Corrupt { what: format!("field {name:?} of item #{item} is not text") })?;
    Ok(())
}

/// Maximum length of a field value in one record, in bytes. Storage allows 16 MiB a record.
pub(crate) const CHUNK_LEN: usize = 8 << 20;

/// Splits fields longer than [`CHUNK_LEN`] into chunk records. The item keeps their lengths.
pub(crate) fn split_chunks(record: &mut Arc<ItemRecord>) -> Vec<ChunkRecord> {
    let total: usize = record.fields.iter().map(|field| field.value.bytes().len()).sum();
    if total <= CHUNK_LEN {
        return Vec::new();
    }
    let record = Arc::make_mut(record);
    let mut chunks = Vec::new();
    for (number, field) in (0u32..).zip(&mut record.fields) {
        let (form, bytes) = match std::mem::replace(&mut field.value, FieldValue::Bytes(Vec::new())) {
            FieldValue::Text(text) => (0, text.into_bytes()),
            FieldValue::Json(text) => (1, text.into_bytes()),
            FieldValue::Bytes(bytes) => (2, bytes),
            FieldValue::Chunks { .. } => continue,
        };
        field.value = FieldValue::Chunks { form, len: bytes.len() as u64 };
        for (index, piece) in (0u32..).zip(bytes.chunks(CHUNK_LEN)) {
            chunks.push(ChunkRecord { item: record.id, field: number, index, bytes: piece.to_vec() });
        }
    }
    chunks
}
