//! What the log's records mean.
//!
//! Storage moves opaque payloads; this file gives each record type its number and its payload. A payload is
//! encoded by `storage::codec` (little-endian, fixed-width integers; the bytes are specified in `docs/format.md`).
//!
//! Invariants:
//! 1. A record says what was *stated*, never what was derived: support, trust and inherited attributes are
//!    recomputed by applying the log (`apply`), so a rebuild gives the same answers.
//! 2. A type's payload never changes; a new shape is a new type number.
//! 3. Numbers inside records (items, episodes, pages, claims) are assigned in commit order and are part of the log.

use crate::item::{ItemId, Kind, Origin, Source, Status};
use crate::{Error, Result};
use bincode::{Decode, Encode};
use holotype_storage::codec;
use std::sync::Arc;

/// The name, shape and metric of the vectors a database holds.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct SpaceRecord {
    pub(crate) model: String,
    pub(crate) dim: u32,
    pub(crate) metric: u8,
    pub(crate) encoding: u8,
}

/// A setting of the database; the newest value holds.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct SettingRecord {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// An episode opened, changed or closed. The first record of an id gives it its number.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct EpisodeRecord {
    pub(crate) number: u32,
    pub(crate) id: String,
    pub(crate) task: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) open: bool,
}

/// The value of a field.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) enum FieldValue {
    /// A string.
    Text(String),
    /// A JSON value that is no string, kept as its text.
    Json(String),
    /// Bytes that are not UTF-8.
    Bytes(Vec<u8>),
    /// Too long for one record: it stands in [`ChunkRecord`]s of the same transaction.
    Chunks {
        /// What the chunks make together: 0 text, 1 JSON, 2 bytes.
        form: u8,
        /// The total length in bytes.
        len: u64,
    },
}

/// One named field of an item.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) value: FieldValue,
}

/// Where a pointer points: an item's field, or a whole memory page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub(crate) enum PointerTarget {
    /// An item, by number.
    Item(u32),
    /// A memory page, by number.
    Page(u32),
}

/// A pointer (HELM A.7) as stored: target, field, byte span, BLAKE3 of the span.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct PointerRecord {
    pub(crate) target: PointerTarget,
    /// The field's name; empty for a page.
    pub(crate) field: String,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) hash: [u8; 32],
}

/// An item as it was written.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub(crate) struct ItemRecord {
    pub(crate) id: u32,
    pub(crate) kind: u8,
    pub(crate) key: Option<String>,
    pub(crate) episode: Option<u32>,
    pub(crate) step: Option<u64>,
    pub(crate) time: Option<i64>,
    pub(crate) version: Option<String>,
    pub(crate) status: Option<u8>,
    pub(crate) source: Option<u8>,
    pub(crate) speaker: Option<String>,
    pub(crate) tool: Option<String>,
    pub(crate) log_id: Option<String>,
    pub(crate) fields: Vec<Field>,
    pub(crate) from: Vec<PointerRecord>,
    pub(crate) utility: Option<f32>,
    pub(crate) return_score: Option<u8>,
    pub(crate) ungrounded: bool,
    pub(crate) origin: u8,
    pub(crate) tokens: u32,
    /// The vector's bytes in the space's encoding (f32, or f16), little-endian.
    pub(crate) vector: Option<Vec<u8>>,
}

impl ItemRecord {
    /// The item's number.
    pub(crate) fn item(&self) -> ItemId {
        ItemId(self.id)
    }

    /// The item's kind.
    pub(crate) fn kind(&self) -> Result<Kind> {
        Kind::from_byte(self.kind).ok_or_else(|| bad_byte("kind", self.kind))
    }

    /// The stated status.
    pub(crate) fn status(&self) -> Result<Option<Status>> {
        self.status.map(|byte| Status::from_byte(byte).ok_or_else(|| bad_byte("status", byte))).transpose()
    }

    /// The stated source.
    pub(crate) fn source(&self) -> Result<Option<Source>> {
        self.source.map(|byte| Source::from_byte(byte).ok_or_else(|| bad_byte("source", byte))).transpose()
    }

    /// The stated origin.
    pub(crate) fn origin(&self) -> Result<Origin> {
        Origin::from_byte(self.origin).ok_or_else(|| bad_byte("origin", self.origin))
    }

    /// The field of that name.
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The text of the field `text`, or nothing.
    pub(crate) fn text(&self) -> &str {
        match self.field("text").map(|field| &field.value) {
            Some(FieldValue::Text(text) | FieldValue::Json(text)) => text,
            _ => "",
        }
    }
}

/// A piece of a field that is too long for one record.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct ChunkRecord {
    pub(crate) item: u32,
    pub(crate) field: u32,
    pub(crate) index: u32,
    pub(crate) bytes: Vec<u8>,
}

