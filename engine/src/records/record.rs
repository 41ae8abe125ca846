//! Log records: their type numbers and payloads.
//!
//! Storage moves opaque payloads; this file defines them. A payload is encoded by `storage::codec` (little-endian,
//! fixed-width integers; items in its compact form; `docs/format.md` specifies the bytes).
//!
//! Invariants:
//! 1. A record holds what was *stated*, never what was derived: support, trust and inherited attributes are
//!    recomputed by applying the log (`apply`), so that a rebuild gives the same answers.
//! 2. A type's payload never changes; a new shape gets a new type number.
//! 3. Numbers inside records (items, episodes, pages, claims) are assigned in commit order and are part of the log.

use crate::model::item::{ItemId, Kind, Origin, Source, Status};
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

/// A setting of the database; the newest value wins.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct SettingRecord {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// An episode opened, changed or closed. The first record of an id assigns its number.
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
    /// A JSON value other than a string, as its text.
    Json(String),
    /// Bytes that are not UTF-8.
    Bytes(Vec<u8>),
    /// Too long for one record: stored in [`ChunkRecord`]s of the same transaction.
    Chunks {
        /// The type of the joined value: 0 text, 1 JSON, 2 bytes.
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

/// The target of a pointer: a field of an item, or a whole memory page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub(crate) enum PointerTarget {
    /// An item, by number.
    Item(u32),
    /// A memory page, by number.
    Page(u32),
}

/// A pointer (HELM A.7) as stored: target, field, byte span, BLAKE3 of the span.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Encode, Decode)]
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

impl FieldValue {
    /// The bytes that spans refer to; empty for a chunked value.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            FieldValue::Text(text) | FieldValue::Json(text) => text.as_bytes(),
            FieldValue::Bytes(bytes) => bytes,
            FieldValue::Chunks { .. } => &[],
        }
    }
}

impl ItemRecord {
    /// The record of an item whose content was erased.
    pub(crate) fn without_content(self) -> ItemRecord {
        ItemRecord { fields: Vec::new(), vector: None, speaker: None, ..self }
    }

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

    /// The field with this name.
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The text of the field `text`; empty if absent.
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

/// A memory page closed (TierMem 3.1) or changed: the newest record of a number wins.
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

/// Pointers added to an existing item.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct PointersRecord {
    pub(crate) item: u32,
    pub(crate) pointers: Vec<PointerRecord>,
}

/// The change of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Encode, Decode)]
pub(crate) enum Change {
    /// The status, by its byte.
    Status(u8),
    /// The utility, and the number of reports in its mean.
    Utility(f32, u32),
    /// True to activate, false to deactivate.
    Active(bool),
    /// The credit, and the number of rollouts in its mean.
    Credit(f32, u32),
}

/// A change of an item's epistemic state, with its reason.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub(crate) struct MarkRecord {
    pub(crate) item: u32,
    pub(crate) change: Change,
    /// The item that supersedes a deactivated one.
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
    /// True if the claim competes in the whole database, false if within its episode.
    pub(crate) global: bool,
    pub(crate) from: Vec<PointerRecord>,
}

/// The caller's key moves from one item to the one that supersedes it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct RekeyRecord {
    pub(crate) key: String,
    pub(crate) item: u32,
}

/// A span or page that an item no longer cites. It holds no hash, so that `forget` need not change it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Encode, Decode)]
pub(crate) struct UncitedRecord {
    pub(crate) target: PointerTarget,
    /// The field's name; empty for a page.
    pub(crate) field: String,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl UncitedRecord {
    /// The record that removes a pointer.
    pub(crate) fn of(pointer: &PointerRecord) -> Self {
        let PointerRecord { target, field, start, end, .. } = pointer.clone();
        UncitedRecord { target, field, start, end }
    }

    /// Returns true if it removes the pointer.
    pub(crate) fn is_of(&self, pointer: &PointerRecord) -> bool {
        *self == UncitedRecord::of(pointer)
    }
}

/// Pointers removed from an item.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct UnciteRecord {
    pub(crate) item: u32,
    pub(crate) pointers: Vec<UncitedRecord>,
}

