//! Claims: values that items state for a name, `price of ua123 = 450 USD`.
//!
//! The caller states claims, and applying an item extracts those of its structured text ([`crate::extract`]). Extracted
//! claims are derived: never logged, numbered or exported, and a function of the item's record and of the settings when
//! it was written. An item with stated claims has no extracted ones. Claims exclude nothing: `state::conflicts` says
//! which of them contradict each other.
//!
//! | table | key | value |
//! |---|---|---|
//! | `EXTRACTED` | item u32 | names and values of its claims |
//! | `EXTRACTED` | a zero byte | the version of the extractor |
//! | `EXTRACTED_NAME` | name, 0, item u32 inverted, ordinal u8 | the value; of traces only, the newest first |
//!
//! Invariants:
//! 1. Neither table has a history: a row follows from the item's record, so a past state has it if it has the item.
//! 2. A forgotten item has no rows.
//! 3. All claims are of one version of the extractor: opening derives those of another one again from the log.

use crate::Result;
use crate::extract::{EXTRACTOR_VERSION, ExtractOptions, Field, extract, normalise};
use crate::model::item::{Attributes, ItemId, Layer};
use crate::records::field::LABELS;
use crate::records::record::{FieldValue, ItemRecord};
use crate::records::tables::{self, ClaimRow};
use crate::state::State;
use crate::state::settings;
use holotype_storage::codec;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The key of the extractor's version in `EXTRACTED`. Those of items are longer.
const VERSION: [u8; 1] = [0];

/// Names and values, in the order of their extraction.
pub(crate) type ExtractedRow = Vec<(String, String)>;

/// A number for an extracted claim that no stated claim has. It is unique within its item.
fn pseudo_number(ordinal: usize) -> u32 {
    u32::MAX - u32::try_from(ordinal).unwrap_or(0)
}

impl ClaimRow {
    /// True for a claim that rules extracted.
    pub(crate) fn is_extracted(&self) -> bool {
        self.number > u32::MAX - 256
    }
}

fn extracted_claim(item: ItemId, ordinal: usize, name: &str, value: &str) -> ClaimRow {
    let (name, value) = (name.to_owned(), value.to_owned());
    ClaimRow { number: pseudo_number(ordinal), item: item.0, name, value, global: true, from: Vec::new() }
}

/// Returns true if two claimed values are equal: the same number, the same text ignoring case and outer blanks, or one
/// value in two notations.
pub(crate) fn agree(a: &str, b: &str) -> bool {
    let (a, b) = (a.trim(), b.trim());
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => a == b,
        // `$1,234.50` is `1234.5 USD`, and a day is the same in any notation.
        _ => a.to_lowercase() == b.to_lowercase() || normalise(a) == normalise(b),
    }
}

impl State {
    /// The claims of an item, oldest first: those that the caller stated, or else the extracted ones.
    pub(crate) fn claims_of(&self, id: ItemId) -> Result<Vec<ClaimRow>> {
        let stated = self.stated_claims_of(id)?;
        if stated.is_empty() { self.extracted_of(id) } else { Ok(stated) }
    }

    /// The claims that the caller stated for an item, oldest first.
    pub(crate) fn stated_claims_of(&self, id: ItemId) -> Result<Vec<ClaimRow>> {
        if self.meta.claims == 0 {
            return Ok(Vec::new());
        }
        let mut claims = Vec::new();
        for (key, _) in self.scan(tables::CLAIM_ITEM, &tables::numbers([id.0]))? {
            if let Some(number) = tables::number_at(&key, 4) {
                claims.extend(self.claim(number)?);
            }
        }
        Ok(claims)
    }

    /// True if the caller stated a claim of the item.
    pub(crate) fn has_stated_claims(&self, id: ItemId) -> Result<bool> {
        Ok(self.meta.claims > 0 && !self.scan_some(tables::CLAIM_ITEM, &tables::numbers([id.0]), 1)?.is_empty())
    }

    /// The claim with this number.
    pub(crate) fn claim(&self, number: u32) -> Result<Option<ClaimRow>> {
        self.get(tables::CLAIM, &tables::numbers([number]))
    }