/// A memory page closed (TierMem 3.1), or its state changed: the newest record of a number holds.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct PageRecord {
    pub(crate) number: u32,
    pub(crate) key: String,
    pub(crate) episode: u32,
    pub(crate) traces: Vec<u32>,
    pub(crate) tokens: u64,
    pub(crate) estimator: String,
    pub(crate) hash: [u8; 32],
    pub(crate) summarised: bool,
}

/// An edge added or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub(crate) struct LinkRecord {
    pub(crate) from: u32,
    pub(crate) edge: u8,
    pub(crate) to: u32,
}

/// Pointers added to an item after it was written.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct PointersRecord {
    pub(crate) item: u32,
    pub(crate) pointers: Vec<PointerRecord>,
}

/// What a mark changes.
#[derive(Debug, Clone, Copy, PartialEq, Encode, Decode)]
pub(crate) enum Change {
    /// The status, by its byte.
    Status(u8),
    /// The utility, with the number of rollouts it is the mean of.
    Utility(f32, u32),
    /// Active (true) or not.
    Active(bool),
}

/// A change of an item's epistemic state, with its reason.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub(crate) struct MarkRecord {
    pub(crate) item: u32,
    pub(crate) change: Change,
    /// The item that took this one's place, for a deactivation.
    pub(crate) by: Option<u32>,
    pub(crate) because: Option<String>,
}

/// A claim of an item (memory model, section 6).
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct ClaimRecord {
    pub(crate) number: u32,
    pub(crate) item: u32,
    pub(crate) name: String,
    pub(crate) value: String,
    /// True when the claim competes over the whole database, false within its episode.
    pub(crate) global: bool,
    pub(crate) from: Vec<PointerRecord>,
}

/// The caller's key moves from one item to the one that supersedes it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct RekeyRecord {
    pub(crate) key: String,
    pub(crate) item: u32,
}

/// A span or page that an item cites no more. It holds no hash, so that forgetting leaves it as it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Encode, Decode)]
pub(crate) struct UncitedRecord {
    pub(crate) target: PointerTarget,
    /// The field's name; empty for a page.
    pub(crate) field: String,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl UncitedRecord {
    /// What takes a pointer back.
    pub(crate) fn of(pointer: &PointerRecord) -> Self {
        let PointerRecord { target, field, start, end, .. } = pointer.clone();
        UncitedRecord { target, field, start, end }
    }

    /// Whether it takes a pointer back.
    pub(crate) fn is_of(&self, pointer: &PointerRecord) -> bool {
        *self == UncitedRecord::of(pointer)
    }
}

/// Pointers of an item taken back.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct UnciteRecord {
    pub(crate) item: u32,
    pub(crate) pointers: Vec<UncitedRecord>,
}

/// A row of an answer, by what it showed.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct RowRecord {
    pub(crate) item: u32,
    /// BLAKE3 of the row as JSON.
    pub(crate) hash: [u8; 32],
}

/// What was asked and answered, kept on demand (memory model, section 8).
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub(crate) struct ReceiptRecord {
    pub(crate) number: u32,
    /// The recall in its canonical form; its vector, if it has one, is `$vector`.
    pub(crate) statement: String,
    pub(crate) vector: Option<Vec<f32>>,
    pub(crate) episode: Option<String>,
    pub(crate) step: Option<u64>,
    pub(crate) time: Option<i64>,
    pub(crate) version: Option<String>,
    /// The commit it was answered as of.
    pub(crate) commit: u64,
    pub(crate) rows: Vec<RowRecord>,
    /// BLAKE3 of each cited span that was shown.
    pub(crate) spans: Vec<[u8; 32]>,
    /// BLAKE3 of the whole answer as JSON, without the time it took.
    pub(crate) answer: [u8; 32],
}

/// A recall that was audited.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct ReadRecord {
    pub(crate) commit: u64,
    pub(crate) rows: Vec<RowRecord>,
    pub(crate) spans: Vec<[u8; 32]>,
    pub(crate) answer: [u8; 32],
}

/// Items forgotten (memory model, section 8): their records are erased, others that hold hashes of theirs are restated.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct ForgetRecord {
    pub(crate) items: Vec<u32>,
    /// Episodes whose task is forgotten too.
    pub(crate) episodes: Vec<u32>,
    /// How many records were erased: none for items that never said anything.
    pub(crate) erased: u64,
    pub(crate) because: String,
}

/// What stands in for a record that is erased.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct RestatedRecord {
    /// Where the erased record stands.
    pub(crate) lsn: u64,
    /// What it was about is forgotten; otherwise only hashes were taken out.
    pub(crate) erased: bool,
    pub(crate) kind: u8,
    pub(crate) payload: Vec<u8>,
}

