//! Extracted claims (memory model, section 6): what items claim by the rules of [`crate::extract`], without a caller's
//! help.
//!
//! From `rules = 2` on, applying an item extracts its claims. They are derived: never logged, numbered or exported, and
//! a function of the item's record and of the settings when it was written. A claim of a trace competes in the contests
//! of its episode and version; a recall is judged by those contests, without competing, because it can only repeat what
//! a trace said. Claims that the caller stated for an item replace its extracted ones.
//!
//! | table | key | value |
//! |---|---|---|
//! | `EXTRACTED` | item u32 | names and values of its claims |
//! | `EXTRACTED` | empty | [`Pending`]: items that `set rules = 2` left to be read from the log |
//! | `EXTRACTED` | a zero byte | the version of the extractor, unless it is [`UNRECORDED`] |
//! | `CONTEST_EXTRACTED` | contest, item u32, ordinal u8 | the value; of traces only |
//!
//! Invariants:
//! 1. Neither table has a history: a row follows from the item's record, so a past state has it if it has the item.
//! 2. A forgotten item has no rows.
//! 3. Before a state is published nothing is pending.
//! 4. All claims are of one version of the extractor: opening derives those of another one anew from the log.

use crate::Result;
use crate::extract::{EXTRACTOR_VERSION, ExtractOptions, Field, extract};
use crate::model::item::{Attributes, ItemId, Layer};
use crate::records::record::{FieldValue, ItemRecord};
use crate::records::tables::{self, ClaimRow};
use crate::state::State;
use crate::state::claims::contest_key_of;
use crate::state::content::ContentReader;
use crate::state::settings;
use bincode::{Decode, Encode};
use holotype_storage::codec;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The first rules that extract claims.
pub(crate) const RULES: u8 = 2;

/// The key of the extractor's version in `EXTRACTED`. Those of items are longer.
const VERSION: [u8; 1] = [0];

/// The extractor before its version was recorded.
const UNRECORDED: u32 = 2;

/// Names and values, in the order of their extraction.
type ExtractedRow = Vec<(String, String)>;

/// Items whose claims are still to be extracted, and the options in force when that was decided.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
struct Pending {
    below: u32,
    ignore: Vec<String>,
}

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

fn claim(item: ItemId, ordinal: usize, name: &str, value: &str) -> ClaimRow {
    let (name, value) = (name.to_owned(), value.to_owned());
    ClaimRow { number: pseudo_number(ordinal), item: item.0, name, value, global: false, from: Vec::new() }
}

/// The extracted claim with this number.
pub(crate) fn extracted_claim(item: ItemId, number: u32, name: &str, value: &str) -> ClaimRow {
    claim(item, (u32::MAX - number) as usize, name, value)
}