/// The vector of an item in an epoch of vectors (see `state::vectors`).
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct VectorRecord {
    pub(crate) epoch: u64,
    pub(crate) item: u32,
    /// As in an item record; `None` if the item has no vector in this epoch.
    pub(crate) vector: Option<Vec<u8>>,
}

/// The vectors of an epoch come into force, for items below the bound.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct ReembedRecord {
    pub(crate) epoch: u64,
    pub(crate) bound: u32,
    pub(crate) space: SpaceRecord,
    /// The fingerprint of the model.
    pub(crate) fingerprint: String,
}

/// A row of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct RowRecord {
    pub(crate) item: u32,
    /// BLAKE3 of the row as JSON.
    pub(crate) hash: [u8; 32],
}

/// A stored query and its answer (memory model, section 8).
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
    /// The commit that was queried.
    pub(crate) commit: u64,
    pub(crate) rows: Vec<RowRecord>,
    /// BLAKE3 of each cited span in the answer.
    pub(crate) spans: Vec<[u8; 32]>,
    /// BLAKE3 of the whole answer as JSON, without its elapsed time.
    pub(crate) answer: [u8; 32],
}

/// An audited recall, with the position of its reader.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct ReadRecord {
    pub(crate) episode: Option<String>,
    pub(crate) step: Option<u64>,
    pub(crate) time: Option<i64>,
    pub(crate) version: Option<String>,
    pub(crate) commit: u64,
    pub(crate) rows: Vec<RowRecord>,
    pub(crate) spans: Vec<[u8; 32]>,
    pub(crate) answer: [u8; 32],
}

/// Items forgotten (memory model, section 8): their records are erased, and records with hashes of them are replaced.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct ForgetRecord {
    pub(crate) items: Vec<u32>,
    /// Episodes whose task is forgotten too.
    pub(crate) episodes: Vec<u32>,
    /// Number of erased records.
    pub(crate) erased: u64,
    pub(crate) because: String,
}

/// The replacement of an erased record.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct ReplacementRecord {
    /// The log position of the erased record.
    pub(crate) lsn: u64,
    /// True if the record's subject was forgotten; false if only hashes were removed.
    pub(crate) erased: bool,
    pub(crate) kind: u8,
    pub(crate) payload: Vec<u8>,
}

impl ReplacementRecord {
    pub(crate) fn new(lsn: u64, erased: bool, record: &Record) -> Result<Self> {
        Ok(ReplacementRecord { lsn, erased, kind: record.kind(), payload: record.encode()? })
    }

    /// The replacement as a record.
    pub(crate) fn record(&self) -> Result<Record> {
        match Record::decode(self.kind, &self.payload)? {
            Record::Replacement(_) => {
                Err(Error::Corrupt { what: "a replacement record contains another one".to_owned() })
            }
            record => Ok(record),
        }
    }
}

/// A record of a truncated commit, retained in a later one.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct RetainedRecord {
    /// True if the record's subject was forgotten and only its remainder is retained.
    pub(crate) erased: bool,
    pub(crate) kind: u8,
    pub(crate) payload: Vec<u8>,
}

impl RetainedRecord {
    /// The retained record.
    pub(crate) fn record(&self) -> Result<Record> {
        match Record::decode(self.kind, &self.payload)? {
            Record::Replacement(_) | Record::Retained(_) | Record::RetainedCommit(_) | Record::Subtrees(_) => {
                Err(Error::Corrupt {
                    what: format!("a retained record contains one of type {}, which is never retained", self.kind),
                })
            }
            record => Ok(record),
        }
    }
}

/// A truncated commit with retained records; its records follow those of the commit before it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct RetainedCommitRecord {
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