    /// The claims of a name that compete with others: stated ones, the last `most` of them, and those extracted from
    /// the `most` newest traces.
    pub(crate) fn claims_named(&self, name: &str, most: usize) -> Result<Vec<ClaimRow>> {
        let mut claims = Vec::new();
        let prefix = name_prefix(name);
        if self.meta.claims > 0 {
            let rows = self.scan(tables::CLAIM_NAME, &prefix)?;
            let numbers = rows.iter().rev().filter_map(|(key, _)| number_behind(key, prefix.len()));
            for number in numbers.take(most) {
                claims.extend(self.claim(number)?);
            }
        }
        for (key, value) in self.scan_some(tables::EXTRACTED_NAME, &prefix, most)? {
            // Names contain no zero byte, so that a key of this length is of this name.
            let item = tables::number_at(&key, prefix.len()).filter(|_| key.len() == prefix.len() + 5);
            let (Some(inverted), Some(ordinal)) = (item, key.last()) else { continue };
            let item = ItemId(!inverted);
            if !self.has_stated_claims(item)? {
                claims.push(extracted_claim(item, usize::from(*ordinal), name, &String::from_utf8_lossy(&value)));
            }
        }
        Ok(claims)
    }

    /// The names of all claims that compete.
    pub(crate) fn claim_names(&self) -> Result<BTreeSet<String>> {
        let mut names = BTreeSet::new();
        for (table, behind) in [(tables::CLAIM_NAME, 5), (tables::EXTRACTED_NAME, 6)] {
            for row in self.iter(table, &[]) {
                let (key, _) = row?;
                let name = key.len().checked_sub(behind).and_then(|end| key.get(..end));
                names.extend(name.map(|name| String::from_utf8_lossy(name).into_owned()));
            }
        }
        Ok(names)
    }

    /// Every item with claims, ascending.
    pub(crate) fn items_with_claims(&self) -> Result<BTreeSet<ItemId>> {
        let mut items = BTreeSet::new();
        for table in [tables::EXTRACTED, tables::CLAIM_ITEM] {
            items.extend(self.scan(table, &[])?.iter().filter_map(|(key, _)| tables::number_at(key, 0).map(ItemId)));
        }
        Ok(items)
    }

    // ---- extraction ----

    /// The extractor of claims from what is written now; `None` if none are extracted.
    fn extraction(&self) -> Result<Option<Arc<ExtractOptions>>> {
        if let Some(known) = self.lookup_cache.extraction.get() {
            return Ok(known.clone());
        }
        let options = match settings::value(self, "claims")? == "extract" {
            true => Some(Arc::new(ExtractOptions { ignore: settings::ignored(self)?, ..ExtractOptions::default() })),
            false => None,
        };
        Ok(self.lookup_cache.extraction.get_or_init(|| options).clone())
    }

    /// Extracts the claims of a new item.
    pub(crate) fn extract_claims(&mut self, record: &ItemRecord, attributes: &Attributes) -> Result<()> {
        match self.extraction()? {
            Some(options) if attributes.layer() != Layer::Theme => self.put_extracted(record, attributes, &options),
            _ => Ok(()),
        }
    }

    fn put_extracted(&mut self, record: &ItemRecord, attributes: &Attributes, options: &ExtractOptions) -> Result<()> {
        let text = |value: &'_ FieldValue| match value {
            FieldValue::Text(_) | FieldValue::Json(_) => std::str::from_utf8(value.bytes()).is_ok(),
            FieldValue::Bytes(_) | FieldValue::Chunks { .. } => false,
        };
        let fields = record.fields.iter().filter(|field| field.name != LABELS && text(&field.value));
        let fields: Vec<Field<'_>> = fields
            .map(|field| Field {
                name: &field.name,
                text: std::str::from_utf8(field.value.bytes()).unwrap_or_default(),
            })
            .collect();
        let claims = extract(record.tool.as_deref(), &fields, options);
        let rows: ExtractedRow = claims.iter().map(|claim| (claim.name(), claim.value.clone())).collect();
        let rows: ExtractedRow = rows.into_iter().filter(|(name, _)| !name.contains('\0')).collect();
        if rows.is_empty() {
            return Ok(());
        }
        let id = record.item();
        if attributes.layer() == Layer::Trace {
            for (ordinal, (name, value)) in rows.iter().enumerate() {
                self.rows.put(tables::EXTRACTED_NAME, extracted_name(name, id, ordinal), value.as_bytes());
            }
        }
        self.rows.put(tables::EXTRACTED, tables::numbers([id.0]), codec::encode(&rows)?);
        Ok(())
    }

    /// The names and values extracted from an item, whether the caller stated claims for it or not.
    pub(crate) fn extracted_row(&self, id: ItemId) -> Result<ExtractedRow> {
        Ok(self.get(tables::EXTRACTED, &tables::numbers([id.0]))?.unwrap_or_default())
    }

    fn extracted_of(&self, id: ItemId) -> Result<Vec<ClaimRow>> {
        let rows = self.extracted_row(id)?;
        let claims = rows.iter().enumerate().map(|(ordinal, (name, value))| extracted_claim(id, ordinal, name, value));
        Ok(claims.collect())
    }

    /// Removes the extracted claims of a forgotten item.
    pub(crate) fn forget_extracted(&mut self, id: ItemId) -> Result<()> {
        let key = tables::numbers([id.0]);
        let Some(bytes) = self.rows.get(tables::EXTRACTED, &key)? else { return Ok(()) };
        let rows: ExtractedRow = codec::decode(&bytes)?;
        for (ordinal, (name, _)) in rows.iter().enumerate() {
            self.rows.delete(tables::EXTRACTED_NAME, extracted_name(name, id, ordinal));
        }
        self.rows.delete(tables::EXTRACTED, key);
        Ok(())
    }

    /// The version of the extractor by which the claims were found, if it is another one than that of this program.
    pub(crate) fn other_extractor(&self) -> Result<Option<u32>> {
        let version: Option<u32> = self.get(tables::EXTRACTED, &VERSION)?;
        Ok(version.filter(|version| *version != EXTRACTOR_VERSION))
    }

    /// Records the version of the extractor. Called when the first record of a database is applied.
    pub(crate) fn state_extractor(&mut self) -> Result<()> {
        self.rows.put(tables::EXTRACTED, VERSION, codec::encode(&EXTRACTOR_VERSION)?);
        Ok(())
    }
}

