//! The part of a transaction that forgetting uses: items that only the transaction holds, and records to erase.

use super::Transaction;
use crate::model::item::ItemId;
use crate::records::record::{Field, FieldValue, ItemRecord, Record};
use crate::{Error, Result};
use holotype_storage::log::{Erase, Log, Lsn};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Transaction<'_> {
    pub(crate) fn log(&self) -> Arc<Log> {
        Arc::clone(&self.core.log)
    }

    pub(crate) fn has_other_readers(&self) -> Result<bool> {
        Ok(self.core.lock.has_other_readers()?)
    }

    /// Refuses to erase an item of this transaction, unless it has no content.
    pub(crate) fn check_stored(&self, items: &BTreeSet<u32>) -> Result<()> {
        match self.own.values().find(|own| items.contains(&own.id) && has_content(own)) {
            None => Ok(()),
            Some(own) => Err(Error::Invalid(format!(
                "{} was written by this transaction; commit it before forgetting it",
                own.item()
            ))),
        }
    }

    /// True if this transaction wrote all of these items.
    pub(crate) fn wrote_all(&self, items: &BTreeSet<u32>) -> bool {
        items.iter().all(|id| self.own.contains_key(id))
    }

    /// True if this transaction wrote the item and the item has content.
    pub(crate) fn wrote_content(&self, id: ItemId) -> bool {
        self.own.get(&id.0).is_some_and(|own| has_content(own))
    }

    pub(crate) fn is_staged_to_erase(&self, lsn: Lsn) -> bool {
        self.erase.iter().any(|erase| erase.lsn == lsn)
    }

    /// Stages a record and returns its index in the transaction.
    pub(crate) fn stage(&mut self, record: Record) -> Result<usize> {
        self.push(record)?;
        Ok(self.records.len() - 1)
    }

    pub(crate) fn stage_erase(&mut self, erase: Erase) {
        self.erase.push(erase);
    }
}

/// True if an item has a text, a field, a vector or a speaker.
fn has_content(record: &ItemRecord) -> bool {
    let says = |field: &Field| match &field.value {
        FieldValue::Chunks { len, .. } => *len > 0,
        value => !value.bytes().is_empty(),
    };
    record.vector.is_some() || record.speaker.is_some() || record.fields.iter().any(says)
}
