//! What a transaction tells forgetting of itself, and takes from it: which items only it holds, and what is to be erased.

use super::Transaction;
use crate::item::ItemId;
use crate::provenance;
use crate::record::{Field, FieldValue, ItemRecord, Record};
use crate::{Error, Result};
use holotype_storage::log::{Erase, Log, Lsn};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Transaction<'_> {
    pub(crate) fn log(&self) -> Arc<Log> {
        Arc::clone(&self.inner.log)
    }

    pub(crate) fn has_other_readers(&self) -> Result<bool> {
        Ok(self.inner.lock.has_other_readers()?)
    }

    /// Refuses to erase what only this transaction holds, unless there is nothing to erase in it.
    pub(crate) fn check_are_stored(&self, items: &BTreeSet<u32>) -> Result<()> {
        match self.own.values().find(|own| items.contains(&own.id) && has_content(own)) {
            None => Ok(()),
            Some(own) => Err(Error::Invalid(format!(
                "{} was written by this transaction: commit it before it is forgotten, or do not write it",
                own.item()
            ))),
        }
    }

    /// Whether this transaction itself wrote all of these.
    pub(crate) fn are_own(&self, items: &BTreeSet<u32>) -> bool {
        items.iter().all(|id| self.own.contains_key(id))
    }

    /// Whether this transaction wrote an item, and the item says something.
    pub(crate) fn is_own_with_content(&self, id: ItemId) -> bool {
        self.own.get(&id.0).is_some_and(|own| has_content(own))
    }

    pub(crate) fn is_staged_to_erase(&self, lsn: Lsn) -> bool {
        self.erase.iter().any(|erase| erase.lsn == lsn)
    }

    /// Adds a record and says which of the transaction's it is.
    pub(crate) fn stage(&mut self, record: Record) -> Result<usize> {
        self.push(record)?;
        Ok(self.records.len() - 1)
    }

    pub(crate) fn stage_erase(&mut self, erase: Erase) {
        self.erase.push(erase);
    }
}

/// Whether an item says anything.
fn has_content(record: &ItemRecord) -> bool {
    let says = |field: &Field| match &field.value {
        FieldValue::Chunks { len, .. } => *len > 0,
        value => !provenance::field_bytes(value).is_empty(),
    };
    record.vector.is_some() || record.speaker.is_some() || record.fields.iter().any(says)
}
