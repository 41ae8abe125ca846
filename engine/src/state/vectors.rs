//! Vectors made anew (`reembed`): written item by item without being seen, then all of them seen at once.
//!
//! ```text
//! vector(epoch, item, v) …   rows VECTOR, which nobody reads yet
//! reembed(epoch, bound, space, fingerprint)
//!     items below the bound have the vectors of the epoch, or none; later ones have those of their own records
//! ```
//!
//! The *epoch* follows from the fingerprint of the model and from the epoch before: a process that goes on after a kill
//! finds what it wrote, and another model finds nothing of it. Applying a `reembed` record drops the vectors of
//! the index. [`State::reload_vectors`] reads the new ones from the log; a rebuild collects them as they pass.
//!
//! It counts as a forget without erasure: derived files that were written before are rebuilt after a crash.
//!
//! A vector of the epoch in force (0 before the first `reembed`) *fills* an item that has none: it is seen at once, and
//! joins the tail of its layer. `v` is absent if the model says that the text has no vector; then nothing asks again.
//!
//! | an item | its own record | a row of the epoch in force |
//! |---|---|---|
//! | came with a vector | has it | none |
//! | is pending | has none | none |
//! | was filled | has none | has the vector, or says that there is none |

use crate::Result;
use crate::model::item::{Attributes, ItemId, Layer};
use crate::model::space::Space;
use crate::records::record::{FieldValue, ItemRecord, Record, ReembedRecord, VectorRecord};
use crate::records::tables;
use crate::state::attributes::Column;
use crate::state::content::ContentReader;
use crate::state::covered_items::CoveredItems;
use crate::state::embedder::FINGERPRINT;
use crate::state::pages::is_event;
use crate::state::{LookupCache, State};
use holotype_index::VectorTail;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A vector of an item in an epoch: the log position of its record, and true if the item has one.
type VectorRow = (u64, bool);

/// The epoch in force, and the first item whose own record has its vector.
type EpochRow = (u64, u32);

/// True if an item has a text that a model can make a vector of.
pub(crate) fn is_embeddable(record: &ItemRecord) -> bool {
    let says = match record.field("text").map(|field| &field.value) {
        Some(FieldValue::Text(text) | FieldValue::Json(text)) => !text.trim().is_empty(),
        Some(FieldValue::Chunks { len, .. }) => *len > 0,
        Some(FieldValue::Bytes(_)) | None => false,
    };
    says && !is_event(record.tool.as_deref())
}

fn key(item: u32, epoch: u64) -> Vec<u8> {
    let mut key = tables::numbers([item]);
    key.extend_from_slice(&epoch.to_be_bytes());
    key
}

impl State {
    /// The epoch of the vectors in force, and its bound; `None` if no vector was ever made anew.
    pub(crate) fn vector_epoch(&self) -> Result<Option<EpochRow>> {
        self.get(tables::VECTOR, &[])
    }

    /// The number of the epoch in force, which is 0 if no vector was ever made anew.
    pub(crate) fn epoch_in_force(&self) -> Result<u64> {
        Ok(self.vector_epoch()?.map_or(0, |(epoch, _)| epoch))
    }

    /// The epoch in which a model makes the vectors anew.
    pub(crate) fn next_vector_epoch(&self, fingerprint: &str) -> Result<u64> {
        let before = self.vector_epoch()?.map_or(0, |(epoch, _)| epoch);
        let mut hasher = blake3::Hasher::new();
        hasher.update(&before.to_le_bytes()).update(fingerprint.as_bytes());
        let hash = hasher.finalize();
        let (first, _) = hash.as_bytes().split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
        // 0 is the epoch of vectors that were never made anew.
        Ok(u64::from_le_bytes(*first).max(1))
    }

    /// True if the vector of an item in an epoch is written.
    pub(crate) fn has_vector_in(&self, item: ItemId, epoch: u64) -> Result<bool> {
        self.has(tables::VECTOR, &key(item.0, epoch))
    }