impl RestatedRecord {
    pub(crate) fn new(lsn: u64, erased: bool, record: &Record) -> Result<Self> {
        Ok(RestatedRecord { lsn, erased, kind: record.kind(), payload: record.encode()? })
    }

    /// The record it holds.
    pub(crate) fn record(&self) -> Result<Record> {
        match Record::decode(self.kind, &self.payload)? {
            Record::Restated(_) => Err(Error::Corrupt { what: "a record is restated twice in one".to_owned() }),
            record => Ok(record),
        }
    }
}

/// A record of an earlier commit, told again.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct KeptRecord {
    /// What it is about is forgotten, and this is what may be known of it.
    pub(crate) erased: bool,
    pub(crate) kind: u8,
    pub(crate) payload: Vec<u8>,
}

impl KeptRecord {
    /// The record that is told again.
    pub(crate) fn record(&self) -> Result<Record> {
        match Record::decode(self.kind, &self.payload)? {
            Record::Restated(_) | Record::Kept(_) | Record::Before(_) | Record::Subtrees(_) => {
                Err(Error::Corrupt { what: format!("a record of type {} is told again", self.kind) })
            }
            record => Ok(record),
        }
    }
}

/// A commit whose records were told again: those since the one before.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct BeforeRecord {
    pub(crate) number: u64,
    pub(crate) time: i64,
    pub(crate) position: u64,
    pub(crate) hash: [u8; 32],
}

/// A row of the tree over all records.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct SubtreeRow {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

/// Hashes of subtrees whose records are gone.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct SubtreesRecord {
    pub(crate) rows: Vec<SubtreeRow>,
}

/// One record of the log.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Record {
    Space(SpaceRecord),
    Setting(SettingRecord),
    Episode(EpisodeRecord),
    Item(Arc<ItemRecord>),
    Chunk(ChunkRecord),
    Page(PageRecord),
    Link(LinkRecord),
    Unlink(LinkRecord),
    Pointers(PointersRecord),
    Mark(MarkRecord),
    Claim(ClaimRecord),
    Rekey(RekeyRecord),
    Uncite(UnciteRecord),
    Receipt(ReceiptRecord),
    Read(ReadRecord),
    Forget(ForgetRecord),
    Restated(RestatedRecord),
    Kept(KeptRecord),
    Before(BeforeRecord),
    Subtrees(SubtreesRecord),
}

/// A record as the log tells it in order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Told {
    pub(crate) record: Record,
    /// What it is about is forgotten, and this is what may be known of it.
    pub(crate) erased: bool,
}

/// The type numbers, as in `docs/format.md`.
mod kind {
    pub(super) const SPACE: u8 = 1;
    pub(super) const SETTING: u8 = 2;
    pub(super) const EPISODE: u8 = 3;
    pub(super) const ITEM: u8 = 4;
    pub(super) const CHUNK: u8 = 5;
    pub(super) const PAGE: u8 = 6;
    pub(super) const LINK: u8 = 7;
    pub(super) const UNLINK: u8 = 8;
    pub(super) const POINTERS: u8 = 9;
    pub(super) const MARK: u8 = 10;
    pub(super) const CLAIM: u8 = 11;
    pub(super) const REKEY: u8 = 12;
    pub(super) const UNCITE: u8 = 13;
    pub(super) const RECEIPT: u8 = 20;
    pub(super) const READ: u8 = 21;
    pub(super) const FORGET: u8 = 32;
    pub(super) const RESTATED: u8 = 33;
    pub(super) const KEPT: u8 = 40;
    pub(super) const BEFORE: u8 = 41;
    pub(super) const SUBTREES: u8 = 42;
}

impl Record {
    /// The type number of the record.
    pub(crate) fn kind(&self) -> u8 {
        match self {
            Record::Space(_) => kind::SPACE,
            Record::Setting(_) => kind::SETTING,
            Record::Episode(_) => kind::EPISODE,
            Record::Item(_) => kind::ITEM,
            Record::Chunk(_) => kind::CHUNK,
            Record::Page(_) => kind::PAGE,
            Record::Link(_) => kind::LINK,
            Record::Unlink(_) => kind::UNLINK,
            Record::Pointers(_) => kind::POINTERS,
            Record::Mark(_) => kind::MARK,
            Record::Claim(_) => kind::CLAIM,
            Record::Rekey(_) => kind::REKEY,
            Record::Uncite(_) => kind::UNCITE,
            Record::Receipt(_) => kind::RECEIPT,
            Record::Read(_) => kind::READ,
            Record::Forget(_) => kind::FORGET,
            Record::Restated(_) => kind::RESTATED,
            Record::Kept(_) => kind::KEPT,
            Record::Before(_) => kind::BEFORE,
            Record::Subtrees(_) => kind::SUBTREES,
        }
    }

