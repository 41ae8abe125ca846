//! Checking a proof with the signer's public key, without the database.
//!
//! If [`check`] succeeds, then:
//!
//! 1. The key's holder signed a checkpoint with this number of records and this root.
//! 2. Every record in the proof has its number under that root, byte for byte; for a redacted record this applies to
//!    its hash.
//! 3. The first record is the item's, and every pointer of the item in the proof leads to a record in the proof whose
//!    bytes in the cited span have the hash that the pointer states.
//!
//! It does not follow that these are all pointers that the item ever had (the author of a proof can omit later
//! records), that a redacted record belonged to the named item, or that the log was not rolled back since.

use super::{Growth, Proof, ProvenContent, ProvenRecord, TreeHead, VerifierKey};
use crate::model::item::{ItemId, Kind};
use crate::model::plural::counted;
use crate::model::pointer::NO_HASH;
use crate::model::pointer::Verdict;
use crate::records::record::{ChunkRecord, FieldValue, ItemRecord, PageRecord, PointerRecord, PointerTarget, Record};
use holotype_storage::proof::leaf_hash;
use holotype_storage::proof::tree::{is_consistent, root_of_inclusion};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The reason why a proof is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the proof does not hold: {0}")]
pub struct Rejected(pub String);

/// The content of a valid proof.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The signed checkpoint.
    pub tree: TreeHead,
    /// The item's number.
    pub item: ItemId,
    /// The content of its record; `None` if it was redacted.
    pub content: Option<CheckedItem>,
    /// Its citations, in the order in which they were stated.
    pub citations: Vec<CheckedCitation>,
}

/// The content of an item's record.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedItem {
    /// The key it was written with.
    pub key: Option<String>,
    /// Its kind.
    pub kind: Kind,
    /// Its time in microseconds since 1970, if stated.
    pub time: Option<i64>,
    /// The tool, if stated.
    pub tool: Option<String>,
    /// Its fields as text; invalid UTF-8 is replaced.
    pub fields: Vec<(String, String)>,
    /// True if it was forgotten, and this is what remains.
    pub redacted: bool,
}

/// A span that an item cites.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedCitation {
    /// The item `#N` or the page's key.
    pub target: String,
    /// The field; empty for a page.
    pub field: String,
    /// The span's first byte.
    pub start: u64,
    /// The byte after its last.
    pub end: u64,
    /// The bytes, if they are text and were not erased.
    pub text: Option<String>,
    /// `ok` or `redacted`; any other verdict refuses the proof.
    pub verdict: Verdict,
}

/// Checks a proof against the signer's key.
///
/// # Errors
/// [`Rejected`] with the failed check.
pub fn check(proof: &Proof, key: &VerifierKey) -> Result<Checked, Rejected> {
    let tree = open(&proof.checkpoint, key)?;
    let mut shown = ProvenRecords::default();
    for (number, record) in proof.records.iter().enumerate() {
        check_inclusion(record, &tree).map_err(|why| Rejected(format!("record {number}: {why}")))?;
        if !shown.indices.insert(record.index) {
            return reject(format!("record {number} is shown twice"));
        }
        shown.add(record).map_err(|why| Rejected(format!("record {number}: {why}")))?;
    }
    let item = ItemId(proof.item);
    let content = match proof.records.first().map(|record| &record.content) {
        None => return reject("it shows no record"),
        Some(ProvenContent::Redacted { item, .. }) if *item != proof.item => {
            return reject("its first record is said to be another item's");
        }
        Some(ProvenContent::Redacted { .. }) => None,
        Some(ProvenContent::Stored { .. }) => Some(shown.item(proof.item)?),
    };
    let first = proof.records.first().map(|record| record.index);
    if content.is_some() && shown.places.get(&proof.item).copied() != first {
        return reject(format!("its first record is not that of item {item}"));
    }
    let citations = shown.pointers_of(proof.item).map(|pointer| shown.cited(pointer)).collect::<Result<_, _>>()?;
    let content = content.map(|record| shown.content(record)).transpose()?;
    Ok(Checked { tree, item, content, citations })
}