    /// The log position of the record with an item's vector, if that is not its own record. `Some(None)`: it has no
    /// vector.
    fn vector_location(&self, item: ItemId) -> Result<Option<Option<u64>>> {
        let (epoch, bound) = self.vector_epoch()?.unwrap_or_default();
        let row: Option<VectorRow> = self.get(tables::VECTOR, &key(item.0, epoch))?;
        Ok(match row {
            None if item.0 >= bound => None,
            row => Some(row.filter(|(_, has)| *has).map(|(lsn, _)| lsn)),
        })
    }

    pub(crate) fn apply_vector(&mut self, record: &VectorRecord, lsn: u64) -> Result<()> {
        self.put_vector_row(record, lsn)?;
        if record.epoch == self.epoch_in_force()? {
            let id = ItemId(record.item);
            let mut attributes = self.attributes(id)?;
            self.set_pending(&mut attributes, false);
            attributes.has_vector = record.vector.is_some() && !attributes.redacted;
            self.attributes.set(id, attributes);
        }
        Ok(())
    }

    fn put_vector_row(&mut self, record: &VectorRecord, lsn: u64) -> Result<()> {
        self.put_new(tables::VECTOR, key(record.item, record.epoch), &(lsn, record.vector.is_some()))
    }

    /// Says of an item whether it is pending, and keeps the count of those that are.
    pub(crate) fn set_pending(&mut self, attributes: &mut Attributes, pending: bool) {
        let count = &mut self.meta.pending;
        match (std::mem::replace(&mut attributes.pending, pending), pending) {
            (false, true) => *count += 1,
            (true, false) => *count = count.saturating_sub(1),
            _ => {}
        }
    }

    /// The number of texts that wait for a vector of the database's model; 0 in a space without one.
    pub(crate) fn pending_count(&self) -> Result<u64> {
        if self.meta.pending == 0 || self.meta.space.is_none() || self.fingerprint()?.is_none() {
            return Ok(0);
        }
        match self.is_past {
            true => Ok(self.attributes.select(Column::Pending, self.bound(), &|pending| pending == 1.0)?.count()),
            false => Ok(u64::from(self.meta.pending)),
        }
    }

    /// The first items with a text and no vector, at most so many, in the order of their numbers.
    pub(crate) fn without_vector(&self, most: usize) -> Result<Vec<ItemId>> {
        if self.meta.pending == 0 {
            return Ok(Vec::new());
        }
        let pending = self.attributes.select(Column::Pending, self.bound(), &|pending| pending == 1.0)?;
        Ok(pending.iter().take(most).map(ItemId).collect())
    }

