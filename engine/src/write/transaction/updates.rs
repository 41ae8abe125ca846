//! Updating an item: a new item supersedes it and takes over its key and its evidence (TierMem B.6).

use super::{Transaction, check_name};
use crate::model::edge::Edge;
use crate::model::item::{ItemId, Layer};
use crate::model::pointer::Pointer;
use crate::records::field::LABELS;
use crate::records::record::{PointerRecord, PointerTarget, Record, RekeyRecord};
use crate::write::draft::NewRecall;
use crate::{Error, Result};

impl Transaction<'_> {
    /// Supersedes the item that holds `key` by a new one. The key moves to the new item, which gets the pointers of
    /// both (TierMem B.6), and the fields and labels of the old one that it does not state.
    pub fn update(&mut self, key: &str, recall: NewRecall) -> Result<ItemId> {
        self.atomically(|transaction| transaction.update_inner(key, recall))
    }

    fn update_inner(&mut self, key: &str, mut recall: NewRecall) -> Result<ItemId> {
        let old = self.find_key(key)?;
        let attributes = self.state.attributes(old)?;
        if attributes.layer() == Layer::Trace {
            return Err(Error::Invalid(format!("'{key}' is a trace: what happened cannot be updated, only marked")));
        }
        recall.key = None;
        let kept = self.fields_to_keep(old, &recall.fields)?;
        recall.fields.extend(kept.into_iter().filter(|field| field.name != LABELS || recall.labels.is_empty()));
        let inherited = self.state.pointers(old)?;
        // An item that rested on nothing still does, unless evidence is given now.
        let stays_ungrounded = recall.from.is_empty() && inherited.is_empty() && self.content(old)?.record.ungrounded;
        recall.ungrounded |= stays_ungrounded;
        let fresh = recall.from.iter().map(|pointer| self.resolve(pointer)).collect::<Result<Vec<_>>>()?;
        let new = self.remember_with(recall, inherited, fresh)?;
        let spare = self.generated_key()?;
        self.push(Record::Rekey(RekeyRecord { key: spare, item: old.0 }))?;
        self.push(Record::Rekey(RekeyRecord { key: key.to_owned(), item: new.0 }))?;
        self.link(new, Edge::Supersedes, old)?;
        Ok(new)
    }

    /// Gives an item another key; the item stays as it is. The key before leads to it until another item takes that.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the key is no key, or another item's; [`Error::Missing`].
    pub fn rename(&mut self, item: ItemId, key: &str) -> Result<()> {
        check_name("key", key)?;
        if key.starts_with('~') {
            return Err(Error::Invalid(format!("key '{key}': keys that begin with '~' are made by the database")));
        }
        self.state.attributes(item)?;
        match self.state.item_by_key(key)? {
            Some(holder) if self.names()?.key_of(holder)? == key && holder == item => Ok(()),
            Some(holder) if self.names()?.key_of(holder)? == key => {
                Err(Error::Invalid(format!("the key '{key}' is taken: rename its item first")))
            }
            _ => self.push(Record::Rekey(RekeyRecord { key: key.to_owned(), item: item.0 })),
        }
    }

    /// Retires an item and takes its key away, so that another one can have it.
    pub(crate) fn retire_with_key(&mut self, item: ItemId, because: String) -> Result<()> {
        self.atomically(|transaction| {
            transaction.deactivate(item, None, Some(because))?;
            let key = transaction.generated_key()?;
            transaction.push(Record::Rekey(RekeyRecord { key, item: item.0 }))
        })
    }

    fn remember_with(
        &mut self,
        mut recall: NewRecall,
        inherited: Vec<PointerRecord>,
        fresh: Vec<PointerRecord>,
    ) -> Result<ItemId> {
        recall.from =
            inherited.into_iter().chain(fresh).map(|pointer| self.as_stated(pointer)).collect::<Result<_>>()?;
        self.remember(recall)
    }

    /// A stored pointer in the form that callers use.
    pub(crate) fn as_stated(&self, pointer: PointerRecord) -> Result<Pointer> {
        Ok(match pointer.target {
            PointerTarget::Item(id) => {
                Pointer::to_item(ItemId(id)).field(pointer.field).bytes(pointer.start, pointer.end)
            }
            PointerTarget::Page(page) => Pointer::to_page(self.state.page(page)?.key),
        })
    }
}