/// Checks that one checkpoint continues another, and returns both.
///
/// # Errors
/// [`Rejected`]: one of them is not signed by the key, or the log was changed between them.
pub fn check_growth(growth: &Growth, key: &VerifierKey) -> Result<(TreeHead, TreeHead), Rejected> {
    let (old, new) = (open(&growth.old, key)?, open(&growth.new, key)?);
    if !is_consistent(old.size, &old.root, new.size, &new.root, &growth.path) {
        return reject(format!("the log of {} does not begin with that of {}", counted(new.size, "records"), old.size));
    }
    Ok((old, new))
}

fn open(checkpoint: &str, key: &VerifierKey) -> Result<TreeHead, Rejected> {
    TreeHead::open(checkpoint, key).map_err(|error| Rejected(error.to_string()))
}

fn reject<T>(why: impl Into<String>) -> Result<T, Rejected> {
    Err(Rejected(why.into()))
}

/// Checks that the record has its stated number in the tree.
fn check_inclusion(record: &ProvenRecord, tree: &TreeHead) -> Result<(), String> {
    let leaf = match &record.content {
        ProvenContent::Redacted { hash, .. } => *hash,
        ProvenContent::Stored { header, salt, payload } => {
            let [l0, l1, l2, l3, _, flags, mark0, mark1] = *header;
            let stated = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
            if stated != payload.len() || flags != 0 || [mark0, mark1] != *b"Hr" {
                return Err("its header is not that of its payload".to_owned());
            }
            leaf_hash(header, salt, payload)
        }
    };
    match root_of_inclusion(&leaf, record.index, tree.size, &record.path) {
        Some(root) if root == tree.root => Ok(()),
        _ => Err(format!("its path does not lead from place {} to the checkpoint's root", record.index)),
    }
}

/// The decoded records of a proof.
#[derive(Default)]
struct ProvenRecords {
    indices: BTreeSet<u64>,
    items: BTreeMap<u32, Arc<ItemRecord>>,
    /// The record numbers of the items.
    places: BTreeMap<u32, u64>,
    redacted: BTreeSet<u32>,
    /// Items that were forgotten, of which the proof has a replacement.
    forgotten: BTreeSet<u32>,
    chunks: BTreeMap<(u32, u32, u32), ChunkRecord>,
    pages: BTreeMap<u32, PageRecord>,
    /// Pointers by the numbers of the records that state them.
    pointers: BTreeMap<u64, (u32, Vec<PointerRecord>)>,
}

impl ProvenRecords {
    fn add(&mut self, record: &ProvenRecord) -> Result<(), String> {
        let (kind, payload) = match &record.content {
            ProvenContent::Redacted { item, .. } => {
                self.redacted.insert(*item);
                return Ok(());
            }
            ProvenContent::Stored { header, payload, .. } => (header[4], payload),
        };
        let mut decoded = Record::decode(kind, payload).map_err(|error| error.to_string())?;
        let mut erased = false;
        if let Record::Replacement(restated) = decoded {
            erased = restated.erased;
            decoded = restated.record().map_err(|error| error.to_string())?;
        }
        if let Record::Retained(kept) = decoded {
            erased |= kept.erased;
            decoded = kept.record().map_err(|error| error.to_string())?;
        }
        match decoded {
            Record::Item(item) => {
                let id = item.id;
                if erased {
                    self.forgotten.insert(id);
                }
                self.places.insert(id, record.index);
                if self.items.insert(id, item).is_some() {
                    return Err(format!("it is a second one of item #{id}"));
                }
            }
            Record::Chunk(chunk) => {
                self.chunks.insert((chunk.item, chunk.field, chunk.index), chunk);
            }
            Record::Page(page) => {
                self.pages.insert(page.number, page);
            }
            Record::Pointers(more) => {
                self.pointers.insert(record.index, (more.item, more.pointers));
            }
            _ => return Err(format!("records of type {kind} prove nothing of an item")),
        }
        Ok(())
    }

    fn item(&self, number: u32) -> Result<&ItemRecord, Rejected> {
        self.items
            .get(&number)
            .map(Arc::as_ref)
            .ok_or_else(|| Rejected(format!("the record of item #{number} is not shown")))
    }