    /// Adds the vectors of the records that fill items to the tails of their layers, unless reused segments have them.
    pub(crate) fn index_filled<'r>(
        &mut self,
        records: impl IntoIterator<Item = &'r Record>,
        held: Option<&[CoveredItems; 3]>,
    ) -> Result<()> {
        if self.vectors_due {
            return Ok(());
        }
        let mut filled: [BTreeMap<u32, &[u8]>; 3] = Default::default();
        for record in records {
            let Record::Vector(VectorRecord { epoch, item, vector: Some(vector) }) = record else { continue };
            if *epoch == self.epoch_in_force()? && self.attributes(ItemId(*item))?.has_vector {
                filled[self.layer_of(ItemId(*item))? as usize].insert(*item, vector);
            }
        }
        if filled.iter().all(BTreeMap::is_empty) {
            return Ok(());
        }
        self.prepare_vectors()?;
        let Some(space) = self.meta.space.as_deref().map(Space::try_from).transpose()? else { return Ok(()) };
        for (number, filled) in filled.into_iter().enumerate() {
            let is_held = |id: u32| held.is_some_and(|held| held[number].vectors.contains(id));
            let decoded = filled.iter().filter(|(id, _)| !is_held(**id));
            let decoded = decoded.map(|(id, bytes)| Ok((*id, space.decode(bytes)?))).collect::<Result<Vec<_>>>()?;
            if let Some(vectors) = self.layers[number].vectors.as_mut().filter(|_| !decoded.is_empty()) {
                let tail = VectorTail::from(vectors.tail.clone());
                tail.insert(&decoded)?;
                vectors.tail = tail.view();
            }
        }
        Ok(())
    }

    /// Moves the location of a vector to another copy of its record.
    pub(crate) fn relocate_vector(&mut self, record: &VectorRecord, lsn: u64) -> Result<()> {
        match lsn > 0 && self.has(tables::VECTOR, &key(record.item, record.epoch))? {
            true => self.put_vector_row(record, lsn),
            false => Ok(()),
        }
    }

    /// Drops the vectors of a forgotten item, of every epoch.
    pub(crate) fn forget_vectors(&mut self, item: ItemId) -> Result<()> {
        for (key, _) in self.scan(tables::VECTOR, &tables::numbers([item.0]))? {
            self.rows.delete(tables::VECTOR, key);
        }
        Ok(())
    }

    /// Puts the vectors of an epoch in force.
    pub(crate) fn apply_reembed(&mut self, record: &ReembedRecord) -> Result<()> {
        for id in 0..record.bound.min(self.bound()) {
            let mut has_vector = false;
            for (found, value) in self.scan(tables::VECTOR, &tables::numbers([id]))? {
                if found == key(id, record.epoch) {
                    let (_, has): VectorRow = holotype_storage::codec::decode(&value)?;
                    has_vector = has;
                } else {
                    self.rows.delete(tables::VECTOR, found);
                }
            }
            let mut attributes = self.attributes(ItemId(id))?;
            has_vector &= !attributes.redacted;
            if attributes.has_vector != has_vector || attributes.pending {
                self.set_pending(&mut attributes, false);
                attributes.has_vector = has_vector;
                self.attributes.set(ItemId(id), attributes);
            }
        }
        self.put_new(tables::VECTOR, [], &(record.epoch, record.bound))?;
        self.put(tables::SETTING, FINGERPRINT, &record.fingerprint)?;
        self.lookup_cache = LookupCache::default();
        self.meta.space = Some(Arc::new(record.space.clone()));
        self.meta.forgets += 1;
        for layer in &mut self.layers {
            layer.vectors = None;
        }
        self.vectors_due = true;
        self.prepare_vectors()
    }

    /// Reads the vectors of all items into the index, if they were dropped.
    pub(crate) fn reload_vectors(&mut self, reader: &ContentReader) -> Result<()> {
        if !std::mem::take(&mut self.vectors_due) {
            return Ok(());
        }
        self.prepare_vectors()?;
        let Some(space) = self.meta.space.as_deref().map(Space::try_from).transpose()? else { return Ok(()) };
        for layer in Layer::ALL {
            let Some(mut vectors) = self.layers[*layer as usize].vectors.take() else { continue };
            let tail = VectorTail::from(holotype_index::TailView::empty(space.spec()));
            for id in (0..self.bound()).map(ItemId) {
                if self.layer_of(id)? == *layer
                    && let Some(bytes) = reader.vector(self, id)?
                {
                    tail.push(id.0, &space.decode(&bytes)?)?;
                }
            }
            vectors.tail = tail.view();
            self.layers[*layer as usize].vectors = Some(vectors);
        }
        Ok(())
    }
}

impl ContentReader {
    /// The stored vector of an item: that of the epoch in force, or its own record's.
    pub(crate) fn vector(&self, state: &State, id: ItemId) -> Result<Option<Vec<u8>>> {
        if !state.attributes(id)?.has_vector {
            return Ok(None);
        }
        match state.vector_location(id)? {
            None => Ok(self.read(state, id)?.record.vector.clone()),
            Some(None) => Ok(None),
            Some(Some(lsn)) => match self.record_at(lsn)? {
                Record::Vector(record) if record.item == id.0 => Ok(record.vector),
                _ => Err(crate::Error::Corrupt { what: format!("log position {lsn} holds no vector of item {id}") }),
            },
        }
    }
}
