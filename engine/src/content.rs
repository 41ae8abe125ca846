//! The content of an item: its record as it stands in the log, with long fields put together again.
//!
//! Text, fields and vectors are never copied out of the log: they are read where they were written, checked, decoded and
//! handed out. A transaction keeps its own items here until they have a place in the log.

use crate::Error;
use crate::Result;
use crate::item::ItemId;
use crate::record::{ChunkRecord, Field, FieldValue, ItemRecord, Record};
use crate::state::State;
use crate::tables;
use holotype_storage::log::{Log, Lsn};
use std::sync::Arc;

/// What was written of an item.
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

    /// A field as text: a string as it is, a JSON value as its text; nothing for bytes and for a field it has not.
    pub fn field_text(&self, name: &str) -> Option<&str> {
        match &self.field(name)?.value {
            FieldValue::Text(text) | FieldValue::Json(text) => Some(text),
            FieldValue::Bytes(_) | FieldValue::Chunks { .. } => None,
        }
    }

    /// The tool that ran, if one did.
    pub fn tool(&self) -> Option<&str> {
        self.record.tool.as_deref()
    }

    /// Who spoke, if known.
    pub fn speaker(&self) -> Option<&str> {
        self.record.speaker.as_deref()
    }

    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.record.field(name)
    }
}

/// The items of a transaction by number, with shared structure: a savepoint copies none of them.
pub(crate) type OwnItems = imbl::OrdMap<u32, Arc<ItemRecord>>;

/// Reads contents for one state: from the log, or from the transaction that is being written.
#[derive(Clone)]
pub(crate) struct ContentReader {
    pub(crate) log: Arc<Log>,
    /// The items of the transaction under way, not in the log yet.
    pub(crate) own: OwnItems,
}

impl ContentReader {
    pub(crate) fn read(&self, state: &State, id: ItemId) -> Result<Content> {
        if let Some(record) = self.own.get(&id.0) {
            return Ok(Content { record: Arc::clone(record) });
        }
        let (lsn, redacted) = state.place_of(id)?;
        let record = match self.record(lsn)? {
            Record::Item(record) if record.id == id.0 && redacted => Arc::new(crate::forget::stripped(record)),
            Record::Item(record) if record.id == id.0 => self.join_chunks(state, record)?,
            _ => return Err(Error::Corrupt { what: format!("log position {lsn} does not hold item {id}") }),
        };
        Ok(Content { record })
    }

    fn record(&self, lsn: u64) -> Result<Record> {
        let record = match (self.log.payload(Lsn(lsn)), self.log.floor()) {
            // What it says is told again elsewhere, which a state from before does not know.
            (Err(holotype_storage::Error::NoRecord { .. }), Some(floor)) if lsn < floor.first.0 => {
                let what = "what this snapshot is to read".to_owned();
                return Err(Error::BeforeHistory { what, since: floor.head.commit.0 });
            }
            (read, _) => read?,
        };
        if record.redacted {
            return Err(Error::SnapshotForgotten);
        }
        Record::decode(record.kind, &record.bytes)?.innermost()
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

/// Puts the fields of an item together again from the chunk records that stand before it in its transaction.
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

/// Whether a field of the item stands in chunk records.
fn is_split(record: &ItemRecord) -> bool {
    record.fields.iter().any(|field| matches!(field.value, FieldValue::Chunks { .. }))
}

/// Gives a field the value its chunks make together.
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

/// The longest piece of a field that stands in one record; storage allows 16 MiB a record.
pub(crate) const CHUNK_LEN: usize = 8 << 20;

/// Splits the fields that are too long for one record into chunk records; the item keeps their lengths.
pub(crate) fn split_chunks(record: &mut Arc<ItemRecord>) -> Vec<ChunkRecord> {
    let total: usize = record.fields.iter().map(|field| crate::provenance::field_bytes(&field.value).len()).sum();
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