    fn pointers_of(&self, number: u32) -> impl Iterator<Item = &PointerRecord> {
        let own = self.items.get(&number).map(|item| item.from.iter()).into_iter().flatten();
        own.chain(self.pointers.values().filter(move |(item, _)| *item == number).flat_map(|(_, more)| more))
    }

    /// The citation of a pointer, if its target is unchanged.
    fn cited(&self, pointer: &PointerRecord) -> Result<CheckedCitation, Rejected> {
        let citation = |target, text, verdict| CheckedCitation {
            target,
            field: pointer.field.clone(),
            start: pointer.start,
            end: pointer.end,
            text,
            verdict,
        };
        match pointer.target {
            PointerTarget::Page(number) => match self.pages.get(&number) {
                Some(page) if [page.hash, pointer.hash].contains(&NO_HASH) => {
                    Ok(citation(page.key.clone(), None, Verdict::Redacted))
                }
                Some(page) if page.hash == pointer.hash => Ok(citation(page.key.clone(), None, Verdict::Ok)),
                Some(page) => reject(format!("page {:?} does not have the hash that is cited", page.key)),
                None => reject(format!("page {number}, which it cites, is not shown")),
            },
            PointerTarget::Item(number) if self.is_erased(number, pointer) => {
                Ok(citation(format!("#{number}"), None, Verdict::Redacted))
            }
            PointerTarget::Item(number) => {
                let source = self.item(number)?;
                let place = format!("#{number}.{}[{}..{}]", pointer.field, pointer.start, pointer.end);
                let bytes = self.field(source, &pointer.field)?;
                let range = usize::try_from(pointer.start).ok().zip(usize::try_from(pointer.end).ok());
                let span = range.and_then(|(start, end)| bytes.get(start..end));
                match span {
                    Some(span) if *blake3::hash(span).as_bytes() == pointer.hash => {
                        let text = String::from_utf8(span.to_vec()).ok();
                        Ok(citation(format!("#{number}"), text, Verdict::Ok))
                    }
                    Some(_) => reject(format!("the bytes of {place} do not have the hash that is cited")),
                    None => reject(format!("{place} lies outside the field")),
                }
            }
        }
    }

    /// True if the target of an item's pointer was erased, or the hash of the citation.
    fn is_erased(&self, number: u32, pointer: &PointerRecord) -> bool {
        match self.items.contains_key(&number) {
            true => pointer.hash == NO_HASH || self.forgotten.contains(&number),
            false => self.redacted.contains(&number),
        }
    }

    /// The bytes of a field, assembled from chunks if it is long.
    fn field<'a>(&'a self, item: &'a ItemRecord, name: &str) -> Result<Cow<'a, [u8]>, Rejected> {
        let found = (0_u32..).zip(&item.fields).find(|(_, field)| field.name == name);
        let Some((number, field)) = found else {
            return reject(format!("item #{} has no field {name:?}", item.id));
        };
        let FieldValue::Chunks { len, .. } = field.value else {
            return Ok(field.value.bytes().into());
        };
        let mut bytes = Vec::new();
        for index in 0.. {
            let Some(chunk) = self.chunks.get(&(item.id, number, index)) else { break };
            bytes.extend_from_slice(&chunk.bytes);
        }
        match bytes.len() as u64 == len {
            true => Ok(bytes.into()),
            false => reject(format!("the chunks of field {name:?} of item #{} are not all shown", item.id)),
        }
    }

    fn content(&self, item: &ItemRecord) -> Result<CheckedItem, Rejected> {
        let text = |name: &String| Ok((name.clone(), String::from_utf8_lossy(&self.field(item, name)?).into_owned()));
        Ok(CheckedItem {
            key: item.key.clone(),
            kind: item.kind().map_err(|error| Rejected(error.to_string()))?,
            time: item.time,
            tool: item.tool.clone(),
            fields: item.fields.iter().map(|field| text(&field.name)).collect::<Result<_, _>>()?,
            redacted: self.forgotten.contains(&item.id),
        })
    }
}
