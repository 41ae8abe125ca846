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

use crate::Result;
use crate::model::item::{ItemId, Layer};
use crate::model::space::Space;
use crate::records::record::{Record, ReembedRecord, VectorRecord};
use crate::records::tables;
use crate::state::content::ContentReader;
use crate::state::embedder::FINGERPRINT;
use crate::state::{LookupCache, State};
use holotype_index::VectorTail;
use std::sync::Arc;

/// A vector of an item in an epoch: the log position of its record, and true if the item has one.
type VectorRow = (u64, bool);

/// The epoch in force, and the first item whose own record has its vector.
type EpochRow = (u64, u32);

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
        let Some((epoch, bound)) = self.vector_epoch()? else { return Ok(None) };
        if item.0 >= bound {
            return Ok(None);
        }
        let row: Option<VectorRow> = self.get(tables::VECTOR, &key(item.0, epoch))?;
        Ok(Some(row.filter(|(_, has)| *has).map(|(lsn, _)| lsn)))
    }

    pub(crate) fn apply_vector(&mut self, record: &VectorRecord, lsn: u64) -> Result<()> {
        self.put_new(tables::VECTOR, key(record.item, record.epoch), &(lsn, record.vector.is_some()))
    }

    /// Moves the location of a vector to another copy of its record.
    pub(crate) fn relocate_vector(&mut self, record: &VectorRecord, lsn: u64) -> Result<()> {
        match lsn > 0 && self.has(tables::VECTOR, &key(record.item, record.epoch))? {
            true => self.apply_vector(record, lsn),
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
            if attributes.has_vector != has_vector {
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