    /// The payload of the record.
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.encode_into(&mut bytes)?;
        Ok(bytes)
    }

    /// Appends its payload.
    pub(crate) fn encode_into(&self, bytes: &mut Vec<u8>) -> Result<()> {
        let encoded = match self {
            Record::Space(record) => codec::encode_into(record, bytes),
            Record::Setting(record) => codec::encode_into(record, bytes),
            Record::Episode(record) => codec::encode_into(record, bytes),
            Record::Item(record) => codec::encode_into(record.as_ref(), bytes),
            Record::Chunk(record) => codec::encode_into(record, bytes),
            Record::Page(record) => codec::encode_into(record, bytes),
            Record::Link(record) | Record::Unlink(record) => codec::encode_into(record, bytes),
            Record::Pointers(record) => codec::encode_into(record, bytes),
            Record::Mark(record) => codec::encode_into(record, bytes),
            Record::Claim(record) => codec::encode_into(record, bytes),
            Record::Rekey(record) => codec::encode_into(record, bytes),
            Record::Uncite(record) => codec::encode_into(record, bytes),
            Record::Receipt(record) => codec::encode_into(record, bytes),
            Record::Read(record) => codec::encode_into(record, bytes),
            Record::Forget(record) => codec::encode_into(record, bytes),
            Record::Restated(record) => codec::encode_into(record, bytes),
            Record::Kept(record) => codec::encode_into(record, bytes),
            Record::Before(record) => codec::encode_into(record, bytes),
            Record::Subtrees(record) => codec::encode_into(record, bytes),
        };
        Ok(encoded?)
    }

    /// What a record says that stands in for another, or tells it again.
    pub(crate) fn innermost(self) -> Result<Record> {
        let record = match self {
            Record::Restated(restated) => restated.record()?,
            record => record,
        };
        match record {
            Record::Kept(kept) => kept.record(),
            record => Ok(record),
        }
    }

    /// A record as the log tells it: an erased one by what stands in for it, if anything does.
    pub(crate) fn told(stored: &holotype_storage::Record) -> Result<Option<Told>> {
        if !stored.is_redacted() {
            return Ok(Some(Told { record: Record::decode(stored.kind, &stored.payload)?, erased: false }));
        }
        if stored.instead.is_none() {
            return Ok(None);
        }
        match Record::decode(stored.kind, &stored.payload)? {
            Record::Restated(instead) if instead.lsn == stored.lsn.0 => {
                Ok(Some(Told { record: instead.record()?, erased: instead.erased }))
            }
            // A restatement that was itself restated.
            record @ Record::Restated(_) => Ok(Some(Told { record, erased: false })),
            _ => Err(Error::Corrupt {
                what: format!("what stands in for the record at log position {} is no restatement", stored.lsn),
            }),
        }
    }

    /// The record a payload of the given type stands for.
    pub(crate) fn decode(kind: u8, payload: &[u8]) -> Result<Record> {
        Ok(match kind {
            kind::SPACE => Record::Space(codec::decode(payload)?),
            kind::SETTING => Record::Setting(codec::decode(payload)?),
            kind::EPISODE => Record::Episode(codec::decode(payload)?),
            kind::ITEM => Record::Item(Arc::new(codec::decode(payload)?)),
            kind::CHUNK => Record::Chunk(codec::decode(payload)?),
            kind::PAGE => Record::Page(codec::decode(payload)?),
            kind::LINK => Record::Link(codec::decode(payload)?),
            kind::UNLINK => Record::Unlink(codec::decode(payload)?),
            kind::POINTERS => Record::Pointers(codec::decode(payload)?),
            kind::MARK => Record::Mark(codec::decode(payload)?),
            kind::CLAIM => Record::Claim(codec::decode(payload)?),
            kind::REKEY => Record::Rekey(codec::decode(payload)?),
            kind::UNCITE => Record::Uncite(codec::decode(payload)?),
            kind::RECEIPT => Record::Receipt(codec::decode(payload)?),
            kind::READ => Record::Read(codec::decode(payload)?),
            kind::FORGET => Record::Forget(codec::decode(payload)?),
            kind::RESTATED => Record::Restated(codec::decode(payload)?),
            kind::KEPT => Record::Kept(codec::decode(payload)?),
            kind::BEFORE => Record::Before(codec::decode(payload)?),
            kind::SUBTREES => Record::Subtrees(codec::decode(payload)?),
            _ => return Err(Error::UnknownRecord { kind }),
        })
    }
}

/// A stored byte that stands for nothing known.
pub(crate) fn bad_byte(what: &'static str, byte: u8) -> Error {
    Error::Corrupt { what: format!("a record holds {byte} as its {what}, which stands for nothing") }
}