/// The beginning of the keys of a name's claims.
fn name_prefix(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}

fn extracted_name(name: &str, id: ItemId, ordinal: usize) -> Vec<u8> {
    let ordinal = u8::try_from(ordinal).unwrap_or(u8::MAX);
    [name.as_bytes(), &[0], &(!id.0).to_be_bytes(), &[ordinal]].concat()
}

/// The number behind a prefix, if it ends the key.
fn number_behind(key: &[u8], at: usize) -> Option<u32> {
    tables::number_at(key, at).filter(|_| key.len() == at + 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Durability, Holotype, NewTrace, Options};

    #[test]
    fn values_agree_as_people_expect() {
        assert!(agree("450", " 450.0"));
        assert!(agree("Queued", "queued "));
        assert!(!agree("450", "$450"));
        assert!(!agree("queued", "running"));
    }

    #[test]
    fn claims_of_another_extractor_are_derived_again_at_opening() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.holo");
        let database = Holotype::create(&path, Options::default()).unwrap();
        let mut transaction = database.begin().unwrap();
        let trace = transaction.record(NewTrace::call("e", "look", "Gate of UA123: B12")).unwrap();
        transaction.commit(Durability::Sync).unwrap();
        let claims = |database: &Holotype| database.snapshot().state.extracted_row(trace).unwrap();
        let found = claims(&database);
        assert_eq!(found, [("gate of ua123".to_owned(), "b12".to_owned())]);
        // The claims of an earlier extractor, and its version.
        let mut transaction = database.begin().unwrap();
        let version = codec::encode(&1_u32).unwrap();
        transaction.state_mut().rows.put(tables::EXTRACTED, VERSION, version);
        let other: ExtractedRow = vec![("gate of ua123".to_owned(), "b99".to_owned())];
        transaction.state_mut().rows.put(tables::EXTRACTED, tables::numbers([trace.0]), codec::encode(&other).unwrap());
        transaction.record(NewTrace::turn("e", "Thanks.")).unwrap();
        transaction.commit(Durability::Sync).unwrap();
        database.checkpoint().unwrap();
        assert_eq!(claims(&database)[0].1, "b99");
        database.close().unwrap();

        let read_only = Holotype::open(&path, Options { read_only: true, ..Options::default() }).unwrap();
        assert_eq!(claims(&read_only), found);
        read_only.close().unwrap();
        let database = Holotype::open(&path, Options::default()).unwrap();
        let reason = database.report().rebuilt.clone().unwrap();
        let expected = format!("claims were derived by rules of version 1, not {EXTRACTOR_VERSION}");
        assert_eq!(reason, expected);
        assert_eq!(claims(&database), found);
        database.close().unwrap();
        let database = Holotype::open(&path, Options::default()).unwrap();
        assert_eq!(database.report().rebuilt, None);
    }
}