/// Hashes of subtrees whose records were truncated.
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
    Vector(VectorRecord),
    Reembed(ReembedRecord),
    Receipt(ReceiptRecord),
    Read(ReadRecord),
    Forget(ForgetRecord),
    Replacement(ReplacementRecord),
    Retained(RetainedRecord),
    RetainedCommit(RetainedCommitRecord),
    Subtrees(SubtreesRecord),
}

/// A record as it reads after redaction.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EffectiveRecord {
    pub(crate) record: Record,
    /// True if the record's subject was forgotten and this is the remainder.
    pub(crate) erased: bool,
}

/// True if the payload of a record of this type ends with an item's vector, where the item has one: it is the record of
/// an item, or a retained one, which ends as the record does.
pub(crate) fn ends_with_vector(kind: u8) -> bool {
    matches!(kind, kind::ITEM | kind::RETAINED)
}

/// The type numbers of `docs/format.md`.
mod kind {
    pub(super) const SPACE: u8 = 1;
    pub(super) const SETTING: u8 = 2;
    pub(super) const EPISODE: u8 = 3;
    pub(super) const CHUNK: u8 = 5;
    pub(super) const PAGE: u8 = 6;
    pub(super) const LINK: u8 = 7;
    pub(super) const UNLINK: u8 = 8;
    pub(super) const POINTERS: u8 = 9;
    pub(super) const MARK: u8 = 10;
    pub(super) const CLAIM: u8 = 11;
    pub(super) const REKEY: u8 = 12;
    pub(super) const UNCITE: u8 = 13;
    pub(super) const VECTOR: u8 = 14;
    pub(super) const REEMBED: u8 = 15;
    pub(super) const ITEM: u8 = 16;
    pub(super) const RECEIPT: u8 = 20;
    pub(super) const READ: u8 = 21;
    pub(super) const FORGET: u8 = 32;
    pub(super) const REPLACEMENT: u8 = 33;
    pub(super) const RETAINED: u8 = 40;
    pub(super) const RETAINED_COMMIT: u8 = 41;
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
            Record::Vector(_) => kind::VECTOR,
            Record::Reembed(_) => kind::REEMBED,
            Record::Receipt(_) => kind::RECEIPT,
            Record::Read(_) => kind::READ,
            Record::Forget(_) => kind::FORGET,
            Record::Replacement(_) => kind::REPLACEMENT,
            Record::Retained(_) => kind::RETAINED,
            Record::RetainedCommit(_) => kind::RETAINED_COMMIT,
            Record::Subtrees(_) => kind::SUBTREES,
        }
    }

    /// The payload of the record.
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.encode_into(&mut bytes)?;
        Ok(bytes)
    }

    /// Appends the payload to `bytes`.
    pub(crate) fn encode_into(&self, bytes: &mut Vec<u8>) -> Result<()> {
        let encoded = match self {
            Record::Space(record) => codec::encode_into(record, bytes),
            Record::Setting(record) => codec::encode_into(record, bytes),
            Record::Episode(record) => codec::encode_into(record, bytes),
            Record::Item(record) => codec::encode_compact_into(record.as_ref(), bytes),
            Record::Chunk(record) => codec::encode_into(record, bytes),
            Record::Page(record) => codec::encode_into(record, bytes),
            Record::Link(record) | Record::Unlink(record) => codec::encode_into(record, bytes),
            Record::Pointers(record) => codec::encode_into(record, bytes),
            Record::Mark(record) => codec::encode_into(record, bytes),
            Record::Claim(record) => codec::encode_into(record, bytes),
            Record::Rekey(record) => codec::encode_into(record, bytes),
            Record::Uncite(record) => codec::encode_into(record, bytes),
            Record::Vector(record) => codec::encode_into(record, bytes),
            Record::Reembed(record) => codec::encode_into(record, bytes),
            Record::Receipt(record) => codec::encode_into(record, bytes),
            Record::Read(record) => codec::encode_into(record, bytes),
            Record::Forget(record) => codec::encode_into(record, bytes),
            Record::Replacement(record) => codec::encode_into(record, bytes),
            Record::Retained(record) => codec::encode_into(record, bytes),
            Record::RetainedCommit(record) => codec::encode_into(record, bytes),
            Record::Subtrees(record) => codec::encode_into(record, bytes),
        };
        Ok(encoded?)
    }

    /// The record inside a replacement or retained record; other records as they are.
    pub(crate) fn unwrap_carrier(self) -> Result<Record> {
        let record = match self {
            Record::Replacement(restated) => restated.record()?,
            record => record,
        };
        match record {
            Record::Retained(kept) => kept.record(),
            record => Ok(record),
        }
    }

    /// The effective record of a stored one: for an erased record its replacement, if it has one.
    pub(crate) fn effective(stored: &holotype_storage::Record) -> Result<Option<EffectiveRecord>> {
        if !stored.is_redacted() {
            return Ok(Some(EffectiveRecord { record: Record::decode(stored.kind, &stored.payload)?, erased: false }));
        }
        if stored.replacement.is_none() {
            return Ok(None);
        }
        match Record::decode(stored.kind, &stored.payload)? {
            Record::Replacement(instead) if instead.lsn == stored.lsn.0 => {
                Ok(Some(EffectiveRecord { record: instead.record()?, erased: instead.erased }))
            }
            // A replacement that was itself replaced.
            record @ Record::Replacement(_) => Ok(Some(EffectiveRecord { record, erased: false })),
            _ => Err(Error::Corrupt {
                what: format!("the replacement of the record at log position {} has another type", stored.lsn),
            }),
        }
    }

    /// Decodes the payload of a record type.
    pub(crate) fn decode(kind: u8, payload: &[u8]) -> Result<Record> {
        Ok(match kind {
            kind::SPACE => Record::Space(codec::decode(payload)?),
            kind::SETTING => Record::Setting(codec::decode(payload)?),
            kind::EPISODE => Record::Episode(codec::decode(payload)?),
            kind::ITEM => Record::Item(Arc::new(codec::decode_compact(payload)?)),
            kind::CHUNK => Record::Chunk(codec::decode(payload)?),
            kind::PAGE => Record::Page(codec::decode(payload)?),
            kind::LINK => Record::Link(codec::decode(payload)?),
            kind::UNLINK => Record::Unlink(codec::decode(payload)?),
            kind::POINTERS => Record::Pointers(codec::decode(payload)?),
            kind::MARK => Record::Mark(codec::decode(payload)?),
            kind::CLAIM => Record::Claim(codec::decode(payload)?),
            kind::REKEY => Record::Rekey(codec::decode(payload)?),
            kind::UNCITE => Record::Uncite(codec::decode(payload)?),
            kind::VECTOR => Record::Vector(codec::decode(payload)?),
            kind::REEMBED => Record::Reembed(codec::decode(payload)?),
            kind::RECEIPT => Record::Receipt(codec::decode(payload)?),
            kind::READ => Record::Read(codec::decode(payload)?),
            kind::FORGET => Record::Forget(codec::decode(payload)?),
            kind::REPLACEMENT => Record::Replacement(codec::decode(payload)?),
            kind::RETAINED => Record::Retained(codec::decode(payload)?),
            kind::RETAINED_COMMIT => Record::RetainedCommit(codec::decode(payload)?),
            kind::SUBTREES => Record::Subtrees(codec::decode(payload)?),
            _ => return Err(Error::UnknownRecord { kind }),
        })
    }
}

/// The error for a stored byte without a meaning.
pub(crate) fn bad_byte(what: &'static str, byte: u8) -> Error {
    Error::Corrupt { what: format!("a record holds the unknown value {byte} as its {what}") }
}