impl State {
    /// The extractor of claims from what is written now; `None` if none are extracted.
    fn extraction(&self) -> Result<Option<Arc<ExtractOptions>>> {
        if let Some(known) = self.lookup_cache.extraction.get() {
            return Ok(known.clone());
        }
        let extracts = self.rules()? >= RULES && settings::value(self, "claims")? == "extract";
        let options = match extracts {
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
        let fields = record.fields.iter().filter(|field| text(&field.value));
        let fields: Vec<Field<'_>> = fields
            .map(|field| Field {
                name: &field.name,
                text: std::str::from_utf8(field.value.bytes()).unwrap_or_default(),
            })
            .collect();
        let claims = extract(record.tool.as_deref(), &fields, options);
        if claims.is_empty() {
            return Ok(());
        }
        let id = record.item();
        let rows: ExtractedRow = claims.iter().map(|claim| (claim.name(), claim.value.clone())).collect();
        let rows: ExtractedRow = rows.into_iter().filter(|(name, _)| !name.contains('\0')).collect();
        if attributes.layer() == Layer::Trace {
            for (ordinal, (name, value)) in rows.iter().enumerate() {
                let key = contest_row(&contest_key_of(false, name, attributes), id, ordinal);
                self.rows.put(tables::CONTEST_EXTRACTED, key, value.as_bytes());
            }
        }
        self.rows.put(tables::EXTRACTED, tables::numbers([id.0]), codec::encode(&rows)?);
        Ok(())
    }

    /// The extracted claims of an item; those that the caller stated are not regarded.
    pub(crate) fn extracted_of(&self, id: ItemId) -> Result<Vec<ClaimRow>> {
        if self.rules()? < RULES {
            return Ok(Vec::new());
        }
        let rows: ExtractedRow = self.get(tables::EXTRACTED, &tables::numbers([id.0]))?.unwrap_or_default();
        let claims = rows.iter().enumerate().map(|(ordinal, (name, value))| claim(id, ordinal, name, value));
        Ok(claims.collect())
    }

    /// Every item with claims, ascending.
    pub(crate) fn items_with_claims(&self) -> Result<BTreeSet<ItemId>> {
        let mut items = BTreeSet::new();
        for table in [tables::EXTRACTED, tables::CLAIM_ITEM] {
            items.extend(self.scan(table, &[])?.iter().filter_map(|(key, _)| tables::number_at(key, 0).map(ItemId)));
        }
        Ok(items)
    }

    /// The extracted claims that compete in a contest, except those of items with stated claims.
    pub(crate) fn extracted_rivals(&self, contest: &[u8], name: &str) -> Result<Vec<ClaimRow>> {
        let mut claims = Vec::new();
        if self.rules()? < RULES {
            return Ok(claims);
        }
        for (key, value) in self.scan(tables::CONTEST_EXTRACTED, contest)? {
            let Some((item, number)) = rival_of(&key, contest.len()) else { continue };
            if !self.has_stated_claims(item)? {
                claims.push(extracted_claim(item, number, name, &String::from_utf8_lossy(&value)));
            }
        }
        Ok(claims)
    }

    /// The contests that extracted claims take part in, with how many they are.
    pub(crate) fn extracted_contests(&self) -> Result<Vec<Vec<u8>>> {
        let mut contests: Vec<Vec<u8>> = Vec::new();
        if self.rules()? < RULES {
            return Ok(contests);
        }
        for (mut key, _) in self.scan(tables::CONTEST_EXTRACTED, &[])? {
            key.truncate(key.len().saturating_sub(5));
            if contests.last() != Some(&key) {
                contests.push(key);
            }
        }
        Ok(contests)
    }

    /// True if the caller stated a claim of the item.
    pub(crate) fn has_stated_claims(&self, id: ItemId) -> Result<bool> {
        Ok(self.meta.claims > 0 && !self.scan_some(tables::CLAIM_ITEM, &tables::numbers([id.0]), 1)?.is_empty())
    }

    /// Removes the extracted claims of a forgotten item.
    pub(crate) fn forget_extracted(&mut self, id: ItemId, attributes: &Attributes) -> Result<()> {
        let key = tables::numbers([id.0]);
        self.contest_stamps.change_all();
        let Some(bytes) = self.rows.get(tables::EXTRACTED, &key)? else { return Ok(()) };
        let rows: ExtractedRow = codec::decode(&bytes)?;
        for (ordinal, (name, _)) in rows.iter().enumerate() {
            let row = contest_row(&contest_key_of(false, name, attributes), id, ordinal);
            self.rows.delete(tables::CONTEST_EXTRACTED, row);
        }
        self.rows.delete(tables::EXTRACTED, key);
        Ok(())
    }

    /// The version of the extractor by which the claims were found, if it is another one than that of this program.
    pub(crate) fn other_extractor(&self) -> Result<Option<u32>> {
        if self.rules()? < RULES {
            return Ok(None);
        }
        let version = self.get(tables::EXTRACTED, &VERSION)?.unwrap_or(UNRECORDED);
        Ok((version != EXTRACTOR_VERSION).then_some(version))
    }

    /// Notes that the claims of the items so far are to be extracted: their text stands in the log.
    pub(crate) fn schedule_extraction(&mut self) -> Result<()> {
        if self.other_extractor()?.is_some() {
            self.rows.put(tables::EXTRACTED, VERSION, codec::encode(&EXTRACTOR_VERSION)?);
        }
        if let Some(options) = self.extraction()?
            && self.bound() > 0
        {
            let pending = Pending { below: self.bound(), ignore: options.ignore.clone() };
            self.rows.put(tables::EXTRACTED, [], codec::encode(&pending)?);
        }
        Ok(())
    }

    /// Extracts the pending claims.
    ///
    /// # Errors
    /// As reading content.
    pub(crate) fn extract_pending(&mut self, reader: &ContentReader) -> Result<()> {
        let Some(bytes) = self.rows.get(tables::EXTRACTED, &[])? else { return Ok(()) };
        self.contest_stamps.change_all();
        let Pending { below, ignore } = codec::decode(&bytes)?;
        let options = ExtractOptions { ignore, ..ExtractOptions::default() };
        for id in (0..below).map(ItemId) {
            let attributes = self.attributes(id)?;
            if attributes.redacted || attributes.layer() == Layer::Theme {
                continue;
            }
            let record = reader.logged(self, id)?;
            self.put_extracted(&record, &attributes, &options)?;
        }
        self.rows.delete(tables::EXTRACTED, []);
        Ok(())
    }
}

fn contest_row(contest: &[u8], id: ItemId, ordinal: usize) -> Vec<u8> {
    let ordinal = u8::try_from(ordinal).unwrap_or(u8::MAX);
    [contest, &id.0.to_be_bytes(), &[ordinal]].concat()
}

/// The item and the number of the claim behind a contest of this length.
pub(crate) fn rival_of(key: &[u8], contest_len: usize) -> Option<(ItemId, u32)> {
    let item = tables::number_at(key, contest_len).filter(|_| key.len() == contest_len + 5)?;
    Some((ItemId(item), pseudo_number(usize::from(*key.last()?))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Durability, Holotype, NewTrace, Options};

    #[test]
    fn claims_of_another_extractor_are_derived_anew_at_opening() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.holo");
        let database = Holotype::create(&path, Options::default()).unwrap();
        let mut transaction = database.begin().unwrap();
        let trace = transaction.record(NewTrace::turn("e", "The gate of flight UA123 is B12.")).unwrap();
        transaction.commit(Durability::Sync).unwrap();
        let claims = |database: &Holotype| database.snapshot().state.extracted_of(trace).unwrap();
        let found = claims(&database);
        assert_eq!(found.len(), 1);
        // The claims of an earlier extractor, and its version.
        let mut transaction = database.begin().unwrap();
        let version = codec::encode(&1_u32).unwrap();
        transaction.state_mut().rows.put(tables::EXTRACTED, VERSION, version);
        let other: ExtractedRow = vec![("gate of ua123".to_owned(), "b99".to_owned())];
        transaction.state_mut().rows.put(tables::EXTRACTED, tables::numbers([trace.0]), codec::encode(&other).unwrap());
        transaction.record(NewTrace::turn("e", "Thanks.")).unwrap();
        transaction.commit(Durability::Sync).unwrap();
        database.checkpoint().unwrap();
        assert_eq!(claims(&database)[0].value, "b99");
        database.close().unwrap();

        let read_only = Holotype::open(&path, Options { read_only: true, ..Options::default() }).unwrap();
        assert_eq!(claims(&read_only), found);
        read_only.close().unwrap();
        let database = Holotype::open(&path, Options::default()).unwrap();
        let reason = database.report().rebuilt.clone().unwrap();
        assert_eq!(reason, "claims and support were derived by version 1 of the rules; this program has version 3");
        assert_eq!(claims(&database), found);
        database.close().unwrap();
        let database = Holotype::open(&path, Options::default()).unwrap();
        assert_eq!(database.report().rebuilt, None);
    }
}
